"""Definitions that a RabbitMQ has exported are declared at a container."""

from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker
from rabbitmq import RabbitMq

from cogwork.bench.servers.process import Missing
from cogwork.cli.exit_codes import ExitCode
from cogwork.config.password_hash import hash_password

from .served import done, ran, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

ARGUMENTS = {
    "x-max-length": 1000,
    "x-message-ttl": 60_000,
    "x-dead-letter-exchange": "dead",
    "x-overflow": "reject-publish",
}


def declare(channel: BlockingChannel, *, passive: bool = False) -> None:
    """Declare what an application would, or see that it is there with the same properties."""
    channel.exchange_declare("orders", "topic", durable=True, passive=passive)
    channel.exchange_declare("dead", "fanout", durable=True, passive=passive)
    channel.queue_declare("invoices", durable=True, arguments=ARGUMENTS, passive=passive)
    channel.queue_declare("lost", durable=True, passive=passive)


def bind(channel: BlockingChannel) -> None:
    channel.queue_bind("invoices", "orders", "order.*.paid")
    channel.exchange_bind("dead", "orders", "order.#.lost")
    channel.queue_bind("lost", "dead")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rabbitmq")
    server = RabbitMq(folder)
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    try:
        server.run("add_vhost", "blue")
        server.run("set_permissions", "-p", "blue", "guest", ".*", ".*", ".*")
        server.run("add_user", "shop", "secret-of-shop")
        server.run("set_permissions", "-p", "/", "shop", "^$", ".*", "^invoices$")
        server.run("set_permissions", "-p", "blue", "shop", "^shop-[0-9]+$", ".*", ".*")
        server.run("set_policy", "limited", "^temporary", '{"max-length": 10}')
        server.run("set_policy", "mirrored", "^m", '{"ha-mode": "all"}')
        short = ("short", "^s", '{"message-ttl": 9}', "--priority", "3", "--apply-to", "queues")
        server.run("set_policy", "-p", "blue", *short)
        for vhost in ("/", "blue"):
            parameters = pika.URLParameters(server.options["url"])
            parameters.virtual_host = vhost
            with pika.BlockingConnection(parameters) as connection:
                declare(connection.channel())
                bind(connection.channel())
        server.run("export_definitions", str(folder / "definitions.json"))
    finally:
        server.kill()
    return folder / "definitions.json"


ADMIN = f"""
[[user]]
name = "admin"
password_hash = "{hash_password("secret")}"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"], vhost = "*" }},
  {{ address = "$management", rights = ["send", "manage"], vhost = "*" }},
]
"""


@contextlib.contextmanager
def managed(folder: Path) -> Iterator[str]:
    """Run a container whose cluster has begun; yield the URL of who manages it."""
    with served(folder, ADMIN, head=f'data_dir = "{folder / "data"}"\n') as container:
        url = container.url.replace("://", "://admin:secret@")

        def has_levels() -> bool:
            found = ran("status", url, "--json").stdout
            return found != "" and json.loads(found)["container"]["cluster"]["level"] >= 6

        within(60, has_levels, "it has users of the cluster")
        yield url


@contextlib.contextmanager
def channel_at(url: str, vhost: str) -> Iterator[BlockingChannel]:
    parameters = pika.URLParameters(url)
    parameters.virtual_host = vhost
    with pika.BlockingConnection(parameters) as connection:
        yield connection.channel()


def migrate(url: str, file: Path) -> dict[str, Any]:
    found = ran("migrate", "rabbitmq", str(file), url, "--json")
    assert found.returncode == ExitCode.ERROR, found
    told: dict[str, Any] = json.loads(found.stdout)
    return told


