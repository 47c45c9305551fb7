"""An outlet for a container that wants copies and cannot be reached."""

import cython
from cython.cimports.cogwork.dataplane.transport.shipment import LOST, Verdict, fill_verdict

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class LostBranch(Terminus):
    """Takes nothing anywhere.

    At first who publishes is left in doubt, and knows it. Once the container has been given up it
    is nobody: what it would have got is only noted.
    """

    def __init__(self, core: Core, gave_up: bool = False):
        self.core = core
        self.gave_up = gave_up
        core.register(self)

    def refuses(self, s):
        if self.gave_up and not s.settled:
            self.missed += 1
            self.missed_at_s = self.core.now
        return self.gave_up

    def take(self, s):
        verdict: Verdict
        self.messages += 1
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), LOST, None)
        self.core.branches.resolve_outcome(s.token, cython.address(verdict))
        return 0

    def close(self) -> None:
        """Take it out of use."""
        self.core.unregister(self)
