"""The README tells the truth about settings."""

from dataclasses import fields
from pathlib import Path

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
