"""What can be done to backups of the container: begin one, read its files, let it go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.nodes.management.permission import ADDRESS, demand
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.waiting import finished
from cogwork.plugin.management import BAD_REQUEST, CONFLICT, NOT_FOUND, ManagementError

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, Requester

    Steps = Generator[bool, None, Reply]

__all__ = ("Backups",)

FILES_MAX = 1_000
"""Files in one reply."""

CONTENT_BYTES_MAX = 1 << 20


class Backups:
    """The operations on backups: for whoever may manage `$management`."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: Whose data directory it is about.
        """
        self._container = container

    def create(self, _request: Request, requester: Requester) -> Steps:
        """Keep the data directory as it is now, until DELETE or nobody asks for a minute."""
        demand(requester, ADDRESS)
        return self._create()

    def _create(self) -> Steps:
        backups = self._container.backups
        if any(True for _ in backups.rows()):
            raise ManagementError(CONFLICT, "another backup is under way here: try again later")
        try:
            found = yield from finished(self._container, backups.begin())
        except OSError as error:
            text = f"cannot link the files of the data directory: {error.strerror}"
            raise ManagementError(BAD_REQUEST, text) from error
        return Reply(found, 201)

    def files(self, request: Request, requester: Requester) -> Reply:
        """List some of the files, from the `index`-th on."""
        demand(requester, ADDRESS)
        name, index = request.required_name(), request.number("index", 0)
        count = min(request.number("count", FILES_MAX, least=1), FILES_MAX)
        try:
            return Reply({"files": self._container.backups.files(name, index, count)})
        except ValueError as error:
            raise ManagementError(NOT_FOUND, str(error)) from error

    def content(self, request: Request, requester: Requester) -> Steps:
        """Return octets of the `file`-th file, from `offset` on."""
        demand(requester, ADDRESS)
        name, file = request.required_name(), request.number("file", 0)
        offset = request.number("offset", 0)
        count = min(request.number("count", CONTENT_BYTES_MAX, least=1), CONTENT_BYTES_MAX)
        return self._content(name, file, offset, count)

    def _content(self, name: str, file: int, offset: int, count: int) -> Steps:
        work = self._container.backups.read(name, file, offset, count)
        try:
            octets = yield from finished(self._container, work)
        except OSError as error:
            text = f"cannot read file {file} of the backup: {error.strerror}"
            raise ManagementError(NOT_FOUND, text) from error
        return Reply(octets)

    def delete(self, request: Request, requester: Requester) -> Reply:
        """Let it go."""
        demand(requester, ADDRESS)
        name = request.required_name()
        if not self._container.backups.end(name):
            raise ManagementError(NOT_FOUND, f"there is no backup {name!r:.80} under way")
        return Reply({}, 204)
