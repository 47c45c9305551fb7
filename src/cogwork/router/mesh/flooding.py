"""Flooding: what is new goes on to every neighbour but the one it came from, until acknowledged.

What is not newer than known is answered and dropped, so nothing circles. What a neighbour sends
that is older than known is answered with what is known. Advertisements that claim to be our own and
are not are outbid: by the next sequence, by a new incarnation where theirs is out of reach.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import INCARNATION_LEAP_MAX, INCARNATION_MAX, SEQUENCE_LEAP_MAX
from cogwork.router.mesh.database import Database, Verdict, supersedes
from cogwork.router.mesh.effects import Effects, Severity
from cogwork.router.mesh.messages import Advertisement, Version
from cogwork.router.mesh.serial import next_number
from cogwork.router.mesh.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.router.mesh.adjacency import Adjacency
    from cogwork.router.mesh.own import Own

__all__ = ("Flooding",)

OUTBIDS_MAX = 3
"""So often an earlier life, or a lie, is outbid before people are told that it goes on."""

OUTBID_QUIET_S = 10.0
"""After which one that has stopped is a matter of the past."""


class Flooding:
    """The advertisements of one container, and those that pass through it.

    Attributes:
        own: Our own advertisement.
        changed: Containers with other links, or another life; whoever follows it empties it.
    """

    def __init__(
        self,
        own: Own,
        database: Database,
        adjacencies: Mapping[str, Adjacency],
        effects: Effects,
        is_reachable: Callable[[str], bool],
    ) -> None:
        self.changed: dict[str, None] = {}
        self._own = own
        self._database = database
        self._adjacencies = adjacencies
        self._effects = effects
        self._is_reachable = is_reachable
        timers = own.timers
        self._throttle = Throttle(timers.advertise_hold_s, timers.advertise_hold_max_s)
        self._sequence = 0
        self._neighbours: tuple[tuple[str, int], ...] = ()
        self._refresh_s = inf
        self._outbids: list[float] = []
        self._is_full_reported = False
        self.own = Advertisement(origin=own.id, incarnation=own.incarnation, sequence=0)

    def advertise(self, neighbours: tuple[tuple[str, int], ...], now_s: float) -> None:
        """Have our neighbours advertised: at once, or at the end of the pause."""
        self._neighbours = neighbours
        self._throttle.request(now_s)

    def take(self, sender: Adjacency, advert: Advertisement, now_s: float) -> bool:
        """Take an advertisement in; tell whether it was within the bounds."""
        if advert.origin == self._own.id:
            self._acknowledge(sender, advert, now_s)
            self._defend(sender, advert, now_s)
            return True
        verdict = self._database.offer(advert, now_s, self._is_reachable)
        self._acknowledge(sender, advert, now_s)
        if verdict is Verdict.REFUSED:
            self._report_full(advert)
            return False
        if verdict is Verdict.NEW:
            self.changed[advert.origin] = None
        if verdict in (Verdict.NEW, Verdict.REPEATED):
            self._flood(advert.origin, sender, now_s)
        elif verdict is Verdict.OLD:
            self.send(sender, advert.origin, now_s)
        if verdict is not Verdict.OLD:
            sender.adverts.pop(advert.origin, None)
        return True

    def acknowledged(self, sender: Adjacency, versions: tuple[Version, ...]) -> None:
        """Take note of what a neighbour has."""
        for version in versions:
            record = self._database.records.get(version.origin)
            if record is None:
                continue
            known = record.advertisement
            if (version.incarnation, version.sequence) == (known.incarnation, known.sequence):
                sender.adverts.pop(version.origin, None)

    def send(self, adjacency: Adjacency, origin: str, now_s: float) -> None:
        """Send what is known of a container to one neighbour, until it is acknowledged."""
        record = self._database.records.get(origin)
        if record is None:
            return
        retry = adjacency.adverts.get(origin)
        adjacency.adverts[origin] = adjacency.schedule(retry, self._own.timers, now_s)
        if not adjacency.may_send(now_s):
            return
        adjacency.spend(self._effects.send(adjacency.link.number, record.aged(now_s)))

    def originate(self, now_s: float) -> bool:
        """Advertise our neighbours, where it is time; tell whether it was."""
        is_due = self._throttle.fire(now_s) or now_s >= self._refresh_s
        if is_due:
            self._originate(now_s)
        return is_due

    def expire(self, now_s: float) -> None:
        """Forget what is too old, but never this container."""
        for origin in self._database.expired(now_s):
            if origin != self._own.id:
                self._database.remove(origin)
                self.changed[origin] = None

    def repeat(self, adjacency: Adjacency, now_s: float) -> None:
        """Send again what a neighbour has not acknowledged."""
        for origin in [o for o, retry in adjacency.adverts.items() if now_s >= retry.due_s]:
            self.send(adjacency, origin, now_s)

    def wake_s(self) -> float:
        """Return when `originate` is needed next."""
        return min(self._throttle.due_s, self._refresh_s)

    def _originate(self, now_s: float) -> None:
        self._sequence = next_number(self._sequence)
        self.own = Advertisement(
            origin=self._own.id,
            incarnation=self._own.incarnation,
            sequence=self._sequence,
            neighbours=self._neighbours,
            life=0 if self._own.incarnation == self._own.life else self._own.life,
        )
        verdict = self._database.offer(self.own, now_s, self._is_reachable, is_own=True)
        if verdict is Verdict.NEW:
            self.changed[self._own.id] = None
        self._refresh_s = now_s + self._own.timers.refresh_s
        self._flood(self._own.id, None, now_s)

    def _flood(self, origin: str, sender: Adjacency | None, now_s: float) -> None:
        for adjacency in self._adjacencies.values():
            if adjacency is not sender:
                adjacency.adverts.pop(origin, None)
                self.send(adjacency, origin, now_s)

    def _acknowledge(self, sender: Adjacency, advert: Advertisement, now_s: float) -> None:
        sender.acks[advert.origin] = Version(advert.origin, advert.incarnation, advert.sequence)
        sender.owe_ack(now_s, self._own.timers.ack_delay_s)

    def _defend(self, sender: Adjacency, advert: Advertisement, now_s: float) -> None:
        """Outbid an advertisement of our id that is not ours."""
        if not supersedes(advert, self.own):
            if supersedes(self.own, advert):
                self.send(sender, self._own.id, now_s)
            return
        self._outbid(advert)
        self._throttle.request(now_s)
        self._outbids = [at for at in self._outbids if now_s - at < OUTBID_QUIET_S] + [now_s]
        if len(self._outbids) == OUTBIDS_MAX:
            self._effects.report(
                Severity.ERROR,
                f"two containers have the id {self._own.id}, or another advertises under it: "
                f"give each its own id (seen through container {sender.link.peer})",
            )

    def _outbid(self, advert: Advertisement) -> None:
        """Take a sequence after the false one, and a new incarnation where one is needed."""
        own = self._own
        leap = (advert.sequence - self._sequence) % 2**32
        if advert.incarnation == own.incarnation and leap <= SEQUENCE_LEAP_MAX:
            self._sequence = advert.sequence
            return
        # Nobody believes a greater leap, and the last of all incarnations cannot be outbid.
        if advert.incarnation > min(own.incarnation + INCARNATION_LEAP_MAX, INCARNATION_MAX - 1):
            return
        own.incarnation = max(advert.incarnation, own.incarnation) + 1
        self._sequence = 0

    def _report_full(self, advert: Advertisement) -> None:
        if not self._is_full_reported:
            self._is_full_reported = True
            self._effects.report(
                Severity.WARNING,
                f"cannot add container {advert.origin}: the mesh is full, or its incarnation "
                f"{advert.incarnation} is out of range",
            )
