"""A local server for the built site."""

from __future__ import annotations

import io
import re
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import SiteError

LOOPBACK: Final = "127.0.0.1"
FRAMED: Final = ".embed.html"
"""Suffix of pages that other sites may embed in a frame."""
RANGE: Final = re.compile(r"bytes=(?=\d|-\d)(\d*)-(\d*)")
LOCAL_HOST: Final = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")


class Handler(SimpleHTTPRequestHandler):
    """Serve the files of one folder to this machine, without listings and without links that leave the folder."""

    def send_head(self) -> Any:
        """Send the header of a file, or an error."""
        if not LOCAL_HOST.fullmatch(self.headers.get("Host", LOOPBACK)):
            self.send_error(
                HTTPStatus.FORBIDDEN
            )  # DNS rebinding: the page of another host whose name resolves to this machine
            return None
        try:
            path = Path(self.translate_path(self.path)).resolve()
            page = path / "index.html" if path.is_dir() else path
            if page.is_file() and page.is_relative_to(Path(self.directory).resolve()):
                part = RANGE.fullmatch(self.headers.get("Range", ""))
                return self._send_part(page, *part.groups()) if part else super().send_head()
        except (OSError, ValueError):  # a name too long for a file, or with a null byte
            pass
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def _send_part(self, page: Path, first: str, last: str) -> Any:
        """Send the header of the requested bytes of a file, and return them; Parquet readers send range requests."""
        content = page.read_bytes()
        begin = int(first) if first else max(0, len(content) - int(last))
        end = min(len(content), int(last) + 1) if first and last else len(content)
        if begin >= end:
            return self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
        self.send_response(HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Type", self.guess_type(str(page)))
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        return io.BytesIO(content[begin:end])

    def end_headers(self) -> None:
        """Disable caching without revalidation, so that a new build is shown immediately."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("X-Content-Type-Options", "nosniff")
        if not getattr(self, "path", "").partition("?")[0].endswith(FRAMED):
            self.send_header("X-Frame-Options", "DENY")
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the error page of the site for a missing page."""
        page = Path(self.directory) / "404.html"
        if code == HTTPStatus.NOT_FOUND and page.is_file():
            self.error_message_format = page.read_text("utf-8").replace("%", "%%")
        super().send_error(code, message, explain)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing per request."""


def server(folder: Path | str = "_site", *, port: int = 8000) -> ThreadingHTTPServer:
    """Return a server for ``folder`` on 127.0.0.1 that is not started; port 0 selects a free port.

    Raises
    ------
    SiteError
        If there is no site in the folder, or the port is taken.
    """
    root = Path(folder)
    if not (root / "index.html").is_file():
        raise SiteError(f"no site in {root}; `factorykit site build` makes one")
    try:
        return ThreadingHTTPServer((LOOPBACK, port), partial(Handler, directory=str(root.absolute())))
    except (OSError, OverflowError) as error:
        raise SiteError(f"port {port} cannot be used ({error}); give another one with --port, or 0 for any") from None


def serve(folder: Path | str = "_site", *, port: int = 8000) -> None:
    """Serve ``folder`` on 127.0.0.1 until interrupted, and print the address."""
    with server(folder, port=port) as running:
        sys.stdout.write(f"{Path(folder)} on http://{LOOPBACK}:{running.server_port}/ (stop with Ctrl+C)\n")
        sys.stdout.flush()
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
