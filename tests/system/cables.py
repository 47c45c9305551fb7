"""TCP proxies between containers, which cut, refuse and stall what runs through them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("BOTH", "CONTROL", "DATA", "Cable", "Cables")

DATA, CONTROL = "data", "control"
BOTH = (DATA, CONTROL)
"""The two connections of a link; each says in its open which it is."""

_ROLE = re.compile(rb"cogwork:mesh\xa1[\x04\x07](data|control)")
_HEAD_BYTES_MAX = 4096
_READ_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: what is closed is reset, as by a router that has forgotten it."""

P = ParamSpec("P")


@dataclass(eq=False)
class _Pass:
    """One connection that runs through a cable; `role` is empty until it has said it."""

    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    role: str = ""
    head: bytes = field(default=b"", repr=False)

    def listen(self, data: bytes) -> None:
        """Looks for what the dialling container says of the connection in its open."""
        if self.role or len(self.head) > _HEAD_BYTES_MAX:
            return
        self.head += data
        found = _ROLE.search(self.head)
        if found is not None:
            self.role = found[1].decode()


class Cable:
    """What one container dials in the place of another one's port.

    All methods may be called from any thread.

    Attributes:
        port: What to dial, once it listens.
        cuts: Counts the connections that it broke, by what they were for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, target: int) -> None:
        self.port = 0
        self.cuts: Counter[str] = Counter()
        self._loop = loop
        self._target = target
        self._passes: set[_Pass] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stalled: frozenset[tuple[str, bool]] = frozenset()
        self._changed = asyncio.Event()
        self._is_refusing = False

    async def start(self) -> None:
        """Listens."""
        self._server = await asyncio.start_server(self._on_dialled, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Breaks what runs through it, and takes no more."""
        self._server.close()
        self._cut(BOTH, is_reset=False)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- what a story does to it

    def cut(self, roles: Iterable[str], *, is_reset: bool) -> None:
        """Breaks the connections that stand.

        Args:
            roles: Which of them.
            is_reset: Whether by a reset; else they are closed in order, after what is under way.
        """
        self._call(self._cut, tuple(roles), is_reset=is_reset)

    def refuse(self, refuses: bool) -> None:
        """Breaks every new connection at once, or no longer."""
        self._call(self._refuse, refuses)

    def stall(self, roles: Iterable[str], directions: Iterable[bool]) -> None:
        """Lets nothing more through, without a word, until it is healed.

        Args:
            roles: Of which connections, new ones too.
            directions: True is from the container that dialled, False to it.
        """
        self._call(self._stall, frozenset((role, way) for role in roles for way in directions))

    def heal(self) -> None:
        """Lets everything through again; what was stalled goes on where it stood still."""
        self._call(self._refuse, False)
        self._call(self._stall, frozenset())

    def _call(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        self._loop.call_soon_threadsafe(lambda: function(*args, **kwargs))

    # -- in the thread of the cables

    def _cut(self, roles: tuple[str, ...], *, is_reset: bool) -> None:
        for each in list(self._passes):
            if each.role not in roles and roles != BOTH:
                continue
            self.cuts[each.role] += 1
            for writer in each.writers:
                if is_reset:
                    _reset(writer)
                else:
                    writer.close()

    def _refuse(self, refuses: bool) -> None:
        self._is_refusing = refuses

    def _stall(self, stalled: frozenset[tuple[str, bool]]) -> None:
        self._stalled = stalled
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

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
        """Tells whether bytes stand still; before it is known whose they are, where all do."""
        roles = (each.role,) if each.role else BOTH
        return all((role, is_outward) in self._stalled for role in roles)


class Cables:
    """Gives each link of a mesh a cable of its own, in a thread beside the test."""

    def __init__(self) -> None:
        self.cables: dict[tuple[str, str], Cable] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cables")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.cables.values():
            asyncio.run_coroutine_threadsafe(each.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lay(self, one: str, other: str, target: int) -> int:
        """Returns the port that a container is to dial in the place of another one's."""
        cable = Cable(self._loop, target)
        asyncio.run_coroutine_threadsafe(cable.start(), self._loop).result(10)
        self.cables[one, other] = cable
        return cable.port

    def between(self, one: str, other: str) -> list[Cable]:
        """Returns what two containers dial each other by."""
        pairs = ((one, other), (other, one))
        return [self.cables[pair] for pair in pairs if pair in self.cables]

    def heal(self, container: str | None = None) -> None:
        """Heals all cables, or those to and from one container."""
        for pair, cable in self.cables.items():
            if container is None or container in pair:
                cable.heal()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
