"""A queue's records in the write-ahead log; `docs/internals/queue-journal.md` has the tables."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cogwork.dataplane.queue.journal_image import JournalImage

__all__ = ("BEGIN", "CHANGES", "END", "FIRST_GROUP", "GONE", "PART", "Begin", "Replayed")

FIRST_GROUP = 1 << 31
"""The group of the first queue; streams have lower ones."""

BEGIN, CHANGES, PART, END, GONE = 1, 2, 3, 4, 5
"""Kinds of records: an account begins; what a turn changed; items written anew; the account is
complete; the queue is no more."""

VERSION = 1

_HEAD = struct.Struct(">BII")


@dataclass(slots=True)
class Begin:
    """What an account begins with.

    Attributes:
        vhost: The queue's virtual host.
        address: Its address.
        shard: The first part of its items' tags.
        birth_base: Above what the numbers of items so far were made of.
        options: By which it is declared again.
    """

    vhost: str
    address: str
    shard: int
    birth_base: int
    options: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the payload of a record."""
        facts = {"vhost": self.vhost, "address": self.address, "options": self.options}
        head = _HEAD.pack(VERSION, self.shard, self.birth_base & 0xFFFFFFFF)
        return head + msgspec.json.encode(facts)

    @classmethod
    def decode(cls, payload: bytes) -> Begin:
        """Read the payload of a record.

        Raises:
            ValueError: It is none.
        """
        try:
            version, shard, birth_base = _HEAD.unpack_from(payload)
            if version != VERSION:
                raise ValueError(f"a queue's account of version {version}; {VERSION} is known")
            facts = msgspec.json.decode(payload[_HEAD.size :])
            vhost, address, options = facts["vhost"], facts["address"], facts["options"]
        except (struct.error, msgspec.DecodeError, KeyError, TypeError) as error:
            raise ValueError(f"no account of a queue begins with {payload[:40]!r}") from error
        return cls(vhost, address, shard, birth_base, options)


class Replayed:
    """What the log says of one queue, record by record.

    Attributes:
        begin: Of the newest complete account.
        image: The items by that account and what came later.
        is_complete: Whether there is an account.
        is_gone: Whether the queue is no more.
    """

    def __init__(self) -> None:
        self.begin = Begin("", "", 0, 0)
        self.image = JournalImage()
        self.is_complete = False
        self.is_gone = False
        self._next: tuple[Begin, JournalImage] | None = None

    def take(self, kind: int, payload: bytes) -> None:
        """Take the next record.

        Raises:
            ValueError: It is none of a queue's.
        """
        if kind == BEGIN:
            begin = Begin.decode(payload)
            self._next = (begin, _image_for(begin))
        elif kind == CHANGES:
            if self.is_complete:
                self.image.apply(payload)
            if self._next is not None:
                self._next[1].apply(payload)
        elif kind == PART:
            if self._next is not None:
                self._next[1].apply(payload)
        elif kind == END:
            if self._next is not None:
                self.begin, self.image = self._next
                self._next = None
                self.is_complete = True
        elif kind == GONE:
            self.is_gone = True
        else:
            raise ValueError(f"a queue's record of kind {kind}")


def _image_for(begin: Begin) -> JournalImage:
    window = begin.options.get("deduplication_window_s")
    count = begin.options.get("deduplication_count")
    image = JournalImage(count if window and isinstance(count, int) else 0)
    image.birth_base = begin.birth_base
    return image
