"""A client of RoundRobin: `python caller.py 1 2 3` has `adder` add up, and prints the sum."""

from __future__ import annotations

import argparse
import sys

from session import ENDPOINTS, GatewayError, Session


def main() -> int:
    """Call once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", type=float, nargs="+")
    parser.add_argument("--endpoint", default=ENDPOINTS["roundrobin"])
    options = parser.parse_args()
    session = Session(options.endpoint, name="caller")
    try:
        print(session.call("adder", {"numbers": options.numbers})["sum"])
    except GatewayError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
