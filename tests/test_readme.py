"""The README tells the truth: settings, endpoints, columns of the views."""

import re
from dataclasses import fields
from pathlib import Path

from api.app import create_app
from storage.domain.filters import FIELDS, OPERATORS
from storage.domain.log_columns import LOG_COLUMNS, VIEWS
from storage.settings import PREFIX, Settings

README = (Path(__file__).parents[1] / "README.md").read_text()


def settings_table() -> str:
    lines = ["| Variable | Default | Meaning |", "|---|---|---|"]
    for field in fields(Settings):
        default = "" if field.default == "" else f"`{field.default}`"
        lines.append(f"| `{PREFIX}{field.name.upper()}` | {default} | {field.metadata['help']} |")
    return "\n".join(lines)


def test_every_setting_is_documented_as_it_is() -> None:
    written = README.split("<!-- settings -->\n")[1].split("\n<!-- /settings -->")[0]
    assert written == settings_table(), f"the table should be:\n{settings_table()}"


def test_the_table_of_endpoints_says_what_is_answered(tmp_path: Path) -> None:
    served = {
        f"{method.upper()} {path}"
        for path, methods in create_app(Settings(home=tmp_path)).openapi()["paths"].items()
        for method in methods
    }
    written = README.split("<!-- endpoints -->")[1].split("<!-- /endpoints -->")[0]
    rows = re.findall(r"\| (E\d+) \| `(.+?)` \| (.+?) \|", written)
    assert [number for number, _, _ in rows] == [f"E{number}" for number in range(1, 30)]
    for number, route, state in rows:
        assert state == ("yes" if route in served else "not yet"), number


def views_table() -> str:
    lines = ["| View | Column | Type | Unit | Meaning |", "|---|---|---|---|---|"]
    for view, columns in VIEWS.items():
        own = columns
        if view == "scored_request_logs":
            lines.append(f"| `{view}` | the columns of `request_logs`, and | | | |")
            own = columns[len(LOG_COLUMNS) :]
        lines += [f"| `{view}` | `{c.name}` | `{c.type}` | {c.unit} | {c.meaning} |" for c in own]
    return "\n".join(lines)


def test_the_views_are_documented_as_they_are_promised() -> None:
    written = README.split("<!-- views -->\n")[1].split("\n<!-- /views -->")[0]
    assert written == views_table(), f"the table should be:\n{views_table()}"


def test_the_table_of_filters_names_every_field_and_operator() -> None:
    written = README.split("<!-- filters -->")[1].split("<!-- /filters -->")[0]
    rows = re.findall(r"\| (\w+) \| (`.+?`) \| (`.+?`) \|", written)
    named = {
        kind: (re.findall(r"`(\w+)`", fields), re.findall(r"`(\w+)`", ops)) for kind, fields, ops in rows
    }
    assert named == {
        kind: ([field for field, of in FIELDS.items() if of == kind], list(operators))
        for kind, operators in OPERATORS.items()
    }
