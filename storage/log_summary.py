"""What a day of logging comes to."""

from datetime import UTC, date, datetime, time, timedelta

from storage.domain.log_summary import DaySummary, ModelDay
from storage.domain.request_logs import to_us
from storage.engine.log_reader import read_moment
from storage.engine.log_summary import sum_up
from storage.engine.rows.workspaces import select_workspaces
from storage.store import Store


def summarize_day(store: Store, day: date) -> DaySummary:
    """Sum up the logs of all workspaces that were recorded on a day (UTC), flushed or not."""
    since = datetime.combine(day, time.min, UTC)
    with store.catalog.read() as connection:
        ids = [workspace.id for workspace in select_workspaces(connection)]
    moments = {workspace_id: read_moment(store.logs, workspace_id) for workspace_id in ids}
    models, hours = sum_up(
        store.data, moments, from_us=to_us(since), until_us=to_us(since + timedelta(days=1))
    )
    return DaySummary(
        day.isoformat(),
        len(ids),
        tuple(ModelDay(*row) for row in models),
        tuple((h, n, e) for h, n, e in hours),
    )
