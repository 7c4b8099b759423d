"""Downloads over HTTPS: complete, limited in size and time."""

from __future__ import annotations

import time
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.request import HTTPRedirectHandler, Request, build_opener

from factorykit.core import text_io
from factorykit.core.errors import DatasetError

TIMEOUT_S: Final = 60.0
"""Longest wait for a part of a response. [s]"""
DEADLINE_S: Final = 600.0
"""Longest download. [s]"""
CHUNK_BYTES: Final = 2**16


class HttpsRedirects(HTTPRedirectHandler):
    """Follows redirects to HTTPS addresses only."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Return the request for the new address."""
        if not newurl.lower().startswith("https://"):
            raise ValueError(f"it redirects to {newurl}, which does not start with https://")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str) -> bytes:
    """Return the content of an ``https://`` address, decompressed if it is compressed with gzip or xz.

    Raises
    ------
    DatasetError
        If the address has another scheme or redirects to one, or the response is truncated, too large or too late.
    """
    if not url.lower().startswith("https://"):
        raise DatasetError(f"{url}: an address starts with https://")
    try:
        with _open(url) as response:
            content = read_body(response, time.monotonic() + DEADLINE_S)
    except (OSError, ValueError, HTTPException) as error:
        raise DatasetError(f"{url} cannot be downloaded ({error}); give the path of a file instead") from None
    try:
        return text_io.decompressed(content)
    except ValueError as error:
        raise DatasetError(f"{url} {error}") from None


def _open(url: str) -> HTTPResponse:
    request = Request(url, headers={"User-Agent": "factorykit"})
    return build_opener(HttpsRedirects).open(request, timeout=TIMEOUT_S)


def read_body(response: HTTPResponse, deadline: float) -> bytes:
    """Return the body of a response; above the size limit its first bytes.

    Raises
    ------
    ValueError
        If the length is not known, or fewer bytes arrive.
    TimeoutError
        If the deadline, a time of `time.monotonic`, passes.
    """
    if response.length is None and not response.chunked:
        raise ValueError("the server does not state the length")
    body = bytearray()
    while len(body) <= text_io.MAX_FILE_BYTES and (part := response.read1(CHUNK_BYTES)):
        body += part
        if time.monotonic() > deadline:
            raise TimeoutError(f"it takes longer than {DEADLINE_S:g} s")
    if len(body) <= text_io.MAX_FILE_BYTES and response.length:
        raise ValueError(f"it ends after {len(body):,} bytes, {response.length:,} are missing")
    return bytes(body)
