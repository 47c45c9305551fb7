"""What can be done to streams: declare, delete, trim, move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.nodes.management.permission import demand, demand_right
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.waiting import (
    OPENING_TICKS,
    UNAVAILABLE,
    assured,
    deleted,
    finished,
    known,
    members_of,
)
from cogwork.plugin.management import BAD_REQUEST, NOT_FOUND, ManagementError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, ManagedStream, Requester

    Steps = Generator[bool, None, Reply]

__all__ = ("Streams",)

NO_TIME = -(1 << 62)
"""No record is of this time."""


class Streams:
    """The operations on streams. Whoever may manage a stream's address may do them."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: Where the streams are.
        """
        self._container = container

    def create(self, request: Request, requester: Requester) -> Steps:
        """Declare a stream with the options of the body.

        What it captures can be read from it, so that takes the right to receive from the topics.
        """
        name = request.required_name()
        demand(requester, name)
        attributes = request.attributes()
        captured = attributes.get("capture")
        for pattern in captured if isinstance(captured, list | tuple) else ():
            demand_right(requester, "receive", str(pattern))
        return self._create(name, attributes, requester)

    def _create(self, name: str, attributes: Mapping[str, object], requester: Requester) -> Steps:
        yield from self._known(name)
        if self._container.stream(name) is None:
            yield from assured(self._container, name)
            if attributes.get("replicas"):
                yield from finished(self._container, self._container.demand_rooms(attributes))
        is_new = self._container.declare_stream(name, attributes, requester)
        stream = self._container.stream(name)
        for _ in range(OPENING_TICKS):
            found = self._container.stream(name)
            if found not in (None, stream):  # another container declared it at once, and was first
                is_new, stream = False, found
            if stream is None or stream.state not in ("opening", "away"):
                break
            yield False
        if is_new and stream is not None and stream.state == "failed":
            self._container.abandon_stream(name)
            raise ManagementError(BAD_REQUEST, stream.problem or "it was given up meanwhile")
        row = self._container.collections["stream"].find(name)
        if row is None:
            raise ManagementError(NOT_FOUND, f"{name!r:.200} was given up meanwhile")
        return Reply(row, 201 if is_new else 200)

    def _known(self, name: str) -> Generator[bool, None, None]:
        """Wait until a stream is there, or it is known what the cluster has declared.

        One that were made before would be in the way of the cluster's.

        Raises:
            ManagementError: Neither is the case soon.
        """
        return known(self._container, lambda: self._container.stream(name) is not None)

    def _found(self, name: str) -> Generator[bool, None, ManagedStream]:
        """Return a stream.

        Raises:
            ManagementError: There is none, or that is not known.
        """
        yield from self._known(name)
        stream = self._container.stream(name)
        if stream is None:
            raise ManagementError(NOT_FOUND, f"there is no stream {name!r:.200}")
        return stream

    def delete(self, request: Request, requester: Requester) -> Steps:
        """Give a stream up, with its records."""
        name = request.required_name()
        demand(requester, name)
        return self._delete(name)

    def _delete(self, name: str) -> Steps:
        yield from self._known(name)
        work = self._container.delete_stream(name)
        was_there = yield from deleted(self._container, name, work)
        if not was_there:
            raise ManagementError(NOT_FOUND, f"there is no stream {name!r:.200}")
        return Reply({}, 204)

    def trim(self, request: Request, requester: Requester) -> Steps:
        """Give up the records below the offset `before`."""
        name = request.required_name()
        demand(requester, name)
        before = request.number("before", -1)
        if before < 0:
            raise ManagementError(BAD_REQUEST, "TRIM needs before, an offset")
        return self._trim(name, before)

    def _trim(self, name: str, before: int) -> Steps:
        stream = yield from self._found(name)
        bounds = yield from finished(self._container, stream.trim(before), stream)
        return Reply({"first": bounds.first, "next": bounds.next})

    def bounds(self, request: Request, requester: Requester) -> Steps:
        """Return what a stream holds as of now: `first`, `next`; with `time_ms`, `offset` too.

        Whoever may receive from the stream may ask.
        """
        name = request.required_name()
        if not requester.may("receive", name):
            demand(requester, name)
        return self._bounds(name, request.number("time_ms", NO_TIME, NO_TIME))

    def _bounds(self, name: str, time_ms: int) -> Steps:
        stream = yield from self._found(name)
        for _ in range(OPENING_TICKS):
            if stream.engine is not None:
                break
            yield False
        engine = stream.engine
        if engine is None:
            raise ManagementError(UNAVAILABLE, f"{name!r:.200} is not open: {stream.problem}")
        bounds = yield from finished(self._container, engine.bounds(), stream)
        told = {"first": bounds.first, "next": bounds.next}
        if time_ms != NO_TIME:
            offset = yield from finished(self._container, engine.offset_at(time_ms), stream)
            told["offset"] = max(offset, bounds.first)
        return Reply(told)

    def move(self, request: Request, requester: Requester) -> Steps:
        """Have others hold the replicas: `replicas`, and `learners` that only follow."""
        name = request.required_name()
        demand(requester, name)
        return self._move(name, *members_of(request))

    def _move(self, name: str, voters: list[str], learners: list[str]) -> Steps:
        stream = yield from self._found(name)
        self._container.demand_holders([*voters, *learners])
        yield from finished(self._container, stream.move(voters, learners))
        return Reply(self._container.collections["stream"].find(name), 202)
