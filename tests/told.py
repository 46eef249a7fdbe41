"""A receiver of webhooks in a thread, for tests and benchmarks that are no asyncio programs."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.receiving import Arrival


class Told:
    """A receiver in a thread; `at` holds when each arrival came (monotonic seconds)."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.at: list[float] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                told.at.append(time.monotonic())
                told.arrivals.append(Arrival(self.path, headers, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            # by default five callers may wait; the next one's connection takes a second
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def names(self) -> list[str]:
        return [arrival.event["event_type"] for arrival in self.arrivals]


@contextmanager
def telling() -> Iterator[Told]:
    told = Told()
    thread = threading.Thread(target=told.server.serve_forever)
    thread.start()
    try:
        yield told
    finally:
        told.server.shutdown()
        thread.join()
        told.server.server_close()
