"""Interests from neighbour to neighbour: deltas in a steady state, snapshots after a gap.

A delta goes on as it is to every neighbour that has the one before it. What a neighbour has is
known from its summary, its acknowledgements and what it sends. It is sent the deltas that it lacks,
or a snapshot where those are forgotten; again and again until it acknowledges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.mesh.assembly import assemble
from cogwork.router.mesh.bounds import (
    INTERESTS_MAX,
    PART_INTERESTS_MAX,
)
from cogwork.router.mesh.effects import Effects, InterestChanged, Severity
from cogwork.router.mesh.interests import Change, InterestTable, Outcome
from cogwork.router.mesh.local_interest import LocalInterest
from cogwork.router.mesh.messages import (
    InterestDelta,
    InterestRequest,
    InterestSnapshot,
    Version,
)
from cogwork.router.mesh.serial import is_newer, next_number
from cogwork.router.mesh.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.router.mesh.adjacency import Adjacency
    from cogwork.router.mesh.database import Database
    from cogwork.router.mesh.interests import Interests
    from cogwork.router.mesh.messages import Interest
    from cogwork.router.mesh.own import Own

__all__ = ("InterestFlooding",)

ASK_PAUSE_S = 0.05
"""Between two requests for one container's interests: deltas that overtake each other are many."""

