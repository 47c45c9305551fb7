SOURCE_HASH: str

class Words:
    def __init__(self, secret: int) -> None: ...
