from cogwork.dataplane.queue.stock import Stock

SOURCE_HASH: str

def take_away(
    stock: Stock, count: int, is_delayed: bool = False
) -> list[tuple[int, int, bytes, bytes, tuple[float, float, int, int]]]: ...