PARTS_MAX = -(-INTERESTS_MAX // PART_INTERESTS_MAX)


class InterestFlooding:
    """The interests of one container, and those that pass through it.

    Attributes:
        table: Who wants what.
        local: What is wanted here.
    """

    def __init__(
        self, own: Own, database: Database, adjacencies: Mapping[str, Adjacency], effects: Effects
    ) -> None:
        self.table = InterestTable()
        self.local = LocalInterest(own.timers)
        self._own = own
        self._database = database
        self._adjacencies = adjacencies
        self._effects = effects
        self._is_held_back_reported = False
        self._is_full_reported = False
        self._defence = Throttle(own.timers.advertise_hold_s, own.timers.advertise_hold_max_s)
        self._claimed = 0

    @property
    def own_table(self) -> Interests | None:
        """What has been told of our own interests; None before the first advertisement."""
        if self._own.id not in self._database.records:
            return None
        return self.table.open(self._own.id, self._own.incarnation)

    @property
    def are_known(self) -> bool:
        """Whether every neighbour has acknowledged all that is wanted here."""
        neighbours = self._adjacencies.values()
        return not neighbours or not (
            self.local.has_news or any(self._own.id in each.unacknowledged for each in neighbours)
        )

    def take_delta(self, sender: Adjacency, delta: InterestDelta, now_s: float) -> bool:
        """Take a delta in; tell whether it was within the bounds."""
        table = self._table_of(delta.origin, delta.incarnation)
        if table is None:
            return True
        if delta.origin == self._own.id:
            self._defend(sender, table, delta.sequence, delta.digest, now_s)
            return True
        found = table.change_of(delta)
        if isinstance(found, Change):
            if not self._has_room(delta.origin, table, found):
                return True
            self._apply(delta.origin, table, found)
            table.remember(delta)
            self._settle(sender, delta.origin, table, now_s)
            self._push_all(delta.origin, sender, now_s)
            return True
        return self._answer(sender, delta.origin, table, found, now_s)

    def take_snapshot(self, sender: Adjacency, part: InterestSnapshot, now_s: float) -> bool:
        """Take a part of a snapshot in; tell whether it was within the bounds."""
        table = self._table_of(part.origin, part.incarnation)
        if table is None:
            return True
        if part.parts > PARTS_MAX or part.part >= part.parts:
            return False
        if part.origin == self._own.id:
            self._defend(sender, table, part.sequence, part.digest, now_s)
            return True
        weight = table.weigh(part.sequence, part.digest)
        if weight is not Outcome.APPLIED:
            if weight is Outcome.OLD and part.sequence == table.sequence:
                told = sender.told_of(part.origin, table.incarnation)
                told.acknowledged = told.sent = None
                self._push(sender, part.origin, now_s)
            return self._answer(sender, part.origin, table, weight, now_s)
        entries = assemble(sender.parts, part)
        if entries is None:
            return part.origin in sender.parts
        return self._replace(sender, part, table, entries, now_s)

    def take_request(self, sender: Adjacency, request: InterestRequest, now_s: float) -> None:
        """Send what a neighbour says that it lacks."""
        table = self._table_of(request.origin, request.incarnation)
        if table is None:
            return
        told = sender.told_of(request.origin, table.incarnation)
        told.acknowledged = told.sent = request.sequence or None
        self._push(sender, request.origin, now_s)

    def acknowledged(self, sender: Adjacency, versions: tuple[Version, ...]) -> None:
        """Take note of what a neighbour has."""
        for version in versions:
            table = self._table_of(version.origin, version.incarnation)
            if table is not None:
                self._has(sender, version.origin, table, version.interest)

    def summed(self, sender: Adjacency, versions: Mapping[str, Version], now_s: float) -> None:
        """Take note of all that a neighbour has, and send it what it lacks."""
        sender.is_summed = True
        for origin, table in self.table.origins.items():
            version = versions.get(origin)
            told = sender.told_of(origin, table.incarnation)
            told.acknowledged = told.sent = None
            if version is not None and version.incarnation == table.incarnation:
                weight = table.weigh(version.interest, version.digest)
                if weight in (Outcome.KNOWN, Outcome.APPLIED):
                    told.acknowledged = told.sent = table.sequence
                    continue
                if version.interest and version.interest != table.sequence:
                    told.acknowledged = told.sent = version.interest
            self._push(sender, origin, now_s)

    def tell(self, now_s: float) -> bool:
        """Return what has changed here, where it is time; tell whether it was."""
        self.local.tick(now_s)
        table = self.own_table
        is_outbid = table is not None and self._defence.fire(now_s)
        if table is not None and is_outbid:
            self._outbid(table, now_s)
        if table is None or not self.local.throttle.fire(now_s):
            return is_outbid
        for delta, change in self.local.deltas(self._own.id, table):
            self.table.commit(table, change)
            table.remember(delta)
        self._push_all(self._own.id, None, now_s)
        if self.local.is_held_back and not self._is_held_back_reported:
            self._effects.report(
                Severity.ERROR,
                f"container {self._own.id} has more patterns and addresses than the mesh can "
                "carry: other containers do not learn of the rest",
            )
        self._is_held_back_reported = self.local.is_held_back
        return True

    def tick(self, adjacency: Adjacency, now_s: float) -> None:
        """Send again what a neighbour has not acknowledged."""
        for origin in sorted(adjacency.unacknowledged):
            told = adjacency.told[origin]
            if told.retry is not None and now_s >= told.retry.due_s:
                told.sent = told.acknowledged
                if not self._push(adjacency, origin, now_s):  # that life is over, or it came
                    told.retry = None
                    adjacency.unacknowledged.discard(origin)

    def forget(self, origin: str) -> None:
        """Drop a container's interests."""
        gone = self.table.drop(origin)
        if gone and origin != self._own.id:
            self._effects.add(InterestChanged(origin, gone, {}))

    def version(self, origin: str) -> tuple[int, int]:
        """Return sequence and digest of what is known of a container's interests."""
        table = self.table.origins.get(origin)
        return (0, 0) if table is None else (table.sequence, table.digest)

    def restart(self, now_s: float) -> None:
        """Tell all of our interests anew, for our new incarnation."""
        self.local.tell_all(now_s)

    def wake_s(self) -> float:
        """Return when `tell` is needed next."""
        return min(self.local.wake_s(), self._defence.due_s)

    def _table_of(self, origin: str, incarnation: int) -> Interests | None:
        """Return a container's table; None where the advertisement of its life is not known."""
        if origin == self._own.id:
            return self.own_table if incarnation == self._own.incarnation else None
        record = self._database.records.get(origin)
        if record is None or record.advertisement.incarnation != incarnation:
            return None
        known = self.table.origins.get(origin)
        if known is not None and known.incarnation != incarnation:
            self.forget(origin)
        return self.table.open(origin, incarnation)

    def _has_room(self, origin: str, table: Interests, change: Change) -> bool:
        """Return whether there is room for more; where not, nobody needs to be at fault."""
        has_room = self.table.has_room(table, change)
        if not has_room and not self._is_full_reported:
            self._effects.report(
                Severity.WARNING,
                f"the mesh has too many patterns and addresses: some of container {origin} are "
                "ignored here",
            )
        self._is_full_reported |= not has_room
        return has_room

    def _apply(self, origin: str, table: Interests, change: Change) -> None:
        gone = {
            label: table.entries[label]
            for label in change.added
            if label in table.entries and label not in change.removed
        }
        self.table.commit(table, change)
        removed = {**change.removed, **gone}
        if removed or change.added:
            self._effects.add(InterestChanged(origin, removed, change.added))

    def _answer(
        self, sender: Adjacency, origin: str, table: Interests, outcome: Outcome, now_s: float
    ) -> bool:
        if outcome is Outcome.REFUSED:
            return False
        if outcome is Outcome.KNOWN:
            self._settle(sender, origin, table, now_s)
        elif outcome is Outcome.OLD:
            self._acknowledge(sender, origin, table, now_s)
        else:
            self._ask(sender, origin, table, outcome, now_s)
        return True

    def _ask(
        self, sender: Adjacency, origin: str, table: Interests, outcome: Outcome, now_s: float
    ) -> None:
        told = sender.told_of(origin, table.incarnation)
        if now_s - told.asked_s < ASK_PAUSE_S:
            return
        told.asked_s = now_s
        request = InterestRequest(
            origin=origin,
            incarnation=table.incarnation,
            sequence=table.sequence if outcome is Outcome.GAP else 0,
        )
        self._effects.send(sender.link.number, request)

    def _replace(
        self,
        sender: Adjacency,
        part: InterestSnapshot,
        table: Interests,
        entries: dict[int, Interest],
        now_s: float,
    ) -> bool:
        """Put a whole snapshot in the place of what was known."""
        removed = {
            label: entry for label, entry in table.entries.items() if entries.get(label) != entry
        }
        added = {
            label: entry for label, entry in entries.items() if table.entries.get(label) != entry
        }
        change = Change(table, removed, added)
        if not change.is_within_bounds or change.digest != part.digest:
            return False
        if not self._has_room(part.origin, table, change):
            return True
        is_same_sequence = part.sequence == table.sequence
        self._apply(part.origin, table, change)
        table.replaced(part.sequence)
        self._settle(sender, part.origin, table, now_s)
        for adjacency in self._adjacencies.values():
            if adjacency is not sender:
                told = adjacency.told_of(part.origin, table.incarnation)
                if is_same_sequence:  # what they have by this number is something else
                    told.acknowledged = None
                if told.acknowledged is None:
                    told.sent = None
        self._push_all(part.origin, sender, now_s)
        return True

    def _settle(self, sender: Adjacency, origin: str, table: Interests, now_s: float) -> None:
        """Acknowledge what is known here, and takes note that the sender has it."""
        self._has(sender, origin, table, table.sequence)
        self._acknowledge(sender, origin, table, now_s)

    def _acknowledge(self, sender: Adjacency, origin: str, table: Interests, now_s: float) -> None:
        sender.interest_acks[origin] = Version(
            origin, table.incarnation, interest=table.sequence, digest=table.digest
        )
        sender.owe_ack(now_s, self._own.timers.ack_delay_s)

    def _has(self, adjacency: Adjacency, origin: str, table: Interests, sequence: int) -> None:
        told = adjacency.told_of(origin, table.incarnation)
        if told.acknowledged is None or is_newer(sequence, told.acknowledged):
            told.acknowledged = sequence
        if told.sent is None or is_newer(told.acknowledged, told.sent):
            told.sent = told.acknowledged
        if not _lacks(told.acknowledged, table):
            told.retry = None
            adjacency.unacknowledged.discard(origin)

    def _push_all(self, origin: str, sender: Adjacency | None, now_s: float) -> None:
        for adjacency in self._adjacencies.values():
            if adjacency is not sender:
                self._push(adjacency, origin, now_s)

    def _push(self, adjacency: Adjacency, origin: str, now_s: float) -> bool:
        """Send a neighbour what it was not sent of a container's interests, if anything."""
        table = self.table.origins.get(origin)
        if table is None or not adjacency.is_summed or table.sequence == 0:
            return False
        told = adjacency.told_of(origin, table.incarnation)
        if not _lacks(told.sent, table):
            return False
        told.retry = adjacency.schedule(told.retry, self._own.timers, now_s)
        adjacency.unacknowledged.add(origin)
        if not adjacency.may_send(now_s):
            return True
        deltas = None if told.sent is None else table.deltas_after(told.sent)
        messages = table.parts(origin) if deltas is None else deltas
        for message in messages:
            adjacency.spend(self._effects.send(adjacency.link.number, message))
        told.sent = table.sequence
        return True

    def _defend(
        self, sender: Adjacency, table: Interests, sequence: int, digest: int, now_s: float
    ) -> None:
        """Have what is said in our name and is not ours outbid, by a later snapshot."""
        if table.weigh(sequence, digest) is not Outcome.APPLIED:
            self._settle(sender, self._own.id, table, now_s)
            return
        self._claimed = sequence
        self._defence.request(now_s)

    def _outbid(self, table: Interests, now_s: float) -> None:
        table.replaced(next_number(self._claimed))
        for adjacency in self._adjacencies.values():
            adjacency.told_of(self._own.id, table.incarnation).sent = None
            self._push(adjacency, self._own.id, now_s)


def _lacks(sequence: int | None, table: Interests) -> bool:
    """Return whether one who has this sequence has less than the table."""
    return sequence is None or is_newer(table.sequence, sequence)
