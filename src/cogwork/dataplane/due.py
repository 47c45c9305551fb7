"""What the core calls back: at the end of a batch, or when there is room again."""

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Due:
    """Something that has work put off until later.

    Attributes:
        dirty: Whether the core has been asked to call `end_batch`.
        unscanned: Whether the core has been asked to call `scan_on`: there is more to scan.
    """

    def end_batch(self):
        """Do what was put off until the end of the batch."""
        self.dirty = False
        return 0

    def relieve(self):
        """Go on after it was told to wait for room, in memory or in an output."""
        return 0

    def scan_on(self):
        """Go on with a scan that took its share of an earlier turn."""
        return 0

    def source_of_work(self):
        """Return the name of who causes the work that is put off, and have a share of each turn."""
        return

    def add_to(self, totals):
        """Add what this holds to what others hold."""
        return 0
