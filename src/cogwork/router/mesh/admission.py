"""Whether a hello may be listened to, and what people are told where it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.router.mesh.effects import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.router.mesh.link import Link
    from cogwork.router.mesh.messages import Hello
    from cogwork.router.mesh.own import Own

__all__ = ("Refusal", "refusal_of")

HELLO_INTERVAL_MS_MIN, HELLO_INTERVAL_MS_MAX = 10, 60_000
"""A neighbour that wants to be forgotten at once, or never, is mistaken."""

NAMES_SHOWN_MAX = 5


class Refusal(NamedTuple):
    """Why a neighbour is not wanted."""

    reason: Reason
    description: str


def refusal_of(hello: Hello, link: Link, own: Own, others: Iterable[Link]) -> Refusal | None:
    """Decide on a hello.

    Args:
        hello: What came.
        link: Where it came.
        own: This container.
        others: The other links to a container with the hello's id.
    """
    return (
        _version(hello, own)
        or _namesake(hello, own)
        or _virtual_hosts(hello, own)
        or _cluster_name(hello, own)
        or _cluster(hello, own)
        or _manners(hello, link)
        or _later_life(hello, own, others)
    )


def _version(hello: Hello, own: Own) -> Refusal | None:
    if hello.version == own.version:
        return None
    return Refusal(
        Reason.VERSION,
        f"container {hello.id} speaks version {hello.version} of the mesh protocol; "
        f"{own.id} speaks version {own.version}",
    )


def _namesake(hello: Hello, own: Own) -> Refusal | None:
    if hello.id != own.id:
        return None
    if hello.incarnation == own.incarnation:
        return Refusal(Reason.SELF, f"container {own.id} is linked to itself")
    return Refusal(
        Reason.DUPLICATE_ID,
        f"two containers have the id {own.id}: give each its own (incarnations "
        f"{own.incarnation} and {hello.incarnation})",
    )


def _virtual_hosts(hello: Hello, own: Own) -> Refusal | None:
    theirs = frozenset(hello.virtual_hosts)
    if theirs == own.virtual_hosts:
        return None
    lacking = ((hello.id, own.virtual_hosts - theirs), (own.id, theirs - own.virtual_hosts))
    parts = [f"container {name} lacks {_names(names)}" for name, names in lacking if names]
    text = f"{', '.join(parts)}: all containers of a mesh need the same virtual hosts"
    return Refusal(Reason.VIRTUAL_HOSTS, text)


def _cluster_name(hello: Hello, own: Own) -> Refusal | None:
    if not hello.cluster_name or not own.cluster_name or hello.cluster_name == own.cluster_name:
        return None
    return Refusal(
        Reason.CLUSTER,
        f"container {hello.id} is in the cluster {hello.cluster_name!r}, and {own.id} in "
        f"{own.cluster_name!r}: give both the same [cluster] name to have them linked",
    )


def _cluster(hello: Hello, own: Own) -> Refusal | None:
    if not hello.cluster or not own.cluster or hello.cluster == own.cluster:
        return None
    return Refusal(
        Reason.CLUSTER,
        f"container {hello.id} is in the cluster {hello.cluster}, and {own.id} in {own.cluster}: "
        "containers of different clusters are not linked; give one of them an empty data "
        "directory to have it join the other's cluster",
    )


def _manners(hello: Hello, link: Link) -> Refusal | None:
    if not HELLO_INTERVAL_MS_MIN <= hello.interval_ms <= HELLO_INTERVAL_MS_MAX:
        return Refusal(
            Reason.MALFORMED,
            f"container {hello.id} says hello every {hello.interval_ms} ms; "
            f"{HELLO_INTERVAL_MS_MIN} to {HELLO_INTERVAL_MS_MAX} are allowed",
        )
    if link.peer not in ("", hello.id):
        return Refusal(
            Reason.MALFORMED, f"container {link.peer} now calls itself {hello.id} on the same link"
        )
    return None


def _later_life(hello: Hello, own: Own, others: Iterable[Link]) -> Refusal | None:
    if all(other.incarnation <= hello.incarnation for other in others):
        return None
    return Refusal(
        Reason.DUPLICATE_ID,
        f"two containers have the id {hello.id}: a later one is linked with {own.id} already",
    )


def _names(virtual_hosts: Iterable[str]) -> str:
    """List a few names: a stranger may have sent many long ones."""
    names = [f"{name!r:.40}" for name in sorted(virtual_hosts)]
    more = f" and {len(names) - NAMES_SHOWN_MAX} more" if len(names) > NAMES_SHOWN_MAX else ""
    return ", ".join(names[:NAMES_SHOWN_MAX]) + more
