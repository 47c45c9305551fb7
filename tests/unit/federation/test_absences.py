"""Who is waited for at queues on disk, and for how long that is remembered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cogwork.container.federation.absences import Absences
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from cogwork.container.mesh.service import MeshService

OWNED = 3
"""The partitions that each held, as bits."""


def missing(owner_timeout_s: float) -> Absences:
    """Make absences in a mesh where nobody can be reached."""
    routes = SimpleNamespace(is_reachable=lambda _container: False)
    database = SimpleNamespace(incarnation=lambda _container: 0)
    mesh = SimpleNamespace(routes=routes, database=database)
    return Absences(
        cast("MeshService", SimpleNamespace(mesh=mesh, owner_timeout_s=owner_timeout_s))
    )


def claimed(absences: Absences, number: int) -> None:
    address = f"work/{number}"
    interest = Interest(InterestKind.PARTITIONS, "", address, consumers=8, producers=OWNED)
    absences.begin(f"c{number}", interest)


def test_who_is_away_counts_for_as_long_as_it_is_waited_for() -> None:
    absences = missing(owner_timeout_s=60.0)
    claimed(absences, 1)
    absences.sweep()
    assert absences.of("work/1", 8, {}) == {"c1": OWNED}


def test_who_never_comes_back_is_forgotten() -> None:
    absences = missing(owner_timeout_s=0.0)
    for number in range(100):
        claimed(absences, number)
    absences.sweep()
    assert not absences._claims
