from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from storage.domain.findings import judge_durable_write, judge_free_disk
from storage.domain.prompts import Publication
from storage.engine.catalog import Catalog
from storage.health import check_storage
from storage.settings import Settings
from storage.store import Store
from storage.templates import publish
from storage.webhooks import create_webhook
from storage.workspaces import find_key
from tests.conftest import KEY


def states(settings: Settings, part: str = "storage") -> list[str]:
    return [finding.state for finding in check_storage(settings) if finding.part == part]


def test_a_store_that_is_well_has_nothing_to_advise(store: Store, settings: Settings) -> None:
    assert states(settings) == ["ok", "ok"]


def test_looking_makes_nothing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "nowhere")
    assert states(settings) == ["warning"]
    assert not settings.root.exists()
    settings.root.mkdir()
    assert states(settings) == ["warning", "warning"]
    assert list(settings.root.iterdir()) == []


def test_a_damaged_catalog_is_found(store: Store, settings: Settings) -> None:
    store.close()
    path = settings.root / "catalog.sqlite3"
    content = bytearray(path.read_bytes())
    content[4096 : 4096 + 16] = b"\xff" * 16
    path.write_bytes(content)
    assert states(settings)[0] == "failed"
    path.write_bytes(b"this is no database" * 500)
    assert states(settings)[0] == "failed"


def test_a_newer_and_an_older_schema_are_told_apart(store: Store, settings: Settings) -> None:
    catalog = Catalog(settings.catalog)
    with catalog.transaction() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999_of_tomorrow'"))
    assert states(settings)[0] == "failed"
    with catalog.transaction() as connection:
        connection.execute(sa.text("DELETE FROM alembic_version"))
    assert states(settings)[0] == "warning"
    catalog.close()


def test_little_space_and_a_slow_disk_are_said() -> None:
    judged = [judge_free_disk(free, "/x").state for free in (0, 999_999_999, 2_000_000_000, 6_000_000_000)]
    assert judged == ["failed", "failed", "warning", "ok"]
    assert [judge_durable_write(ms).state for ms in (1.0, 50.0)] == ["ok", "warning"]


def test_deliveries_that_do_not_leave_are_told_of(store: Store, settings: Settings) -> None:
    facts = find_key(store, KEY)
    assert facts is not None
    create_webhook(
        store, facts.principal, url="https://93.184.215.14/", event_types=["prompt_template_version_created"]
    )
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "x"}]}
    publish(store, facts.principal, Publication("greet", blueprint))
    assert not [one for one in check_storage(settings) if one.part == "webhooks"]
    (late,) = [
        one
        for one in check_storage(settings, now=store.now() + timedelta(minutes=2))
        if one.part == "webhooks"
    ]
    assert late.state == "warning"
    assert "1 deliveries" in late.sentence
