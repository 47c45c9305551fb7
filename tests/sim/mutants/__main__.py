"""Puts each mistake into the core and runs scenarios until one fails: `python -m mutants`.

Returns 1 where a mistake is not found, or does not fit the core any more.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count

from cogwork.sim.raft.page import write_part
from mutants.catalogue import MUTANTS
from mutants.grading import SEEDS_MAX, Verdict, grade


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="all if none is named")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="scenarios for each, at most")
    parser.add_argument("--page", default="", help="writes the table into this page")
    arguments = parser.parse_args()
    mutants = [each for each in MUTANTS if not arguments.names or each.name in arguments.names]
    verdicts: list[Verdict] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for verdict in pool.map(grade, mutants, [arguments.seeds] * len(mutants)):
            sys.stdout.write(f"mutants: {verdict}\n")
            sys.stdout.flush()
            verdicts.append(verdict)
    killed = sum(verdict.is_killed for verdict in verdicts)
    sys.stdout.write(f"mutants: {killed} of {len(verdicts)} killed\n")
    if arguments.page:
        write_part(arguments.page, "mutants", table(verdicts))
    return 0 if killed == len(verdicts) else 1


def table(verdicts: list[Verdict]) -> str:
    """Return the verdicts as Markdown."""
    killed = sum(verdict.is_killed for verdict in verdicts)
    rows = [
        f"{killed} of {len(verdicts)} killed.\n",
        "| mistake | scenarios until it was found | found as |",
        "|---|---|---|",
    ]
    rows += [f"| {each.name} | {each.scenarios} | {each.what} |" for each in verdicts]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
