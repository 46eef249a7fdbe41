import socket
from collections.abc import Iterator

import pytest

from pipelines.worker.wire import Lines, pack


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Lines]]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, Lines(theirs)


def test_messages_arrive_whole_however_they_were_cut(pair: tuple[socket.socket, Lines]) -> None:
    ours, lines = pair
    line = pack({"verb": "ping"})
    ours.sendall(line + line[:5])
    assert lines.receive() == [{"verb": "ping"}]
    assert lines.receive() == []
    ours.sendall(line[5:])
    assert lines.receive() == [{"verb": "ping"}]
    ours.close()
    assert lines.receive() is None


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n", b"\xff\xfe\n", b"{" * 20 + b"\n"])
def test_who_babbles_is_not_listened_to(pair: tuple[socket.socket, Lines], noise: bytes) -> None:
    ours, lines = pair
    ours.sendall(noise)
    assert lines.receive() is None


def test_what_is_no_object_is_no_message(pair: tuple[socket.socket, Lines]) -> None:
    ours, lines = pair
    ours.sendall(b'1\n[]\n{"verb":"ping"}\n')
    assert lines.receive() == [{"verb": "ping"}]
