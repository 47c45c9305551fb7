"""The mesh by `$management`: links that are made and given up."""

from __future__ import annotations

import pytest
from management_world import FakeContainer, World, status, text, value


def test_a_link_is_made_with_its_cost_and_given_up(world: World) -> None:
    asked = {"type": "org.cogwork.link", "name": "there:2"}
    reply = world.ask(**asked, operation="CREATE", cost=7)
    assert (status(reply), value(reply)["name"]) == (201, "there:2")
    assert world.container.mesh.costs == {"there:2": 7}
    page = value(world.ask(operation="QUERY", type="org.cogwork.link"))
    assert page["results"] == [["here:1", 6], ["there:2", 7]]
    assert status(world.ask(**asked, operation="DELETE")) == 204
    assert world.container.mesh.costs == {}


@pytest.mark.parametrize(
    ("asked", "expected", "says"),
    [
        ({"operation": "CREATE", "name": "here:1"}, 409, "here:1 is linked already"),
        ({"operation": "CREATE", "name": "nowhere"}, 400, "found nowhere, expected HOST:PORT"),
        ({"operation": "CREATE", "name": "a:1", "cost": 0}, 400, "cost is a whole number from 1"),
        ({"operation": "CREATE"}, 400, "application-property name"),
        ({"operation": "DELETE", "name": "a:1"}, 404, "no such link that is dialled from here"),
    ],
)
def test_a_link_that_cannot_be_made_or_found_is_told(
    world: World, asked: dict[str, object], expected: int, says: str
) -> None:
    reply = world.ask(**asked, type="org.cogwork.link")
    assert status(reply) == expected
    assert says in text(reply)
    assert world.container.mesh.costs == {}


def test_the_mesh_needs_no_name(world: World) -> None:
    reply = world.ask(operation="READ", type="org.cogwork.mesh")
    assert value(reply) == {"name": "box", "size": 3, "type": "org.cogwork.mesh"}


def test_the_mesh_is_no_other_virtual_hosts_business() -> None:
    world = World(FakeContainer(is_default=False))
    reply = world.ask(operation="CREATE", type="org.cogwork.link", name="there:2")
    assert status(reply) == 400
    assert world.container.mesh.costs == {}


def test_the_security_log_hears_of_what_is_changed_or_refused_and_of_no_password(
    world: World,
) -> None:
    asked = {"type": "org.cogwork.link", "name": "amqp://me:pass@word@there:2"}
    world.ask(operation="READ", type="org.cogwork.mesh")
    world.ask(operation="QUERY", type="org.cogwork.link")
    world.ask(operation="PURGE", type="queue", name="queue/none")
    assert world.container.noted == [], "to look changes nothing, nor does what fails"
    world.ask(**asked, operation="CREATE")
    assert world.container.noted.pop() == ("CREATE", "org.cogwork.link", "there:2", None)
    assert world.container.asker is not None
    world.container.asker.rights.clear()
    world.ask(operation="READ", type="org.cogwork.mesh")
    *what, refusal = world.container.noted.pop()
    assert what == ["READ", "org.cogwork.mesh", ""]
    assert refusal is not None
    assert "no permission to manage" in refusal
