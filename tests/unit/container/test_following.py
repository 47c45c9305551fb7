"""What a container makes and removes as the cluster's declarations say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cogwork.cluster.declarations import Declaration, Declarations, Declare
from cogwork.container.cluster.following import Following
from cogwork.container.vhost.stream_declarations import StreamDeclarations
from cogwork.nodes.queue import QueueNode
from cogwork.nodes.stream import StreamNode
from cogwork.plugin.engine.placement import Placement
from cogwork.plugin.management import CONFLICT, ManagementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOVED = Placement([*"bcd"], founders=[*"abc"], move=1)


def make_following(nodes: Mapping[str, object], discard: Callable[[int], object]) -> Following:
    vhosts = {"": SimpleNamespace(nodes=nodes)}
    service = SimpleNamespace(streams={}, unopened=[], own="a", discard=discard)
    return Following(
        vhosts,  # type: ignore[arg-type]  # all that is asked of them
        service,  # type: ignore[arg-type]  # the same
        lambda: range(17, 20),
        lambda _declaration: MOVED,
        lambda _stream: None,
    )


def queue_node(replica: object) -> QueueNode:
    node = QueueNode.__new__(QueueNode)
    node.replica = replica  # type: ignore[assignment]  # whether there is one is all that is asked
    return node


@pytest.mark.parametrize(
    ("node", "is_had"),
    [
        (StreamNode.__new__(StreamNode), True),
        (queue_node(object()), True),
        (queue_node(None), False),
        (object(), False),
        (None, False),
    ],
)
def test_another_node_in_the_way_is_reported(
    node: object,
    is_had: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def follow(*_arguments: object) -> None:
        raise ManagementError(CONFLICT, "another one is there")

    monkeypatch.setattr(StreamDeclarations, "follow", follow)
    nodes = {} if node is None else {"stream/orders": node}
    following = make_following(nodes, lambda _group: None)
    following.declared(Declaration(1, "stream", "", "orders", {}))
    assert ("another one is there" in caplog.text) is not is_had


def test_one_that_cannot_be_removed_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    removed: list[int] = []

    def discard(group: int) -> None:
        if group == 17:
            raise OSError(5, "the disk fails")
        removed.append(group)

    declarations = Declarations()
    for name in "xyz":
        declarations.apply(Declare("stream", "", name, {}))
    make_following({}, discard).current(declarations)
    assert sorted(removed) == [18, 19]
    assert "cannot remove all of group 17 before the next start" in caplog.text
