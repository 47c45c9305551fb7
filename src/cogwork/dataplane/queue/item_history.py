"""Items that go to another container's queue, and what they have been through goes with them.

Theory of operation. How old an item is, when it is due, and how many of its attempts failed is known
of it, and does not stand in its message. So the message goes as it came, with this *history* beside it:
`(stored_s, due_s, attempts, failures)`, where `due_s` is 0 of what is not delayed. Times are those of
the process's monotonic clock; whoever hands an item over says them by the other one's. The queue that
gets it goes on from there: the time that its own options allow counts from `stored_s`.

A delayed item has no attempts: nobody has had it. What may have been given to a container before,
and was not, counts as one, so that who gets it then is warned.
"""

import cython
from cython.cimports.cogwork.dataplane.queue.stored import DELAYED, number_of
from cython.cimports.libc.math import INFINITY

__all__ = ("SOURCE_HASH", "take_away")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def take_away(state: QueueState, count: int, is_delayed: bool = False) -> list:
    """Put items aside, to be moved to another container; `moved` or `enter_again` comes next.

    Args:
        state: Whose items they are.
        count: How many at most.
        is_delayed: Whether those are wanted that are delayed, as they are due; else those that are
            ready.

    Returns:
        For each item `(number, format, message, original, history)`: its message as it would be
        delivered now, and as it came.
    """
    taken: list = []
    item: cython.pointer(Item)
    state.items.restore()
    while len(taken) < count:
        item = _next_delayed(state.items) if is_delayed else state.next_ready()
        if item == cython.NULL:
            break
        original: bytes = bytes_from(item.data, item.size)
        message: bytes = original
        if item.format == 0 and item.flags & (ACQUIRED | AGES):
            message = state.message_of(item)
        history = (item.stored_s, item.due_s if is_delayed else 0.0, item.attempt, item.failures)
        taken.append((number_of(item), item.format, message, original, history))
        state.part_with(item)
    return taken


@cython.cfunc
def _next_delayed(items: ItemTable) -> cython.pointer(Item):
    """Find the delayed item that is due first, and forget when; NULL where none is delayed."""
    timer: Timer
    item: cython.pointer(Item)
    while items.delays.pop_due(INFINITY, cython.address(timer)):
        item = items.slots.find(timer.number)
        if item != cython.NULL and item.state == DELAYED:
            return item
    return cython.NULL


def restore_history(item, history, now_s):
    """Give a new item its history, before it gets its place."""
    stored_s: cython.double = history[0]
    due_s: cython.double = history[1]
    item.stored_s = min(stored_s, now_s)
    item.failures = history[3]
    if due_s > now_s:
        item.due_s = due_s
    elif history[2]:
        item.attempt = history[2]
        item.flags |= ACQUIRED
    return 0


def is_over(state, item):
    """Go on with the history of an item that has its place; say whether that was all of it."""
    if item.attempt:
        state.items.disorder.lose(item.sequence)
        if state.journal is not None:
            state.journal.back(item)
    if item.expires_s == 0.0 or item.expires_s > state.now():
        return False
    state.expire_one(item)
    return True
