"""TCP proxies between containers, which cut, refuse and stall what runs through them."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import re
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.connection import Connection

__all__ = ("BOTH", "CONTROL", "DATA", "Cable", "Cables")

DATA, CONTROL = "data", "control"
BOTH = (DATA, CONTROL)
"""The two connections of a link; each says in its open which it is."""

_ROLE = re.compile(rb"cogwork:mesh\xa1[\x04\x07](data|control)")
_HEAD_BYTES_MAX = 4096
_READ_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: what is closed is reset, as by a router that has forgotten it."""


@dataclass(eq=False)
class _Pass:
    """One connection that runs through a cable; `role` is empty until it has said it."""

    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    role: str = ""
    head: bytes = field(default=b"", repr=False)

    def listen(self, data: bytes) -> None:
        """Look for what the dialling container says of the connection in its open."""
        if self.role or len(self.head) > _HEAD_BYTES_MAX:
            return
        self.head += data
        found = _ROLE.search(self.head)
        if found is not None:
            self.role = found[1].decode()


class _Proxy:
    """What stands behind a cable, in the process of its own."""

    def __init__(self, target: int) -> None:
        self.cuts: Counter[str] = Counter()
        self._target = target
        self._passes: set[_Pass] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stalled: frozenset[tuple[str, bool]] = frozenset()
        self._changed = asyncio.Event()
        self._is_refusing = False

    async def start(self) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._on_dialled, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self, roles: tuple[str, ...], is_reset: bool) -> None:
        """Break connections that stand."""
        for each in list(self._passes):
            if each.role not in roles and roles != BOTH:
                continue
            self.cuts[each.role] += 1
            for writer in each.writers:
                if is_reset:
                    _reset(writer)
                else:
                    writer.close()

    def refuse(self) -> None:
        """Break every new connection."""
        self._is_refusing = True

    def stall(self, stalled: frozenset[tuple[str, bool]]) -> None:
        """Let some bytes stand still, and others go on."""
        self._stalled = stalled
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def heal(self) -> None:
        """Let everything through."""
        self._is_refusing = False
        self.stall(frozenset())

    async def _on_dialled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            _reset(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _reset(writer)
            self._tasks.discard(task)
            return
        each = _Pass((writer, far_writer))
        self._passes.add(each)
        try:
            await asyncio.gather(
                self._carry(each, reader, far_writer, is_outward=True),
                self._carry(each, far_reader, writer, is_outward=False),
            )
        finally:
            self._passes.discard(each)
            self._tasks.discard(task)
            for every in each.writers:
                every.transport.abort()

    async def _carry(
        self,
        each: _Pass,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_outward: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                if is_outward:
                    each.listen(data)
                while self._stops(each, is_outward):
                    await self._changed.wait()
                writer.write(data)
                await writer.drain()
        for every in each.writers:
            every.close()

    def _stops(self, each: _Pass, is_outward: bool) -> bool:
        """Return whether bytes stand still; before it is known whose they are, where all do."""
        roles = (each.role,) if each.role else BOTH
        return all((role, is_outward) in self._stalled for role in roles)


class Cable:
    """What one container dials in the place of another one's port."""

    def __init__(self, number: int, pipe: Connection) -> None:
        self._number = number
        self._pipe = pipe

    def cut(self, roles: Iterable[str], *, is_reset: bool) -> None:
        """Break the connections that stand.

        Args:
            roles: Which of them.
            is_reset: Whether by a reset; else they are closed in order, after what is under way.
        """
        self._do("cut", tuple(roles), is_reset)

    def refuse(self) -> None:
        """Break every new connection at once, until it is healed."""
        self._do("refuse")

    def stall(self, roles: Iterable[str], directions: Iterable[bool]) -> None:
        """Let nothing more through, without a word, until it is healed.

        Args:
            roles: Of which connections, new ones too.
            directions: True is from the container that dialled, False to it.
        """
        self._do("stall", frozenset((role, way) for role in roles for way in directions))

    def heal(self) -> None:
        """Let everything through again; what was stalled goes on where it stood still."""
        self._do("heal")

    def _do(self, name: str, *arguments: object) -> None:
        self._pipe.send((self._number, name, arguments))


class Cables:
    """Gives each link of a mesh a cable of its own.

    They run in a process of their own: a test that is busy must not slow the links down.
    """

    def __init__(self) -> None:
        self.cables: dict[tuple[str, str], Cable] = {}
        self.ports: dict[tuple[str, str], int] = {}
        context = multiprocessing.get_context("spawn")
        self._pipe, self._far = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._far,), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._far.close()

    def lay(self, one: str, other: str, target: int) -> int:
        """Return the port that a container is to dial in the place of another one's."""
        port: int = self._ask("lay", target)
        self.cables[one, other] = Cable(len(self.cables), self._pipe)
        self.ports[one, other] = port
        return port

    def between(self, one: str, other: str) -> list[Cable]:
        """Return what two containers dial each other by."""
        pairs = ((one, other), (other, one))
        return [self.cables[pair] for pair in pairs if pair in self.cables]

    def heal(self, container: str | None = None) -> None:
        """Heal all cables, or those to and from one container."""
        for pair, cable in self.cables.items():
            if container is None or container in pair:
                cable.heal()

    def cuts(self) -> Counter[str]:
        """Count the connections that were broken, by what they were for."""
        found: Counter[str] = self._ask("cuts")
        return found

    def _ask(self, name: str, *arguments: object) -> Any:  # whatever is asked for
        self._pipe.send((None, name, arguments))
        return self._pipe.recv()


def _serve(pipe: Connection) -> None:
    asyncio.run(_obey(pipe))


async def _obey(pipe: Connection) -> None:
    """Do what the test asks for, in the process of the cables."""
    proxies: list[_Proxy] = []
    asked = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), asked.set)
    while await asked.wait():
        asked.clear()
        while pipe.poll():
            number, name, arguments = pipe.recv()
            if number is not None:
                getattr(proxies[number], name)(*arguments)
            elif name == "lay":
                proxies.append(_Proxy(*arguments))
                pipe.send(await proxies[-1].start())
            else:
                pipe.send(sum((each.cuts for each in proxies), Counter()))


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
