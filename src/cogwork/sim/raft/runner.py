"""Run seeded scenarios of a raft group: `python -m cogwork.sim raft --seeds N [--jobs J]`.

A failure names its seed; `--seed S --trace` replays that scenario, step by step.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from os import cpu_count
from random import SystemRandom

from cogwork.sim.raft.page import write_part
from cogwork.sim.raft.scenario import Scenario
from cogwork.sim.raft.scenes import SCENES, scene_of

__all__ = ("Figures", "main", "run_seeds")

CHUNK = 100
"""So many seeds a process takes at a time."""

PROGRESS_S = 5.0

FAILURES_TOLD_MAX = 20


@dataclass(slots=True)
class Figures:
    """What a run did.

    Attributes:
        seeds: How many scenarios.
        steps: What happened in all of them.
        cpu_s: How long processors took.
        failures: What went wrong, by seed.
        counts: How often each kind of disturbance came.
    """

    seeds: int = 0
    steps: int = 0
    cpu_s: float = 0.0
    failures: dict[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: Figures) -> None:
        """Add what another part of the run did."""
        self.seeds += other.seeds
        self.steps += other.steps
        self.cpu_s += other.cpu_s
        self.failures.update(other.failures)
        self.counts.update(other.counts)

    @property
    def seeds_an_hour(self) -> int:
        """How many scenarios one core runs in an hour."""
        return round(self.seeds * 3600 / self.cpu_s) if self.cpu_s else 0


def run_seeds(first: int, count: int, scene: str = "") -> Figures:
    """Run some scenarios.

    Args:
        first: The first seed.
        count: How many.
        scene: What sort of scenario; none: as the seeds say.
    """
    figures = Figures()
    began_s = time.process_time()
    for seed in range(first, first + count):
        scenario = Scenario(seed, scene_of(scene))
        try:
            scenario.run()
        except Exception as broken:  # whatever the core raises is a failure with a seed
            figures.failures[seed] = f"{type(broken).__name__}: {broken}"
        figures.seeds += 1
        figures.steps += scenario.world.steps
        figures.counts.update(scenario.counts)
    figures.cpu_s = time.process_time() - began_s
    return figures


def main(given: list[str] | None = None) -> int:
    """Run scenarios; return 1 where a rule was broken."""
    parser = argparse.ArgumentParser(prog="cogwork.sim raft", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many scenarios")
    parser.add_argument("--seed", type=int, default=None, help="the first; then those that follow")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes")
    parser.add_argument("--scene", choices=[each.name for each in SCENES], default="", help="sort")
    parser.add_argument("--page", default="", help="writes the figures into this page")
    parser.add_argument("--trace", action="store_true", help="trace the first step by step")
    arguments = parser.parse_args(given)
    first = SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    if arguments.trace:
        return _trace(first, arguments.scene)
    began_s = time.monotonic()
    figures = _run_all(first, arguments.seeds, arguments.jobs, arguments.scene)
    for seed, what in sorted(figures.failures.items())[:FAILURES_TOLD_MAX]:
        _say(f"FAILED seed {seed}: {what}")
        how = f" --scene {arguments.scene}" if arguments.scene else ""
        _say(f"again: python -m cogwork.sim raft --seed {seed}{how} --trace")
    _say(
        f"{figures.seeds} scenarios, {len(figures.failures)} failed; {figures.steps} steps, "
        f"{figures.cpu_s:.0f} s of processors, {figures.seeds_an_hour} scenarios an hour and core"
    )
    if arguments.page:
        write_part(arguments.page, "figures", _table(figures, first, time.monotonic() - began_s))
    _say(", ".join(f"{name} {count}" for name, count in sorted(figures.counts.items())))
    return 1 if figures.failures else 0


def _run_all(first: int, seeds: int, jobs: int, scene: str) -> Figures:
    _say(f"{seeds} scenarios of a raft group from seed {first} on, {jobs} processes")
    if jobs == 1 and seeds <= CHUNK:
        return run_seeds(first, seeds, scene)
    figures = Figures()
    told_s = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        parts = [
            pool.submit(run_seeds, start, min(CHUNK, first + seeds - start), scene)
            for start in range(first, first + seeds, CHUNK)
        ]
        for part in as_completed(parts):
            figures.add(part.result())
            if time.monotonic() - told_s >= PROGRESS_S:
                told_s = time.monotonic()
                _say(f"{figures.seeds}/{seeds}, failed: {sorted(figures.failures)[:5] or 'none'}")
    return figures


def _table(figures: Figures, first: int, took_s: float) -> str:
    """Return the figures as Markdown."""
    counts = sorted(figures.counts.items())
    rows = [
        ("scenarios", f"{figures.seeds:,} (seeds {first} to {first + figures.seeds - 1})"),
        ("failed", f"{len(figures.failures)}"),
        ("steps (messages, ticks, requests)", f"{figures.steps:,}"),
        ("time", f"{took_s:,.0f} s; {figures.cpu_s:,.0f} s of processors"),
        ("scenarios an hour and core", f"{figures.seeds_an_hour:,}"),
        ("disturbances", f"{sum(n for name, n in counts if ' ' not in name):,}"),
        ("of these", ", ".join(f"{name} {n:,}" for name, n in counts if " " not in name)),
        ("sorts of scenarios", _joined(counts, "scene ")),
        ("converged first without one that is", _joined(counts, "without one: ")),
    ]
    lines = ["| what | how many |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value} |" for name, value in rows])


def _joined(counts: list[tuple[str, int]], prefix: str) -> str:
    found = [(name.removeprefix(prefix), n) for name, n in counts if name.startswith(prefix)]
    return ", ".join(f"{name} {n:,}" for name, n in found)


def _trace(seed: int, scene: str) -> int:
    scenario = Scenario(seed, scene_of(scene), tell=_write)
    try:
        scenario.run()
    except Exception as broken:  # the trace ends with what went wrong, whatever it is
        _write(f"FAILED: {type(broken).__name__}: {broken}")
        return 1
    _write("all is well")
    return 0


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _say(text: str) -> None:
    """Say it at once, also through a pipe."""
    sys.stdout.write(f"sim: {text}\n")
    sys.stdout.flush()
