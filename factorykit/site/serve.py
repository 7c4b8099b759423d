"""Shows the rendered site on this machine, and to this machine alone."""

from __future__ import annotations

import io
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from factorykit.errors import SiteError
from factorykit.site.policy import NOTHING, stated

LOOPBACK: Final = "127.0.0.1"
HOSTS: Final = (LOOPBACK, "localhost", "")
REQUEST_S: Final = 10.0
"""Time in which a request has to arrive whole, and a part of an answer to be taken."""
AT_ONCE: Final = 128
"""Connections that are answered at a time; more are closed."""
FRAMED: Final = ".embed.html"
"""Ends the names of pages that others may show in a frame."""
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the browser asks again each time, so that a new build shows at once
}


class Arriving(io.RawIOBase):
    """What a client sends, until a moment at which it has to have come."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.until = 0.0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what has come, within what is left of the time."""
        left = self.until - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


class Handler(SimpleHTTPRequestHandler):
    """Hands out the files of one folder: nothing outside it, no listings, no names of other hosts."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"
    server_version = "factorykit"
    sys_version = ""
    timeout = REQUEST_S
    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".ipynb": "application/x-ipynb+json",
        ".js": "text/javascript",
        ".parquet": "application/vnd.apache.parquet",
    }
    policy = NOTHING
    framed = False

    def setup(self) -> None:
        """Read the connection with an end to patience."""
        super().setup()
        self.arriving = Arriving(self.connection)
        self.rfile = io.BufferedReader(self.arriving)

    def handle_one_request(self) -> None:
        """Give each request its own time."""
        self.arriving.until = time.monotonic() + REQUEST_S
        self.policy, self.framed = NOTHING, False
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the head of a request; nothing behind it is taken for another one."""
        parsed = super().parse_request()
        self.connection.settimeout(REQUEST_S)
        if parsed and ("Content-Length" in self.headers or "Transfer-Encoding" in self.headers):
            self.close_connection = True  # what is sent along is not read, and is no next request
        return parsed

    def send_head(self) -> Any:
        """Answer with a file below the folder, or say why not."""
        asked = self._asked()
        if asked is None:
            return self._refuse(HTTPStatus.FORBIDDEN)
        root = Path(self.directory).resolve()
        if "\0" in asked or "\\" in asked or ".." in asked.split("/"):
            return self._refuse(HTTPStatus.NOT_FOUND)
        try:
            path = (root / asked.lstrip("/")).resolve()
            page = path / "index.html" if path.is_dir() else path
            if not (path.is_relative_to(root) and page.is_file()):
                return self._refuse(HTTPStatus.NOT_FOUND)
            self._state(page)
        except (OSError, ValueError):  # a name too long for a file, or none that a file can have
            return self._refuse(HTTPStatus.NOT_FOUND)
        self.path = quote(f"/{asked.strip('/')}{'/' if asked.strip('/') and asked.endswith('/') else ''}")
        return super().send_head()

    def _asked(self) -> str | None:
        """Return the path that is asked for, of this machine by its own names; else None."""
        try:
            asked = urlsplit(self.path if "://" in self.path.partition("?")[0] else f"//{LOOPBACK}{self.path}")
            named = urlsplit(f"//{self.headers.get('Host') or ''}")
            known = (asked.hostname or "") in HOSTS and (named.hostname or "") in HOSTS
            return unquote(asked.path) if known else None
        except ValueError:
            return None

    def _state(self, page: Path) -> None:
        """Take the policy that a page states for the header, and see who may frame it."""
        if page.suffix == ".html":
            self.policy, self.framed = stated(page), page.name.endswith(FRAMED)

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_error(status)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Say that nothing stands at an address with the site's own page."""
        page = Path(self.directory) / "404.html"
        if code == HTTPStatus.NOT_FOUND and page.is_file():
            self._state(page)
            self.error_message_format = page.read_text("utf-8").replace("%", "%%")
        super().send_error(code, message, explain)

    def guess_type(self, path: Any) -> str:
        """Return the type of a file; texts are UTF-8."""
        kind = super().guess_type(path)
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def end_headers(self) -> None:
        """Say with every answer what may be done with it."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        ancestors = "*" if self.framed else "'none'"
        self.send_header("Content-Security-Policy", f"{self.policy}; frame-ancestors {ancestors}")
        if not self.framed:
            self.send_header("X-Frame-Options", "DENY")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


class Server(ThreadingHTTPServer):
    """Answers so many at a time; who leaves or stays away is no error."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *given: Any) -> None:
        self.room = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is one to spare."""
        if self.room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.close_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and give the thread back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def shutdown_request(self, request: Any) -> None:
        """End an answer, and read on for a moment: a connection closed with unread bytes takes its answer along."""
        end = time.monotonic() + 1.0
        with suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            request.settimeout(1.0)
            while request.recv(65_536) and time.monotonic() < end:
                pass
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say in a line what went wrong, unless the client left."""
        error = sys.exception()
        if not isinstance(error, (ConnectionError, TimeoutError)):
            sys.stderr.write(f"a request was not answered: {error.__class__.__name__}: {error}\n")


def server(folder: Path | str = "_site", *, port: int = 8000) -> ThreadingHTTPServer:
    """Return a server for ``folder`` on 127.0.0.1 that is not yet running; port 0 takes a free one.

    Raises
    ------
    SiteError
        If there is no site in the folder, or the port is taken.
    """
    root = Path(folder)
    if not (root / "index.html").is_file():
        raise SiteError(f"no site in {root}; `factorykit site build` makes one")
    try:
        return Server((LOOPBACK, port), partial(Handler, directory=str(root.absolute())))
    except (OSError, OverflowError) as error:
        raise SiteError(f"port {port} cannot be used ({error}); give another one with --port, 0 for any") from None


def serve(folder: Path | str = "_site", *, port: int = 8000) -> None:
    """Serve ``folder`` on 127.0.0.1 until interrupted, and say where."""
    with server(folder, port=port) as running:
        sys.stdout.write(f"{Path(folder)} on http://{LOOPBACK}:{running.server_port}/ (stop with Ctrl+C)\n")
        sys.stdout.flush()
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
