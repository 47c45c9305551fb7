"""Accepts that the owner has yet to confirm."""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH

__all__ = ("SOURCE_HASH", "Claim")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Claim:
    """Accepts on their way to the owner. Awaiting it returns once all are confirmed.

    Raises, when awaited:
        StaleAttempt: Some were not: these items belong to somebody else by now.
        InDoubt: Of some it is not known whether they are.
    """

    def answer(self, item, is_late):
        self.waiting -= 1
        if is_late:
            if self.late is None:
                self.late = []
            self.late.append(item)
        if self.waiting == 0 and self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)
        return 0

    def __await__(self):
        while self.waiting > 0:
            if self.waiter is None or self.waiter.done():
                self.waiter = self.create_future()
            yield from self.waiter
        if self.late is not None:
            raise self.on_late(self.late) from self.failure


@cython.cfunc
def new_claim(create_future: object, on_late: object, waiting: cython.Py_ssize_t) -> Claim:
    claim: Claim = Claim.__new__(Claim)
    claim.create_future = create_future
    claim.on_late = on_late
    claim.waiting = waiting
    return claim
