"""What a provider of models is: arguments of its own interface in, its answer out, as JSON values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

RATE_LIMIT = "PROVIDER_RATE_LIMIT"
QUOTA_LIMIT = "PROVIDER_QUOTA_LIMIT"
PARTIAL = "PROVIDER_PARTIAL_RESPONSE"
TIMEOUT = "PROVIDER_TIMEOUT"
AUTH_ERROR = "PROVIDER_AUTH_ERROR"
ERROR = "PROVIDER_ERROR"


class ProviderFailure(Exception):
    """A call that gave no answer.

    `error_type` is a word of 2.1. `again`: it may go better a second time. `after_s`: the provider asks
    everybody to wait that long.
    """

    def __init__(
        self, error_type: str, message: str, *, again: bool = False, after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message
        self.again = again
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: the provider's own JSON object, and the function of its interface that was called.

    `vectors` are the embeddings that were asked for, one a text.
    """

    body: Mapping[str, Any]
    function_name: str
    vectors: Sequence[Sequence[float]] = ()


def is_embedding(arguments: Mapping[str, Any]) -> bool:
    """Say whether arguments ask for embeddings: a parameter of a prompt may be called `input` as well."""
    return "input" in arguments and not {"messages", "prompt"} & arguments.keys()


class Provider(Protocol):
    """One provider, for one event loop."""

    async def send(self, arguments: Mapping[str, Any]) -> Reply:
        """Call a model once: `arguments` are those of the provider's own client.

        Raises:
            ProviderFailure: there is no answer.
        """

    async def close(self) -> None:
        """End its connections."""
