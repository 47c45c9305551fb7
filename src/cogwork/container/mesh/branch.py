"""What stands here for a container that wants something of topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.container.mesh.away import Away
    from cogwork.dataplane.addresses.lost_branch import LostBranch
    from cogwork.dataplane.terminus import Terminus

__all__ = ("Branch",)


@dataclass(slots=True, eq=False)
class Branch:
    """What one container wants of topics.

    Attributes:
        patterns: As addresses, `topic/a.#`.
        lost: Stands in the place of the link while there is none.
        way: The link there; None while there is none.
        outlet: What stands in the tries; None while it is given up.
        is_given_up: Whether something else stands there, for each pattern.
    """

    lost: LostBranch
    patterns: set[str] = field(default_factory=set)
    way: Away | None = None
    outlet: Terminus | None = None
    is_given_up: bool = False
