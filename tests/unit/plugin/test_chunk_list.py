"""Chunks in memory against a plain list."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.chunk_list import ChunkList

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("trim"), st.integers(0, 40)),
        st.tuples(st.just("some"), st.integers(0, 40)),
        st.tuples(st.just("drop"), st.integers(1, 70)),
        st.tuples(st.just("many"), st.integers(50, 100)),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(steps)
def test_it_finds_what_a_plain_list_finds(given_steps: list[tuple[str, int]]) -> None:
    chunks: ChunkList[Chunk] = ChunkList()
    plain: list[tuple[int, Chunk]] = []
    offset = 0

    def append(count: int) -> None:
        nonlocal offset
        chunk = Chunk(offset, 0, offset // 3, Batch.of([b"xy"] * count))
        plain.append((chunks.next, chunk))
        chunks.append(chunk)
        offset = chunk.next_offset

    for step, number in given_steps:
        if step == "append":
            append(number)
        elif step == "many":
            for _ in range(number):
                append(1)
        elif step in ("trim", "some"):
            below = sum(each[1].next_offset <= number for each in plain)
            count = below if step == "trim" else min(3, below)
            assert chunks.trim(number, None if step == "trim" else 3) == (below > count)
            del plain[:count]
        else:
            for _ in range(min(number, len(plain))):
                assert chunks.drop_first() is plain.pop(0)[1]
        assert len(chunks) == len(plain)
        assert [chunks[ordinal] for ordinal, _ in plain] == [chunk for _, chunk in plain]
        assert chunks.size_bytes == sum(chunk.size_bytes for _, chunk in plain)
        for wanted in range(plain[0][1].offset if plain else offset, offset + 1):
            expected = [o for o, chunk in plain if chunk.next_offset > wanted]
            assert chunks.find(wanted) == (expected[0] if expected else chunks.next)
        for time_ms in range(offset // 3 + 2):
            expected = [o for o, chunk in plain if chunk.time_ms >= time_ms]
            assert chunks.find_time(time_ms) == (expected[0] if expected else chunks.next)
