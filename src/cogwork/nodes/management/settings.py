"""What can be done to users, permissions, virtual hosts, limits and policies of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.nodes.management.permission import ADDRESS, demand
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.waiting import assured, deleted, finished, known
from cogwork.plugin.management import (
    LIMIT,
    NOT_FOUND,
    PERMISSION,
    POLICY,
    USER,
    VHOST,
    ManagementError,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, Requester

    Steps = Generator[bool, None, Reply]

__all__ = ("SettingOperations",)

KINDS = {
    USER: "user",
    PERMISSION: "permission",
    VHOST: "vhost",
    LIMIT: "limit",
    POLICY: "policy",
}


class SettingOperations:
    """The operations on what is set in a cluster: for whoever may manage `$management`."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: In whose cluster they are declared.
        """
        self._container = container

    def create(self, request: Request, requester: Requester) -> Steps:
        """Declare what is not there yet, with the options of the body."""
        demand(requester, ADDRESS)
        return self._set(request, is_new=True)

    def update(self, request: Request, requester: Requester) -> Steps:
        """Change the options of the body; one that is null is taken away."""
        demand(requester, ADDRESS)
        return self._set(request, is_new=False)

    def _set(self, request: Request, *, is_new: bool) -> Steps:
        name, kind, container = request.required_name(), KINDS[request.type], self._container
        options = request.attributes()
        yield from known(container, lambda: False)
        yield from assured(container, name)
        yield from finished(container, container.set_setting(kind, name, options, is_new=is_new))
        row = container.collections[request.type].find(name)
        return Reply(row, 201 if is_new else 200)

    def delete(self, request: Request, requester: Requester) -> Steps:
        """Take back what the cluster has declared."""
        demand(requester, ADDRESS)
        return self._delete(request)

    def _delete(self, request: Request) -> Steps:
        name, kind, container = request.required_name(), KINDS[request.type], self._container
        yield from known(container, lambda: False)
        work = container.remove_setting(kind, name)
        if not (yield from deleted(container, name, work)):
            raise ManagementError(NOT_FOUND, f"the cluster has no {kind} {name!r:.200}")
        return Reply({}, 204)
