"""Items of a queue that another container owns, moved to other addresses: its owner moves them.

Theory of operation. Whoever is asked to move items asks the owner for some at a time, as a question
(`questions`), until there are no more or as many as were wanted. The owner sends each to where it
goes and answers once it knows what has become of all of them.

Dead letters go back to where they came from, which the owner reads from each, and only the
container that was asked knows where the client may send. So a question names the addresses that
are known to be allowed. What goes elsewhere stays, and the answer says where that is: if it is
allowed, too, it goes with one of the next questions.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from cogwork.container.federation.questions import COUNTS, MOVE
from cogwork.container.vhost.managed_queue import ManagedQueue
from cogwork.dataplane.encoding.codec import decode, encode
from cogwork.plugin.effects import Send
from cogwork.plugin.transfers import Routed, Transfers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.container.federation.questions import Answer, Questions
    from cogwork.plugin.capabilities import Replicated
    from cogwork.plugin.management import OnOutcome
    from cogwork.plugin.node import Emit

__all__ = ("move_at_owner", "moved_here")

STEP: Final = 100
"""Items of one question: it is answered within the time that one has."""

PAUSE_S: Final = 0.05

ORIGINS_MAX: Final = 32
"""So many addresses an answer asks about."""

TOLD: Final = ("moved", "refused", "unconfirmed", "strangers")


async def move_at_owner(
    questions: Questions,
    address: str,
    count: int,
    target: str | None,
    may_send: Callable[[str], bool],
) -> dict[str, int]:
    """Move items of a queue that another container owns; count what has become of them.

    Args:
        questions: Of the queue's virtual host.
        address: The queue.
        count: How many at most.
        target: Where to; None sends dead letters back to where they came from.
        may_send: Says whether the client may send to an address.

    Raises:
        OwnerAway: The owner cannot be reached, or does not answer.
    """
    totals = dict.fromkeys(TOLD, 0)
    origins: dict[str, bool] = {}
    left = min(count, (await questions.ask(address, COUNTS))["ready"])
    while left > 0 and not totals["unconfirmed"]:
        allowed = [origin for origin, is_allowed in origins.items() if is_allowed]
        where = {"origins": encode(allowed)} if target is None else {"target": target}
        said = await questions.ask(address, MOVE, count=min(left, STEP), **where)
        if not said["taken"]:
            break
        left -= said["taken"]
        for each in TOLD:
            totals[each] += said[each]
        asked: Any = decode(said["asked"])[0]
        new = {origin: may_send(origin) for origin in asked if origin not in origins}
        origins |= new
        if any(new.values()):
            left += said["put-off"]  # they wait behind all others now
        else:
            totals["refused"] += said["put-off"]
    return totals


async def moved_here(node: Replicated, emit: Emit, question: Mapping[str, object]) -> Answer:
    """Move items of a queue that this container owns, for another one.

    Args:
        node: The queue.
        emit: Carries out what is to be done.
        question: As `move_at_owner` asks it.
    """
    queue, target = ManagedQueue(node), question.get("target")
    known = question.get("origins")
    origins: Any = decode(known)[0] if isinstance(known, bytes) else []
    asked: dict[str, None] = {}
    strangers = put_off = 0

    def route(message: bytes) -> Routed:
        nonlocal strangers, put_off
        if target is not None:
            return Routed(str(target), message)
        origin, revived = queue.routed_back(message)
        if origin is None:
            strangers += 1
        elif origin in origins:
            return Routed(origin, revived)
        else:
            put_off += 1
            if len(asked) < ORIGINS_MAX:
                asked[origin] = None
        return Routed(None, message)

    def send(address: str, message: bytes, on_outcome: OnOutcome) -> bool:
        emit((Send(address, message, on_outcome),))
        return True

    transfers = Transfers(send, queue, route)
    for has_more in transfers.run(min(int(str(question.get("count", 0))), STEP)):
        await asyncio.sleep(0 if has_more else PAUSE_S)
    return {
        "taken": transfers.moved + transfers.refused + transfers.waiting,
        "moved": transfers.moved,
        "refused": transfers.refused - put_off,
        "unconfirmed": transfers.waiting,
        "strangers": strangers,
        "put-off": put_off,
        "asked": encode(list(asked)),
    }
