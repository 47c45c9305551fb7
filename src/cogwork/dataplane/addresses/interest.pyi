SOURCE_HASH: str

class Interest:
    """A matcher of subjects."""

    @property
    def version(self) -> int: ...
