"""Python's end of deliveries."""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.translation import as_amqp
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.cogwork.dataplane.transport.fragments import FragmentingEnd
from cython.cimports.cogwork.dataplane.transport.shipment import ACCEPTED, RECEIVED, state_of

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Port(Terminus):
    """Gathers arrivals and outcomes, and hands them over in batches.

    `arrivals` holds `(message, token, source, settled)`; `source.settle(token, code)` answers one.
    `outcomes` holds `(token, code, state, settled)` of what was sent from here. `woken` holds links
    that can take more. After each batch `handler.on_batch(port)` is called once; it takes the lists.
    """

    def __init__(self, core: Core, handler):
        self.core = core
        self.handler = handler
        self.arrivals = []
        self.outcomes = []
        self.woken = []
        self.open = True
        core.register(self)

    def mark_dirty(self):
        return self.core.put_off(self)

    def end_batch(self):
        self.dirty = False
        try:
            self.handler.on_batch(self)
        except Exception as error:
            self.core.tell_fault(self, error)
        return 0

    def scan_on(self):
        return self.mark_dirty() if self.open else 0

    def is_ready(self):
        return self.open

    def take(self, s):
        source: Terminus = self.core.resolve(s.source_index, s.source_generation)
        message: bytes = None
        if s.format != BASIC_FORMAT and isinstance(source, FragmentingEnd):
            message = cython.cast(FragmentingEnd, source).joined
            if message is not None and octets_of(message) != s.data:
                message = None
        if message is None:
            message = as_amqp(s.data, s.size, s.format)
        self.arrivals.append((message, s.token, source, s.settled))
        return self.mark_dirty()

    def resolve_outcome(self, token, verdict):
        state = None if verdict.code == ACCEPTED else state_of(verdict)
        self.outcomes.append((token, verdict.code, state, verdict.settled))
        self.mark_dirty()
        return KEEP if verdict.code == RECEIVED else SETTLE

    def on_ready(self, link):
        self.woken.append(link)
        return self.mark_dirty()

    def close(self) -> None:
        """Take the port out of use; outcomes still to come find nobody."""
        self.open = False
        self.core.unregister(self)
