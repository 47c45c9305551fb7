"""Where messages stop that are looked at before they are routed: which ones, and who looks."""

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Checkpoint(Due):
    """Tells once after each batch which links have messages to be looked at.

    `handler.on_arrivals(links)` is called with them; it looks at their messages and decides.

    Attributes:
        guards: By address, as octets: whether its messages are looked at. What is missing there is
            decided by its `__missing__`, which raises nothing.
    """

    def __init__(self, core: Core, guards, handler):
        """Make a checkpoint.

        Args:
            core: The core whose links stop here.
            guards: Which addresses are looked at.
            handler: Who looks.
        """
        self.core = core
        self.guards = guards
        self.handler = handler
        self.arrivals = []

    def guards_address(self, address):
        """Return whether the messages to an address are looked at."""
        return bool(self.guards[address])

    def note(self, link):
        """Have the handler told of a link."""
        self.arrivals.append(link)
        return self.core.put_off(self)

    def end_batch(self):
        self.dirty = False
        links: list = self.arrivals
        self.arrivals = []
        try:
            self.handler.on_arrivals(links)
        except Exception as error:
            self.core.tell_fault(self, error)
        return 0
