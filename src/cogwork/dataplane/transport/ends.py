"""What sessions, entries and waiting deliveries need to know of a link's compiled end."""

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class LinkEnd(Terminus):
    """One end of a link, as its session sees it: credit, and what is not settled yet."""

    def on_flow(self, f):
        """Take in a flow of the peer's that names the link."""
        return 0

    def promise(self):
        """Note that the peer is being told the credit as it is now."""

    def put_available(self, p):
        """Write the `available` of a flow; return where it ends."""
        p[0] = 0x40
        return p + 1


class ReceivingEnd(LinkEnd):
    """The end of a link by which deliveries come in, as those see it who keep them waiting.

    Attributes:
        charged: Deliveries that wait, settled or answered, for which it gets no credit.
        held_bytes: What is kept of its deliveries.
        current: The delivery under way, where it has several frames.
        current_outlets: Who takes that delivery; None while nobody does.
        discarding: Whether the rest of it is thrown away.
    """

    def on_transfer(self, t):
        """Take a transfer that fits no run."""
        return 0

    def run_limit(self, size, message_size_max):
        """Return how many deliveries of about `size` bytes may be routed in one go; 0 for none."""
        return 0

    def route_run(self, pieces, count, settled):
        """Route a run; its frames have been checked against credit, window and size.

        Returns how many it took: fewer where the rest has to wait for a later turn.
        """
        return count

    def top_up(self):
        """Give the peer credit for what is neither unsettled nor held."""
        return 0

    def hold(self, size_bytes, is_assembled):
        """Note that more of its deliveries is kept; what is assembled closes no window."""
        return 0

    def let_go(self, size_bytes, is_assembled):
        """Note that some of what was kept has gone on."""
        return 0

    def may_send(self):
        """Return whether the peer's frames still fit the session's window."""
        return False
