"""Programs that a build starts, none of which goes on when the build has ended, however it ended."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
GUARD = ("sh", "-c", 'trap "kill -9 0" TERM; "$@" & wait $!', "sh")
"""Runs a command, and kills all of its own process group, which are that command's children too, when told to end."""


def ends_with_me(by: int = signal.SIGKILL) -> Callable[[], None] | None:
    """Return what a child does first so that it gets a signal when this thread ends, however; Linux alone can."""
    if not sys.platform.startswith("linux"):
        return None
    control, parent = ctypes.CDLL(None).prctl, os.getpid()

    def bind() -> None:
        control(PR_SET_PDEATHSIG, by)
        if os.getppid() != parent:  # it ended before
            os._exit(1)

    return bind


def run(
    command: Sequence[str | Path], seconds: float | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it said; all it started ends with it when time is up, or when this process ends.

    Raises
    ------
    subprocess.TimeoutExpired
        If it has not ended after so many seconds.
    OSError
        If there is no such program.
    """
    if os.name != "posix":
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=env)
    if not shutil.which(command[0]):
        raise FileNotFoundError(errno.ENOENT, "no such program", str(command[0]))
    process = subprocess.Popen(
        [*GUARD, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=env, start_new_session=True, preexec_fn=ends_with_me(signal.SIGTERM),
    )  # fmt: skip
    try:
        said, complained = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(list(command), process.returncode, said, complained)
