"""``python -m tamis``: the program ``tamis``."""

from __future__ import annotations

import signal
import sys

from tamis import _tamis


def main() -> int:
    """Run the program with the arguments of this process."""
    # An interrupt ends it at once, or as it says itself while a file is saved.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _tamis._main(["tamis", *sys.argv[1:]])  # noqa: SLF001


if __name__ == "__main__":
    sys.exit(main())
