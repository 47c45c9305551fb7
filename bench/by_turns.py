"""Compares versions of the program on replicated streams, by turns.

    python bench/by_turns.py [--case delay] [--rounds 6] [--seconds 1.5] [--rate N] [--unix NAME]...
        NAME=PYTHON ...

Each PYTHON is an interpreter that has a version installed: it runs three containers and their
subscribers. All of them are there at the same time, and a case of `replicated.py` is run with one
version after the other, over and over, in one order and then in the other one: so what the machine
does meanwhile meets all of them alike. The appending client is of the version here. The first round
is not counted. A version that --unix names is linked and reached by Unix-domain sockets. Prints a
line of JSON for each version: the medians of its runs, and their range.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from replicated import BATCH, STREAM, appended, delayed, medians
from voters import served

import cogwork

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from voters import Trio

SIZE_BYTES = 100
SETTLING_S = 3.0


def version_of(text: str) -> tuple[str, str]:
    """Read NAME=PYTHON."""
    name, mark, python = text.partition("=")
    if not (name and mark and python):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=PYTHON, as in before=/usr/bin/python3"
        )
    return name, python


def rounds_of(text: str) -> int:
    """Read how many rounds count: at least one."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds, from 1 on")
    return int(text)


async def compare(arguments: argparse.Namespace) -> None:
    """Run the case by turns, and print what each version has come to."""
    seconds = arguments.seconds
    cases: dict[str, Callable[[Trio], Awaitable[dict[str, Any]]]] = {
        "batches": lambda trio: appended(trio, seconds, SIZE_BYTES, batch=BATCH),
        "single": lambda trio: appended(trio, seconds, SIZE_BYTES, batch=1),
        "delay": lambda trio: delayed(trio, seconds, SIZE_BYTES, rate=arguments.rate),
    }
    run = cases[arguments.case]
    figure = "p50_ms" if arguments.case == "delay" else "messages_per_s"
    found: dict[str, list[dict[str, Any]]] = {name: [] for name, _ in arguments.version}
    with ExitStack() as stack:
        trios = {
            name: stack.enter_context(served(python=python, is_unix=name in arguments.unix))
            for name, python in arguments.version
        }
        for trio in trios.values():
            await trio.declare([STREAM])
        await asyncio.sleep(SETTLING_S)
        for turn in range(arguments.rounds + 1):
            sys.stderr.write(f"round {turn} of {arguments.rounds}\n")
            for name in list(trios) if turn % 2 else list(reversed(trios)):
                result = await run(trios[name])
                if turn:
                    found[name].append(result)
    for name, results in found.items():
        figures = sorted(each[figure] for each in results)
        facts = {
            "version": name,
            "case": arguments.case,
            **medians(results),
            figure + "_all": figures,
        }
        sys.stdout.write(json.dumps(facts) + "\n")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="+", type=version_of, metavar="NAME=PYTHON")
    parser.add_argument("--case", choices=("batches", "single", "delay"), default="delay")
    parser.add_argument("--rounds", type=rounds_of, default=6)
    parser.add_argument("--unix", action="append", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rate", type=int, default=20_000, help="messages a second, for delay")
    with asyncio.Runner(loop_factory=cogwork.EventLoop) as runner:
        runner.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
