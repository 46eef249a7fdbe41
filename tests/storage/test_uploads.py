"""The spool: whole files under their id or nothing, kept as long as an operation may read them."""

import os
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from storage.domain.errors import NotFound, PayloadTooLarge, Unavailable
from storage.domain.imports import NewSheet
from storage.domain.keys import Principal
from storage.domain.uploads import Upload, upload_of
from storage.operations import fail
from storage.settings import Settings
from storage.store import Store, open_store
from storage.tables import create_table
from storage.uploads import Incoming, get_upload_path, start_upload_import, sweep_uploads


def parked(store: Store, content: bytes = b"a\n") -> Upload:
    incoming = Incoming(store)
    incoming.write(content)
    return incoming.park()


def spool(store: Store) -> list[str]:
    folder = store.data.path("spool")
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def age(store: Store, days: float) -> None:
    then = (store.now() - timedelta(days=days)).timestamp()
    for path in store.data.path("spool").iterdir():
        os.utime(path, (then, then))


def test_a_parked_upload_is_what_came(store: Store) -> None:
    incoming = Incoming(store)
    for piece in (b"one,", b"", b"two\n"):
        incoming.write(piece)
    upload = incoming.park()
    assert (upload.bytes, upload.sha256) == (8, sha256(b"one,two\n").hexdigest())
    assert get_upload_path(store, upload).read_bytes() == b"one,two\n"
    assert upload_of(upload.spec()) == upload
    assert spool(store) == [str(upload.id)]


def test_an_upload_without_a_byte_is_a_file_too(store: Store) -> None:
    assert get_upload_path(store, Incoming(store).park()).read_bytes() == b""


def test_what_is_discarded_is_gone(store: Store) -> None:
    incoming = Incoming(store)
    incoming.discard()
    incoming.write(b"a")
    assert len(spool(store)) == 1
    incoming.discard()
    incoming.discard()
    assert spool(store) == []


def test_the_limit_is_inclusive(settings: Settings) -> None:
    store = open_store(Settings(home=settings.home, max_file_bytes=10))
    assert parked(store, b"0123456789").bytes == 10
    incoming = Incoming(store)
    incoming.write(b"012345678")
    with pytest.raises(PayloadTooLarge):
        incoming.write(b"9a")
    incoming.discard()
    assert len(spool(store)) == 1
    store.close()


def test_old_uploads_are_swept_but_for_those_still_to_be_read(store: Store, who: Principal) -> None:
    waiting, ended, orphan = parked(store), parked(store), parked(store)
    Incoming(store).write(b"left by a crash")
    table = create_table(store, who).id
    for upload in (waiting, ended):
        started = start_upload_import(
            store,
            who,
            table_id=table,
            target=NewSheet("x"),
            file_name="x.csv",
            upload=upload,
            operation_id=None,
            request_hash="0",
        )
    fail(store, started.operation.no, 1, "no")
    age(store, store.settings.upload_days - 0.1)
    assert sweep_uploads(store) == 0
    age(store, store.settings.upload_days + 0.1)
    assert sweep_uploads(store) == 3
    assert spool(store) == [str(waiting.id)]
    with pytest.raises(NotFound, match="kept 7 days"):
        get_upload_path(store, orphan)


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_full_disk_refuses_the_upload_and_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with monkeypatch.context() as full:
        fail_with_enospc(full, call)
        incoming = Incoming(store)
        with pytest.raises(Unavailable, match="the disk is full"):
            receive(incoming)
        incoming.discard()
        assert spool(store) == []
    assert get_upload_path(store, parked(store, b"again")).read_bytes() == b"again"


def receive(incoming: Incoming) -> Upload:
    incoming.write(b"a")
    return incoming.park()


def fail_with_enospc(patch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "rename":
        patch.setattr(Path, "rename", refuse)
    else:
        patch.setattr(f"storage.engine.spool.os.{call}", refuse)
