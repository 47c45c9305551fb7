from collections.abc import Mapping

SOURCE_HASH: str

def inspect(data: bytes) -> Mapping[str, object]: ...
