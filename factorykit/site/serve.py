"""Shows the rendered site on this machine, and to this machine alone."""

from __future__ import annotations

import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from factorykit.errors import SiteError

LOOPBACK = "127.0.0.1"


class Handler(SimpleHTTPRequestHandler):
    """Hands out the files of one folder: nothing outside it, no listings, no names of other hosts."""

    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".ipynb": "application/x-ipynb+json",
        ".js": "text/javascript",
        ".parquet": "application/vnd.apache.parquet",
    }

    def send_head(self) -> Any:
        """Answer with a file below the folder, or say why not."""
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
        if host not in (LOOPBACK, "localhost", None):
            return self._refuse(HTTPStatus.FORBIDDEN)
        root = Path(self.directory).resolve()
        wanted = unquote(urlsplit(self.path).path)
        if "\0" in wanted or "\\" in wanted or ".." in wanted.split("/"):
            return self._refuse(HTTPStatus.NOT_FOUND)
        path = (root / wanted.lstrip("/")).resolve()
        if not path.is_relative_to(root) or (path.is_dir() and not (path / "index.html").is_file()):
            return self._refuse(HTTPStatus.NOT_FOUND)
        return super().send_head()

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_error(status)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Say that nothing stands at an address with the site's own page."""
        page = Path(self.directory) / "404.html"
        if code == HTTPStatus.NOT_FOUND and page.is_file():
            self.error_message_format = page.read_text("utf-8").replace("%", "%%")
        super().send_error(code, message, explain)

    def end_headers(self) -> None:
        """Let the browser ask again each time, so that a new build shows at once."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


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
        return ThreadingHTTPServer((LOOPBACK, port), partial(Handler, directory=str(root.absolute())))
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
