"""Opens streams on a server: what the hosts of all adapters have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeVar

from cogwork.engines.shared.server import ServerDown, ServerRefused
from cogwork.engines.shared.stream import TIMEOUT_S, SharedStream
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.engine.retention import RETENTION_OPTIONS, Retention

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from cogwork.engines.shared.server import ServerLog
    from cogwork.plugin.engine.capabilities import Capabilities

__all__ = ("SharedHost", "check_options", "number_of", "text_of")

NAME_BYTES_MAX = 150

HIDDEN = frozenset({"key_password", "password", "token", "url"})
"""Options that no message shows."""

T = TypeVar("T")


class SharedHost(ABC):
    """Streams on one server, or a cluster of them.

    A subclass names the options, and makes logs.

    Args:
        context: What it is made with.

    Attributes:
        engine: Its name.
        host_options: What the configuration of the engine may say.
        url_option: Which of that says where the servers are.
        stream_options: What the declaration of a stream may say, beside retention.
        timeout_s: After so long a call is answered, whatever the server does.
    """

    engine: ClassVar[str]
    host_options: ClassVar[tuple[str, ...]] = ()
    url_option: ClassVar[str] = "url"
    stream_options: ClassVar[tuple[str, ...]] = ()
    declared: ClassVar[Capabilities]

    def __init__(self, context: EngineContext | None = None) -> None:
        self.context = context or EngineContext()
        known = ("timeout_s", *self.host_options)
        check_options(f"the engine {self.engine}", self.context.options, known)
        self.timeout_s = number_of(self.context.options, "timeout_s", TIMEOUT_S)
        self._streams: dict[str, list[SharedStream]] = {}

    @property
    def capabilities(self) -> Capabilities:
        """What every server of the kind gives; an open stream says what this one does."""
        return self.declared

    @abstractmethod
    async def make_log(self, stream: str, options: Mapping[str, object]) -> ServerLog:
        """Return the log of a stream; make it where it is new.

        Raises:
            ServerDown: The server does not answer.
            ServerRefused: The server does not want to.
            ValueError: An option is wrong.
        """

    @abstractmethod
    async def drop_log(self, stream: str) -> None:
        """Delete the log of a stream, if there is one.

        Raises:
            ServerDown: The server does not answer.
            ServerRefused: The server does not want to.
        """

    @abstractmethod
    async def reach(self) -> None:
        """See that the server answers.

        Raises:
            ServerDown: It does not.
            ServerRefused: It does not want to.
        """

    @abstractmethod
    async def disconnect(self) -> None:
        """Leave the server."""

    async def open(self, stream: str, options: Mapping[str, object]) -> SharedStream:
        """Open a stream; make it where it is new.

        Raises:
            Unavailable: The server cannot be reached, or does not want to.
            ValueError: An option is wrong.
        """
        check_options(
            f"a stream on the engine {self.engine}",
            options,
            (*RETENTION_OPTIONS, *self.stream_options),
        )
        if not 0 < len(stream.encode()) <= NAME_BYTES_MAX:
            raise ValueError(f"a stream's name has from 1 to {NAME_BYTES_MAX} octets")
        retention = Retention.of(options)
        log = await self._call(self.make_log(stream, options))
        name = f"stream {stream} on the engine {self.engine}"
        opened = SharedStream(log, self.timeout_s, retention, context=self.context, name=name)
        others = [each for each in self._streams.get(stream, ()) if not each.is_closed]
        self._streams[stream] = [*others, opened]
        return opened

    async def delete(self, stream: str) -> None:
        """Give up a stream with all its records."""
        await self._call(self.reach())  # else it could not be deleted there, and is to go on here
        for opened in self._streams.pop(stream, ()):
            await opened.end("the stream was deleted")
        await self._call(self.drop_log(stream))

    async def close(self) -> None:
        """Let go of all streams."""
        for name in list(self._streams):
            for opened in self._streams.pop(name):
                await opened.close()
        await self.disconnect()

    async def _call(self, doing: Coroutine[object, object, T]) -> T:
        try:
            async with asyncio.timeout(self.timeout_s):
                return await doing
        except ServerDown as error:
            raise Unavailable(str(error)) from error
        except ServerRefused as error:
            raise Unavailable(str(error)) from error
        except TimeoutError:
            raise Unavailable("the server does not answer") from None


def check_options(what: str, options: Mapping[str, object], known: tuple[str, ...]) -> None:
    """See that there are no unknown options.

    Raises:
        ValueError: There is one.
    """
    for name in options:
        if name not in known:
            raise ValueError(f"{what} has no option {name!r}, but {', '.join(known)}")


def text_of(options: Mapping[str, object], name: str, default: str) -> str:
    """Return an option that is a text.

    Raises:
        ValueError: It is none.
    """
    value = options.get(name, default)
    if not isinstance(value, str) or not value:
        example = f", such as {default!r}" if default else ""
        shown = "what stands there" if name in HIDDEN else f"{value!r:.80}"
        raise ValueError(f"{name} is a text{example}, not {shown}")
    return value


def number_of(options: Mapping[str, object], name: str, default: float) -> float:
    """Return an option that is a positive number.

    Raises:
        ValueError: It is none.
    """
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{name} is a positive number, such as {default}, not {value!r}")
    return value
