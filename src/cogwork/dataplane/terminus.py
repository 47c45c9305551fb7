"""Where deliveries go to, or come from."""

import cython
from cython.cimports.cogwork.dataplane.transport.shipment import fill_verdict

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Terminus(Due):
    """Where deliveries go to, or come from: a link's end, a store, a node's port."""

    def is_ready(self):
        """Return whether `take` may be called now."""
        return True

    def refuses(self, s):
        """Return whether this terminus does not want the message at all (selector, no-local)."""
        return False

    def makes_way(self, s):
        """Return whether this terminus takes the message, while others wait for it to be ready."""
        return False

    def take(self, s):
        """Take a whole message; only called when ready, or where it makes way."""
        return 0

    def take_run(self, s, pieces, count):
        """Take the first messages of a run, as many as it is ready for; return how many."""
        index: uint32_t
        for index in range(count):
            if not self.is_ready():
                return index
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            self.take(s)
        return count

    def resolve_outcome(self, token, verdict):
        """Learn what became of a delivery that came from here; return one of the four answers."""
        return SETTLE

    def resolve_run(self, token, count, verdict):
        """Learn the same of `count` deliveries with consecutive tokens, settled by the peer."""
        index: uint32_t
        for index in range(count):
            self.resolve_outcome(token + index, verdict)
        return 0

    def on_ready(self, link):
        """Learn that an outlet which this terminus feeds can take more."""
        return 0

    def outstanding(self):
        """Count the deliveries that were taken and not yet settled."""
        return 0

    def has_waiting(self):
        """Return whether deliveries wait here for an outlet to take them."""
        return False

    def hold_output(self):
        """Hold what is written to its connection until all that has happened is durable.

        Returns whether it has one: what is within the process has none.
        """
        return False

    def is_unfinished(self, now_s, limit_s):
        """Return whether one delivery has been coming from here for longer than it may.

        It counts from when somebody asks for the first time.
        """
        return False

    def settle(self, token: int, code: int, state: bytes = None) -> None:
        """Say the outcome of a delivery that came from here, as a consumer in process does.

        Args:
            token: The delivery, as it was named when it was taken.
            code: The outcome's descriptor code, such as 0x24 for accepted.
            state: The outcome encoded, where it says more than its code.
        """
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        self.resolve_outcome(token, cython.address(verdict))
