"""A container for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from consoles import CONFIGURATION

from cogwork.testing import container

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with container(CONFIGURATION, id="box") as found:
        yield found
