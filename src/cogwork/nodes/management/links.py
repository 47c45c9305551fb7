"""What can be done to this container's links to neighbours: make one, give one up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import Condition
from cogwork.nodes.management.permission import ADDRESS, demand
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.waiting import finished, known, members_of
from cogwork.plugin.management import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    LINK,
    NOT_FOUND,
    ManagementError,
)
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, Requester

__all__ = ("Links",)

_STATUS = {Condition.INVALID_FIELD: BAD_REQUEST, Condition.UNAUTHORIZED_ACCESS: FORBIDDEN}


class Links:
    """The operations on links. Whoever may manage `$management` may do them."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: Whose links they are.
        """
        self._container = container

    def create(self, request: Request, requester: Requester) -> Reply:
        """Dial another container; `name` is its URL."""
        demand(requester, ADDRESS)
        url = request.required_name()
        try:
            self._container.mesh.add_link(url, request.number("cost", 1, least=1))
        except Refused as refusal:
            status = _STATUS.get(refusal.condition, CONFLICT)
            raise ManagementError(status, refusal.description) from refusal
        return Reply(self._container.collections[LINK].find(url), 201)

    def delete(self, request: Request, requester: Requester) -> Reply:
        """Give up a link that is dialled from here."""
        demand(requester, ADDRESS)
        try:
            self._container.mesh.remove_link(request.required_name())
        except Refused as refusal:
            raise ManagementError(BAD_REQUEST, refusal.description) from refusal
        except KeyError:
            raise ManagementError(
                NOT_FOUND,
                "there is no such link that is dialled from here; a neighbour's own "
                "link is removed there",
            ) from None
        return Reply({}, 204)

    def status(self, _request: Request, requester: Requester) -> Generator[bool, None, Reply]:
        """Ask all members of the cluster how they are."""
        demand(requester, ADDRESS)
        return self._status()

    def _status(self) -> Generator[bool, None, Reply]:
        found = yield from finished(self._container, self._container.cluster_status())
        return Reply(found)

    def primaries(self, request: Request, requester: Requester) -> Generator[bool, None, Reply]:
        """Have the containers `replicas` hold what the cluster has declared."""
        demand(requester, ADDRESS)
        voters, learners = members_of(request)
        if learners:
            raise ManagementError(BAD_REQUEST, "primaries have a vote: there are no learners")
        self._container.demand_holders(voters)
        return self._move(voters)

    def _move(self, voters: list[str]) -> Generator[bool, None, Reply]:
        yield from finished(self._container, self._container.move_primaries(voters))
        return Reply({}, 202)

    def root(self, request: Request, requester: Requester) -> Generator[bool, None, Reply]:
        """Have `container` be one that may become the root, or may not."""
        demand(requester, ADDRESS)
        body = request.attributes()
        is_enabled = body.get("enabled")
        if not isinstance(is_enabled, bool):
            raise ManagementError(BAD_REQUEST, "enabled is true or false")
        return self._root(
            request.text("container"), is_enabled=is_enabled, allows_none=bool(body.get("none"))
        )

    def _root(
        self, name: str, *, is_enabled: bool, allows_none: bool
    ) -> Generator[bool, None, Reply]:
        yield from known(self._container)
        work = self._container.set_root(name, is_enabled=is_enabled, allows_none=allows_none)
        yield from finished(self._container, work)
        return Reply({}, 204)

    def rebalance(self, request: Request, requester: Requester) -> Generator[bool, None, Reply]:
        """Move at most `most` of the clients that are more than this container's share."""
        demand(requester, ADDRESS)
        most = request.attributes().get("most")
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise ManagementError(BAD_REQUEST, "most is a whole number from 0 on")
        return self._rebalance(most)

    def _rebalance(self, most: int) -> Generator[bool, None, Reply]:
        return Reply((yield from finished(self._container, self._container.rebalance(most))))

    def entries(self, _request: Request, requester: Requester) -> Reply:
        """List what the cluster has for all containers."""
        demand(requester, ADDRESS)
        try:
            return Reply({"entries": self._container.cluster_entries()})
        except ValueError as error:
            raise ManagementError(BAD_REQUEST, str(error)) from error

    def apply(self, request: Request, requester: Requester) -> Generator[bool, None, Reply]:
        """Have the cluster have the `entries` of the body, all of them or none."""
        demand(requester, ADDRESS)
        body = request.attributes()
        entries = body.get("entries")
        if not isinstance(entries, list) or not all(map(_is_entry, entries)):
            text = "entries is a list of lists: kind, virtual host, name and a map of options"
            raise ManagementError(BAD_REQUEST, text)
        return self._apply(
            entries, is_pruning=bool(body.get("prune")), is_dry=bool(body.get("dry"))
        )

    def _apply(
        self, entries: list[list[Any]], *, is_pruning: bool, is_dry: bool
    ) -> Generator[bool, None, Reply]:
        yield from known(self._container)
        work = self._container.apply_entries(entries, is_pruning=is_pruning, is_dry=is_dry)
        return Reply({"changes": (yield from finished(self._container, work))})

    def forget(self, request: Request, requester: Requester) -> Generator[bool, None, Reply]:
        """Have the feature level no longer wait for `container`, which is gone for good."""
        demand(requester, ADDRESS)
        return self._forget(request.text("container"))

    def _forget(self, name: str) -> Generator[bool, None, Reply]:
        yield from known(self._container)
        yield from finished(self._container, self._container.forget_member(name))
        return Reply({}, 204)

    def leave(self, _request: Request, requester: Requester) -> Reply:
        """Have the container leave the mesh; how far it is says `leaving` in what READ answers."""
        demand(requester, ADDRESS)
        self._container.mesh.leave()
        return Reply({}, 202)


def _is_entry(value: object) -> bool:
    """Return whether this may be an entry of a cluster."""
    match value:
        case [str(), str(), str(), dict()]:
            return True
    return False
