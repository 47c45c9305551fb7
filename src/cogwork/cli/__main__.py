"""`cogwork`, and `python -m cogwork.cli`: Ctrl-C is silent while the command line is loaded."""

from __future__ import annotations

import sys

__all__ = ("main",)

INTERRUPTED = 130
"""As in `exit_codes`, which is not loaded yet."""


def main() -> None:
    """Run the command line of this process."""
    try:
        from cogwork.cli.main import main as run  # noqa: PLC0415  # it takes a while
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
