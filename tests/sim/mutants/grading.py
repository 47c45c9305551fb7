"""Whether the simulator finds a mistake, and how soon."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.sim.raft.runner import run_seeds
from mutants.mutant import Stale

if TYPE_CHECKING:
    from mutants.mutant import Mutant

__all__ = ("SEEDS_MAX", "Verdict", "grade")

SEEDS_MAX = 15_000
"""A mistake that no scenario of so many finds has survived."""

WHAT_MAX = 110

NO_PROGRAM = ("NameError", "TypeError", "AttributeError", "UnboundLocalError")
"""A mutant that fails like this is not the mistake that it was meant to be."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has become of a mutant.

    Attributes:
        name: The mutant's.
        scenarios: How many it took; where it survived, how many it stood.
        what: What broke; nothing where it survived.
    """

    name: str
    scenarios: int
    what: str

    @property
    def is_killed(self) -> bool:
        """Whether it was found."""
        return bool(self.what) and not self.what.startswith("stale")

    def __str__(self) -> str:
        if self.is_killed:
            return f"{self.name}: killed by scenario {self.scenarios}: {self.what}"
        return f"{self.name}: SURVIVED {self.scenarios} scenarios {self.what}"


def grade(mutant: Mutant, seeds_max: int = SEEDS_MAX) -> Verdict:
    """Run scenarios with the mistake in the core; one that fails without it proves nothing."""
    try:
        for seed in range(seeds_max):
            with mutant.applied():
                failures = run_seeds(seed, 1, mutant.scene).failures
            if not failures or run_seeds(seed, 1, mutant.scene).failures:
                continue
            if failures[seed].startswith(NO_PROGRAM):
                raise Stale(failures[seed])
            what = re.sub(r"\s+", " ", failures[seed]).replace("|", "/")[:WHAT_MAX]
            return Verdict(mutant.name, seed + 1, what)
    except Stale as stale:
        return Verdict(mutant.name, 0, f"stale: {stale}")
    return Verdict(mutant.name, seeds_max, "")
