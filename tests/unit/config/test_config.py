"""The configuration: what is read, from files and from options."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_configuration import WHOLE

from cogwork.config.link_urls import LinkUrl
from cogwork.config.reading import ConfigurationError, check, defaults, load, parse, with_options
from cogwork.config.settings import Listen, Tls
from cogwork.container.security.permissions import permissions_of

SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")
"""Offered where users have verifiers."""


def test_a_container_without_a_file_listens_on_loopback_for_anyone_there() -> None:
    configuration = defaults()
    (listen,) = configuration.listeners
    assert listen.endpoint == "127.0.0.1:5672"
    assert listen.mechanisms == ("OAUTHBEARER", *SCRAM, "PLAIN", "ANONYMOUS")
    granted = permissions_of(configuration, None)
    assert granted is not None
    assert granted.are_all()
    assert parse("") == configuration
    check(configuration)


def test_a_whole_file_is_read() -> None:
    configuration = parse(WHOLE)
    assert configuration.id == "north"
    assert [listen.endpoint for listen in configuration.listeners] == ["127.0.0.1:5672", "[::1]:0"]
    assert configuration.users[0].permissions[0].rights == ["send", "receive"]
    assert configuration.anonymous.permissions == []
    assert not configuration.anonymous.mesh
    (link,) = configuration.links
    assert link.target == LinkUrl(
        *("amqps", "::2", 5671, "north", "secret"),
        certificate=Path("north.pem"),
        authority=Path("/etc/ca.pem"),
    )
    assert (link.cost, configuration.mesh.heartbeat_s) == (7, 0.5)
    assert (configuration.mesh.ready_timeout_s, configuration.mesh.redirect_margin) == (3.0, 10)
    assert configuration.vhosts[0].queues[0].address == "queue/blue"
    assert configuration.vhosts[0].addresses[0].bias == "spread"
    (work,) = configuration.addresses
    assert (work.ttl_s, work.ordering, work.in_doubt_timeout_s) == (3600, "group-id", 0.5)
    assert configuration.nodes[0].options == {"language": "mi", "loud": True}
    assert configuration.limits.connections == 5
    assert configuration.limits.idle_timeout_s == 60


def test_the_mark_that_some_editors_write_first_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "cogwork.toml"
    path.write_text('id = "north"', "utf-8-sig")
    assert load(path).id == "north"


def test_files_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "cogwork.toml").write_text(
        """
        data_dir = "data"
        [[listen]]
        port = 5671
        transport = "amqps"
        tls = { certificate = "cert.pem", key = "/etc/key.pem" }
        [[link]]
        url = "amqps://south"
        certificate = "cert.pem"
        ca = "/etc/ca.pem"
        """
    )
    configuration = load(tmp_path / "cogwork.toml")
    tls = configuration.listeners[0].tls
    assert configuration.data_dir == str(tmp_path / "data")
    assert tls is not None
    assert tls.certificate == str(tmp_path / "cert.pem")
    assert tls.key == "/etc/key.pem"
    assert tls.client_ca is None
    (link,) = configuration.links
    assert (link.certificate, link.key, link.ca) == (
        str(tmp_path / "cert.pem"),
        None,
        "/etc/ca.pem",
    )


@pytest.mark.parametrize(
    ("listen", "mechanisms"),
    [
        (Listen(port=1), ("OAUTHBEARER", *SCRAM, "PLAIN", "ANONYMOUS")),
        (Listen(host="0.0.0.0", port=1), (*SCRAM, "PLAIN")),
        (
            Listen(host="0.0.0.0", port=1, transport="amqps", tls=Tls(certificate="c.pem")),
            ("OAUTHBEARER", f"{SCRAM[0]}-PLUS", f"{SCRAM[1]}-PLUS", *SCRAM, "PLAIN"),
        ),
        (Listen(port=1, sasl=["PLAIN"]), ("PLAIN",)),
    ],
)
def test_mechanisms_are_safe_unless_chosen(listen: Listen, mechanisms: tuple[str, ...]) -> None:
    assert listen.mechanisms == mechanisms


def test_options_of_the_command_line_win() -> None:
    configuration = with_options(parse(WHOLE), "south", ["localhost:1", "[::1]:2", ":3"], "/d")
    assert configuration.id == "south"
    assert configuration.data_dir == "/d"
    endpoints = [listen.endpoint for listen in configuration.listeners]
    assert endpoints == ["localhost:1", "[::1]:2", "127.0.0.1:3"]
    assert configuration.limits.connections == 5
    assert with_options(configuration) == configuration


@pytest.mark.parametrize(
    ("listen", "message"),
    [
        ("localhost", 'options: --listen: found "localhost", expected HOST:PORT'),
        ("localhost:65536", "expected a port from 0 to 65535"),
        ("192.0.2.1:5672", "where nobody can log in"),
    ],
)
def test_a_bad_option_is_named(listen: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        with_options(defaults(), listen=[listen])
    assert message in str(failure.value)


def test_an_empty_id_is_named() -> None:
    with pytest.raises(ConfigurationError, match='options: --id: found "", expected a name'):
        with_options(defaults(), "")


def test_links_of_the_command_line_come_besides_those_of_the_file() -> None:
    configuration = with_options(parse("link = ['a:1']"), links=["b:2", "amqp://c", ":4"])
    targets = [link.target.endpoint for link in configuration.links]
    assert targets == ["a:1", "b:2", "c:5672", "127.0.0.1:4"]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (["b"], 'options: --link: found "b", expected HOST:PORT, amqp[s]://'),
        (["a:1"], 'options: link[1].url: found "a:1" as in link[0], expected each url once'),
        (["127.0.0.1:5672"], "where this container listens"),
    ],
)
def test_a_bad_link_is_named(links: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        with_options(parse("link = ['a:1']"), links=links)
    assert message in str(failure.value)


def test_the_password_of_a_link_is_in_no_repr() -> None:
    text = "[[link]]\nurl = 'amqps://ann:hunter2@h:1'\n[[link]]\nurl = 'amqp://ann:hunter2@h:2'"
    configuration = parse(text)
    assert "ann" not in repr(configuration.links)
    for shown in (repr(configuration), *(f"{x.target} {x.target!r}" for x in configuration.links)):
        assert "hunter2" not in shown
    assert configuration.links[0].target.password == "hunter2"
