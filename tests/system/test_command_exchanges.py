"""`cogwork exchange` against a container in a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.cli.exit_codes import ExitCode

from .meshes import meshed
from .served import Served, ran, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = """
[[exchange]]
name = "orders"
type = "topic"

[[binding]]
source = "orders"
destination = "queue/eu"
key = "*.eu"

[[binding]]
source = "amq.headers"
destination = "exchange/orders"
arguments = { kind = "order", x-match = "any" }
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("exchanges"), CONFIGURATION) as running:
        yield running


def told(container: Served, *words: str) -> Any:
    """Run a command with `--json`; return what it prints."""
    name, *rest = words
    return json.loads(container.run("exchange", name, container.url, *rest, "--json"))


def bodies(container: Served, queue: str) -> list[str]:
    lines = container.run("queue", "peek", container.url, queue).splitlines()
    container.run("queue", "purge", container.url, queue)
    return [line.rpartition("\t")[2] for line in lines]


def test_an_exchange_from_the_cradle_to_the_grave(container: Served) -> None:
    url = container.url
    container.run("queue", "declare", url, "queue/logs")
    declare = ("exchange", "declare", url, "logs", "--type", "direct", "--auto-delete")
    assert container.run(*declare) == "logs declared\n"
    assert container.run(*declare) == "logs was there with these properties\n"
    bind = ("logs", "queue/logs", "--key", "k")
    assert container.run("exchange", "bind", url, *bind) == "queue/logs bound to logs\n"
    assert told(container, "bind", *bind) == {
        "source": "logs",
        "destination": "queue/logs",
        "key": "k",
        "changed": False,
    }
    assert container.run("exchange", "publish", url, "logs", "hello", "--key", "k") == "published\n"
    assert bodies(container, "queue/logs") == ["hello"]
    assert container.run("exchange", "unbind", url, *bind) == "queue/logs unbound from logs\n"
    gone = ran("exchange", "delete", url, "logs")
    assert (gone.returncode, gone.stderr) == (
        ExitCode.NOT_FOUND,
        "cogwork: there is no exchange 'exchange/logs' (amqp:not-found)\n",
    )


def test_what_the_configuration_has_is_listed_and_works(container: Served) -> None:
    (orders,) = [each for each in told(container, "list") if each["exchange"] == "orders"]
    assert orders["kind"] == "topic"
    assert orders["durable"] is True
    bindings = told(container, "list", "--bindings")
    assert {(each["source"], each["destination"], each["key"]) for each in bindings} == {
        ("exchange/orders", "queue/eu", "*.eu"),
        ("exchange/amq.headers", "exchange/orders", ""),
    }
    publish = ("publish", "amq.headers", "x", "--key", "new.eu", "--header", "kind=order")
    assert told(container, *publish) == {"exchange": "amq.headers", "key": "new.eu", "routed": True}
    assert bodies(container, "queue/eu") == ["x"]
    table = container.run("exchange", "list", container.url)
    assert "orders" in table
    assert "amq.topic" in table


def test_a_message_that_no_binding_takes_is_told(container: Served) -> None:
    lost = ran("exchange", "publish", container.url, "orders", "x", "--key", "new.us")
    assert (lost.returncode, lost.stdout, lost.stderr) == (
        ExitCode.NOT_ACCEPTED,
        "",
        "cogwork: no binding of orders takes the message\n",
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("declare", "orders"), "inequivalent arg 'type' for exchange 'orders' in vhost '/'"),
        (("declare", "amq.x"), "exchange name 'amq.x' contains reserved prefix 'amq.*'"),
        (("declare", "x", "--type", "none"), "unknown exchange type 'none'"),
        (
            ("delete", "amq.topic"),
            "deletion of system exchange 'amq.topic' in vhost",
        ),
        (("delete", "orders", "--if-unused"), "exchange 'orders' in vhost '/' in use"),
        (("bind", "none", "queue/eu"), "no exchange 'none' in vhost '/'"),
        (("bind", "orders", "queue/none"), "no queue 'none' in vhost '/'"),
        (
            ("bind", "orders", "topic/a"),
            "'topic/a' cannot be bound: expected queue/NAME or",
        ),
        (("bind", "orders", "queue/eu", "--argument", "x"), "'x' is no K=V"),
        (("publish", "none", "x"), "there is no exchange 'none'"),
    ],
)
def test_what_is_refused_is_one_line(container: Served, words: tuple[str, ...], says: str) -> None:
    name, *rest = words
    refused = ran("exchange", name, container.url, *rest)
    assert refused.returncode != 0
    assert says in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_container_that_is_killed_has_what_was_answered(tmp_path: Path) -> None:
    def head(_name: str) -> str:
        return f'data_dir = "{tmp_path / "data"}"\n'

    with meshed(tmp_path, ("a",), (), head=head) as members:
        member = members["a"]
        container = member.served
        container.run("queue", "declare", container.url, "queue/q", "--durability", "disk")
        container.run("exchange", "declare", container.url, "kept", "--type", "fanout")
        container.run("exchange", "bind", container.url, "kept", "queue/q", "--argument", "n=1")
        member.kill()
        member.start()
        within(30.0, member.listens, "the container listens")
        (binding,) = told(member.served, "list", "--bindings")
        assert binding["destination"] == "queue/q"
        assert binding["arguments"] == {"n": 1}
        assert told(member.served, "publish", "kept", "x")["routed"]
        assert bodies(member.served, "queue/q") == ["x"]


def test_all_workers_have_what_is_declared(tmp_path: Path) -> None:
    with served(tmp_path, head="workers = 2\n") as container:
        url = container.url
        container.run("queue", "declare", url, "queue/q")
        container.run("exchange", "declare", url, "both", "--type", "fanout")
        assert told(container, "bind", "both", "queue/q")["changed"]
        for _ in range(6):
            assert told(container, "publish", "both", "x")["routed"]
        container.run("exchange", "delete", url, "both")
        for _ in range(6):
            assert ran("exchange", "publish", url, "both", "x").returncode == ExitCode.NOT_FOUND
