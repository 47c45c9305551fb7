"""A router's configuration file: what it means, and what is said of what it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.addressing import table_of
from cogwork.config.password_hash import hash_password
from cogwork.config.reading import ConfigurationError, load, parse, with_options
from cogwork.config.settings import (
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
    everything = [
        Permission(address=each, rights=["send", "receive", "manage"])
        for each in ("#", "$management")
    ]
    assert found.users == [User(name="router/b", mesh=True, permissions=everything)]
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
            "fixed-address {\n prefix: /x\n fanout: both\n}",
            'x.conf:3: fixed-address.fanout: found "both", expected one of "multiple", "single"',
        ),
        (
            "fixed-address {\n prefix: /x\n bias: closest\n}",
            'x.conf:3: fixed-address.bias: found "closest", expected fanout = "single" with it',
        ),
        ("\nfixed-address { fanout: single }", "x.conf:2: fixed-address: found nothing, expected"),
        (
            "listener {\n saslMechanisms: DIGEST-MD5\n}",
            "x.conf:2: listener.saslMechanisms: found a listener where nobody could log in, expec",
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
            "connector { role: inter-router\n cost: 0\n}",
            "x.conf:2: connector.cost: found 0, expected an integer from 1 to 65535",
        ),
        (
            "user {\n name: x\n passwordHash: y\n}",
            "x.conf:3: user.passwordHash: found ",
        ),
        (
            "router {\n mode: core\n}",
            'x.conf:2: router.mode: found "core", expected interior or standalone or edge',
        ),
        (
            "router {\n defaultDistribution: fair\n}",
            'x.conf:2: router.defaultDistribution: found "fair", expected multicast or closest or',
        ),
        (
            "vhost {\n groups: {\n  a: {\n }\n",
            "x.conf:5: found the end of the file, expected the } of groups in line 2",
        ),
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


def noted(text: str) -> list[str]:
    """Return what is warned of when a router's file is read."""
    notes: list[str] = []
    parse(text, "x.conf", warn=notes.append)
    return notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\nlinkRoute { prefix: x }", "x.conf:3: linkRoute: has no meaning here and is ignored"),
        ("listener {\n port: 1\n port: 2\n}", "x.conf:3: listener.port: stands there again; the"),
        (
            "fixed-address {\n prefix: /x\n fanot: single\n}",
            "x.conf:3: fixed-address.fanot: has no meaning here and is ignored",
        ),
        ("fixed-address {\n prefix: /x\n phase: 1\n}", "x.conf:3: fixed-address.phase: has no"),
        (
            "address { prefix: /x }\naddress { prefix: x/ distribution: closest }",
            "x.conf:2: address.prefix: ignored, because line 1 already sets this",
        ),
        (
            "listener {\n host: 0.0.0.0\n sasl-mechanisms: ANONYMOUS\n}",
            "x.conf:2: listener.host: listens on 127.0.0.1 only, because there is no login",
        ),
        ("listener {\n addr: ::\n}", "x.conf:2: listener.addr: listens on ::1 only, because"),
        (
            "listener {\n saslMechanisms: DIGEST-MD5 ANONYMOUS\n}",
            "x.conf:2: listener.saslMechanisms: DIGEST-MD5 is not offered: not known here",
        ),
        (
            "listener {\n saslMechanisms: EXTERNAL ANONYMOUS\n}",
            "x.conf:2: listener.saslMechanisms: EXTERNAL is not offered: EXTERNAL needs a caCert",
        ),
        (
            "listener { port: 1 }\nlistener { port: 2\n authenticatePeer: yes\n}",
            "x.conf:2: listener: not opened, because nobody can log in; a user block",
        ),
        (
            "listener { port: 1 maxSessions: 5 }\nlistener { port: 2\n maxSessions: 6 }",
            "x.conf:3: listener.maxSessions: applies to the whole container: using 6, the larger",
        ),
        (
            "listener {\n maxFrameSize: 100\n}",
            "x.conf:2: listener.maxFrameSize: using 512, the nea",
        ),
        ("listener {\n idleTimeoutSeconds: 0\n}", "x.conf:2: listener.idleTimeoutSeconds: has no"),
        ("listener {\n role: route-container\n}", "x.conf:2: listener.role: links are routed by"),
        ("connector {\n host: b\n}", "x.conf:1: connector: not a connection to a router"),
        (
            "connector {\n role: route-container\n}",
            "x.conf:2: connector.role: not a connection to a router",
        ),
        (
            "connector {\n role: edge host: b\n verifyHostname: no\n}",
            "x.conf:3: connector.verifyHostname: the host name is verified nevertheless",
        ),
        (
            "ssl-profile { name: p certFile: x }\nlistener { sslProfile: p\n requireSsl: no }",
            "x.conf:3: listener.requireSsl: TLS is required: one port speaks it to all",
        ),
    ],
)
def test_what_does_not_hold_here_is_warned_of_with_its_line(text: str, message: str) -> None:
    (note,) = noted(text)
    assert message in note


