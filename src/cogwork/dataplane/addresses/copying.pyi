from cogwork.dataplane.addresses.holding import HoldingEntry

SOURCE_HASH: str

class CopyingEntry(HoldingEntry):
    awaits_settlement: bool
    @property
    def delivered(self) -> int: ...
