"""SCRAM verifiers: one line each, checked when it is read, the same salt for who is not there."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from cogwork.config.settings import User
from cogwork.container.security.verifiers import Verifiers, kept_secret
from cogwork.sasl.saslprep import saslprep
from cogwork.sasl.verifier import (
    HASHES,
    ITERATIONS_MAX,
    Verifier,
    VerifierError,
    make_verifier,
    parse_verifier,
)

if TYPE_CHECKING:
    from pathlib import Path

SALT = base64.b64encode(bytes(16)).decode()
KEY = base64.b64encode(bytes(32)).decode()
SECRET = bytes(range(32))


def user(name: str, iterations: int = 4096) -> User:
    lines = [str(make_verifier(each, "pencil", iterations)) for each in HASHES]
    return User(name=name, scram_verifiers=lines)


def test_the_verifier_of_the_rfc() -> None:
    line = (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    verifier = parse_verifier(line)  # as PostgreSQL keeps RFC 7677's password
    assert str(verifier) == line
    made = make_verifier("sha256", "pencil", 4096)
    assert parse_verifier(str(made)) == made
    assert made.salt != make_verifier("sha256", "pencil", 4096).salt


def test_no_repr_shows_keys() -> None:
    made = make_verifier("sha256", "pencil", 4096)
    for text in (repr(made), repr([made]), repr(user("ann"))):
        assert "$" not in text
        assert repr(made.stored_key) not in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "not of the form"),
        ("secret", "not of the form"),
        (f"SCRAM-SHA-1$4096:{SALT}${KEY}:{KEY}", "for none of"),
        (f"SHA-256$4096:{SALT}${KEY}:{KEY}", "for none of"),
        (f"SCRAM-SHA-256$4095:{SALT}${KEY}:{KEY}", "from 4096 to"),
        (f"SCRAM-SHA-256${ITERATIONS_MAX + 1}:{SALT}${KEY}:{KEY}", "from 4096 to"),
        (f"SCRAM-SHA-256${'9' * 5000}:{SALT}${KEY}:{KEY}", "from 4096 to"),
        (f"SCRAM-SHA-256$-4096:{SALT}${KEY}:{KEY}", "from 4096 to"),
        (f"SCRAM-SHA-256$4096:AAAA${KEY}:{KEY}", "a salt of 8 to 256 bytes"),
        (f"SCRAM-SHA-256$4096:{SALT}${KEY}", "keys of 32"),
        (f"SCRAM-SHA-512$4096:{SALT}${KEY}:{KEY}", "keys of 64"),
        (f"SCRAM-SHA-256$4096:{SALT}${KEY}:é", "not base64"),
        (f"SCRAM-SHA-256$4096:{SALT}$secret!:{KEY}", "not base64"),
    ],
)
def test_a_bad_verifier_is_refused_and_not_quoted(line: str, says: str) -> None:
    with pytest.raises(VerifierError, match=says) as caught:
        parse_verifier(line)
    assert "secret" not in str(caught.value)


def shape(verifier: Verifier) -> tuple[int, int, int]:
    return verifier.iterations, len(verifier.salt), len(verifier.stored_key)


@pytest.mark.parametrize("hash_name", list(HASHES))
def test_who_is_not_there_looks_like_who_is(hash_name: str) -> None:
    kept = Verifiers([user("ann"), user("bob"), user("carl", 5000)], SECRET)
    known, name = kept.of(hash_name, "ann")
    decoy, nobody = kept.of(hash_name, "eve")
    assert (name, nobody) == ("ann", None)
    assert shape(decoy) == shape(known)
    assert decoy.salt == kept.of(hash_name, "eve")[0].salt
    assert decoy.salt != kept.of(hash_name, "eva")[0].salt
    assert decoy.salt == Verifiers([user("ann")], SECRET).of(hash_name, "eve")[0].salt
    assert decoy.salt != Verifiers([user("ann")], bytes(32)).of(hash_name, "eve")[0].salt


def test_the_secret_of_decoys_outlives_a_restart(tmp_path: Path) -> None:
    directory = tmp_path
    made = kept_secret(directory)
    assert kept_secret(directory) == made
    (file,) = directory.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept_secret(None) != kept_secret(None)
    assert len(kept_secret(directory / "nowhere")) == len(made)


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("I\u00adX", "IX"),  # RFC 4013 §3
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("\u0007", "\u0007"),
        ("\u0627\u0031", "\u0627\u0031"),
        ("a\u00a0b", "a b"),
    ],
)
def test_names_and_passwords_have_one_form(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared
