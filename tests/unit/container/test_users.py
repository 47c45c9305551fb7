"""Passwords: hashed, checked in threads, refused under overload, never shown."""

from __future__ import annotations

import asyncio
import base64
import threading

import pytest

from cogwork.config import password_hash
from cogwork.config.password_hash import (
    PasswordHashError,
    hash_password,
    verify,
)
from cogwork.config.settings import User
from cogwork.container.security import password_checker
from cogwork.container.security.password_checker import PasswordChecker
from cogwork.sasl.sides import LoginBusyError

SALT = "c2FsdHNhbHRzYWx0c2FsdA=="


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_hash, "COST_N", 16)


@pytest.fixture
def alice() -> User:
    return User(name="alice", password_hash=hash_password("wonderland"))


def test_a_hash_verifies_its_password_only() -> None:
    encoded = hash_password("wonderland ☂")
    assert encoded.startswith("scrypt$16$8$5$")
    assert verify(encoded, "wonderland ☂")
    assert not verify(encoded, "wonderland")
    assert not verify(encoded, "")


def test_equal_passwords_have_different_hashes() -> None:
    assert hash_password("same") != hash_password("same")


def test_a_hash_made_elsewhere_is_understood() -> None:
    # RFC 7914 §12, third vector; a shorter hash is the start of a longer one.
    digest = base64.b64encode(
        bytes.fromhex("7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2")
    ).decode()
    salt = base64.b64encode(b"SodiumChloride").decode()
    assert verify(f"scrypt$16384$8$1${salt}${digest}", "pleaseletmein")


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ("", "not of the form"),
        ("wonderland", "not of the form"),
        ("$2b$12$abcdefghijklmnopqrstuv", "not of the form"),
        (f"scrypt$many$8$1${SALT}${SALT}", "is no number"),
        (f"scrypt$16$8$1$salt?${SALT}", "not base64"),
        (f"scrypt$15$8$1${SALT}${SALT}", "n a power of two"),
        (f"scrypt$16$0$1${SALT}${SALT}", "r from 1"),
        (f"scrypt$16$8$99${SALT}${SALT}", "p from 1 to 16"),
        (f"scrypt$1073741824$8$1${SALT}${SALT}", "bytes of memory"),
        (f"scrypt$16$8$1${SALT}$QQ==", "too short"),
        (f"scrypt$16$8$1$QQ==${SALT}", "too short"),
    ],
)
def test_a_malformed_hash_is_named_without_being_shown(encoded: str, message: str) -> None:
    with pytest.raises(PasswordHashError, match=message) as failure:
        verify(encoded, "x")
    assert SALT not in str(failure.value)


def test_a_user_never_shows_the_hash(alice: User) -> None:
    assert alice.password_hash is not None
    assert alice.password_hash not in repr(alice)
    assert alice.password_hash not in repr([alice])
    assert "alice" in repr(alice)


def test_names_and_passwords_are_checked(alice: User) -> None:
    async def story() -> None:
        checker = PasswordChecker([alice, User(name="certificate-only")])
        assert await checker.check("alice", "wonderland")
        assert not await checker.check("alice", "Wonderland")
        assert not await checker.check("mallory", "wonderland")
        assert not await checker.check("certificate-only", "")
        checker.close()

    asyncio.run(story())


def test_an_unknown_user_costs_what_a_known_one_costs(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs: list[tuple[int, int, int]] = []
    derive = password_hash.derive

    def watched(password: str, how: password_hash.Hash) -> bytes:
        costs.append((how.n, how.r, how.p))
        return derive(password, how)

    async def story() -> None:
        checker = PasswordChecker([alice, User(name="dear", password_hash=_dear())])
        monkeypatch.setattr(password_hash, "derive", watched)
        await checker.check("dear", "x")
        await checker.check("alice", "x")
        await checker.check("mallory", "x")
        await checker.check("certificate-only", "x")
        checker.close()

    asyncio.run(story())
    each = [(16, 8, 5), (64, 8, 2)]
    assert sorted(costs) == sorted(each * 4), "as dear for all as all costs together"


def _dear() -> str:
    return f"scrypt$64$8$2${SALT}${SALT}"


def test_hashes_cheaper_than_new_ones_are_old(alice: User) -> None:
    assert alice.password_hash is not None
    assert not password_hash.is_old(alice.password_hash)
    assert password_hash.is_old(f"scrypt$16$8$1${SALT}${SALT}")
    assert not password_hash.is_old(_dear())


def test_checks_of_a_source_wait_for_each_other_alone(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    gate = threading.Event()

    def noted(password: str, _how: password_hash.Hash) -> bytes:
        if password != "mesh":
            gate.wait(30)
        order.append(password)
        return b""

    monkeypatch.setattr(password_hash, "derive", noted)
    monkeypatch.setattr(password_checker, "THREADS", 1)

    async def story() -> None:
        mesh = User(name="mesh", password_hash=alice.password_hash, mesh=True)
        checker = PasswordChecker([alice, mesh])
        asked = [("alice", f"flood {number}", "10.0.0.1") for number in range(6)]
        asked += [("alice", "honest", "10.0.0.2"), ("mesh", "mesh", "10.0.0.3")]
        tasks = [asyncio.create_task(checker.check(*each)) for each in asked]
        await tasks[-1]
        assert order == ["mesh"], "while all the others wait"
        gate.set()
        await asyncio.gather(*tasks)
        checker.close()

    asyncio.run(story())
    assert order.index("honest") <= 3, "behind what ran, and one of the flood's"


def test_overload_is_refused_with_a_reason(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_checker, "PENDING_MAX", 3)
    gate = threading.Event()
    monkeypatch.setattr(password_hash, "derive", lambda *_: gate.wait(10) and b"")

    async def story() -> None:
        checker = PasswordChecker([alice])
        waiting = [asyncio.create_task(checker.check("alice", "x")) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(LoginBusyError, match=r"1 logins from .* wait"):
            await checker.check("alice", "wonderland")
        gate.set()
        assert await asyncio.gather(*waiting) == [False] * 3
        assert not await checker.check("alice", "there is room again")
        checker.close()

    asyncio.run(story())


def test_the_event_loop_goes_on_meanwhile(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow(*_: object) -> bytes:
        gate.wait(10)
        return b""

    monkeypatch.setattr(password_hash, "derive", slow)

    async def story() -> int:
        checker = PasswordChecker([alice])
        task = asyncio.create_task(checker.check("alice", "x"))
        turns = 0
        while not task.done():
            turns += 1
            if turns > 5:
                gate.set()
            await asyncio.sleep(0.001)
        checker.close()
        return turns

    assert asyncio.run(story()) > 5


def test_other_users_take_over_and_bad_ones_change_nothing(alice: User) -> None:
    async def story() -> None:
        checker = PasswordChecker([alice])
        checker.replace([User(name="bob", password_hash=hash_password("builder"))])
        assert await checker.check("bob", "builder")
        assert not await checker.check("alice", "wonderland")
        with pytest.raises(PasswordHashError):
            checker.replace([User(name="carol", password_hash="plain text")])
        assert await checker.check("bob", "builder")
        checker.close()

    asyncio.run(story())
