"""The server hands out one folder to this machine alone, whatever it is asked and however slowly."""

from __future__ import annotations

import http.client
import importlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from factorykit.errors import SiteError
from factorykit.site.policy import policy

serve = importlib.import_module("factorykit.site.serve")  # the package calls a function so
PAGE = f'<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy()}"></head>'


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server whose patience is short."""
    tmp_path = tmp_path_factory.mktemp("shop")
    files = {
        "index.html": f"{PAGE}home", "404.html": "100 % not here", "charts/a.embed.html": f"{PAGE}chart",
        "charts/a.html": f"{PAGE}chart", "charts/a.svg": "<svg/>", "tables/ü 1.csv": "a,b\n", "old.html": "no policy",
    }  # fmt: skip
    for name, text in files.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "site/link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "site/empty").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(serve, "REQUEST_S", 0.3)
        patched.setattr(serve, "AT_ONCE", 6)
        patched.setattr(serve.Handler, "timeout", 0.3)
        yield from running(tmp_path / "site")


def running(folder: Path) -> Iterator[int]:
    with serve.server(folder, port=0) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        assert running.server_address[0] == "127.0.0.1"
        yield running.server_port
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def silent(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nothing is said on standard error."""
    yield
    assert capsys.readouterr().err == ""


def answered(port: int, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/", None, 200),
        ("/index.html?x=1", None, 200),
        ("/tables/%C3%BC%201.csv", None, 200),
        ("/none/deep.html", None, 404),
        ("/index.html/", None, 404),
        ("/../secret.txt", None, 404),
        ("/%2e%2e/secret.txt", None, 404),
        ("/..%2fsecret.txt", None, 404),
        ("/link.txt", None, 404),
        ("/empty/", None, 404),
        ("/", "evil.example", 403),
        ("/", "evil.example:80", 403),
        ("/", "[::1", 403),
        ("//evil.example/index.html", None, 404),
    ],
)
def test_the_server_hands_out_the_folder_and_nothing_else(shop: int, path: str, host: str | None, status: int):
    answer, said = answered(shop, path, **({"Host": host} if host else {}))
    assert answer.status == status
    assert (said == b"100 % not here") is (status == 404)
    assert b"secret" not in said.replace(b"secret.txt", b"")


ODD = {
    b"GET /%zz%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n": 404,
    b"GET /\x00\xff HTTP/1.1\r\nHost: localhost\r\n\r\n": 404,
    b"GET " + b"/a" * 5_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n": 404,
    b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n": 404,
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n": 414,
    b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(200)) + b"\r\n": 431,
    b"GET http://localhost/index.html HTTP/1.1\r\nHost: localhost\r\n\r\n": 200,
    b"GET http://evil.example/index.html HTTP/1.1\r\nHost: localhost\r\n\r\n": 403,
    b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n": 403,
    b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n": 403,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=99-3,x\r\n\r\n": 200,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nIf-Modified-Since: yesterday\r\n\r\n": 200,
    b"GET / HTTP/9.9\r\n\r\n": 505,
    b"nonsense\r\n\r\n": 400,
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nGET /": 501,
}


@pytest.mark.parametrize("request_", ODD, ids=lambda text: repr(text[:40]))
def test_odd_requests_have_an_answer(shop: int, request_: bytes):
    with socket.create_connection(("127.0.0.1", shop), timeout=5) as client, client.makefile("rb") as said:
        client.sendall(request_)
        assert f" {ODD[request_]} " in said.readline().decode()


def test_each_answer_says_what_may_be_done_with_it(shop: int):
    page, _ = answered(shop, "/index.html")
    assert page.headers["Content-Security-Policy"] == f"{policy()}; frame-ancestors 'none'"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in page.headers["Server"]
    frame, _ = answered(shop, "/charts/a.embed.html")
    assert frame.headers["Content-Security-Policy"] == f"{policy()}; frame-ancestors *"
    assert "X-Frame-Options" not in frame.headers
    for path in ("/charts/a.svg", "/old.html", "/none", "/tables/%C3%BC%201.csv"):
        other, _ = answered(shop, path)
        assert other.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
        assert other.headers["X-Frame-Options"] == "DENY"
    assert other.headers["Content-Type"] == "text/csv; charset=utf-8"


def test_a_head_is_an_answer_without_its_text(shop: int):
    head, said = answered(shop, "/index.html", "HEAD")
    whole, text = answered(shop, "/index.html")
    assert (said, head.status) == (b"", 200)
    assert {**head.headers} | {"Date": ""} == {**whole.headers} | {"Date": ""}
    assert int(head.headers["Content-Length"]) == len(text)


def test_requests_sent_at_once_are_answered_in_their_order(shop: int):
    paths = ("/charts/a.svg", "/index.html", "/none")
    with socket.create_connection(("127.0.0.1", shop), timeout=5) as client, client.makefile("rb") as file:
        client.sendall(b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths))
        said = file.read()
    assert said.index(b"<svg/>") < said.index(b"home") < said.index(b"100 % not here")


@pytest.mark.parametrize("begun", [b"", b"GET /index", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_client_that_says_no_more_is_left(shop: int, begun: bytes):
    with socket.create_connection(("127.0.0.1", shop), timeout=5) as client:
        client.sendall(begun)
        assert client.recv(1) == b""


def test_a_client_that_drips_is_left_too(shop: int):
    with socket.create_connection(("127.0.0.1", shop), timeout=0.1) as client:
        for byte in [b"G", *[b"x"] * 50]:
            try:
                client.sendall(byte)
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("after five seconds it was still listened to")


def test_more_clients_than_there_is_room_for_are_sent_away_and_the_rest_served(shop: int):
    with ExitStack() as stack:
        idle = [socket.create_connection(("127.0.0.1", shop), timeout=5) for _ in range(serve.AT_ONCE + 3)]
        for each in idle:
            stack.enter_context(each)
        assert [each.recv(1) for each in idle] == [b""] * len(idle)
    for _ in range(100):
        with suppress(ConnectionError):
            assert answered(shop, "/")[0].status == 200
            return
        time.sleep(0.02)
    pytest.fail("their places stay taken")


def test_a_port_that_is_taken_is_named(shop: int, tmp_path: Path):
    (tmp_path / "index.html").write_text("home")
    with pytest.raises(SiteError, match=f"port {shop} cannot be used"):
        serve.server(tmp_path, port=shop)
