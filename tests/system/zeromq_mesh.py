"""Containers with a ZeroMQ gateway, and clients of them by the examples' own `Session`."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import zmq
from forked import forked

from .served import Served, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

__all__ = ("EXAMPLES", "Client", "Gateway", "gateway", "linked", "session")

EXAMPLES = Path(__file__).parents[2] / "examples" / "zeromq"

OPEN = "".join(f'{kind} = "tcp://127.0.0.1:0"\n' for kind in ("peer2peer", "roundrobin", "pubsub"))


def _session() -> ModuleType:
    """Load a module of the examples."""
    name = "session"
    spec = importlib.util.spec_from_file_location(f"zeromq_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


session = _session()


class Client(Protocol):
    """The examples' `Session`, as far as tests use it."""

    id: str
    socket: zmq.Socket[bytes]
    welcome: dict[str, Any]
    send: Callable[..., None]
    receive: Callable[..., Any]
    ask: Callable[..., Any]
    call: Callable[..., Any]
    stream: Callable[..., Any]
    cast: Callable[..., None]
    register: Callable[..., str]
    serve_one: Callable[..., Any]
    close: Callable[..., None]


class Gateway:
    """A container with a gateway, and the clients that a test has made of it."""

    def __init__(self, container: Served, stack: ExitStack) -> None:
        self.container = container
        self.url = container.url
        self._stack = stack
        self.kinds: dict[str, str] = self.status()["kinds"]

    def status(self) -> dict[str, Any]:
        """Return what `cogwork status` says of the gateway."""
        found: dict[str, Any] = self.container.status()["container"]["gateways"]["zeromq"]
        return found

    def addresses(self) -> set[str]:
        """Return the addresses that there are."""
        return {row["address"] for row in self.container.status()["addresses"]}

    def client(self, kind: str = "roundrobin", **options: object) -> Client:
        """Connect a client; it is closed with the container."""
        made: Client = session.Session(self.kinds[kind], **options)
        self._stack.callback(made.socket.close, 0)
        return made

    def socket(self, kind: str = "roundrobin") -> zmq.Socket[bytes]:
        """Connect a bare DEALER."""
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        socket.linger = 0
        socket.rcvtimeo = 5000
        socket.connect(self.kinds[kind])
        self._stack.callback(socket.close, 0)
        return socket

    def becomes(self, timeout_s: float = 10.0, **figures: int) -> None:
        """Wait until figures of the gateway are as given."""

        def is_so() -> bool:
            status = self.status()
            return all(status[name] == value for name, value in figures.items())

        try:
            within(timeout_s, is_so, f"the gateway has {figures}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status()}") from None

    def descriptors(self) -> int:
        """Count what the container has open."""
        return len(os.listdir(f"/proc/{self.container.process.pid}/fd"))


@contextmanager
def gateway(folder: Path, options: str = "", configuration: str = "") -> Iterator[Gateway]:
    """Run a container with a gateway.

    Args:
        folder: Takes its files.
        options: More of `[gateway.zeromq]`.
        configuration: More of the file, from its start.
    """
    folder.mkdir(exist_ok=True)
    file = folder / "cogwork.toml"
    file.write_text(f"{configuration}\n[gateway.zeromq]\n{OPEN}{options}\n")
    words = ("serve", "--listen", "127.0.0.1:0", "--config", str(file), "--json")
    with (folder / "cogwork.log").open("wb") as log:
        process = forked(*words, stdout=subprocess.PIPE, stderr=log)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "cogwork.log").read_text()[-2000:]
        with ExitStack() as stack:
            yield Gateway(Served(json.loads(line)["endpoints"][0], process), stack)
            assert process.poll() in (None, 0), (folder / "cogwork.log").read_text()[-2000:]
        said = (folder / "cogwork.log").read_text()
        assert "Traceback" not in said, said[-3000:]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def linked(folder: Path) -> Iterator[tuple[Gateway, Gateway]]:
    """Run two containers that are linked, each with a gateway."""
    mesh = "[mesh]\nheartbeat_s = 0.2\n"
    with gateway(folder / "north", configuration=f'id = "north"\n{mesh}') as north:
        link = f'id = "south"\n[[link]]\nurl = "{north.url.removeprefix("amqp://")}"\n'
        with gateway(folder / "south", configuration=link + mesh) as south:
            yield north, south
