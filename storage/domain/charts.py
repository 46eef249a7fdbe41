"""A small bar chart as SVG: no library, no script, text escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 760, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 28, 28
_WHOLE, _PART, _INK = "#4f7cac", "#c8553d", "#444"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label, its height, and how much of that is drawn in the other colour."""

    label: str
    whole: float
    part: float = 0


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Draw bars from left to right over one axis that begins at 0."""
    top = max((bar.whole for bar in bars), default=0) or 1
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(bars), 1)
    drawn = [_text(_LEFT, 16, title, anchor="start", size=13)]
    drawn += [_line(top, share) for share in (0, 0.5, 1)]
    for place, bar in enumerate(bars):
        x = _LEFT + place * step
        drawn += [_rect(x, step, bar.whole / top, _WHOLE), _rect(x, step, bar.part / top, _PART)]
        drawn.append(_text(x + step / 2, _HEIGHT - 10, bar.label))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(drawn)}</svg>'
    )


def _rect(x: float, step: float, share: float, colour: str) -> str:
    height = share * (_HEIGHT - _TOP - _BOTTOM)
    place = f'x="{x + step * 0.1:.1f}" y="{_HEIGHT - _BOTTOM - height:.1f}"'
    return f'<rect {place} width="{step * 0.8:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _line(top: float, share: float) -> str:
    y = _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)
    ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'<line {ends} stroke="#ddd"/>{_text(_LEFT - 6, y + 4, f"{top * share:,.6g}", anchor="end")}'


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 11) -> str:
    style = f'font-family="sans-serif" font-size="{size}" text-anchor="{anchor}" fill="{_INK}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
