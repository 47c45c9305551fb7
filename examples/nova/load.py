"""A load like that of nova: a thousand compute services, and containers that are killed.

    python examples/nova/load.py [--computes 1000] [--minutes 3] [--kill-each 15] [--json]

Three containers are linked. Each compute has a connection of its own and serves calls, casts and
fanouts; conductors call and cast to them one by one, ask schedulers, and tell all of them things;
computes notify into a queue on disk, which listeners take from. Meanwhile one container after the
other is killed with SIGKILL and started again. At the end there is a ledger: no call may have hung
past its deadline, no cast or notification that was accepted may be missing, every compute must
answer, and nothing may be left in the containers. The exit code says whether that is so.
"""

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import computes
import conductors
import listeners
from containers import NAMES, Containers
from ledger import Ledger, draw_up
from plan import NOTIFICATIONS, Plan
from role import Notes, run

DRAIN_S = 60.0
LEAVE_S = 30.0
UP_S = 120.0
PROGRESS_S = 2.0
SAVE_S = 60.0
INTERRUPTED = 130
"""What shells make of SIGINT."""


class Worker:
    """A process of the load, and how far it is."""

    def __init__(self, name: str, plan: Plan, number: int = 0) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        told = json.dumps({"role": name, "number": number, "plan": asdict(plan)})
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--role", told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process, which ends all others
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.counts = Counter(json.loads(line))

    def tell_end(self) -> None:
        """Have it come to its end."""
        self.process.stdin.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has; tell whether it ended well."""
        try:
            return self.process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False


class Load:
    """One run."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self.chosen = chosen
        self.random = random.Random(chosen.seed)
        self.facts: Counter[str] = Counter()
        self.containers = Containers(folder, chosen.durability)
        self.workers: list[Worker] = []
        self.begin_s = time.monotonic()
        self.plan = Plan(
            urls=self.containers.urls,
            computes=chosen.computes,
            compute_processes=chosen.processes,
            conductors=chosen.conductors,
            pause_s=chosen.conductors / chosen.requests,
            timeout_s=chosen.timeout,
            notify_each_s=chosen.computes / chosen.notifications,
            fanout_each_s=chosen.fanout_each,
            listeners=3,
            folder=str(folder),
            seed=chosen.seed,
            driver=chosen.driver,
        )

    def run(self) -> Ledger:
        """Run all of it."""
        left: list[str] = []
        try:
            self.containers.start_all()
            serving = [Worker("computes", self.plan, n) for n in range(self.chosen.processes)]
            taking = Worker("listeners", self.plan)
            self.workers = [*serving, taking]
            self._wait("computes", self.chosen.computes)
            asking = Worker("conductors", self.plan)
            self.workers.append(asking)
            self._disturb()
            self._end([asking])
            self._end(serving)
            self._drain()
            self._end([taking])
            left = self._leave()
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.wait()
            left += self.containers.stop()
        files = [computes.file_of(self.plan, n) for n in range(self.chosen.processes)]
        files += [conductors.file_of(self.plan), listeners.file_of(self.plan)]
        ledger = draw_up(files, self.facts, left, self.chosen.computes)
        if self.chosen.kill_each and not self.facts["containers killed"]:
            ledger.wrong.append("no container was killed")
        return ledger

    def say(self, text: str) -> None:
        """Say something about how far it is."""
        print(f"{time.monotonic() - self.begin_s:6.1f} s  {text}", file=sys.stderr, flush=True)

    def _told(self) -> Counter[str]:
        told: Counter[str] = Counter()
        for worker in self.workers:
            told.update(worker.counts)
        return told

    def _progress(self) -> None:
        told = self._told()
        failed = sum(count for what, count in told.items() if " failed: " in what)
        calls = told["build returned"] + told["select returned"]
        self.say(
            f"{told['computes']:,} computes, {calls:,} calls, {told['casts accepted']:,} casts, "
            f"{failed:,} failed, {told['fanouts reached']:,} fanouts, "
            f"{told['notifications accepted']:,} notifications, "
            f"{told['notifications taken']:,} taken"
        )

    def _wait(self, what: str, count: int) -> None:
        end_s = time.monotonic() + UP_S
        while self._told()[what] < count:
            self._check()
            if time.monotonic() > end_s:
                raise SystemExit(f"{self._told()[what]} of {count} {what} within {UP_S:g} s")
            time.sleep(PROGRESS_S / 4)
        self._progress()

    def _check(self) -> None:
        """A process of the load that ended before it was told to is a mistake."""
        for worker in self.workers:
            if worker.process.poll() is not None:
                raise SystemExit(f"{worker.name} ended with {worker.process.returncode}")

    def _disturb(self) -> None:
        """Kill containers and start them again, for as long as the load is to last."""
        end_s = time.monotonic() + 60 * self.chosen.minutes
        each_s = self.chosen.kill_each or 60 * self.chosen.minutes
        while (rest_s := end_s - time.monotonic()) > 0:
            self._watch(min(each_s, rest_s))
            if self.chosen.kill_each and time.monotonic() < end_s:
                self._kill_one()
        self.containers.wait_linked()

    def _kill_one(self) -> None:
        name = self.random.choice(NAMES)
        self.say(f"{name} is killed")
        self.containers.kill(name)
        self.facts["containers killed"] += 1
        self._watch(self.random.uniform(0.5, 3.0))
        self.containers.start(name)
        self.say(f"{name} is started again")
        self.containers.wait_linked()

    def _watch(self, for_s: float) -> None:
        end_s = time.monotonic() + for_s
        while (rest_s := end_s - time.monotonic()) > 0:
            time.sleep(min(PROGRESS_S, rest_s))
            self._check()
            self._progress()

    def _end(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.tell_end()
        for worker in workers:
            if not worker.wait(SAVE_S + self.plan.timeout_s):
                self.facts[f"{worker.name} that ended badly"] += 1
            self.workers.remove(worker)
        self.say(f"{workers[0].name} have ended")

    def _drain(self) -> None:
        """Wait until no container has notifications any more."""
        end_s = time.monotonic() + DRAIN_S
        while time.monotonic() < end_s and any(self._depth(name) for name in NAMES):
            time.sleep(0.5)
            self._progress()

    def _depth(self, name: str) -> int:
        rows = self.containers.ask("status", name).get("queues", [])
        mine = [row for row in rows if row["address"] == NOTIFICATIONS]
        return sum(int(row.get("depth", 0)) + int(row.get("unsettled", 0)) for row in mine)

    def _leave(self) -> list[str]:
        """Wait until nothing is left of clients; return what is after a while."""
        end_s = time.monotonic() + LEAVE_S
        while (left := self.containers.left()) and time.monotonic() < end_s:
            time.sleep(0.5)
        return left


def play(told: str) -> None:
    """Play a role in a process of its own."""
    given = json.loads(told)
    plan, number, notes = Plan(**given["plan"]), given["number"], Notes()
    if given["role"] == "computes":
        file = computes.file_of(plan, number)
        work = run(lambda stop: computes.serve(plan, number, notes, stop), notes, file)
    elif given["role"] == "conductors":
        work = run(conductors.Conductors(plan, notes).run, notes, conductors.file_of(plan))
    else:
        work = run(lambda stop: listeners.listen(plan, notes, stop), notes, listeners.file_of(plan))
    asyncio.run(work)


def options() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--computes", type=int, default=1000, help="services  [1000]")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long  [3]")
    parser.add_argument("--kill-each", type=float, default=15.0, help="seconds; 0 never  [15]")
    parser.add_argument("--requests", type=float, default=100.0, help="a second  [100]")
    parser.add_argument("--notifications", type=float, default=100.0, help="a second  [100]")
    parser.add_argument("--fanout-each", type=float, default=3.0, help="seconds  [3]")
    parser.add_argument("--conductors", type=int, default=16, help="clients that call  [16]")
    parser.add_argument("--processes", type=int, default=2, help="that have the computes  [2]")
    parser.add_argument("--timeout", type=float, default=5.0, help="of calls, in seconds  [5]")
    parser.add_argument("--driver", choices=["cogwork", "oslo"], default="cogwork")
    parser.add_argument("--durability", choices=["disk", "replicated"], default="disk")
    parser.add_argument("--seed", type=int, default=0, help="0 takes any, and says which")
    parser.add_argument("--json", action="store_true", help="the ledger as one JSON object")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Run the load; return 0 where all is as promised, else 1; 130 where it was interrupted."""
    chosen = options().parse_args()
    if chosen.role:
        play(chosen.role)
        return 0
    for name in ("computes", "minutes", "requests", "notifications", "conductors", "processes"):
        if getattr(chosen, name) <= 0:
            options().error(f"--{name}: more than 0 is expected")
    chosen.seed = chosen.seed or random.SystemRandom().randrange(1, 1_000_000)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="nova-") as folder:
            load = Load(chosen, Path(folder))
            load.say(f"seed {chosen.seed}")
            ledger = load.run()
    except KeyboardInterrupt:
        print("nova: interrupted; there is no ledger", file=sys.stderr)
        return INTERRUPTED
    print(json.dumps(ledger.as_json()) if chosen.json else ledger.text())
    return 0 if ledger.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
