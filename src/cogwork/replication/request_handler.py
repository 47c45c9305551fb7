"""Where calls to streams are carried out, whoever makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import Unavailable
from cogwork.replication.calls import Refused, failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.replication.calls import Answer, Call
    from cogwork.replication.proxied_engine import ProxiedEngine
    from cogwork.replication.stream import Stream

__all__ = ("NO_REPLICA", "RequestHandler")

NO_REPLICA = "no replica of {} is here"
"""What a container that is up answers where it does not hold the stream it is asked about."""


class RequestHandler:
    """Passes calls to what is here: a replica, or a stream of another engine."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        """Serve no stream of another engine yet.

        Args:
            streams: Those that are open here, by name; it sees what comes and goes.
        """
        self._streams = streams
        self._served: dict[str, ProxiedEngine] = {}

    def carry_out(self, call: Call, answer: Callable[[Answer], object]) -> None:
        """Have a call carried out, and refuse what nothing here can answer."""
        proxied = self._served.get(call.stream.name)
        stream = self._streams.get(call.stream.name)
        if proxied is not None:
            proxied.call(call, answer)
        elif stream is None or stream.member is None or stream.key != call.stream:
            reason = NO_REPLICA.format(call.stream.name)
            answer(Refused(call.number, failure_of(Unavailable(reason))))
        else:
            stream.member.call(call, answer)

    def serve(self, name: str, proxied: ProxiedEngine) -> None:
        """Have calls to a stream carried out that is no replicated one."""
        self._served[name] = proxied

    async def unserve(self, name: str) -> None:
        """Have such calls refused from now on."""
        proxied = self._served.pop(name, None)
        if proxied is not None:
            await proxied.close()
