"""The command `lowbit`, and `python -m lowbit`."""

import signal
import sys

from . import _lowbit


def main() -> None:
    """Runs the command with the arguments of the process, and exits."""
    # Python ignores SIGPIPE and turns Ctrl-C into an exception.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_lowbit._command(["lowbit", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
