"""The names that a configuration and a client may give."""

from __future__ import annotations

from typing import get_args

from cogwork.sasl.mechanisms import BY_PASSWORD, MECHANISMS, MechanismName


def test_every_mechanism_may_be_named_and_no_other() -> None:
    assert set(get_args(MechanismName)) == {str(name) for name in MECHANISMS}


def test_mechanisms_by_password_come_with_the_strongest_first() -> None:
    assert BY_PASSWORD == (
        "SCRAM-SHA-512-PLUS",
        "SCRAM-SHA-256-PLUS",
        "SCRAM-SHA-512",
        "SCRAM-SHA-256",
        "PLAIN",
    )
