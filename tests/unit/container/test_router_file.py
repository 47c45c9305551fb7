"""A router's configuration file: what it means, and what is said of what it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.container.addressing import table_of
from cogwork.container.config import ConfigurationError, load, parse, with_options
from cogwork.container.settings import (
    Address,
    Configuration,
    Link,
    Listen,
    Permission,
    Tls,
    User,
)
from cogwork.router.addresses import Distribution

if TYPE_CHECKING:
    from pathlib import Path

OPENSTACK = """
  fixed-address {
      prefix: /unicast
      fanout: single
      bias: closest
  }

  fixed-address {
      prefix: /exclusive
      fanout: single
      bias: closest
  }

  fixed-address {
      prefix: /broadcast
      fanout: multiple
  }
"""

WHOLE = """# One of three routers
router {
    mode: interior
    id: Router.A        # its name
    helloIntervalSeconds: 2
}
ssl-profile {
    name: inner
    cert-file: tls/a.pem
    key-file: tls/a.key
    cert-db: tls/ca.pem
}
listener { addr: 127.0.0.1 port: amqp sasl-mechanisms: ANONYMOUS PLAIN }
listener {
    host: 0.0.0.0
    port: 5671
    role: inter-router
    sslProfile: inner
    authenticatePeer: yes
    saslMechanisms: EXTERNAL
    maxFrameSize: 16384
    idleTimeoutSeconds: 8
}
connector {
    host: b.example
    port: amqps
    role: inter-router
    cost: 3
    sslProfile: inner
    saslUsername: router/a
    saslPassword: six teeth
}
address { prefix: multicast distribution: multicast }
address { pattern: prices.*.# distribution: balanced }
address { prefix: jobs }
user { name: router/b mesh: yes }
log {
    module: DEFAULT
    enable: info+
}
"""


def rule(configuration: Configuration, address: str) -> tuple[str, Distribution]:
    found = table_of(configuration).resolve(address)
    return found.kind, found.distribution


def test_the_addresses_of_openstack_are_taken_as_they_stand_in_the_documents() -> None:
    configuration = parse(OPENSTACK)
    assert configuration.addresses == [
        Address(prefix="/unicast", fanout="single", bias="closest"),
        Address(prefix="/exclusive", fanout="single", bias="closest"),
        Address(prefix="/broadcast", fanout="multiple"),
    ]
    assert rule(configuration, "unicast.nova.compute") == ("direct", Distribution.CLOSEST)
    assert rule(configuration, "/exclusive/nova/compute/h7") == ("direct", Distribution.CLOSEST)
    assert rule(configuration, "broadcast.nova.compute.all") == ("direct", Distribution.MULTICAST)


def test_a_block_may_stand_on_one_line() -> None:
    text = "fixed-address { prefix: /unicast fanout: single bias: closest }"
    assert parse(text).addresses == [Address(prefix="/unicast", fanout="single", bias="closest")]


def test_a_whole_file() -> None:
    found = parse(WHOLE + "", "a.conf")
    files = Tls(certificate="tls/a.pem", key="tls/a.key", client_ca="tls/ca.pem")
    assert found.id == "Router.A"
    assert found.mesh.heartbeat_s == 2
    assert found.listeners == [
        Listen(port=5672, host="127.0.0.1", sasl=["ANONYMOUS", "PLAIN"]),
        Listen(port=5671, host="0.0.0.0", transport="amqps", tls=files, sasl=["EXTERNAL"]),
    ]
    assert (found.limits.max_frame_size_bytes, found.limits.idle_timeout_s) == (16384, 8)
    assert found.links == [
        Link(
            url="amqps://router%2Fa:six%20teeth@b.example:5671",
            cost=3,
            certificate="tls/a.pem",
            key="tls/a.key",
            ca="tls/ca.pem",
        )
    ]
    everything = Permission(address="#", rights=["send", "receive", "manage"])
    assert found.users == [User(name="router/b", mesh=True, permissions=[everything])]
    assert rule(found, "multicast/x")[1] is Distribution.MULTICAST
    assert rule(found, "prices.x.y")[1] is Distribution.BALANCED
    assert rule(found, "jobs/x")[1] is Distribution.BALANCED


def test_files_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "qdrouterd.conf"
    file.write_text("ssl-profile { name: x certFile: a.pem }\nlistener { sslProfile: x }")
    (listen,) = load(file).listeners
    assert listen.tls is not None
    assert listen.tls.certificate == str(tmp_path / "a.pem")


def test_an_empty_file_of_a_router_is_the_default_configuration() -> None:
    assert parse("# nothing\n", "qdrouterd.conf") == parse("")


def test_the_name_of_an_old_container_block_yields_to_that_of_the_router() -> None:
    old = "container { worker-threads: 4 container-name: old }"
    assert parse(old).id == "old"
    assert parse(old + "\nrouter { router-id: new }").id == "new"


@pytest.mark.parametrize(
    ("fanout", "distribution"),
    [
        ("", Distribution.MULTICAST),
        ("fanout: multiple bias: closest", Distribution.MULTICAST),
        ("fanout: single", Distribution.CLOSEST),
        ("fanout: single bias: spread", Distribution.BALANCED),
    ],
)
def test_what_a_fixed_address_leaves_open_is_as_in_a_router(
    fanout: str, distribution: Distribution
) -> None:
    found = parse(f"fixed-address {{ prefix: /x {fanout} }}")
    assert rule(found, "x/y") == ("direct", distribution)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "listener {\n port: 5672\n",
            "x.conf:3: found the end of the file, expected the } of listener in line 1",
        ),
        (
            "listener {\n port 5672\n}",
            'x.conf:2: found "port 5672", expected KEY: VALUE, or the } of listener',
        ),
        ("\nport: 5672", 'x.conf:2: found "port: 5672", expected a block, as in listener {'),
        ("listener {\n port:\n}", "x.conf:2: found nothing behind port:, expected a value"),
        (
            "listener {\n port: 1\n port: 2\n}",
            "x.conf:3: found port again, expected it once, as in line 2",
        ),
        (
            "\n\nlinkRoute { prefix: x }",
            "x.conf:3: linkRoute: found an unknown block, expected one of fixed-address, address,",
        ),
        (
            "fixed-address {\n prefix: /x\n fanot: single\n}",
            "x.conf:3: fixed-address.fanot: found an unknown key, expected one of name, prefix,",
        ),
        (
            "fixed-address {\n prefix: /x\n fanout: both\n}",
            'x.conf:3: fixed-address.fanout: found "both", expected one of "multiple", "single"',
        ),
        (
            "fixed-address {\n prefix: /x\n bias: closest\n}",
            'x.conf:3: fixed-address.bias: found "closest", expected fanout = "single" with it',
        ),
        (
            "fixed-address {\n prefix: /x\n phase: 1\n}",
            'x.conf:3: fixed-address.phase: found "1", expected 0',
        ),
        ("\nfixed-address { fanout: single }", "x.conf:2: fixed-address: found nothing, expected"),
        (
            "fixed-address { prefix: /x }\nfixed-address { prefix: x/ }",
            'x.conf:2: fixed-address.prefix: found "x" as in address[0], expected each prefix once',
        ),
        (
            "listener {\n host: 0.0.0.0\n sasl-mechanisms: ANONYMOUS\n}",
            'x.conf:3: listener.saslMechanisms: found "ANONYMOUS" on 0.0.0.0:5672, expected a loop',
        ),
        (
            "listener {\n saslMechanisms: DIGEST-MD5\n}",
            'x.conf:2: listener.saslMechanisms: found "DIGEST-MD5", expected one of "ANONYMOUS"',
        ),
        (
            "listener {\n port: imap\n}",
            'x.conf:2: listener.port: found "imap", expected a port, amqp or amqps',
        ),
        (
            "listener {\n port: 70000\n}",
            "x.conf:2: listener.port: found 70000, expected an integer from 0 to 65535",
        ),
        (
            "listener {\n sslProfile: y\n}",
            'x.conf:2: listener.sslProfile: found "y", expected the name of an sslProfile block',
        ),
        (
            "listener {\n requireSsl: yes\n}",
            "x.conf:2: listener.requireSsl: found yes, expected an sslProfile with it",
        ),
        (
            "listener { port: 1 maxSessions: 5 }\nlistener { port: 2\n maxSessions: 6 }",
            "x.conf:3: listener.maxSessions: found 6, expected 5, as before: it is one for the con",
        ),
        (
            "connector {\n host: b\n}",
            "x.conf:1: connector.role: found nothing, expected inter-router: what a container",
        ),
        (
            "connector {\n role: route-container\n}",
            'x.conf:2: connector.role: found "route-container", expected inter-router',
        ),
        (
            "connector { role: inter-router\n cost: 0\n}",
            "x.conf:2: connector.cost: found 0, expected an integer from 1 to 65535",
        ),
        (
            "user {\n name: x\n passwordHash: y\n}",
            "x.conf:3: user.passwordHash: found ",
        ),
        ("router {\n mode: edge\n}", 'x.conf:2: router.mode: found "edge", expected interior or'),
        (
            "ssl-profile {\n certFile: x\n}",
            "x.conf:1: ssl-profile.name: found nothing, expected a value",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "x.conf")
    assert message in str(caught.value)


def test_a_password_is_not_shown() -> None:
    text = "connector { role: inter-router host: a/b\n saslUsername: u saslPassword: secret }"
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "x.conf")
    assert "secret" not in str(caught.value)


@given(st.text(alphabet="ab{}:#\n ./-\"'\t\x00é", max_size=60))
def test_nothing_but_a_clear_error_comes_of_nonsense(text: str) -> None:
    try:
        parse(text, "x.conf")
    except ConfigurationError as error:
        assert error.line >= 1  # noqa: PT017  # the error may be there or not


def test_patterns_as_a_broker_takes_them() -> None:
    configuration = with_options(
        parse(""), queue_patterns=["exclusive", "unicast"], topic_patterns=["broadcast"]
    )
    assert rule(configuration, "exclusive.nova.compute.h7") == ("queue", Distribution.BALANCED)
    assert rule(configuration, "unicast/nova/compute") == ("queue", Distribution.BALANCED)
    assert rule(configuration, "broadcast.nova.compute.all") == ("topic", Distribution.MULTICAST)


def test_patterns_with_wildcards_win_over_the_file() -> None:
    file = parse('[[address]]\npattern = "orders.*"\n[[address]]\nprefix = "/unicast/"\n')
    found = with_options(file, queue_patterns=["unicast"], topic_patterns=["orders.*"])
    assert found.addresses == [
        Address(prefix="unicast", kind="queue"),
        Address(pattern="orders.*", kind="topic"),
    ]


@pytest.mark.parametrize(
    ("queues", "topics", "message"),
    [
        (["a.b*"], [], 'options: --queue-patterns: found the word "b*", expected * and # as whole'),
        ([], ["/"], 'options: --topic-patterns: found "/", expected the words that addresses'),
        (["x"], ["/x"], 'options: --topic-patterns: found "/x" twice, expected each name once'),
    ],
)
def test_patterns_that_are_none(queues: list[str], topics: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        with_options(parse(""), queue_patterns=queues, topic_patterns=topics)
    assert message in str(caught.value)
