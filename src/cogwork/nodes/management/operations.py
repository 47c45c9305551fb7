"""Which operations there are for which type, and the ones that only look.

Whoever may manage `$management` sees and may do everything. Others reach the queues that they may
manage, and the subscriptions of their own connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING

from cogwork.nodes.management.backups import Backups
from cogwork.nodes.management.consumers import Consumers
from cogwork.nodes.management.exchanges import Exchanges
from cogwork.nodes.management.links import Links
from cogwork.nodes.management.permission import ADDRESS, demand, refuse
from cogwork.nodes.management.queues import Queues
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.settings import SettingOperations
from cogwork.nodes.management.streams import Streams
from cogwork.nodes.management.waiting import NOT_KNOWN_YET, UNAVAILABLE
from cogwork.plugin.management import (
    BACKUP,
    BAD_REQUEST,
    CONSUMER,
    LIMIT,
    LINK,
    MESH,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    PERMISSION,
    POLICY,
    USER,
    VHOST,
    ManagementError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import Collection, ContainerView, Requester

__all__ = ("Operations", "Work")

Work = Generator[bool, None, Reply]
"""Something long, a piece at a time; yields whether it can go on at once, or waits for a tick."""

Handler = Callable[["Request", "Requester"], Reply | Work]

WITH_ADDRESSES = frozenset({"address", "queue", "stream", "exchange", "binding"})
"""Types whose names are addresses, so that permissions hold for each."""

SINGLE = frozenset({"container", MESH})
"""Types with one entity, which needs no name: the container's."""

PAGE_MAX = 250
"""Rows in one reply: some two milliseconds."""


class Operations:
    """Carries requests out. Owned by the node."""

    def __init__(self, container: ContainerView, container_id: str) -> None:
        """List the operations.

        Args:
            container: What they are about.
            container_id: Its name.
        """
        self._container = container
        self._container_id = container_id
        queues = Queues(container)
        self._everywhere: dict[str, Handler] = {
            "GET-TYPES": self._get_types,
            "GET-ATTRIBUTES": self._get_attributes,
            "GET-OPERATIONS": self._get_operations,
            "GET-MGMT-NODES": self._get_nodes,
        }
        look: dict[str, Handler] = {"READ": self._read, "QUERY": self._query}
        self._by_type: dict[str, dict[str, Handler]] = dict.fromkeys(container.collections, look)
        self._by_type["connection"] = look | {
            "CLOSE": self._close,
            "DELETE": self._close,
            "DISCONNECT": self._disconnect,
        }
        self._by_type["link"] = look | {
            "DETACH": self._detach,
            "DELETE": self._detach,
            "SUBSCRIBE": partial(self._change_patterns, container.bind),
            "UNSUBSCRIBE": partial(self._change_patterns, container.unbind),
        }
        self._by_type["queue"] = look | {
            "CREATE": queues.create,
            "DELETE": queues.delete,
            "PEEK": queues.peek,
            "PURGE": queues.purge,
            "MOVE": queues.move,
            "REDRIVE": queues.redrive,
            "RELOCATE": queues.relocate,
        }
        streams = Streams(container)
        self._by_type["stream"] = look | {
            "CREATE": streams.create,
            "DELETE": streams.delete,
            "BOUNDS": streams.bounds,
            "TRIM": streams.trim,
            "MOVE": streams.move,
        }
        exchanges = Exchanges(container)
        self._by_type["exchange"] = look | {
            "CREATE": exchanges.create,
            "DELETE": exchanges.delete,
            "BIND": exchanges.bind,
            "UNBIND": exchanges.unbind,
        }
        if CONSUMER in container.collections:
            consumers = Consumers(container)
            self._by_type[CONSUMER] = look | {
                "REPORT": consumers.report,
                "DELETE": consumers.forget,
            }
        settings = SettingOperations(container)
        self._by_type[POLICY] = look | {"UPDATE": settings.update, "DELETE": settings.delete}
        if LINK in container.collections:
            self._by_type |= _of_operator(container, look)

    def start(self, request: Request, requester: Requester) -> Reply | Work:
        """Carry a request out, or start to.

        Raises:
            ManagementError: It cannot be carried out, or may not.
        """
        handler = self._everywhere.get(request.operation)
        if handler is not None:
            return handler(request, requester)
        if request.operation in ("SUBSCRIBE", "UNSUBSCRIBE"):
            request.type = request.type or "link"
        handler = self._operations_of(request).get(request.operation)
        if handler is None:
            known = ", ".join(sorted(self._operations_of(request)))
            wanted = request.operation or "no operation"
            raise ManagementError(
                NOT_IMPLEMENTED, f"{wanted!r:.80} for a {request.type}: there are {known}"
            )
        return handler(request, requester)

    def _operations_of(self, request: Request) -> Mapping[str, Handler]:
        operations = self._by_type.get(request.type)
        if operations is None:
            found = f"{request.type!r:.80}" if request.type else "missing"
            raise ManagementError(
                BAD_REQUEST,
                f"the application-property type is {found}; one of "
                f"{', '.join(self._by_type)} is expected",
            )
        return operations

    # -- what there is to ask

    def _chosen(self, request: Request) -> list[str]:
        if not request.type:
            return list(self._by_type)
        self._operations_of(request)
        return [request.type]

    def _get_types(self, request: Request, _requester: Requester) -> Reply:
        return Reply({kind: [] for kind in self._chosen(request)})

    def _get_attributes(self, request: Request, _requester: Requester) -> Reply:
        collections = self._container.collections
        return Reply({kind: list(collections[kind].attributes) for kind in self._chosen(request)})

    def _get_operations(self, request: Request, _requester: Requester) -> Reply:
        return Reply({kind: sorted(self._by_type[kind]) for kind in self._chosen(request)})

    def _get_nodes(self, _request: Request, _requester: Requester) -> Reply:
        return Reply([ADDRESS])

    # -- what there is

    def _read(self, request: Request, requester: Requester) -> Reply:
        name = request.name or self._container_id if request.type in SINGLE else ""
        name = name or request.required_name()
        _demand_sight(request, requester, name)
        row = self._collection(request).find(name)
        if row is None and request.type == "stream" and not self._container.knows_declarations:
            raise ManagementError(UNAVAILABLE, NOT_KNOWN_YET)
        if row is None:
            raise ManagementError(NOT_FOUND, f"there is no {request.type} {name!r:.200}")
        return Reply({**row, "type": request.type})

    def _query(self, request: Request, requester: Requester) -> Reply:
        collection = self._collection(request)
        is_limited = not requester.may("manage", ADDRESS)
        if is_limited and request.type not in WITH_ADDRESSES:
            refuse(requester, "manage", ADDRESS)
        names = _attribute_names(request, collection)
        index = request.number("index", request.number("offset", 0))
        count = min(request.number("count", PAGE_MAX, least=1), PAGE_MAX)
        sees = partial(requester.may, "manage") if is_limited else None
        results = [[row.get(name) for name in names] for row in collection.rows(index, count, sees)]
        return Reply(
            {"attributeNames": names, "results": results},
            properties={"count": len(results), "total": len(collection), "index": index},
        )

    def _collection(self, request: Request) -> Collection:
        return self._container.collections[request.type]

    # -- connections and links

    def _close(self, request: Request, requester: Requester) -> Reply:
        demand(requester, ADDRESS)
        name = request.required_name()
        if not self._container.close_connection(name, _reason(request)):
            raise ManagementError(NOT_FOUND, f"there is no connection {name!r:.200}")
        return Reply({}, 204)

    def _disconnect(self, request: Request, requester: Requester) -> Reply:
        demand(requester, ADDRESS)
        closed = self._container.disconnect_user(request.required_name(), _reason(request))
        return Reply({"closed": closed})

    def _detach(self, request: Request, requester: Requester) -> Reply:
        demand(requester, ADDRESS)
        name = request.required_name()
        if not self._container.detach_link(name, _reason(request)):
            raise ManagementError(NOT_FOUND, f"there is no link {name!r:.200}")
        return Reply({}, 204)

    def _change_patterns(
        self,
        change: Callable[[Requester, str, str], bool],
        request: Request,
        requester: Requester,
    ) -> Reply:
        name = request.name or request.text("link")
        changed = change(requester, name, request.text("pattern"))
        return Reply({"changed": changed})


