"""The local server hands out one folder to this machine alone."""

from __future__ import annotations

import http.client
import importlib
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from factorykit.core.errors import SiteError

serve = importlib.import_module("factorykit.site.serve")  # the package has a function of this name


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server for a small site."""
    folder = tmp_path_factory.mktemp("served") / "site"
    for name, text in {"index.html": "home", "404.html": "100 % not here", "tables/ü 1.csv": "a,b\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder.parent / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "empty").mkdir()
    with serve.server(folder, port=0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        assert running.server_address[0] == "127.0.0.1"
        yield running.server_port
        running.shutdown()


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/", None, 200),
        ("/index.html?x=1", None, 200),
        ("/tables/%C3%BC%201.csv", None, 200),
        ("/none/deep.html", None, 404),
        ("/../secret.txt", None, 404),
        ("/%2e%2e/secret.txt", None, 404),
        ("/..%2fsecret.txt", None, 404),
        ("/link.txt", None, 404),
        ("/empty/", None, 404),
        ("/%00", None, 404),
        ("/" + "a" * 5_000, None, 404),
        ("/", "evil.example", 403),
        ("/", "evil.example:80", 403),
        ("/", "127.0.0.1:80:evil", 403),
    ],
)
def test_the_server_hands_out_the_folder_and_nothing_else(port: int, path: str, host: str | None, status: int):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request("GET", path, headers={"Host": host} if host else {})
        response = connection.getresponse()
        text = response.read()
    assert response.status == status
    assert (text == b"100 % not here") is (status == 404)
    assert b"secret" not in text.replace(b"secret.txt", b"")


def test_a_port_that_is_taken_is_named(port: int, tmp_path: Path):
    (tmp_path / "index.html").write_text("home")
    with pytest.raises(SiteError, match=f"port {port} cannot be used"):
        serve.server(tmp_path, port=port)
