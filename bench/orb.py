"""How many messages a second an orb brings to its cogs; prints a line of JSON.

python bench/orb.py --cogs 10 --batch 100
"""

import argparse
import json
import time

from cogwork import Cog, Orb
from cogwork.cast import CanonicalBatch, CanonicalMessage


class ByBatch(Cog):
    """Counts batches' messages."""

    def __init__(self) -> None:
        self.count = 0

    def on_batch(self, batch: CanonicalBatch) -> None:
        self.count += len(batch)


class ByMessage(Cog):
    """Counts messages one by one."""

    def __init__(self) -> None:
        self.count = 0

    def on_message(self, message: CanonicalMessage) -> None:
        self.count += message.offset >= 0


def measure(kind: type[ByBatch] | type[ByMessage], cogs: int, batch: int, seconds: float) -> float:
    """Return the messages that an orb brought to all of its cogs in a second."""
    orb = Orb()
    listeners = [kind() for _ in range(cogs)]
    for cog in listeners:
        orb.add(cog)
    bodies = [b"%012d" % i + bytes(88) for i in range(batch)]
    begin = time.perf_counter()
    sent = 0
    while (now := time.perf_counter()) - begin < seconds:
        for _ in range(100):
            orb.send(*bodies)
        sent += 100 * batch
    assert {cog.count for cog in listeners} == {sent}
    return sent / (now - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cogs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    found = {
        kind.__name__: round(measure(kind, options.cogs, options.batch, options.seconds))
        for kind in (ByBatch, ByMessage)
    }
    print(
        json.dumps(
            {
                "case": "orb",
                "cogs": options.cogs,
                "batch": options.batch,
                "size_bytes": 100,
                "messages_per_s": found["ByBatch"],
                "messages_per_s_one_by_one": found["ByMessage"],
            }
        )
    )


if __name__ == "__main__":
    main()
