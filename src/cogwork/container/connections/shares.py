"""Shares: how much of a resource the container, a user, a source address and a connection may have.

Theory of operation. Whatever a client can take is counted for all who hold it: the container as a
whole, the client's user, its source address, its connection. Each kind of holder has a limit. Who
would be over one is told which limit it is, how much it has and the key that sets it; nobody else
notices. How often something may be done is a token bucket for each holder. Counting is done where
something is made and given up, never for a message.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cogwork.config.limits import Limits, UserLimits

    OwnLimits = Mapping[str, UserLimits]

__all__ = ("ALL", "NOBODYS", "Bound", "Excess", "Holder", "Rate", "Tally", "Use", "own_limit_name")

KINDS = ("user", "source", "connection")
"""Who has a share, besides the container as a whole."""

BURST_S = 2.0
"""Who was quiet may do at once what it may do in so long: clients come back together."""

QUIET_MAX = 4096
"""Above so many holders those are forgotten that have their whole burst again."""


NOBODYS: OwnLimits = MappingProxyType({})
"""No user has limits of its own."""


def own_limit_name(user: str, key: str) -> str:
    """Return what a limit of one user is called among those of the cluster."""
    return f"user/{user}/{key}"


class Holder(NamedTuple):
    """Who has something.

    Attributes:
        kind: `container`, `user`, `source` or `connection`.
        name: Which one.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        """Write it as it reads in an error."""
        return "the container" if self.kind == "container" else f"{self.kind} {self.name!r:.80}"


ALL = Holder("container", "")


class Bound(NamedTuple):
    """How much a holder of one kind may have.

    Attributes:
        most: So much.
        key: The key that says so.
        table: The table of the configuration that it is in.
    """

    most: int
    key: str
    table: str = "limits"


class Use(NamedTuple):
    """Of those whom one limit is for, the one that has most.

    Attributes:
        key: The limit, as `cogwork limit list` names it.
        holder: Who.
        has: How much it has.
    """

    key: str
    holder: Holder
    has: int


class Excess(NamedTuple):
    """A holder that has all that it may have.

    Attributes:
        holder: Who.
        what: Of what.
        has: How much it has.
        bound: How much it may have.
    """

    holder: Holder
    what: str
    has: int
    bound: Bound

    def __str__(self) -> str:
        """Say it with the limit, its value and its key."""
        return (
            f"{self.holder} has {self.has} {self.what}, which is the limit "
            f"({self.bound.table}.{self.bound.key} = {self.bound.most})"
        )


class Tally:
    """How much of one resource each holder has.

    Attributes:
        bounds: By kind of holder; a kind without one may have as much as it likes.
    """

    def __init__(self, what: str) -> None:
        """Nobody has anything.

        Args:
            what: What is counted, as a plural; with underscores it is the key of its limit, which
                those of users, source addresses and connections begin with.
        """
        self.bounds: Mapping[str, Bound] = {}
        self._own: Mapping[Holder, Bound] = {}
        self._what = what
        self._counts: Counter[Holder] = Counter()

    def limit(self, limits: Limits, own: OwnLimits = NOBODYS) -> None:
        """Take over the limits of what is counted.

        Args:
            limits: Of all.
            own: Those of single users, by their names.
        """
        key = self._what.replace(" ", "_")
        keys = {"container": key, **{kind: f"{key}_per_{kind}" for kind in KINDS}}
        self.bounds = {
            kind: Bound(getattr(limits, key), key)
            for kind, key in keys.items()
            if hasattr(limits, key)
        }
        self._own = {
            Holder("user", name): Bound(most, key, "user.limits")
            for name, each in own.items()
            if (most := getattr(each, key)) is not None
        }

    def count_of(self, holder: Holder) -> int:
        """Return how much a holder has."""
        return self._counts[holder]

    def excess(self, holders: Iterable[Holder]) -> Excess | None:
        """Return which of them may have no more, the one first that is furthest above its limit."""
        full = [
            Excess(each, self._what, self._counts[each], bound)
            for each in holders
            if (bound := self._own.get(each) or self.bounds.get(each.kind))
            and self._counts[each] >= bound.most
        ]
        return max(full, key=lambda each: each.has - each.bound.most, default=None)

    def take(self, holders: Iterable[Holder], amount: int = 1) -> None:
        """Count what these have from now on, be it above their limits or not."""
        for each in holders:
            self._counts[each] += amount

    def give_back(self, holders: Iterable[Holder], amount: int = 1) -> None:
        """Count what they have no longer."""
        for each in holders:
            self._counts[each] -= amount
            if self._counts[each] <= 0:
                del self._counts[each]

    def uses(self) -> Iterator[Use]:
        """Yield who has most of it, for each limit that there is for it."""
        for kind, bound in self.bounds.items():
            if (holder := self.largest(kind)) is not None:
                yield Use(bound.key, holder, self._counts[holder])
        for holder, bound in self._own.items():
            yield Use(own_limit_name(holder.name, bound.key), holder, self._counts[holder])

    def largest(self, kind: str) -> Holder | None:
        """Return the holder of a kind that has most; None where none has anything."""
        found = (each for each in self._counts if each.kind == kind)
        return max(found, key=self._counts.__getitem__, default=None)


class Rate:
    """How often each holder may do something: a token bucket, kept as the time it is full again."""

    def __init__(self) -> None:
        """Nobody has done anything."""
        self._free_s: dict[Holder, float] = {}

    def wait_s(
        self, holder: Holder, now_s: float, per_s: float, longest_s: float = 0.0
    ) -> float | None:
        """Count one more time; return how long the holder has to wait before it.

        Args:
            holder: Who.
            now_s: By any monotonic clock.
            per_s: How often it may be, each second.
            longest_s: What is to wait longer is not done, and not counted: None is returned.
        """
        free_s = max(self._free_s.get(holder, 0.0), now_s - BURST_S)
        wait_s = max(0.0, free_s - now_s)
        if wait_s > longest_s:
            return None
        self._free_s[holder] = free_s + 1.0 / per_s
        if len(self._free_s) > QUIET_MAX:
            self._forget_quiet(now_s)
        return wait_s

    def _forget_quiet(self, now_s: float) -> None:
        quiet_s = now_s - BURST_S
        self._free_s = {each: at_s for each, at_s in self._free_s.items() if at_s > quiet_s}
