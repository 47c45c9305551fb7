"""A service of RoundRobin: `python service.py` answers calls to `adder` until Ctrl-C.

Start as many as you like: each call goes to one of them. `python caller.py` calls.
"""

from __future__ import annotations

import argparse
import contextlib

from session import ENDPOINTS, Frames, Session

PING_S = 10.0
"""A session that says nothing for half a minute has gone."""


def add(request: Frames) -> object:
    """Add up what a call brings."""
    numbers = request.body["numbers"]
    print(f"adding {len(numbers)} numbers")
    return {"sum": sum(numbers)}


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint", default=ENDPOINTS["roundrobin"])
    session = Session(parser.parse_args().endpoint, name="adder")
    session.register("adder", window=4)
    print("serving adder", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            try:
                session.serve_one(add, timeout_s=PING_S)
            except TimeoutError:
                session.send("PING", {})
    session.close()


if __name__ == "__main__":
    main()
