"""Links that other containers attach while it is not known what their cluster has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cogwork.amqp.performatives import Attach, Role
from cogwork.amqp.terminus import Source, Target
from cogwork.container.mesh.gate import Gate
from cogwork.container.mesh.names import FROM, MOVE
from cogwork.dataplane.core import Core

if TYPE_CHECKING:
    from collections.abc import Callable

ATTACHES = {
    "lends": Attach(name="x", handle=0, role=Role.RECEIVER, source=Source(address="work/x")),
    "takes": Attach(name="x", handle=0, role=Role.SENDER, target=Target(address="work/x")),
    "is moved": Attach(
        name="x", handle=0, role=Role.SENDER, target=Target(address="work/x"), properties={MOVE: 1}
    ),
}


class Nodes(dict[str, object]):
    """Those of the virtual host, which makes none."""

    def __init__(self, make: Callable[..., object]) -> None:
        super().__init__()
        self.of = make


class Here:
    """A container with a virtual host, and a link that another container attaches.

    Attributes:
        made: Addresses of which something was made, or used.
        refused: Why the link was.
    """

    is_leaving = False

    def __init__(self, *, is_current: bool, kind: str = "queue") -> None:
        self.core, self.name = Core(), ""
        self.nodes = Nodes(self.make)
        self.readiness = SimpleNamespace(holds_all=lambda: is_current)
        self.made: list[str] = []
        self.refused: list[str] = []
        begun = SimpleNamespace(remote_channel=None, properties={FROM: "b"})
        self.session = SimpleNamespace(remote=begun)
        self._kind = kind

    def rule_of(self, address: str) -> tuple[str, object]:
        return address, SimpleNamespace(kind=self._kind)

    def make(self, *what: object) -> object:
        self.made.append(str(what[-1]))
        raise StopIteration  # it would be attached now

    entry_of = near_entry_of = make

    def refuse(self, condition: str, description: str) -> None:
        assert condition == "amqp:not-found"
        self.refused.append(description)

    def attach(self, attach: Attach) -> None:
        gate = Gate(self, {"": self})  # type: ignore[arg-type, dict-item]  # all that is asked
        gate.take(self, attach)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize("what", ATTACHES)
def test_nothing_is_made_that_the_cluster_may_have_declared(what: str) -> None:
    here = Here(is_current=False)
    here.attach(ATTACHES[what])
    assert here.refused == ["'work/x' is not known here yet"]
    assert here.made == []


@pytest.mark.parametrize("what", ATTACHES)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_there_is_used_and_made_once_all_is_known(what: str, is_there: bool) -> None:
    here = Here(is_current=not is_there)
    if is_there:
        here.nodes["work/x"] = None
    with pytest.raises(StopIteration):
        here.attach(ATTACHES[what])
    assert here.made == ["work/x"]


def test_what_keeps_nothing_is_made_at_any_time() -> None:
    here = Here(is_current=False, kind="direct")
    with pytest.raises(StopIteration):
        here.attach(ATTACHES["takes"])
    assert here.made == ["work/x"]
