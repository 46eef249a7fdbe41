"""The yardstick of ingest: a bare Starlette route that validates the same body and stores nothing."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.bench.measure import python


@contextmanager
def bare_server(workers: int = 1) -> Iterator[str]:
    """Serve the bare route in processes of its own, on the service's server and event loop; yield its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        port = listener.getsockname()[1]
        servers = [
            subprocess.Popen(
                [python(), "-m", "tests.bench.bare", str(listener.fileno())],
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )
            for _ in range(workers)
        ]
    try:
        _wait(port)
        yield f"http://127.0.0.1:{port}/log-request"
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait(10)


def _wait(port: int) -> None:
    # the socket is open before the server is: an answer, not a connection, says that it serves
    with suppress(TimeoutError), socket.create_connection(("127.0.0.1", port), timeout=30) as probe:
        probe.sendall(b"GET /log-request HTTP/1.0\r\n\r\n")
        probe.settimeout(30)
        probe.recv(1)


def serve(fd: int) -> None:
    import uvicorn  # noqa: PLC0415 - only the server's process pays for it
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    from api.schemas.request_logs import LOG_REQUEST  # noqa: PLC0415

    async def log_request(request: Request) -> Response:
        LOG_REQUEST.validate_json(await request.body())
        return Response(b'{"id":1,"prompt_version":null}', 201, media_type="application/json")

    app = Starlette(routes=[Route("/log-request", log_request, methods=["POST"])])
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", ws="none", access_log=False, log_level="warning"
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])


if __name__ == "__main__":
    import sys

    serve(int(sys.argv[1]))
