"""What is said of a configuration that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from whole_configuration import WHOLE, error_of

from cogwork.config.reading import ConfigurationError, load, parse

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id = ", "cogwork.toml:1: found Invalid value, expected TOML"),
        ("\nid = 'a'\n[limits", "cogwork.toml:3: found Expected ']' at the end of a table decl"),
        ("id = 'a'\nid = 'b'", "cogwork.toml:2: found Cannot overwrite a value, expected TOML"),
        ("\nid = 5", "cogwork.toml:2: id: found 5, expected a string"),
        ("id = ''", 'cogwork.toml:1: id: found "", expected a string that is not empty'),
        (
            "[[listen]]\nport = 1\ntransport = ''",
            'cogwork.toml:3: listen[0].transport: found "", expected one of "amqp"',
        ),
        ("id = true", "cogwork.toml:1: id: found true, expected a string"),
        (
            "[[audit]]\nqueue = 'work/#'\nvhost = 'blue'",
            'cogwork.toml:3: audit[0].vhost: found "blue", expected the name of a [[vhost]]',
        ),
        (
            "[[exchange]]\nname = 'amq.mine'",
            'cogwork.toml:2: exchange[0].name: found "amq.mine",'
            " expected a name that does not begin with amq.",
        ),
        (
            "[[exchange]]\nname = 'a'\ntype = 'os:system'",
            'cogwork.toml:3: exchange[0].type: found "os:system", expected one of direct, fanout',
        ),
        (
            "[[exchange]]\nname = 'a'\n[[exchange]]\nname = 'a'",
            "cogwork.toml:4: exchange[1].name: found",
        ),
        (
            "[[binding]]\nsource = 'a'\ndestination = 'queue/q'",
            'cogwork.toml:2: binding[0].source: found "a", expected an exchange: one of [[exchang',
        ),
        (
            "[[binding]]\nsource = 'amq.topic'\ndestination = 'topic/q'",
            'cogwork.toml:3: binding[0].destination: found "topic/q",'
            " expected queue/NAME or exchange/NAME",
        ),
        (
            "[[binding]]\nsource = 'amq.topic'\ndestination = 'exchange/q'",
            'cogwork.toml:3: binding[0].destination: found "exchange/q", expected an exchange',
        ),
        (
            "[[exchange]]\nname = 'a'\narguments = { day = 1979-05-27 }",
            "cogwork.toml:3: exchange[0].arguments: found",
        ),
        (
            "[cluster]\nprimaries = ['a', 'b', 'c', 'd', 'e', 'f']",
            "cogwork.toml:2: cluster.primaries: found an array of 6,"
            " expected an array of 1 to 5 items, each item a string",
        ),
        (
            "[cluster]\nprimaries = []",
            "cogwork.toml:2: cluster.primaries: found an empty array,"
            " expected an array of 1 to 5 items, each item a string",
        ),
        (
            "[[listen]]\nport = 1\nsasl = []",
            "cogwork.toml:3: listen[0].sasl: found an empty array,"
            ' expected an array of at least 1 item, each item one of "ANONYMOUS"',
        ),
        ("limits = 3", "cogwork.toml:1: limits: found 3, expected a table"),
        (
            "[limits]\nidle_timeout_s = 1e10",
            "limits.idle_timeout_s: found 10000000000.0, expected a number above 0 and below 8589",
        ),
        (
            "[mesh]\nheartbeat_s = 61",
            "cogwork.toml:2: mesh.heartbeat_s: found 61, expected a number from 0.01 to 60",
        ),
        (
            "listen = '127.0.0.1:5672'",
            'cogwork.toml:1: listen: found "127.0.0.1:5672", expected an array of tables:'
            ' [[listen]] and its keys below that line, or listen = ["HOST:PORT"]',
        ),
        (
            "[link]\nurl = 'a:1'",
            "link: found a table, expected an array of tables:"
            ' [[link]] and its keys below that line, or link = ["HOST:PORT"]',
        ),
        (
            "[[vhost]]\nname = 'blue'\nqueue = 'a'",
            'cogwork.toml:3: vhost[0].queue: found "a", expected an array of tables:'
            " [[vhost.queue]] and its keys below that line",
        ),
        (
            "[limits]\n# soon\nconections = 5",
            "cogwork.toml:3: unknown key 'limits.conections' (expected one of connections,",
        ),
        ("[limits]\nconections = 5", "; did you mean connections?)"),
        (
            "[[adress]]",
            "cogwork.toml:1: unknown key 'adress' (expected one of id, data_dir",
        ),
        (
            "[limits]\nmax_frame_size_bytes = 100",
            "cogwork.toml:2: limits.max_frame_size_bytes: found 100,"
            " expected an integer from 512 to 1048576",
        ),
        (
            "[limits]\nidle_timeout_s = 0",
            "cogwork.toml:2: limits.idle_timeout_s: found 0, expected a number above 0 and below",
        ),
        (
            '[[queue]]\naddress = "queue/a"\nmaximum_length = 2000000000',
            "cogwork.toml:3: queue[0].maximum_length: found 2000000000,"
            " expected an integer from 1 to 1073741823",
        ),
        (
            '[[queue]]\naddress = "queue/a"\nttl_s = 2e9',
            "cogwork.toml:3: queue[0].ttl_s: found 2000000000.0,"
            " expected a number above 0 and below 1000000000",
        ),
        (
            "[limits]\nidle_timeout_s = nan",
            "cogwork.toml:2: limits.idle_timeout_s: found nan, expected a finite number",
        ),
        (
            "[[address]]\nprefix = 'a'\nttl_s = inf",
            "cogwork.toml:3: address[0].ttl_s: found inf, expected a finite number",
        ),
        (
            "[[listen]]\nport = 1\n[[listen]]\nhost = 'localhost'",
            "cogwork.toml:3: listen[1].port: found nothing,"
            " expected an integer from 0 to 65535, or a path",
        ),
        (
            "[[listen]]\nport = 1\npath = '/run/a'",
            "cogwork.toml:2: listen[0].port: found 1 beside a path, expected one of them",
        ),
        (
            "[[listen]]\nport = 1\nmode = '660'",
            'cogwork.toml:3: listen[0].mode: found "660" at a port, expected a path with it',
        ),
        (
            "[[listen]]\npath = '/run/a'\nmode = 'rw'",
            'cogwork.toml:3: listen[0].mode: found "rw",'
            ' expected permissions in octal, such as "660"',
        ),
        (
            "[[listen]]\npath = '/run/a'\ntransport = 'ws'",
            'cogwork.toml:3: listen[0].transport: found "ws" at a path, expected "amqp", or a port',
        ),
        (
            "[[listen]]\npath = '/run/a'\nadvertise = 'h:1'",
            'cogwork.toml:3: listen[0].advertise: found "h:1" at a path, expected a port',
        ),
        (
            "listen = ['unix:///run/a', 'unix:///run/b', 'unix:///run/a']",
            'cogwork.toml:1: listen[2].path: found "/run/a" as in listen[0],'
            " expected each path once",
        ),
        (
            "listen = ['unix://a']",
            'cogwork.toml:1: listen[0]: found "unix://a", expected a table or "HOST:PORT"',
        ),
        (
            "listen = ['unix:///run/a']\nlink = ['unix:///run/a']",
            'cogwork.toml:2: link[0].url: found "unix:///run/a", where this container listens,'
            " expected another container",
        ),
        (
            "[[listen]]\nport = 5672.0",
            "cogwork.toml:2: listen[0].port: found 5672.0, expected an integer from 0 to 65535",
        ),
        (
            "[[listen]]\nport = 5672\ntransport = 'http'",
            'cogwork.toml:3: listen[0].transport: found "http",'
            ' expected one of "amqp", "amqps", "ws", "wss"',
        ),
        (
            "listen = [\n'localhost:1',\n'localhost']",
            'cogwork.toml:3: listen[1]: found "localhost", expected a table or "HOST:PORT"',
        ),
        (
            "listen = ['localhost:99999']",
            "cogwork.toml:1: listen[0].port: found 99999, expected an integer from 0 to 65535",
        ),
        (
            "[[listen]]\nport = 1\nsasl = ['PLAIN', 'SCRAM']",
            'cogwork.toml:3: listen[0].sasl[1]: found "SCRAM",'
            ' expected one of "ANONYMOUS", "EXTERNAL", "OAUTHBEARER", "PLAIN"',
        ),
        (
            "[[listen]]\nport = 1\ntransport = 'amqps'",
            "cogwork.toml:1: listen[0].tls: found nothing, expected a table with a certificate,"
            ' for transport = "amqps"',
        ),
        (
            "[[listen]]\nport = 1\n[listen.tls]\ncertificate = 'c'",
            'cogwork.toml:3: listen[0].tls: found a table for transport = "amqp",'
            ' expected transport = "amqps" or "wss" with it',
        ),
        (
            "[[listen]]\nport = 1\norigins = ['https://a.example']",
            "cogwork.toml:3: listen[0].origins: found an array for transport",
        ),
        (
            "[[listen]]\nport = 1\nadvertise = 'north.example'",
            'cogwork.toml:3: listen[0].advertise: found "north.example", expected HOST:PORT',
        ),
        (
            "[[listen]]\nport = 1\ntransport = 'wss'\n[listen.tls]\ncertificate = 'c'\n"
            "require_client_certificate = true",
            "cogwork.toml:4: listen[0].tls.client_ca: found nothing,"
            " expected the authority of the required certificates",
        ),
        (
            "[[listen]]\nport = 1\nsasl = ['EXTERNAL']",
            'cogwork.toml:3: listen[0].sasl: found "EXTERNAL", expected a client_ca in tls',
        ),
        (
            "[[listen]]\nhost = '0.0.0.0'\nport = 1\nsasl = ['ANONYMOUS']",
            'cogwork.toml:4: listen[0].sasl: found "ANONYMOUS" on 0.0.0.0:1,'
            " expected a loopback host, or users who log in",
        ),
        (
            "listen = ['0.0.0.0:5672']",
            "cogwork.toml:1: listen[0].sasl: found PLAIN on 0.0.0.0:5672, where nobody can log in,"
            " expected a [[user]]; `cogwork passwd NAME` prints one",
        ),
        (
            "listen = ['127.0.0.1:1', 'localhost:1', '127.0.0.1:1']",
            'cogwork.toml:1: listen[2].port: found "127.0.0.1:1" as in listen[0],'
            " expected each port once",
        ),
        (
            "[[user]]\nname = 'a'\npassword_hash = 'secret'",
            "cogwork.toml:3: user[0].password_hash: found password hash is not of the form"
            " scrypt$n$r$p$salt$hash, expected what `cogwork passwd NAME` prints",
        ),
        (
            "[[user]]\nname = 'a'\npassword_hash = 12345",
            "cogwork.toml:3: user[0].password_hash: found a value that is not shown,"
            " expected a string",
        ),
        (
            "[[user]]\nname = 'a'\n[[user]]\nname = 'a'",
            'cogwork.toml:4: user[1].name: found "a" as in user[0], expected each name once',
        ),
        (
            "[[user]]\nname = 'a'\n[[user.permissions]]\naddress = 'b'\nrights = []",
            "cogwork.toml:5: user[0].permissions[0].rights: found an empty array,"
            ' expected an array of at least 1 item, each item one of "manage", "receive", "send"',
        ),
        (
            "[anonymous]\npermissions = [\n{ address = 'a.b*', rights = ['send'] }]",
            'cogwork.toml:3: anonymous.permissions[0].address: found the word "b*",'
            " expected * and # as whole words only",
        ),
        (
            "[[address]]\nttl_s = 5",
            "cogwork.toml:1: address[0].prefix: found nothing, expected a prefix or a pattern",
        ),
        (
            "[[address]]\nprefix = 'a'\npattern = 'b'",
            "cogwork.toml:3: address[0].pattern: found a pattern besides a prefix,",
        ),
        (
            "[[address]]\nprefix = 'a/*'",
            'cogwork.toml:2: address[0].prefix: found "a/*", expected no wildcards here',
        ),
        (
            "[[address]]\nprefix = 'a'\n[[address]]\nprefix = '/a.'",
            'cogwork.toml:4: address[1].prefix: found "a" as in address[0], expected each prefix',
        ),
        (
            "[[address]]\nprefix = 'a'\nfanout = 'single'\ndistribution = 'closest'",
            "cogwork.toml:4: address[0].distribution: found a distribution besides fanout or bias,",
        ),
        (
            "[[address]]\nprefix = 'a'\nfanout = 'multiple'\nbias = 'spread'",
            'cogwork.toml:4: address[0].bias: found "spread", expected fanout = "single" with it',
        ),
        (
            "[[address]]\nprefix = 'a'\nkind = 'a.b'",
            'cogwork.toml:3: address[0].kind: found "a.b", expected one of direct, unavailable, ',
        ),
        (
            '[[queue]]\naddress = "queue/a\\u001bb"',
            "cogwork.toml:2: queue[0].address: found 'queue/a\\x1bb', expected characters that can",
        ),
        (
            '[[stream]]\naddress = "stream/a\\nb"',
            "stream[0].address: found 'stream/a\\nb', exp",
        ),
        ('[[node]]\naddress = "a\\nb"\nkind = "sink"', "node[0].address: found 'a\\nb', expected"),
        (
            '[[address]]\npattern = "a\\nb"',
            "address[0].pattern: found 'a\\nb', expected",
        ),
        (
            "[[queue]]\naddress = 'queue/a'\ndead_letter = 'queue/a'",
            "cogwork.toml:3: queue[0].dead_letter: found the queue's own address,",
        ),
        (
            "[[vhost]]\nname = 'blue'\n[[vhost.queue]]\naddress = 'queue/#'",
            'cogwork.toml:4: vhost[0].queue[0].address: found "queue/#", expected no wildcards',
        ),
        (
            "[[link]]\ncost = 2",
            "cogwork.toml:1: link[0].url: found nothing, expected a string",
        ),
        (
            "[[link]]\nurl = 'http://a:1'",
            'cogwork.toml:2: link[0].url: found "http://a:1",'
            " expected HOST:PORT, amqp[s]://[USER:PASSWORD@]HOST[:PORT] or unix://PATH",
        ),
        (
            "link = ['a:1', 'a']",
            'cogwork.toml:1: link[1].url: found "a", expected HOST:PORT, amqp[s]://',
        ),
        (
            "link = ['a:1', 5]",
            'cogwork.toml:1: link[1]: found 5, expected a table or "HOST:PORT"',
        ),
        (
            "[[link]]\nurl = 'a:70000'",
            'cogwork.toml:2: link[0].url: found "amqp://a:70000",'
            " expected a host and a port from 1 to 65535",
        ),
        (
            "[[link]]\nurl = 'amqp://u:hunter2@h/blue'",
            'cogwork.toml:2: link[0].url: found "amqp://...@h/blue",'
            " expected nothing after the port: a link carries all virtual hosts",
        ),
        (
            "[[link]]\nurl = 'a:1'\n[[link]]\ncost = 2\nurl = 'amqps://u:p@A:1'",
            'cogwork.toml:5: link[1].url: found "a:1" as in link[0], expected each url once',
        ),
        (
            "[[link]]\nurl = 'a:1'\ncost = 0",
            "cogwork.toml:3: link[0].cost: found 0, expected an integer from 1 to 65535",
        ),
        (
            "[[link]]\nurl = 'amqp://localhost:1'\n[[listen]]\nhost = 'localhost'\nport = 1",
            'cogwork.toml:2: link[0].url: found "amqp://localhost:1", where this container listens,'
            " expected another container",
        ),
        (
            "link = ['localhost:5672']",
            'found "amqp://localhost:5672", where this container listens',
        ),
        (
            "[[link]]\nurl = 'a:1'\nca = 'ca.pem'",
            'cogwork.toml:3: link[0].ca: found a file for "amqp://a:1",'
            " expected an amqps:// url with it",
        ),
        (
            "[[link]]\nurl = 'amqps://a:1'\nkey = 'key.pem'",
            "cogwork.toml:1: link[0].certificate: found nothing,"
            " expected the certificate of the key",
        ),
        (
            "[mesh]\nheartbeat_s = 0",
            "cogwork.toml:2: mesh.heartbeat_s: found 0, expected a number from 0.01 to 60",
        ),
        (
            "[mesh]\nredirect_margin = 0",
            "cogwork.toml:2: mesh.redirect_margin: found 0, expected an integer from 1 to",
        ),
        ('id = "a\\nb"', "cogwork.toml:1: id: found 'a\\nb', expected characters that can be seen"),
        ('[[vhost]]\nname = "a\\nb"', ":2: vhost[0].name: found 'a\\nb', expected characters"),
        (f"[[vhost]]\nname = '{'x' * 257}'", "2: vhost[0].name: found 257 bytes, expected at most"),
        (
            "".join(f"[[vhost]]\nname = '{at}'\n" for at in range(256)),
            "vhost: found an array of 256, expected at most 255 items",
        ),
        ("[telemetry]\nstream = '#'", 'telemetry.stream: found "#", expected no wildcards here'),
        (
            "[[audit]]\nqueue = 'work/#'\nstream = \"a\\nb\"",
            ":3: audit[0].stream: found 'a\\nb', expected characters that can be seen",
        ),
        (f"[[address]]\nprefix = '{'p' * 2049}'", "2: address[0].prefix: found 2049 characters"),
        (f"[[address]]\npattern = '{'p' * 2049}'", "2: address[0].pattern: found 2049 characters"),
        (f"id = '{'ü' * 33}'", "cogwork.toml:1: id: found 66 bytes, expected at most 64"),
        ("[[node]]\naddress = 'a'", "cogwork.toml:1: node[0].kind: found nothing, expected a str"),
        (f"id = 5\ndata_dir = '{'x' * 80}'", "id: found 5"),
        (f"limits = '{'x' * 80}'", f'limits: found "{"x" * 40}...", expected a table'),
    ],
)
def test_a_mistake_is_named_with_its_line_its_key_and_what_would_be_right(
    text: str, message: str
) -> None:
    assert message in str(error_of(text))


def test_a_secret_is_never_quoted() -> None:
    for value in ("'hunter2'", "['hunter2']", "{ hunter2 = 1 }"):
        error = error_of(f"[[user]]\nname = 'a'\npassword_hash = {value}")
        assert "hunter2" not in str(error)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "cogwork.toml"
    with pytest.raises(ConfigurationError, match=r"cannot read '.*cogwork\.toml': No such file"):
        load(missing)
    missing.write_bytes(b"id = 'a'\n# \xff")
    with pytest.raises(ConfigurationError, match=r"cogwork\.toml:2: found the byte 0xff"):
        load(missing)


@pytest.mark.parametrize(
    "url",
    ["'ann:hunter2@h:1'", "'amqps://a:hunter2@'", "'amqp://a:hunter2@h/b'", "['a:hunter2@h']"],
)
def test_the_password_of_a_link_is_in_no_message(url: str) -> None:
    assert "hunter2" not in str(error_of(f"[[link]]\nurl = {url}"))


def line_blamed(text: str) -> int | None:
    """Read a text that may be anything; None is one without mistakes."""
    try:
        parse(text)
    except ConfigurationError as error:
        return error.line
    return None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    assert line_blamed(text) in {None, *range(1, text.count("\n") + 2)}


@given(st.integers(0, WHOLE.count("\n") - 1), st.sampled_from(["", "cut", "x", "a = 1", "[[a]]"]))
def test_any_damage_to_a_good_file_is_read_or_refused_with_a_line(at: int, damage: str) -> None:
    lines = WHOLE.splitlines()
    lines[at] = {"cut": lines[at][:-1], "x": f"x{lines[at]}"}.get(damage, damage)
    assert line_blamed("\n".join(lines)) in {None, *range(1, len(lines) + 1)}


@pytest.mark.parametrize(
    "text",
    [
        "id = " + "[" * 2000 + "]" * 2000,
        "[gateway.a]\n" + "b." * 2000 + "c = 1",
        "a = " + "1" * 5000,
    ],
    ids=("arrays", "tables", "digits"),
)
def test_what_no_reader_can_take_is_refused_without_a_line(text: str) -> None:
    assert line_blamed(text) == 0


def test_a_key_that_looks_like_a_message_of_the_library_is_just_unknown() -> None:
    error = error_of("\n'x` - at `$.listen[3]' = 1")
    assert error.line == 2
    assert error.found == "an unknown key"
