"""Which containers can be named to hold replicas: those that anybody has heard of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.management import BAD_REQUEST, ManagementError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ("demand_known",)


def demand_known(known: Collection[str], options: Mapping[str, object]) -> None:
    """See that each container which is to hold replicas is there, or was.

    Only what is declared by hand is held to it: a configuration is read before any other container
    is known.

    Args:
        known: The containers of the cluster and the mesh.
        options: Of a stream or a queue.

    Raises:
        ManagementError: Nobody has heard of one, or one is named twice.
    """
    named = options.get("replicas")
    if not isinstance(named, list | tuple):
        return  # none, or told by whoever checks the options
    for name in named:
        if isinstance(name, str) and name not in known:
            raise ManagementError(
                BAD_REQUEST,
                f"replicas names {name!r:.80}, a container that nobody here knows: "
                f"one of {', '.join(sorted(known))} is expected",
            )
        if list(named).count(name) > 1:
            raise ManagementError(BAD_REQUEST, f"replicas names {name!r:.80} twice")
