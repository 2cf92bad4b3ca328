"""The command ``pudica``: the same as the program's, from the wheel."""

import signal
import sys

from . import _pudica


def main() -> None:
    """Runs the command with this process's arguments and ends with its exit code."""
    # Python would only note Ctrl-C while Rust works; the command handles it as the program does. Where it is ignored, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_pudica.main(["pudica", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
