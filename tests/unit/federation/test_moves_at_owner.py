"""What a container asks the owner of a queue to move, and where dead letters may go back to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from cogwork.container.federation.transfers import move_at_owner
from cogwork.dataplane.encoding.codec import decode, encode

if TYPE_CHECKING:
    from cogwork.container.federation.questions import Questions


class Owner:
    """Answers as the owner of a queue does whose dead letters came from these addresses."""

    def __init__(self, *origins: str) -> None:
        self.items = list(origins)
        self.moved: list[str] = []

    async def ask(self, _address: str, question: str, **details: Any) -> dict[str, Any]:
        if question == "counts":
            return {"ready": len(self.items)}
        allowed: Any = decode(details["origins"])[0]
        count = details["count"]
        taken, self.items = self.items[:count], self.items[count:]
        put_off = [each for each in taken if each not in allowed]
        self.moved += [each for each in taken if each in allowed]
        self.items += put_off
        told = dict.fromkeys(("refused", "unconfirmed", "strangers"), 0)
        told |= {"taken": len(taken), "moved": len(taken) - len(put_off), "put-off": len(put_off)}
        return {**told, "asked": encode(list(dict.fromkeys(put_off)))}


def driven_back(owner: Owner, allowed: set[str], count: int = 2**63) -> dict[str, int]:
    questions = cast("Questions", owner)
    return asyncio.run(
        move_at_owner(questions, "queue/dead", count, None, allowed.__contains__),
    )


def test_dead_letters_go_back_only_where_the_client_may_send() -> None:
    owner = Owner("queue/a", "queue/b", "queue/a", "queue/c", "queue/b")
    told = driven_back(owner, {"queue/a", "queue/b"})
    assert (told["moved"], told["refused"]) == (4, 1)
    assert sorted(owner.moved) == ["queue/a", "queue/a", "queue/b", "queue/b"]
    assert owner.items == ["queue/c"]


def test_whoever_may_send_nowhere_moves_nothing() -> None:
    owner = Owner(*["queue/a"] * 150)
    told = driven_back(owner, set())
    assert (told["moved"], told["refused"]) == (0, 150)
    assert len(owner.items) == 150


def test_no_more_go_back_than_were_asked_for() -> None:
    owner = Owner(*["queue/a"] * 150)
    assert driven_back(owner, {"queue/a"}, 120)["moved"] == 120
    assert len(owner.items) == 30
