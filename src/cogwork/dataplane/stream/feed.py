"""Where a stream's deliveries come from: which links could take more, and what receivers say.

What a receiver says of a delivery is counted and changes nothing: a stream is not consumed.
"""

from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.cogwork.dataplane.transport.shipment import ACCEPTED, RECEIVED, REJECTED

__all__ = ("SOURCE_HASH", "Feed")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Feed(Terminus):
    """What a stream's deliveries come from: hears of credit, and counts outcomes.

    `handler.on_batch(feed)` is called once after each batch in which links could take more, or there
    was more for them; it takes the list.

    Attributes:
        woken: Links that can take more.
        accepted: Deliveries that receivers accepted.
        rejected: Deliveries that they rejected.
        returned: Those they released, modified, or left unsettled when they went.
    """

    def __init__(self, core: Core, handler):
        self.core = core
        self.handler = handler
        self.woken = []
        core.register(self)

    def on_ready(self, link):
        self.woken.append(link)
        self.wake()
        return 0

    def wake(self) -> None:
        """Have the handler called when the batch ends: there is more to send."""
        self.core.put_off(self)

    def end_batch(self):
        self.dirty = False
        try:
            self.handler.on_batch(self)
        except Exception as error:
            self.core.tell_fault(self, error)
        return 0

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        self.count_outcome(verdict.code, 1)
        return SETTLE

    def resolve_run(self, token, count, verdict):
        return self.count_outcome(verdict.code, count)

    def count_outcome(self, code, count):
        if code == ACCEPTED:
            self.accepted += count
        elif code == REJECTED:
            self.rejected += count
        elif code != RECEIVED:
            self.returned += count
        return 0

    def takes(self, link: ConsumerEnd) -> bool:
        """Return whether a link takes a delivery now; else it is woken when it does."""
        return link.is_ready()

    def close(self) -> None:
        """Take the feed out of use."""
        self.core.unregister(self)
