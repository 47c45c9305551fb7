from cogwork.dataplane.queue.state import QueueState

SOURCE_HASH: str

def take_away(
    state: QueueState, count: int, is_delayed: bool = False
) -> list[tuple[int, int, bytes, bytes, tuple[float, float, int, int]]]: ...
