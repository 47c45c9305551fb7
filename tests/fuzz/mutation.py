"""Spoils conversations: the same seed gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.frames import encode_frame
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import Detach, End, Role
from cogwork.amqp.types import Symbol
from fuzz import seeds

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

__all__ = ("Mutator",)

INTERESTING = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x40,
    0x43,
    0x45,
    0x53,
    0x70,
    0xA0,
    0xB0,
    0xC0,
    0xD0,
    0xF0,
)
WORDS = (0, 1, 0x7F, 0xFF, 0x100, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
HANDLES = (*(0, 1) * 8, 2, 2, 3, 3, 7, 4095, 4096, 0xFFFFFFFF)
RATES = (0.05, 0.15, 0.4, 0.8)
"""How much of what a connection says is spoiled: most must get far, some may say nothing right."""
ADDRESSES = (
    "fuzz/a", "fuzz/b", "broadcast/a", "anycast/a", "topic/a.b", "topic/#", "topic/a.*.#", "sink/a",
    "queue/a", "work/a", "unicast/a", "bystander/a", "$management", "/", "", "topic/", "a" * 300,
    "_reply/x", "*", "#",
)  # fmt: skip  # a table
STATES = (
    None, Accepted(), Released(), Rejected(), Modified(), Modified(delivery_failed=True),
    Rejected(error=AmqpError(condition=Symbol("x:y"), description="d" * 300)),
    Received(section_number=0, section_offset=0),
    Modified(message_annotations={Symbol("x-opt-a"): [1, "2"]}),
)  # fmt: skip  # a table
GOOD_FRAMES = 600
"""Good but random frames that are made once and sent again and again."""


class Mutator:
    """Makes hostile input.

    Attributes:
        random: The only source of chance.
    """

    def __init__(self, random: random.Random, corpus: dict[str, tuple[bytes, ...]]) -> None:
        """Take the corpus.

        Args:
            random: Seeded.
            corpus: Good conversations by name.
        """
        self.random = random
        self._conversations = list(corpus.values())
        self._pieces = [piece for pieces in self._conversations for piece in pieces]
        self._frames = [self._good_frame() for _ in range(GOOD_FRAMES)]
        self._spoilers: tuple[Callable[[bytearray], None], ...] = (
            self._flip, self._set_byte, self._set_word, self._cut, self._insert, self._double,
            self._splice,
        )  # fmt: skip  # a table

    def conversation(self) -> list[bytes]:
        """Return what one hostile connection says, in the chunks it says it in."""
        rng = self.random
        pieces = rng.choice(self._conversations)
        start = rng.randint(0, len(pieces))
        rate = rng.choice(RATES)
        said = list(pieces[:start])
        for piece in pieces[start:]:
            said += self._spoil_piece(piece, rate)
        for _ in range(rng.choice((0, 0, 4, 15, 40))):
            said += self._spoil_piece(rng.choice(self._frames), rate)
        return self._chunks(said)

    def _spoil_piece(self, piece: bytes, rate: float) -> list[bytes]:
        """Let a piece be, drops or double it, puts another beside it, or spoils its bytes."""
        if self.random.random() > rate:
            return [piece]
        how = self.random.randrange(10)
        if how == 0:
            return []
        if how == 1:
            return [piece, piece]
        if how <= 3:
            return [piece, self.random.choice(self._frames)]
        if how == 4:
            return [self.random.choice(self._pieces)]
        return [self._spoil(piece)]

    def _spoil(self, piece: bytes) -> bytes:
        data = bytearray(piece)
        is_frame = len(piece) > 8 and not piece.startswith(b"AMQP")
        for _ in range(self.random.choice((1, 1, 2, 4))):
            self.random.choice(self._spoilers)(data)
        if is_frame and len(data) >= 8 and self.random.random() < 0.85:
            data[:4] = len(data).to_bytes(4, "big")
            data[4] = 2
        return bytes(data)

    def _chunks(self, said: list[bytes]) -> list[bytes]:
        """Cut what is said somewhere else than between frames, or say all of it at once."""
        how = self.random.randrange(4)
        if how == 0:
            return said
        data = b"".join(said)
        if how == 1 or len(data) < 2:
            return [data]
        cuts = sorted(self.random.randrange(len(data)) for _ in range(self.random.randint(1, 6)))
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    # -- spoiling bytes

    def _at(self, data: bytearray) -> int:
        return self.random.randrange(len(data)) if data else 0

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._at(data)] ^= 1 << self.random.randrange(8)

    def _set_byte(self, data: bytearray) -> None:
        if data:
            data[self._at(data)] = self.random.choice(INTERESTING)

    def _set_word(self, data: bytearray) -> None:
        at = self._at(data)
        data[at : at + 4] = self.random.choice(WORDS).to_bytes(4, "big")

    def _cut(self, data: bytearray) -> None:
        at = self._at(data)
        del data[at : at + self.random.choice((1, 2, 5, 1000))]

    def _insert(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = self.random.randbytes(self.random.choice((1, 2, 4, 30)))

    def _double(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = data[at : at + self.random.choice((1, 4, 16))]

    def _splice(self, data: bytearray) -> None:
        other = self.random.choice(self._pieces)
        at = self._at(data)
        data[at:] = other[self.random.randrange(len(other)) :]

    # -- good frames

    def _good_frame(self) -> bytes:
        """Make a frame that is well formed, with fields that are likely to hit something."""
        makers = (
            self._transfer, self._burst, self._flow, self._disposition, self._attach, self._detach,
            self._other,
        )  # fmt: skip  # a table
        return self.random.choices(makers, (40, 20, 30, 40, 12, 2, 1))[0]()

    def _burst(self) -> bytes:
        first = self.random.choice((0, 1, 5, 0xFFFFFFF0))
        settled = self.random.choice((None, True, False))
        return seeds.burst(self.random.choice(HANDLES[:20]), first, settled=settled)

    def _attach(self) -> bytes:
        rng = self.random
        handle = rng.choice(HANDLES[:20])
        if rng.random() < 0.5:
            return seeds.sender(handle, rng.choice((*ADDRESSES, None)))
        return seeds.receiver(handle, rng.choice(ADDRESSES))

    def _detach(self) -> bytes:
        rng = self.random
        detach = Detach(handle=rng.choice(HANDLES), closed=rng.random() < 0.5)
        return seeds.frame(detach, b"", rng.choice((0, 0, 0, 1)))

    def _other(self) -> bytes:
        begin = seeds.begin(self.random.choice((0, 1, 2, 300)))
        return self.random.choice((begin, encode_frame(0, b""), seeds.frame(End())))

    def _transfer(self) -> bytes:
        rng = self.random
        body = rng.choice(
            (b"", seeds.BODY, b"x" * 500, b"y" * 3000, seeds.to_section(b"fuzz/a") + seeds.BODY)
        )
        return seeds.transfer(
            rng.choice(HANDLES),
            rng.choice((None, 0, 1, 2, 3, 4, 5, 0xFFFFFFFF)),
            body,
            settled=rng.choice((None, True, False)),
            more=rng.random() < 0.4,
            aborted=rng.random() < 0.1,
            resume=rng.random() < 0.05,
            batchable=rng.random() < 0.1,
            message_format=rng.choice((None, 0, 0, 7, 0xFFFFFFFF)),
        )

    def _flow(self) -> bytes:
        rng = self.random
        return seeds.flow(
            rng.choice((None, *HANDLES)),
            rng.choice((0, 1, 5, 100, 0x7FFFFFFF, 0xFFFFFFFF)),
            next_incoming_id=rng.choice((None, 0, 1, 5, 0xFFFFFFFF)),
            incoming_window=rng.choice((0, 1, 100, 0x7FFFFFFF, 0xFFFFFFFF)),
            drain=rng.random() < 0.3,
            echo=rng.random() < 0.3,
        )

    def _disposition(self) -> bytes:
        rng = self.random
        first = rng.choice((0, 0, 1, 2, 3, 0x7FFFFFFF, 0xFFFFFFFF))
        return seeds.settle(
            first,
            rng.choice((None, first, first + 5 & 0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFF)),
            state=rng.choice(STATES),
            settled=rng.random() < 0.6,
            role=Role.RECEIVER if rng.random() < 0.85 else Role.SENDER,
        )
