SOURCE_HASH: str

class UnsettledRing:
    """What was sent and not settled, as Python may look at it."""

    def __len__(self) -> int: ...
    def __contains__(self, delivery_id: int) -> bool: ...
