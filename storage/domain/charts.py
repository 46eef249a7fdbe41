"""A small chart of hours as SVG, spelled so tersely that Dagster's UI shows it without being asked to."""

from collections.abc import Mapping

_HOURS = range(24)
_FLOOR, _HIGHEST = 52, 40
_WHOLE, _PART = "#47a", "#c43"


def hour_chart(by_hour: Mapping[int, tuple[int, int]]) -> str:
    """Draw a bar an hour: its whole height, and in another colour the part of it (requests, errors)."""
    most = max((whole for whole, _ in by_hour.values()), default=0)
    bars = [
        f'<path stroke="{colour}" d="{"".join(_bar(hour, by_hour, index, most) for hour in _HOURS)}"/>'
        for index, colour in enumerate((_WHOLE, _PART))
    ]
    hours = "".join(f'<text x="{hour * 10}" y="61">{hour}h</text>' for hour in (0, 12))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="480" viewBox="0 0 240 62">'
        # from here on x counts hours, and y goes up from the floor
        f'<g transform="matrix(10 0 0 -1 5 {_FLOOR})" stroke-width=".8">{"".join(bars)}</g>'
        f'<g font-size="8"><text y="8">{most:,}</text>{hours}</g></svg>'
    )


def _bar(hour: int, by_hour: Mapping[int, tuple[int, int]], index: int, most: int) -> str:
    value = by_hour.get(hour, (0, 0))[index]
    # the smallest is still seen
    height = max(1, round(value / most * _HIGHEST)) if value else 0
    return f"M{hour} 0v{height}" if height else ""
