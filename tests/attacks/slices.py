"""Calls with damaged arguments, one after another or slice by slice in processes that may hang, die or be killed."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from calls import attack

import factorykit as fk
from factorykit.errors import shown

SLICE: Final = 6000
"""Calls of one process."""
HANGS_S, SLOW_S = 60.0, 5.0
"""Of a call: seconds by the clock after which it is killed, of the processor that are too many."""
MOST_BYTES: Final = 4 * 2**30
"""Of a process; what takes more is killed before it takes the machine's."""
SAID: Final = 500
"""Bytes that tell which call is being made."""
OWN: list[str] = []
"""Where may be written, the last one counts."""
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.symlink", "os.link"}


@contextlib.contextmanager
def kept_within(folder: Path) -> Iterator[None]:
    """Work in a folder so deep that no "../../.." leads out of it; nothing is written beside temporary files.

    Calls get "/" and "../../etc/passwd" as places to write to, and whoever runs the tests may be allowed to.
    """
    here, deep = Path.cwd(), folder.joinpath(*"a" * 40)
    deep.mkdir(parents=True, exist_ok=True)
    os.chdir(deep)
    OWN.append(str(Path(tempfile.gettempdir()).resolve()))
    if len(OWN) == 1:
        sys.addaudithook(_refuse)
    try:
        yield
    finally:
        os.chdir(here)
        OWN.append("/")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        writes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    else:
        writes = event in WRITES
    if writes and isinstance(arguments[0], (str, bytes, os.PathLike)):
        place = str(Path(os.fsdecode(arguments[0])).resolve())
        if not place.startswith((OWN[-1], "/dev/", "/proc/")) and "__pycache__" not in place:
            raise PermissionError(13, "Permission denied", place)


def failed(
    seed: int, numbers: Iterable[int], folder: Path, *, told: int | None = None, evenly: bool = False
) -> Iterator[str]:
    """Yield what went wrong in calls with damaged arguments, made in a folder of their own.

    ``told`` is an open file that says which call is being made; ``evenly`` makes slow calls as often as others in an
    eighth of all.
    """
    with kept_within(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            name, function, arguments = attack(seed, number, evenly=evenly and number % 8 == 0)
            made = (
                f"{number} {name} with {', '.join(f'{key}: {type(each).__name__}' for key, each in arguments.items())}"
            )
            if told is not None:
                os.pwrite(told, made.encode()[:SAID].ljust(SAID), 0)
            began = time.process_time()
            try:
                function(**arguments)
            except fk.FactorykitError as error:
                said = str(error)
                if max(map(len, said.split("\n"))) > 300 or any(letter < " " and letter != "\n" for letter in said):
                    yield f"{made} says {said[:80]!r} in {len(said)} characters"
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic of polars is no ``Exception``
                yield f"{made}: {type(error).__name__}: {shown(error)}"
            if (took := time.process_time() - began) > SLOW_S:
                yield f"{made} took {took:.0f} s"


def failed_in_slices(seed: int, number: int, folder: Path) -> Iterator[str]:
    """Yield what went wrong in so many calls, each slice of them made by a process of its own.

    A call that hangs, ends its process or takes too much memory counts as one; the next process goes on behind it.
    Whoever runs this as root makes the calls as nobody, who can read all and write next to nothing.
    """
    first = 0
    while first < number:
        place = Path(tempfile.mkdtemp(dir=folder))
        found, first = _slice(seed, first, min(number, first + SLICE), place)
        shutil.rmtree(place, ignore_errors=True)
        yield from found


def _slice(seed: int, first: int, last: int, place: Path) -> tuple[list[str], int]:
    """Return what went wrong from the first call on, and the number of the call to go on with."""
    at, said, cried = (place / name for name in ("at", "said", "cried"))
    at.write_bytes(b"%d" % first)
    program: list[str] = []
    if os.geteuid() == 0 and (setpriv := shutil.which("setpriv")):
        reads = [f"--{kind}=-all,+dac_read_search" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
        program = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", *reads]
        for each in (place, at):
            os.chown(each, 65534, 65534)
    environment = os.environ | {"TMPDIR": str(place), "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [*program, sys.executable, "-W", "ignore", __file__, *map(str, (seed, first, last, place))]
    with said.open("wb") as out, cried.open("wb") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        why = watched(process.pid, at)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        ended = process.wait()
    found = said.read_text(encoding="utf-8", errors="replace").splitlines()
    if ended == 0:
        return found, last
    made = at.read_text(encoding="utf-8", errors="replace").strip()
    cry = cried.read_text(encoding="utf-8", errors="replace")[-300:].replace("\n", " ")
    return [*found, f"{made} {why or f'ends the process with {ended}: {cry}'}"], int(made.partition(" ")[0]) + 1


def watched(process: int, at: Path) -> str:
    """Return what is wrong with a process whose calls are told in a file, or nothing once it has ended."""
    seen, since = b"", time.monotonic()
    while not os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.1)
        if (now := at.read_bytes()) != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() - since > HANGS_S:
            return f"hangs for {HANGS_S:.0f} s"
        with contextlib.suppress(OSError):  # it has just ended
            if int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize() > MOST_BYTES:
                return f"takes more than {MOST_BYTES / 2**30:.0f} GiB"
    return ""


if __name__ == "__main__":
    faulthandler.enable()
    begin, end, own = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    for line in failed(int(sys.argv[1]), range(begin, end), own, told=os.open(own / "at", os.O_RDWR), evenly=True):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
