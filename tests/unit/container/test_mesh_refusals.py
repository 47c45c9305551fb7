"""What other containers have against a link is logged once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.mesh.refusals import REMEMBERED_MAX, Refusals

if TYPE_CHECKING:
    import pytest


def test_the_same_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for why in ("too old", "too old", "too young", "too old"):
        refusals.tell("south", why)
    refusals.tell("north", "too old")
    assert caplog.messages == [
        "container south refuses the link: too old",
        "container south refuses the link: too young",
        "container south refuses the link: too old",
        "container north refuses the link: too old",
    ]


def test_a_container_that_was_linked_since_is_told_of_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    refusals.tell("south", "too old")
    refusals.forget("south")
    refusals.tell("south", "too old")
    refusals.forget("nobody")
    assert len(caplog.messages) == 2


def test_strangers_do_not_fill_the_memory_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in range(REMEMBERED_MAX + 50):
        refusals.tell(f"stranger {number}", "too old")
    assert len(caplog.messages) == REMEMBERED_MAX
