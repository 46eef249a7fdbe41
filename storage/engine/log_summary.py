"""Sums over the logs of all workspaces that were recorded in a span of time."""

from collections.abc import Mapping
from typing import Any

from storage.domain.log_columns import LOG_COLUMNS
from storage.engine.data_root import DataRoot
from storage.engine.log_reader import LogMoment
from storage.engine.log_sql import arrow_ids, arrow_tail, duck, present, segments, spread
from storage.engine.rows.log_segments import Segment

_NAMES = "id, created_at, model, status, input_tokens, output_tokens, price, latency_ms"
_BY_MODEL = """
SELECT model, count(*) AS requests, count(*) FILTER (status = 'ERROR'),
  CAST(sum(input_tokens) AS HUGEINT), CAST(sum(output_tokens) AS HUGEINT), sum(price),
  quantile_cont(latency_ms, 0.5), quantile_cont(latency_ms, 0.95)
FROM logs_ GROUP BY model ORDER BY requests DESC, model
"""
_BY_HOUR = """
SELECT hour(created_at) AS hour, count(*), count(*) FILTER (status = 'ERROR')
FROM logs_ GROUP BY hour ORDER BY hour
"""

Rows = list[tuple[Any, ...]]


def sum_up(
    data: DataRoot, moments: Mapping[int, LogMoment], *, from_us: int, until_us: int
) -> tuple[Rows, Rows]:
    """Return rows by model (model, requests, errors, tokens in and out, cost, p50, p95) and by hour.

    `until_us` is exclusive.
    """
    with duck() as connection:
        parts = []
        for workspace_id, moment in moments.items():
            connection.register(f"tail_{workspace_id:d}", arrow_tail(moment.tail))
            connection.register(f"gone_{workspace_id:d}", arrow_ids(moment.gone.ids))
            files = [one for one in moment.segments if _may_hold(one, from_us, until_us)]
            paths = [str(data.path(one.key)) for one in files]
            both = f"SELECT {_NAMES} FROM ({spread(f'tail_{workspace_id:d}')})"  # noqa: S608
            if paths:
                both += f" UNION ALL {segments(paths, _NAMES, LOG_COLUMNS)}"
            parts.append(f"SELECT * FROM ({both}) WHERE {present(moment.gone, f'gone_{workspace_id:d}')}")  # noqa: S608
        within = "created_at >= make_timestamptz($since) AND created_at < make_timestamptz($until)"
        logs = f"CREATE TEMP TABLE logs_ AS SELECT * FROM ({' UNION ALL '.join(parts)}) WHERE {within}"  # noqa: S608
        connection.execute(logs, {"since": from_us, "until": until_us})
        return connection.execute(_BY_MODEL).fetchall(), connection.execute(_BY_HOUR).fetchall()


def _may_hold(segment: Segment, from_us: int, until_us: int) -> bool:
    if segment.from_us is None or segment.to_us is None:
        return True
    return segment.from_us < until_us and segment.to_us >= from_us
