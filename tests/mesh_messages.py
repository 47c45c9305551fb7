"""Strategies for the messages of the mesh: of all values there are, or of few that often meet."""

from __future__ import annotations

from hypothesis import strategies as st

from cogwork.router.mesh import bounds
from cogwork.router.mesh.messages import (
    Acknowledgement,
    Advertisement,
    Figures,
    Hello,
    Interest,
    InterestDelta,
    InterestRequest,
    InterestSnapshot,
    Message,
    RedirectHint,
    Summary,
    Version,
)

UINT = st.integers(0, 2**32 - 1)
ULONG = st.integers(0, 2**64 - 1)
LETTER = st.characters(min_codepoint=33, max_codepoint=0x2FF).filter(str.isprintable)
NAME = st.text(LETTER, min_size=1, max_size=20)
INCARNATION = st.integers(1, bounds.INCARNATION_MAX)
SEQUENCE = st.integers(1, 2**32 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def tuples(items: st.SearchStrategy[object], most: int = 8) -> st.SearchStrategy[object]:
    return st.lists(items, max_size=most).map(tuple)


def messages(
    names: st.SearchStrategy[str] = NAME,
    incarnations: st.SearchStrategy[int] = INCARNATION,
    sequences: st.SearchStrategy[int] = SEQUENCE,
    texts: st.SearchStrategy[str] = TEXT,
    numbers: st.SearchStrategy[int] = UINT,
) -> st.SearchStrategy[Message]:
    """Return any message."""
    head = {"origin": names, "incarnation": incarnations}
    versions = tuples(st.builds(Version, names, incarnations, *(numbers,) * 4))
    hosts = st.just("") | texts
    entry = st.builds(Interest, st.integers(0, 2), hosts, texts, numbers, numbers, numbers)
    entries = tuples(st.tuples(numbers, entry))
    neighbours = st.dictionaries(names, st.integers(1, bounds.COST_MAX), max_size=8)
    return st.one_of(
        st.builds(
            Hello,
            id=names,
            incarnation=incarnations,
            version=numbers,
            virtual_hosts=tuples(hosts),
            heard=numbers | ULONG,
            interval_ms=numbers,
            connection=ULONG,
            cost=st.integers(0, bounds.COST_MAX),
            digest=numbers,
            figures=st.builds(Figures, *(ULONG,) * 5),
        ),
        st.builds(
            Advertisement,
            **head,
            sequence=sequences,
            age_s=numbers,
            neighbours=neighbours.map(lambda found: tuple(sorted(found.items()))),
            life=ULONG,
        ),
        st.builds(Summary, number=numbers, versions=versions),
        st.builds(Acknowledgement, summary=numbers, advertisements=versions, interests=versions),
        st.builds(
            InterestDelta,
            **head,
            sequence=sequences,
            digest=numbers,
            removed=tuples(numbers),
            added=entries,
        ).map(_with_right_digest),
        st.builds(InterestRequest, **head, sequence=numbers),
        st.builds(
            InterestSnapshot,
            **head,
            sequence=sequences,
            digest=numbers,
            part=numbers,
            parts=numbers,
            entries=entries,
        ).map(_with_right_digest),
        st.builds(RedirectHint, hosts=tuples(texts)),
    )


def _with_right_digest(
    message: InterestDelta | InterestSnapshot,
) -> InterestDelta | InterestSnapshot:
    """Let a digest that is even be that of the entries, as if they were all there is."""
    entries = message.added if isinstance(message, InterestDelta) else message.entries
    if message.digest % 2 == 0:
        message.digest = 0
        for label, entry in dict(entries).items():
            message.digest ^= entry.digest(label)
    return message
