"""Which provider an engine means: built in, or configured by the operator; keys are in the environment."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipelines.columns.protocol import EngineUnavailable
from pipelines.providers.protocol import AUTH_ERROR, Provider
from pipelines.providers.remote import Anthropic, OpenAI
from pipelines.providers.stub import Stub
from storage.domain.llm_providers import ANTHROPIC, OPENAI, STUB, key_variable, parse_providers
from storage.settings import Settings


class MissingKey(EngineUnavailable):
    """The provider's key is not in the environment."""

    code = AUTH_ERROR


@dataclass(frozen=True, slots=True)
class Chosen:
    """A provider that can be asked: `open` makes it on an event loop."""

    name: str
    open: Callable[[], Provider]


def choose(settings: Settings, name: str, env: Mapping[str, str] = os.environ) -> Chosen:
    """Return the provider of a name.

    Raises:
        EngineUnavailable: the operator configured none of that name.
        MissingKey: it has no key; the message names the variable to set.
    """
    if name == STUB:
        return Chosen(STUB, Stub)
    timeout_s, places = settings.model_timeout_s, settings.model_calls
    others = parse_providers(settings.providers)
    if name == ANTHROPIC:
        key = _key(name, env)
        base_url = env.get("ANTHROPIC_BASE_URL", "")
        return Chosen(name, lambda: Anthropic(key, base_url, timeout_s=timeout_s, places=places))
    if name == OPENAI or name in others:
        key = _key(name, env)
        base_url = others.get(name) or env.get("OPENAI_BASE_URL", "")
        return Chosen(name, lambda: OpenAI(key, base_url, timeout_s=timeout_s, places=places))
    known = ", ".join([STUB, OPENAI, ANTHROPIC, *sorted(others)])
    raise EngineUnavailable(
        f"No provider {name[:100]!r} is configured; there are {known}. Others that speak OpenAI's interface "
        "are named in PROMPTLAKE_PROVIDERS."
    )


def _key(name: str, env: Mapping[str, str]) -> str:
    variable = key_variable(name)
    if key := env.get(variable, "").strip():
        return key
    raise MissingKey(f"Set {variable} in the environment of the service to call the provider {name}")
