"""Who is given which answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.consensus.replicated import calls
from cogwork.consensus.replicated.switchboard import Switchboard

if TYPE_CHECKING:
    from cogwork.consensus.replicated.calls import Answer


class Wire:
    """A way to other containers."""

    def send(self, _to: str, *_parts: bytes) -> bool:
        return True

    def flush(self) -> None: ...


def asked(board: Switchboard, to: str) -> tuple[int, list[Answer]]:
    """Asks a container; returns the number of the call, and where its answer will be."""
    answers: list[Answer] = []
    call = calls.GetBounds(board.next_number(), "orders")
    assert board.expect(to, call, answers.append, 0.0)
    return call.number, answers


def test_an_answer_to_a_former_life_is_none_to_this_one() -> None:
    former, present = Switchboard(Wire()), Switchboard(Wire())
    number, _ = asked(former, "b")
    _, answers = asked(present, "b")
    present.take("b", calls.Bounded(number, 1, 2, 3))
    assert answers == []


def test_only_who_was_asked_answers() -> None:
    board = Switchboard(Wire())
    number, answers = asked(board, "b")
    board.take("c", calls.Bounded(number, 1, 2, 3))
    assert answers == []
    answer = calls.Bounded(number, 4, 5, 6)
    board.take("b", answer)
    board.take("b", answer)
    assert answers == [answer]
