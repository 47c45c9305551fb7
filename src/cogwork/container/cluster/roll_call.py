"""How the members of a cluster are: each is asked, and what they say is put together for people."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from cogwork.cluster.members import Member, root_of, spid_of, warnings_of
from cogwork.container.cluster.roots import disabled_roots
from cogwork.plugin.engine.errors import ConsensusError
from cogwork.replication.calls import GetIdentity, IdentityIs, StreamKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cogwork.cluster.members import State
    from cogwork.container.cluster.cluster import Cluster
    from cogwork.replication.service import RaftService

__all__ = ("RollCall",)

ANSWER_TIMEOUT_S = 1.0

NO_STREAM = StreamKey("")


class RollCall:
    """Owned by the container's replication."""

    def __init__(
        self,
        cluster: Cluster,
        service: RaftService,
        *,
        name: str | None,
        uuid: Callable[[], str],
        linked: Callable[[], Collection[str]],
        gone_since_s: Callable[[], Mapping[str, float]],
    ) -> None:
        """Initialize it; it asks nobody yet.

        Args:
            cluster: Knows who votes, and who has ever been a member.
            service: Carries the questions.
            name: What the cluster is called; None if it has no name.
            uuid: Returns the cluster's.
            linked: Returns the containers that can be reached.
            gone_since_s: Returns since when the others cannot, by the monotonic clock.
        """
        self._cluster = cluster
        self._service = service
        self._name = name
        self._uuid = uuid
        self._linked = linked
        self._gone_since_s = gone_since_s

    async def status(self) -> dict[str, object]:
        """Ask all members; return plain values.

        Returns:
            `name`, `uuid`, `root`, `term`, `members` (each with `id`, `role`, `is_root`,
            `is_disabled`, `state`, `gone_s`, `spid`, `incarnation`, `next`, `digest`, `version`,
            `clock_offset_s`) and `warnings`.
        """
        members = await self._ask_all()
        root, term = root_of(members)
        return {
            "name": self._name,
            "uuid": self._uuid(),
            "root": root or None,
            "term": term,
            "members": [_row(each, root) for each in members],
            "warnings": warnings_of(members),
        }

    async def live(self) -> list[str]:
        """Return which members answer."""
        return [each.id for each in await self._ask_all() if each.facts is not None]

    async def _ask_all(self) -> list[Member]:
        """Ask whoever is a member, or may be; primaries come first, in order of leader priority."""
        voters, known = self._cluster.voters, self._cluster.declarations.supports
        others = sorted({self._service.own, *self._linked(), *known} - {*voters})
        names = [*voters, *others]
        answers = await asyncio.gather(*map(self._ask, names))
        return [
            self._member(name, answer, offset_s)
            for name, (answer, offset_s) in zip(names, answers, strict=True)
            if name in voters or self._is_member(name, answer)
        ]

    def _is_member(self, name: str, answer: IdentityIs | None) -> bool:
        """Tell a secondary from a container that is only linked."""
        if answer is None:
            return name in self._cluster.declarations.supports
        return answer.uuid == self._uuid()

    async def _ask(self, container: str) -> tuple[IdentityIs | None, float | None]:
        """Return what a container answers, and how far its clock is ahead."""
        ask = partial(GetIdentity, wants_facts=True)
        asked_s = time.time()
        try:
            answer = await self._service.ask(
                container, ask, IdentityIs, NO_STREAM, ANSWER_TIMEOUT_S
            )
        except ConsensusError:
            return None, None
        if answer.facts is None or not answer.facts.time_ms:
            return answer, None
        # It read its clock somewhere between: in the middle, as far as anybody knows.
        return answer, answer.facts.time_ms / 1000 - (asked_s + time.time()) / 2

    def _member(self, name: str, answer: IdentityIs | None, offset_s: float | None) -> Member:
        of = partial(
            Member,
            name,
            name in self._cluster.voters,
            is_disabled=name in disabled_roots(self._cluster.declarations),
        )
        facts = None if answer is None else answer.facts
        if facts is not None:
            state: State = "active" if facts.is_current else "ready"
            return of(state, facts=facts, clock_offset_s=offset_s)
        if answer is not None or name in self._linked():
            return of("connected")
        since_s = self._gone_since_s().get(name)
        return of(
            "gone", gone_s=None if since_s is None else max(0.0, self._service.now_s() - since_s)
        )


def _row(member: Member, root: str) -> dict[str, object]:
    facts = member.facts
    return {
        "id": member.id,
        "role": "primary" if member.is_primary else "secondary",
        "is_root": member.id == root,
        "is_disabled": member.is_disabled,
        "state": member.state,
        "gone_s": member.gone_s,
        "spid": None if facts is None else spid_of(facts.incarnation, member.id),
        "incarnation": None if facts is None else facts.incarnation,
        "next": None if facts is None else facts.next,
        "digest": None if facts is None else facts.digest,
        "version": None if facts is None else facts.version,
        "clock_offset_s": None
        if member.clock_offset_s is None
        else round(member.clock_offset_s, 3),
    }
