"""Measures what an honest client notices of attacks on the container that serves it.

    python bench/attacks.py [--seconds 4] [--rounds 1] [ATTACK...]

Each attack of `tests/system/attacks.py` has a container, an honest client and attackers, in
processes of their own; the attackers' has a low priority, for they would have machines of their
own. The client makes round trips before the attack and during it. Prints a line of JSON for each:
the 99th percentile of both in milliseconds, the median over the rounds, and their ratio, with the
load of the machine. A ratio means something only where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from system.attacks import ATTACKS, attacking, world_of
from system.honest import RATIO_MAX, Honest

if TYPE_CHECKING:
    from system.honest import Figures

START_S = 1.0
"""Until the attackers are at work: a part of the attack, and not the whole."""


def measure(name: str, attack_s: float) -> Figures:
    """Have an attack go on for some seconds."""
    attack = ATTACKS[name]
    with (
        tempfile.TemporaryDirectory() as folder,
        world_of(Path(folder) / "container", attack) as world,
    ):
        honest = Honest(attack.honest_url(world), attack.kind)
        try:
            with attacking(name, world):
                time.sleep(START_S + attack_s)
                return honest.end()
        finally:
            honest.kill()


def line(name: str, found: list[Figures]) -> dict[str, object]:
    """Return what was measured, as it is printed."""
    ratio = median(each.ratio for each in found)
    return {
        "case": "attack",
        "attack": name,
        "quiet_p99_ms": round(1000 * median(each.quiet_p99_s for each in found), 3),
        "attacked_p99_ms": round(1000 * median(each.attacked_p99_s for each in found), 3),
        "ratio": round(ratio, 2),
        "ratio_max": RATIO_MAX,
        "meets_target": ratio <= RATIO_MAX and all(each.connections == 1 for each in found),
        "round_trips": sum(each.trips for each in found),
        "connect_ms": round(1000 * median(each.connect_s for each in found), 1),
        "load": round(os.getloadavg()[0], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="*", choices=[[], *ATTACKS], default=[])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    for name in chosen.attacks or ATTACKS:
        found = [measure(name, chosen.seconds) for _ in range(chosen.rounds)]
        print(json.dumps(line(name, found)), flush=True)


if __name__ == "__main__":
    main()
