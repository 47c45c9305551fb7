"""The pages of `cogwork top`: what each asks for and shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("PAGES", "PER_S", "Page")

PER_S = "_per_s"
"""What ends the name of a rate that is made of a count."""


class Page(NamedTuple):
    """One page.

    Attributes:
        kind: The type of entity of `$management`.
        columns: The heading of each attribute, and of each rate.
        order: The column by which rows are sorted at first, the greatest first.
        is_shared: Whether an entity is one for all workers of a container.
    """

    kind: str
    columns: Mapping[str, str]
    order: str
    is_shared: bool = False

    @property
    def counts(self) -> tuple[str, ...]:
        """The attributes that rates are made of."""
        rates = (each for each in self.columns if each.endswith(PER_S))
        return tuple(each.removesuffix(PER_S) for each in rates if each not in GIVEN)

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is asked of each entity."""
        shown = (each for each in self.columns if not each.endswith(PER_S) or each in GIVEN)
        needed = ("name", "address", "vhost") if self.is_shared else ("name",)
        return tuple(dict.fromkeys((*needed, *shown, *self.counts)))


GIVEN = ("records_per_s", "bytes_per_s")
"""Rates that a container tells itself."""

PAGES = {
    "queues": Page(
        "queue",
        {
            "address": "queue",
            "ready": "ready",
            "unsettled": "unsettled",
            "in-doubt": "in doubt",
            "in_per_s": "in/s",
            "out_per_s": "out/s",
            "consumers": "consumers",
            "bytes": "size",
            "problem": "problem",
        },
        "ready",
        is_shared=True,
    ),
    "streams": Page(
        "stream",
        {
            "address": "stream",
            "records": "records",
            "records_per_s": "records/s",
            "bytes_per_s": "growth/s",
            "size_bytes": "size",
            "consumers": "consumers",
            "behind": "behind",
            "leader": "leader",
            "state": "state",
            "problem": "problem",
        },
        "records_per_s",
    ),
    "addresses": Page(
        "address",
        {
            "address": "address",
            "kind": "kind",
            "in_per_s": "in/s",
            "out_per_s": "out/s",
            "senders": "senders",
            "receivers": "receivers",
            "depth": "depth",
            "unsettled": "unsettled",
            "released": "released",
            "dropped": "dropped",
        },
        "in_per_s",
        is_shared=True,
    ),
    "connections": Page(
        "connection",
        {
            "name": "#",
            "container": "client",
            "user": "user",
            "peer": "from",
            "protocol": "protocol",
            "links": "links",
            "bytes_in_per_s": "in/s",
            "bytes_out_per_s": "out/s",
            "frames_in_per_s": "frames in/s",
            "frames_out_per_s": "frames out/s",
            "unsent_bytes": "unsent",
        },
        "bytes_in_per_s",
    ),
    "links": Page(
        "org.cogwork.link",
        {
            "name": "link",
            "neighbour": "neighbour",
            "state": "state",
            "cost": "cost",
            "messages_in_per_s": "messages in/s",
            "messages_out_per_s": "messages out/s",
            "bytes_in_per_s": "in/s",
            "bytes_out_per_s": "out/s",
            "error": "error",
        },
        "messages_in_per_s",
    ),
}
"""By name, in the order of their number keys."""
