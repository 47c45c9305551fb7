"""Items that go to another container's queue, and what they have been through goes with them.

Theory of operation. How old an item is, when it is due, and how many of its attempts failed is known
of it, and does not stand in its message. So the message goes as it came, with this *past* beside it:
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


def take_away(stock: Stock, count: int, is_delayed: bool = False) -> list:
    """Puts items aside, to be moved to another container; `moved` or `enter_again` comes next.

    Args:
        stock: Whose items they are.
        count: How many at most.
        is_delayed: Whether those are wanted that are delayed, as they are due; else those that are
            ready.

    Returns:
        For each item `(number, format, message, original, past)`: its message as it would be
        delivered now, and as it came.
    """
    taken: list = []
    item: cython.pointer(Item)
    stock.shelf.restore()
    while len(taken) < count:
        item = _next_delayed(stock.shelf) if is_delayed else stock.next_ready()
        if item == cython.NULL:
            break
        original: bytes = bytes_from(item.data, item.size)
        message: bytes = original
        if item.flags & (ACQUIRED | AGES):
            message = stock.message_of(item)
        past = (item.stored_s, item.due_s if is_delayed else 0.0, item.attempt, item.failures)
        taken.append((number_of(item), item.format, message, original, past))
        stock.part_with(item)
    return taken


@cython.cfunc
def _next_delayed(shelf: Shelf) -> cython.pointer(Item):
    """Finds the delayed item that is due first, and forgets when; NULL where none is delayed."""
    timer: Timer
    item: cython.pointer(Item)
    while shelf.delays.pop_due(INFINITY, cython.address(timer)):
        item = shelf.slots.find(timer.number)
        if item != cython.NULL and item.state == DELAYED:
            return item
    return cython.NULL


def recall(item, past, now_s):
    """Gives a new item its past, before it gets its place."""
    stored_s: cython.double = past[0]
    due_s: cython.double = past[1]
    item.stored_s = min(stored_s, now_s)
    item.failures = past[3]
    if due_s > now_s:
        item.due_s = due_s
    elif past[2]:
        item.attempt = past[2]
        item.flags |= ACQUIRED
    return 0


def is_over(stock, item):
    """Goes on with the past of an item that has its place; says whether that was all of it."""
    if item.attempt:
        stock.shelf.disorder.lose(item.sequence)
        if stock.journal is not None:
            stock.journal.back(item)
    if item.expires_s == 0.0 or item.expires_s > stock.now():
        return False
    stock.expire_one(item)
    return True
