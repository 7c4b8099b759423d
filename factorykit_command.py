"""The command ``factorykit``: an interrupt ends it within a second, without a traceback, with status 130."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
PATIENCE_S = 0.7


def _leave(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(INTERRUPTED)


signal.signal(signal.SIGINT, _leave)  # while modules load nothing is half done


def main() -> int:
    """Run the command line and return its exit status."""
    from factorykit.cli import main as run

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if sys.argv[1:2] != ["lab"]:  # JupyterLab asks whether it should end
            _insist()
        status = run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:  # what still runs in threads is not waited for
        os._exit(status)
    return status


def _insist() -> None:
    """Leave a moment after an interrupt, also where a library is busy and does not look up."""
    import threading
    import time

    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)

    def watch() -> None:
        while os.read(told, 1)[0] != signal.SIGINT:
            pass
        time.sleep(PATIENCE_S)
        os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
