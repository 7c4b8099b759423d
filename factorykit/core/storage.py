"""Files and folders, local or in an object store, through one interface."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import DatasetError, ScenarioError
from factorykit.core.extras import need
from factorykit.core.validation import file_path

PACKAGES: Final = {"s3": "obstore.fsspec", "gs": "obstore.fsspec", "az": "obstore.fsspec", "hf": "huggingface_hub"}
"""Package that reads and writes the objects of a scheme; polars scans all of them itself."""
READ_ONLY: Final = ("hf",)


def storage_path(name: str, value: object, *, written: bool = False) -> Any:
    """Return a local path or, for the URL of an object store, an object with the methods of a path.

    Credentials, region and endpoint come from the environment (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``) or the identity
    of the machine. An object appears when it is complete, so that writing one is atomic.

    Raises
    ------
    ScenarioError
        If it is neither, or the store would be ``written`` and is read-only, or cannot be reached.
    NotInstalled
    """
    url = str(value)
    scheme, has_scheme, _ = url.partition("://")
    if not has_scheme:
        if url.partition(":/")[0] in PACKAGES:
            raise ScenarioError(f"{name} = {url!r}: a Path drops a slash of a URL; give it as text")
        return file_path(name, value)
    known = [protocol for protocol in PACKAGES if not (written and protocol in READ_ONLY)]
    if scheme not in known:
        expected = ", ".join(f"{protocol}://" for protocol in known)
        raise ScenarioError(f"{name} = {url!r}: expected a local path or {expected}; give a local or mounted path")
    package, path_of = need(PACKAGES[scheme]), need("upath").UPath
    if scheme not in READ_ONLY and scheme not in need("fsspec").registry:
        package.register(scheme)
    path = path_of(url)
    try:
        path.exists()
    except Exception as error:  # the packages of object stores have no common error
        why = str(error).partition("\n")[0]
        raise ScenarioError(f"{name} = {url!r} cannot be reached: {why}; check the credentials") from None
    return path


def is_object(path: object) -> bool:
    """Return whether a path is that of an object store."""
    return not isinstance(path, Path)


def files_in(path: Any) -> list[Path]:
    """Return the files below a folder in order of their names, or the file itself; objects from one listing."""
    if is_object(path):
        return [type(path)(path.fs.unstrip_protocol(name)) for name in sorted(path.fs.find(str(path)))]
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


@contextmanager
def local_copy(file: Any) -> Iterator[Path]:
    """Provide an object as a local file with its name, folder and time until the block ends; a local file as it is."""
    if not is_object(file):
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, file.parent.name, file.name)
        copy.parent.mkdir(exist_ok=True)
        try:
            file.fs.get_file(str(file), str(copy))
            os.utime(copy, (file.stat().st_mtime,) * 2)
        except Exception as error:
            why = str(error).partition("\n")[0]
            raise DatasetError(f"{file} cannot be read: {why}; check the rights and call again") from None
        yield copy
