"""External ids: what other systems call an entity, as a pair of source and id."""

from storage.domain.errors import Invalid, Problem
from storage.domain.prompts import ExternalId


def external_pair(source: str | None, external_id: str | None) -> ExternalId | None:
    """Make the pair that a query asks for; None when it asks for none.

    Raises:
        Invalid: one was given without the other.
    """
    if source is None and external_id is None:
        return None
    if source is None or external_id is None:
        missing = "external_source" if source is None else "external_id"
        raise Invalid(Problem(("query", missing), "external_source and external_id come together", "missing"))
    return ExternalId(source, external_id)
