"""Which providers of models can be asked: those whose keys are in the environment. Nothing is called."""

import os
from collections.abc import Mapping

from storage.domain.findings import Finding, ok
from storage.domain.llm_providers import ANTHROPIC, OPENAI, STUB, key_variable, parse_providers
from storage.settings import Settings


def check_providers(settings: Settings, env: Mapping[str, str] = os.environ) -> Finding:
    """Say which providers have a key; a service that asks no models needs none."""
    names = [OPENAI, ANTHROPIC, *sorted(parse_providers(settings.providers))]
    ready = [STUB, *(name for name in names if env.get(key_variable(name), "").strip())]
    missing = [key_variable(name) for name in names if name not in ready]
    without = f"; without a key: {', '.join(missing)}" if missing else ""
    return ok("models", f"can be asked: {', '.join(ready)}{without}")
