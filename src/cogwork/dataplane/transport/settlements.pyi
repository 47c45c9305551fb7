from cogwork.dataplane.transport.wire import Channel

SOURCE_HASH: str

class Settlements(Channel):
    def write_settlements(self) -> None: ...
