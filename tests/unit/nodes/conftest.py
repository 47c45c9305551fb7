"""Fixtures of nodes."""

from __future__ import annotations

import pytest
from management_world import World


@pytest.fixture
def world() -> World:
    return World()
