"""An honest client goes on beside each attack; `bench/attacks.py` measures what it notices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from .attacks import ATTACKS, attacking, world_of
from .honest import beside

if TYPE_CHECKING:
    from pathlib import Path

ATTACK_S = 1.0

FLOOD_FLOOR_S = 5.0
"""These attackers keep both the container's processor and their own busy, beside other tests."""


@pytest.mark.soak  # `make test` has each kind of attack in a test that asks for more
@pytest.mark.parametrize("name", ATTACKS)
def test_an_honest_client_does_not_notice(name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    with (
        world_of(tmp_path / "container", attack) as world,
        beside(attack.honest_url(world), attack.kind, floor_s=FLOOD_FLOOR_S),
        attacking(name, world),
    ):
        time.sleep(ATTACK_S)
