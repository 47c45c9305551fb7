"""A stream's state machine against a list of records that anybody can follow."""

from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.errors import ConsensusError
from cogwork.plugin.engine.sequencer import Append, Fence, Sequencer, Trim, decode, encode

PRODUCERS = (b"p", b"q", b"")


def record(producer: bytes, sequence: int) -> bytes:
    """The record that a producer has under a sequence: always the same."""
    return b"%s-%d" % (producer, sequence)


sends = st.tuples(st.sampled_from(PRODUCERS), st.integers(0, 12), st.integers(1, 5))
steps = st.lists(
    st.one_of(sends, st.just(Fence()), st.builds(Trim, st.integers(0, 40))), max_size=40
)


Step: TypeAlias = tuple[bytes, int, int] | Fence | Trim


def command_of(step: Step, epoch: int | None) -> Append | Fence | Trim:
    if isinstance(step, Fence | Trim):
        return step
    producer, sequence, count = step
    records = [record(producer, sequence + i) for i in range(count)]
    return Append(Batch.of(records, producer, sequence), epoch, 0)


@settings(deadline=None)
@given(steps, st.lists(st.integers(0, 39), max_size=3), st.sampled_from([None, 0, 1]))
def test_each_record_is_there_once_and_in_order(
    given_steps: list[Step], restarts: list[int], epoch: int | None
) -> None:
    stream = Sequencer()
    chunks: list[Chunk] = []
    places: dict[bytes, int] = {}
    for number, step in enumerate(given_steps):
        if number in restarts:
            stream = Sequencer.from_bytes(stream.to_bytes())
        command = command_of(step, epoch)
        answer, chunk = stream.apply(decode(encode(command)))
        if chunk is not None:
            assert chunk.offset == (chunks[-1].next_offset if chunks else 0)
            chunks.append(chunk)
            for i, each in enumerate(chunk.batch.records()):
                places.setdefault(each, chunk.offset + i)
        if isinstance(command, Append) and not isinstance(answer, ConsensusError):
            first = getattr(answer, "first_offset", None)
            if command.batch.producer and first is not None:
                assert places[next(command.batch.records())] == first
    for producer in (b"p", b"q"):
        mine = [
            each
            for chunk in chunks
            if chunk.batch.producer == producer
            for each in chunk.batch.records()
        ]
        assert mine == [record(producer, i) for i in range(len(mine))]
