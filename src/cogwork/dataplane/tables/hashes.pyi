SOURCE_HASH: str
SEED: int

def hash_numbers(hashes: object, validity: int, values: int, first: int) -> None: ...
def hash_texts(
    hashes: object,
    rows: tuple[int, int, int],
    values: tuple[int, int, int],
    characters: int,
) -> None: ...
