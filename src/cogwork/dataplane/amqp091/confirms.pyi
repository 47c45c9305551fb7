from cogwork.dataplane.amqp091.wire import BasicWire

SOURCE_HASH: str

class Confirms:
    def __init__(self, wire: BasicWire, channel: int) -> None: ...
    @property
    def published(self) -> int: ...
