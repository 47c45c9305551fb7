"""An outlet for a container that wants copies and cannot be reached."""

import cython
from cython.cimports.cogwork.dataplane.shipment import LOST, Verdict, fill_verdict

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class LostBranch(Terminus):
    """Takes nothing anywhere, so that who publishes is left in doubt, and knows it."""

    def __init__(self, core: Core):
        self.core = core
        core.register(self)

    def take(self, s):
        verdict: Verdict
        self.messages += 1
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), LOST, None)
        self.core.branches.resolve_outcome(s.token, cython.address(verdict))
        return 0

    def close(self) -> None:
        """Takes it out of use."""
        self.core.unregister(self)
