"""Three containers, each linked with each, which can be killed and started again."""

import io
import json
import socket
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from plan import NOTIFICATIONS

from cogwork.bench.servers.process import free_ports
from cogwork.cli.main import run

NAMES = ("north", "south", "west")
READY_S = 60.0
STOP_S = 20.0
IN_DOUBT_S = 3.0
"""A listener that lost its container is back by then, or an item is somebody else's."""

COGWORK = [sys.executable, "-m", "cogwork.cli.main"]
OWN = ("_reply/", "$")
"""What addresses of this inspection, and of containers themselves, begin with."""


class Containers:
    """The mesh."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.folder = folder
        self.durability = durability
        self.ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def urls(self) -> list[str]:
        """Where clients connect."""
        return [f"amqp://127.0.0.1:{port}" for port in self.ports.values()]

    def start(self, name: str) -> None:
        """Start a container, or start it again."""
        links = "".join(
            f'[[link]]\nurl = "127.0.0.1:{port}"\n'
            for other, port in self.ports.items()
            if other != name
        )
        file = self.folder / f"{name}.toml"
        file.write_text(
            f'id = "{name}"\ndata_dir = "{self.folder / name}"\n'
            f"[[listen]]\nport = {self.ports[name]}\n{links}"
            f"[cluster]\nprimaries = {json.dumps(NAMES)}\n"
            f'[[queue]]\naddress = "{NOTIFICATIONS}"\ndurability = "{self.durability}"\n'
            f"in_doubt_timeout_s = {IN_DOUBT_S}\n"
        )
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*COGWORK, "serve", "--config", str(file)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_all(self) -> None:
        """Start the mesh, and wait until each container reaches each other."""
        for name in NAMES:
            self.start(name)
        self.wait_linked()

    def kill(self, name: str) -> None:
        """End a container as a power failure would."""
        self.processes[name].kill()
        self.processes[name].wait()

    def listens(self, name: str) -> bool:
        """Return whether a container takes connections."""
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.ports[name]), timeout=1).close()
            return True
        return False

    def wait_linked(self) -> None:
        """Wait until all containers listen and reach each other."""
        end_s = time.monotonic() + READY_S
        for name in NAMES:
            while not (self.listens(name) and self._reached(name) >= set(NAMES)):
                if time.monotonic() > end_s:
                    said = (self.folder / f"{name}.log").read_text().splitlines()[-3:]
                    raise SystemExit(f"{name} does not come up: {' / '.join(said)}")
                time.sleep(0.2)

    def _reached(self, name: str) -> set[str]:
        found = self.ask("mesh", name)
        return {row["id"] for row in found.get("containers", []) if row["cost"] is not None}

    def ask(self, command: str, name: str) -> dict[str, list[dict[str, object]]]:
        """Return what a command says of a container; nothing where it cannot."""
        url = f"amqp://127.0.0.1:{self.ports[name]}"
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()):
            code = run([command, url, "--json"])
        return json.loads(said.getvalue()) if code == 0 else {}

    def left(self) -> list[str]:
        """List what is still there of clients: connections, addresses in use, queues, items."""
        found = []
        for name in NAMES:
            status = self.ask("status", name)
            if not status:
                return [f"{name} does not answer"]
            others = len(status["connections"]) - 1
            found += [f"{name}: {others} connections"] * bool(others)
            for row in status["addresses"]:
                if row["address"].startswith(OWN):
                    continue
                if row["senders"] or row["receivers"] or row["depth"]:
                    found.append(f"{name}: {row['address']} is in use")
            replies = [r for r in status["addresses"] if r["address"].startswith("_reply/")]
            found += [f"{name}: {len(replies) - 1} dynamic addresses"] * (len(replies) > 1)
            queues = [row["address"] for row in status["queues"]]
            found += [f"{name}: the queue {each}" for each in queues if each != NOTIFICATIONS]
        return found

    def stop(self) -> list[str]:
        """End all containers; list those that do not end well."""
        for process in self.processes.values():
            process.terminate()
        bad = []
        for name, process in self.processes.items():
            try:
                code = process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = -9
            if code:
                bad.append(f"{name} ended with {code}")
        return bad