def test_what_rabbitmq_had_is_there(tmp_path: Path, exported: Path) -> None:
    with managed(tmp_path) as url:
        told = migrate(url, exported)
        assert {each["kind"]: each["name"] for each in told["left"]} == {
            "permission": "shop in blue",
            "policy": "mirrored",
        }
        (policy,) = json.loads(done("policy", "list", url, "--json").stdout)
        assert (policy["name"], policy["definition"]) == ("limited", {"max-length": 10})
        (policy,) = json.loads(done("policy", "list", f"{url}/blue", "--json").stdout)
        assert (policy["name"], policy["priority"]) == ("short", 3)
        assert (told["exchanges"], told["queues"], told["bindings"]) == (4, 4, 6)
        assert sorted(each["name"] for each in told["notes"]) == ["guest", "shop"]
        for vhost in ("/", "blue"):
            with channel_at(url, vhost) as channel:
                declare(channel)
                channel.basic_publish("orders", "order.7.paid", b"paid")
                channel.basic_publish("orders", "order.7.x.lost", b"lost")
                within(20, partial(has_got, channel, "invoices", b"paid"), "by the topic")
                within(20, partial(has_got, channel, "lost", b"lost"), "by both exchanges")
                with pytest.raises(ChannelClosedByBroker, match="x-max-length"):
                    channel.queue_declare(
                        "invoices", durable=True, arguments=ARGUMENTS | {"x-max-length": 7}
                    )
        users = json.loads(done("user", "list", url, "--json").stdout)
        assert {each["name"] for each in users} == {"admin", "guest", "shop"}
        assert "secret" not in str(users)
        rights = json.loads(done("permission", "list", url, "--json").stdout)
        assert {(each["user"], each["address"]) for each in rights} >= {
            ("shop", "#"),
            ("shop", "queue/invoices"),
            ("guest", "$management"),
        }


def has_got(channel: BlockingChannel, queue: str, body: bytes) -> bool:
    return bool(channel.basic_get(queue, auto_ack=True)[2] == body)


def test_twice_is_as_good_as_once(tmp_path: Path, exported: Path) -> None:
    with managed(tmp_path) as url:
        assert migrate(url, exported) == migrate(url, exported)


def test_what_the_container_refuses_is_listed_and_the_rest_is_there(tmp_path: Path) -> None:
    """No such type of exchange, nor what is bound to it; a TTL below zero; no name for a queue."""
    file = tmp_path / "definitions.json"
    definitions = {
        "exchanges": [
            {"name": name, "vhost": "/", "type": kind, "durable": True}
            for name, kind in (("odd", "x-unheard-of"), ("even", "direct"))
        ],
        "queues": [
            {"name": "bad", "vhost": "/", "arguments": {"x-message-ttl": -1}},
            {"name": "\x1b[2J\u202e", "vhost": "/"},
            {"name": "good", "vhost": "/"},
            {"name": "nowhere", "vhost": "missing"},
        ],
        "bindings": [
            {
                "source": source,
                "vhost": "/",
                "destination": "good",
                "destination_type": "queue",
                "routing_key": "k",
            }
            for source in ("odd", "even")
        ],
    }
    file.write_text(json.dumps(definitions))
    with served(tmp_path) as container:
        told = migrate(container.url, file)
        assert [(each["kind"], each["name"]) for each in told["left"]] == [
            ("exchange", "odd"),
            ("queue", "bad"),
            ("queue", "\x1b[2J\u202e"),
            ("binding", "odd -> good by 'k'"),
            ("vhost", "missing"),
        ]
        with channel_at(container.url, "/") as channel:
            channel.basic_publish("even", "k", b"x")
            within(20, partial(has_got, channel, "good", b"x"), "the rest works")
        text = ran("migrate", "rabbitmq", str(file), container.url).stdout
        assert "\x1b" not in text


def test_nobody_is_locked_out(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"users": [{"name": "shop", "tags": []}]}))
    with served(tmp_path, head=f'data_dir = "{tmp_path / "data"}"\n') as container:
        (left,) = migrate(container.url, file)["left"]
        assert "log in as that one" in left["reason"]
        assert json.loads(done("user", "list", container.url, "--json").stdout) == []
