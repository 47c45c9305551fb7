"""An outlet that takes everything, counts it, and keeps nothing."""

import cython
from cython.cimports.cogwork.dataplane.transport.shipment import ACCEPTED, Verdict, fill_verdict

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Drain(Terminus):
    """Accepts whatever it is given."""

    def __init__(self, core: Core):
        self.core = core
        core.register(self)

    def take(self, s):
        verdict: Verdict
        self.messages += 1
        self.bytes += s.size
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0
