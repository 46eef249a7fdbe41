"""What a call costs, by a maintained table of prices that needs no network."""

import logging
from functools import cache, lru_cache
from typing import Any

from storage.domain.calls.shapes import Usage

log = logging.getLogger("promptlake.prices")

# Names of providers here and in traces, by what the table calls them.
_PROVIDERS = {
    "openai.azure": "azure",
    "azure.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "anthropic.bedrock": "aws",
    "aws.bedrock": "aws",
    "amazon.bedrock": "aws",
    "gcp.vertex_ai": "google",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "vertexai": "google",
    "gemini": "google",
    "mistral_ai": "mistral",
    "x_ai": "x-ai",
}


def price_of(provider: str, model: str, usage: Usage, *, answered_by: str = "") -> float:
    """Price of a call in US dollars; 0 when the model is not in the table, which is logged once a model.

    What counts is the model that answered; one that the table does not know, by the model that was asked.
    """
    if not (model or answered_by) or not (usage.input or usage.output):
        return 0.0
    # brings its table of prices with it, which only those who need it wait for
    from genai_prices import Usage as Tokens  # noqa: PLC0415

    known = _known(provider, answered_by) or _known(provider, model)
    if known is None:
        _warn(provider, answered_by or model)
        return 0.0
    tokens = Tokens(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read or None,
        cache_write_tokens=usage.cache_write or None,
    )
    try:
        return float(known[1].calc_price(tokens, known[0]).total_price)
    except (LookupError, ValueError):
        _warn(provider, answered_by or model)
        return 0.0


@lru_cache(maxsize=1_000)
def _known(provider: str, model: str) -> tuple[Any, Any] | None:
    """Find a model in the table, which takes ten times as long as to calculate with it."""
    if not model:
        return None
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    for provider_id in (_PROVIDERS.get(provider, provider), None):
        try:
            found: tuple[Any, Any] = get_snapshot().find_provider_model(model, None, provider_id, None)
        except (LookupError, ValueError):
            continue
        return found
    return None


@cache
def _warn(provider: str, model: str) -> None:
    log.warning("no price is known for the model %r of %r: it counts as 0", model[:100], provider[:100])
