"""What the subscribers of a topic want: the data plane asks, the router's matcher answers."""

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Interest:
    """A matcher of subjects.

    Attributes:
        version: Moves with every change: a result is good for as long as it stays.
    """

    def match_octets(self, subject, size):
        """List the outlets that take a subject; callers must not change the list."""
        raise NotImplementedError
