"""The names that a configuration and a client may give."""

from __future__ import annotations

from typing import get_args

from cogwork.sasl.mechanisms import MECHANISMS, MechanismName


def test_every_mechanism_may_be_named_and_no_other() -> None:
    assert set(get_args(MechanismName)) == {str(name) for name in MECHANISMS}
