"""Run seeded scenarios: `python -m cogwork.sim [--count N] [--seed S] [--containers N]`.

`python -m cogwork.sim raft …` runs those of a raft group instead (`cogwork.sim.raft.runner`).

Each scenario's size, shape and fate follow from its seed. A failure names the seed;
`--seed S --count 1` replays that scenario.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random, SystemRandom

from cogwork.sim.raft import runner as raft_runner
from cogwork.sim.scenario import Scenario
from cogwork.sim.topologies import SHAPES

SMALL, MIDDLE, LARGE = (2, 12), (13, 40), (41, 200)

CHAPTERS = {SMALL: 6, MIDDLE: 4, LARGE: 1}
"""Large meshes have short scenarios: each change is told to all."""

SPARSE_FROM = 13
"""From so many containers on, not each is linked with each other one."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="cogwork.sim", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="scenarios")
    parser.add_argument("--seed", type=int, default=None, help="the first; then those that follow")
    parser.add_argument("--containers", type=int, default=0, help="default: as the seed says")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="", help="the same")
    return parser.parse_args(arguments)


def scenario_of(seed: int, containers: int = 0, shape: str = "") -> tuple[Scenario, int]:
    """Return a seed's scenario, and how many chapters it has."""
    random = Random(f"size {seed}")
    size = random.choices((SMALL, MIDDLE, LARGE), (80, 18, 2))[0]
    if containers:
        size = next((each for each in (SMALL, MIDDLE) if containers <= each[1]), LARGE)
    containers = containers or random.randint(*size)
    shapes = [name for name in sorted(SHAPES) if name != "mesh" or containers < SPARSE_FROM]
    return Scenario(seed, containers, shape or random.choice(shapes)), CHAPTERS[size]


def say(text: str) -> None:
    """Say it at once, also through a pipe."""
    sys.stdout.write(f"sim: {text}\n")
    sys.stdout.flush()


def main(given: list[str] | None = None) -> int:
    """Run scenarios; return 1 where a rule was broken."""
    words = sys.argv[1:] if given is None else given
    if words[:1] == ["raft"]:
        return raft_runner.main(words[1:])
    arguments = parse(words)
    first = SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    say(f"{arguments.count} scenarios from seed {first} on")
    failed = 0
    for done, seed in enumerate(range(first, first + arguments.count), 1):
        began_s = time.process_time()
        scenario, chapters = scenario_of(seed, arguments.containers, arguments.shape)
        size = len(scenario.world.hosts)
        try:
            scenario.run(chapters)
            scenario.end()
        except AssertionError as broken:
            failed += 1
            say(f"FAILED: {broken}")
            again = f"--seed {seed} --count 1 --containers {size} --shape {scenario.shape}"
            say(f"again: python -m cogwork.sim {again}")
        spent_s = time.process_time() - began_s
        say(f"{done}/{arguments.count} seed {seed}: {size} in a {scenario.shape}, {spent_s:.1f} s")
    say(f"{arguments.count} scenarios, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
