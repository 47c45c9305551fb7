"""What a cluster's members say of themselves, and what an operator has to know of it.

Pure: who is asked, and how, is the container's business.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("Member", "MemberFacts", "State", "root_of", "spid_of", "warnings_of")

PRIMARIES_MIN = 3
"""A cluster with fewer primaries does not survive the loss of one."""

CLOCK_OFFSET_MAX_S = 1.0
"""Clocks of machines that follow NTP differ by milliseconds; asking takes half of this at most."""

State = Literal["active", "ready", "connected", "gone"]
"""`active`: has all declarations; `ready`: answers, and is still reading them; `connected`: is
linked, and does not answer; `gone`: cannot be reached."""


class MemberFacts(msgspec.Struct, frozen=True, array_like=True):
    """What a member says of itself.

    Attributes:
        incarnation: Its start, in milliseconds since 1970 (UTC).
        version: Of Cogwork.
        next: The offset of the declaration that it reads next.
        digest: Of the declarations that it has.
        is_current: Whether it has had all of them once.
        root: Who leads the cluster, as far as it knows; empty for nobody.
        term: In which it follows that one; 0 where it has no vote.
        time_ms: Its clock, in milliseconds since 1970 (UTC); 0 from versions that do not tell it.
    """

    incarnation: int
    version: str
    next: int
    digest: str
    is_current: bool
    root: str
    term: int
    time_ms: int = 0


class Member(msgspec.Struct, frozen=True):
    """A member as another one sees it.

    Attributes:
        id: Its container id.
        is_primary: Whether it has a vote.
        state: How far its peer link and its copy of the declarations have come.
        gone_s: For how many seconds it has been gone; None if it is not.
        facts: What it says of itself; None if it does not answer.
        clock_offset_s: How far its clock is ahead of that of the one who asks; None if not known.
        is_disabled: Whether it is not to become the root.
    """

    id: str
    is_primary: bool
    state: State
    gone_s: float | None = None
    facts: MemberFacts | None = None
    clock_offset_s: float | None = None
    is_disabled: bool = False


def spid_of(incarnation: int, container_id: str) -> str:
    """Return a member's SPID: its start and its id, so that the lower one is the senior.

    Args:
        incarnation: Its start, in milliseconds since 1970 (UTC).
        container_id: Its id.
    """
    start = datetime.fromtimestamp(incarnation / 1000, UTC)
    return f"{start:%Y%m%dT%H%M%S}.{incarnation % 1000:03d}Z-{container_id}"


def root_of(members: Sequence[Member]) -> tuple[str, int]:
    """Return whom the members take for the root in the highest term in which any knows one.

    Returns:
        The root and its term; empty and the highest term for nobody, as of an election.
    """
    told = [(each.facts.term, each.facts.root) for each in members if each.facts is not None]
    # Who has no vote has term 0, and goes by what it heard last: it counts where no voter answers.
    told = [each for each in told if each[0]] or told
    term, root = max((each for each in told if each[1]), default=(0, ""))
    return root, term if root else max((each[0] for each in told), default=0)


def warnings_of(members: Sequence[Member]) -> list[str]:
    """Say what an operator should know of a cluster, most pressing first."""
    return [*_lost(members), *_too_few(members), *_differing(members), *_clocks(members)]


def _lost(members: Sequence[Member]) -> Iterator[str]:
    primaries = [each for each in members if each.is_primary]
    silent = [each.id for each in members if each.facts is None]
    answering = sum(each.facts is not None for each in primaries)
    if answering * 2 <= len(primaries):
        yield (
            f"only {answering} of {len(primaries)} primaries answer: nothing can be declared until "
            "a majority does"
        )
    elif not root_of(members)[0]:
        yield _why_no_root(primaries)
    if silent:
        yield f"no answer from {', '.join(silent)}"


def _why_no_root(primaries: Sequence[Member]) -> str:
    answering = [each for each in primaries if each.facts is not None]
    if not all(each.is_disabled for each in answering):
        return "no root is known: the primaries are electing one"
    names = ", ".join(each.id for each in answering)
    return (
        f"there is no root, and what is declared waits: of the primaries only {names} "
        f"{'answers' if len(answering) == 1 else 'answer'}, disabled as root; enable one by "
        "`cogwork cluster root URL --enable ID`"
    )


def _too_few(members: Sequence[Member]) -> Iterator[str]:
    count = sum(each.is_primary for each in members)
    if count < PRIMARIES_MIN:
        yield (
            f"the cluster has {count} {'primary' if count == 1 else 'primaries'}: it takes "
            f"{PRIMARIES_MIN} to survive the loss of one"
        )
    elif count % 2 == 0:
        yield f"{count} primaries survive the loss of no more than {count - 1}: use an odd number"


def _differing(members: Sequence[Member]) -> Iterator[str]:
    facts = {each.id: each.facts for each in members if each.facts is not None}
    versions = {each.version for each in facts.values()}
    if len(versions) > 1:
        told = ", ".join(f"{name} has {each.version}" for name, each in facts.items())
        yield f"the versions differ: {told}"
    # Members that are not equally far differ for a moment, and that is nothing to warn of.
    places = Counter(each.next for each in facts.values())
    for place in sorted(places):
        names = [name for name, each in facts.items() if each.next == place]
        if len({facts[name].digest for name in names}) > 1:
            yield (
                f"the declarations of {', '.join(names)} differ, although all have read {place} "
                "records: this is a fault of Cogwork, please report it"
            )


def _clocks(members: Sequence[Member]) -> Iterator[str]:
    for each in members:
        offset_s = each.clock_offset_s or 0.0
        if abs(offset_s) > CLOCK_OFFSET_MAX_S:
            ahead = "ahead of" if offset_s > 0 else "behind"
            yield (
                f"the clock of {each.id} is {abs(offset_s):.1f} s {ahead} that of the container "
                "asked: have NTP set it"
            )
