"""Secrets that a configuration names and does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.config.difference import difference
from cogwork.config.password_hash import verify
from cogwork.config.reading import ConfigurationError, load, parse
from cogwork.config.secrets import BadVariable, with_variables
from cogwork.sasl.verifier import HASHES, parse_verifier

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "p@ss/w:rd%"
LINK = '[[link]]\nurl = "amqps://north@south.example"\n'


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(name: str, data: bytes, mode: int = 0o600) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        path.chmod(mode)
        return path

    return written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${PW}", SECRET),
        ("amqps://n:${PW}@host:1", "amqps://n:p%40ss%2Fw%3Ard%25@host:1"),
        ("amqps://n:x@${HOST}:1", "amqps://n:x@a.example:1"),
        ("$${PW} and $PW", "${PW} and $PW"),
    ],
)
def test_a_variable_stands_for_its_value(text: str, value: str) -> None:
    assert with_variables(text, {"PW": SECRET, "HOST": "a.example"}) == value


@pytest.mark.parametrize("text", ["${NOPE}", "${}", "${no such}", "amqp://u:${NOPE}@h"])
def test_a_variable_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadVariable):
        with_variables(text, {})


def test_links_engines_and_users_take_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", SECRET)
    read = parse(
        """
        [[link]]
        url = "amqps://north:${PW}@south.example"
        [[link]]
        url = "amqps://north@west.example"
        password = "${PW}"
        [[engine]]
        name = "etcd"
        options = { user = "cogwork", password = "${PW}" }
        """
    )
    assert [link.target.password for link in read.links] == [SECRET, SECRET]
    assert [link.target.host for link in read.links] == ["south.example", "west.example"]
    assert read.engines[0].options["password"] == SECRET
    assert SECRET not in repr(read)
    assert "%40ss" not in repr(read)


def test_files_are_read_beside_the_configuration(write: Callable[..., Path]) -> None:
    write("pw", f"{SECRET}\r\n".encode())
    path = write(
        "cogwork.toml",
        LINK.encode()
        + b'password_file = "pw"\n[[user]]\nname = "alice"\npassword_file = "pw"\n'
        + b'[[engine]]\nname = "nats"\noptions = { token_file = "pw" }\n',
    )
    warnings: list[str] = []
    read = load(path, warn=warnings.append)
    assert warnings == []
    assert read.links[0].target.password == SECRET
    assert read.users[0].password_hash is not None
    assert verify(read.users[0].password_hash, SECRET)
    found = [parse_verifier(each) for each in read.users[0].scram_verifiers]
    assert [each.hash_name for each in found] == list(HASHES)
    assert read.engines[0].options == {"token": SECRET}
    assert SECRET not in repr(read)


def test_a_file_that_everybody_can_read_is_a_warning(write: Callable[..., Path]) -> None:
    file = write("pw", b"secret", 0o644)
    warnings: list[str] = []
    load(write("cogwork.toml", f'{LINK}password_file = "pw"'.encode()), warn=warnings.append)
    assert warnings == [f"{file} holds a secret and every user can read it: chmod o= {file}"]


def test_a_password_that_is_the_same_is_no_change(write: Callable[..., Path]) -> None:
    path = write("cogwork.toml", b'[[user]]\nname = "bob"\npassword_file = "pw"')
    hashes = []
    for data in (b"one", b"one\n", b"two"):
        write("pw", data)
        hashes.append(load(path))
    assert difference(hashes[0], hashes[1]) == []
    assert [str(each) for each in difference(hashes[1], hashes[2])] == [
        "user[bob].password_hash: changed",
        "user[bob].scram_verifiers: changed",
    ]


def test_a_new_password_of_a_link_needs_no_restart(write: Callable[..., Path]) -> None:
    path = write("cogwork.toml", f'{LINK}password_file = "pw"'.encode())
    write("pw", b"one")
    old = load(path)
    write("pw", b"two")
    (change,) = difference(old, load(path))
    assert str(change) == "link[south.example:5671].password: changed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{LINK}password = '${{NO_SUCH}}'", '3: link[0].password: found "${NO_SUCH}", which is'),
        (f"{LINK}password_file = 'away'", "3: link[0].password_file: found "),
        (f"{LINK}password_file = 'empty'", "3: link[0].password_file: found nothing in "),
        (f"{LINK}password_file = 'lines'", "3: link[0].password_file: found several lines"),
        (f"{LINK}password_file = 'binary'", "3: link[0].password_file: found something else"),
        (f"{LINK}password_file = 'long'", "3: link[0].password_file: found more than 65536"),
        (f"{LINK}password_file = '.'", "3: link[0].password_file: found "),
        (f"{LINK}password_file = '/dev/zero'", "which is no regular file"),
        (f"{LINK}password = 'a'\npassword_file = 'pw'", "found a file beside password, expected"),
        ("[[link]]\nurl = 'amqps://south'\npassword = 'a'", "3: link[0].password: found a passwo"),
        ("[[link]]\nurl = 'amqps://u:b@south'\npassword = 'a'", "a password beside the one in url"),
        ("[[user]]\nname='u'\npassword_hash='x'\npassword_file='pw'", "beside password_hash"),
        ("[[user]]\nname='u'\nscram_verifiers=['x']\npassword_file='pw'", "scram_verifiers, exp"),
        ("[[engine]]\nname='etcd'\n[engine.options]\nuser='u'\npassword_file='away'", ":5: engine"),
        ("[[engine]]\nname='redis'\noptions={token_file='pw'}", "token_file"),
    ],
)
def test_a_secret_that_cannot_be_had_is_told_with_its_place(
    write: Callable[..., Path], text: str, message: str
) -> None:
    contents = {"pw": b"hidden", "empty": b"\n", "lines": b"a\nhidden\n", "binary": b"\xff\xfe"}
    for name, data in {**contents, "long": b"x" * 70_000}.items():
        write(name, data)
    with pytest.raises(ConfigurationError) as failure:
        load(write("cogwork.toml", text.encode()))
    assert message in str(failure.value)
    assert "hidden" not in str(failure.value)
