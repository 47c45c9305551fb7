from cogwork.dataplane.addresses.holding import HoldingEntry

SOURCE_HASH: str

class CopyingEntry(HoldingEntry):
    @property
    def delivered(self) -> int: ...