EVERYTHING = """
router { mode: edge
    id: E
    area: 0
    metadata: a
}
policy {
    enableVhostPolicy: true
}
vhost {
    hostname: "#.example"
    groups: {
        "$default": {
            "users": "*",   # all } of them
            "sources": "a}, {user}",
            "nested": { "x": 1 }
        }
    }
}
connector { host: 10.0.0.1 port: 5673 role: edge saslMechanisms: ANONYMOUS }
autoLink { address: a direction: in }
listener {
    port: amqp
    stripAnnotations: no
    openProperties: {
        "a": 1
    }
}
address {
    pattern: a/#
    waypoint: yes
}
"""


def test_the_rest_of_a_file_holds_whatever_else_it_says() -> None:
    found = parse(EVERYTHING, "x.conf")
    assert found.id == "E"
    assert [listen.port for listen in found.listeners] == [5672]
    assert [link.url for link in found.links] == ["amqp://10.0.0.1:5673"]
    assert rule(found, "a/b")[1] is Distribution.BALANCED
    lines = [int(note.split(":")[1]) for note in noted(EVERYTHING)]
    assert lines == sorted(lines)
    assert lines == [4, 5, 7, 10, 20, 21, 24, 25, 31]


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        ("multicast", ("direct", Distribution.MULTICAST)),
        ("closest", ("direct", Distribution.CLOSEST)),
        ("balanced", ("direct", Distribution.BALANCED)),
    ],
)
def test_the_default_distribution_is_that_of_names_without_a_rule(
    distribution: str, expected: tuple[str, Distribution]
) -> None:
    found = parse(f"router {{ defaultDistribution: {distribution} }}")
    assert rule(found, "anything/at.all") == expected
    assert rule(found, "queue/a") == rule(Configuration(), "queue/a"), "built-in rules hold"
    own = parse(f"router {{ defaultDistribution: {distribution} }}\naddress {{ pattern: # }}")
    assert rule(own, "anything") == ("direct", Distribution.BALANCED), "the address was named"


def test_unavailable_addresses_are_kept_from_everybody() -> None:
    text = """
        router { defaultDistribution: unavailable }
        address { prefix: x distribution: closest }
        address { prefix: x/y distribution: unavailable }
    """
    found = parse(text)
    assert rule(found, "z")[0] == "unavailable"
    assert rule(found, "x/z") == ("direct", Distribution.CLOSEST)
    assert rule(found, "x/y/z")[0] == "unavailable"


def test_users_keep_a_listener_open_to_other_machines() -> None:
    text = "listener {\n host: 0.0.0.0\n saslMechanisms: ANONYMOUS PLAIN\n}\n"
    user = f"user {{\n name: jo\n passwordHash: {hash_password('x')}\n}}"
    (alone,) = parse(text, "x.conf").listeners
    assert (alone.host, alone.sasl) == ("127.0.0.1", ["ANONYMOUS"])
    (guarded,) = parse(text + user, "x.conf").listeners
    assert (guarded.host, guarded.sasl) == ("0.0.0.0", ["PLAIN"])
    assert noted(text + user) == [
        "x.conf:3: listener.saslMechanisms: ANONYMOUS is not offered to other machines"
    ]


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