def _of_operator(
    container: ContainerView, look: Mapping[str, Handler]
) -> dict[str, dict[str, Handler]]:
    """List the operations on what is the whole container's, or the cluster's."""
    links, settings = Links(container), SettingOperations(container)
    backups = Backups(container)
    create: dict[str, Handler] = {"CREATE": settings.create}
    update: dict[str, Handler] = {"UPDATE": settings.update}
    delete: dict[str, Handler] = {"DELETE": settings.delete}
    return {
        BACKUP: {
            **look,
            "CREATE": backups.create,
            "FILES": backups.files,
            "CONTENT": backups.content,
            "DELETE": backups.delete,
        },
        LINK: {**look, "CREATE": links.create, "DELETE": links.delete},
        USER: {**look, **create, **update, **delete},
        PERMISSION: {**look, **create, **update, **delete},
        VHOST: {**look, **create, **delete},
        LIMIT: {**look, **update, **delete},
        MESH: {
            **look,
            "LEAVE": links.leave,
            "STATUS": links.status,
            "PRIMARIES": links.primaries,
            "ROOT": links.root,
            "REBALANCE": links.rebalance,
            "FORGET": links.forget,
            "ENTRIES": links.entries,
            "APPLY": links.apply,
        },
    }


def _demand_sight(request: Request, requester: Requester, name: str) -> None:
    demand(requester, name if request.type in WITH_ADDRESSES else ADDRESS)


def _attribute_names(request: Request, collection: Collection) -> list[str]:
    """Read which attributes are asked for; all, where none is."""
    wanted = request.attributes().get("attributeNames") or []
    if not isinstance(wanted, list):
        raise ManagementError(BAD_REQUEST, "attributeNames is a list of strings")
    unknown = [name for name in wanted if name not in collection.attributes]
    if unknown:
        raise ManagementError(
            BAD_REQUEST,
            f"a {request.type} has no attribute {unknown[0]!r:.80}: there are "
            f"{', '.join(collection.attributes)}",
        )
    return [str(name) for name in wanted] or list(collection.attributes)


def _reason(request: Request) -> str:
    return str(request.attributes().get("reason") or "closed by management")
