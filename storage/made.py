"""Whether a start finds the store made, told in milliseconds: the database library takes longer to load."""

from storage.engine.revisions import has_workspace, is_current
from storage.settings import Settings


def is_made(settings: Settings) -> bool:
    """Tell whether the store surely has this release's schema and its first workspace.

    A no means: open it, which makes what is missing and says what is wrong.
    """
    if settings.catalog_url or settings.log_url:
        return False
    catalog, logs = settings.root / "catalog.sqlite3", settings.root / "logs.sqlite3"
    return is_current(catalog, "catalog") and is_current(logs, "logs") and has_workspace(catalog)
