"""The events of the security log: what each means, which fields it has, how many are written.

A peer that is refused comes again as often as it likes. Of each kind of event so many are written
in a window of time, and fewer for one peer, so that it hides nobody else; the rest is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("KINDS", "Kind")

WHO = ("user", "peer", "connection")
"""Whose doing it is: the name that it proved (null: none), where it is, its number in `status`."""

PEER_MAX, KIND_MAX = 10, 100
"""Of what anybody can provoke: a quarter of a gigabyte a day at most, of all kinds and peers."""

USERS_MAX = 1000
"""Of what only users do: a thousand clients that reconnect are told of."""


@dataclass(frozen=True)
class Kind:
    """One kind of event.

    Attributes:
        meaning: What has happened.
        fields: Which fields it has besides `time`, `container` and `event`, in their order.
        peer_max: How many are written of one peer in a window.
        kind_max: How many are written in a window.
    """

    meaning: str
    fields: tuple[str, ...] = ()
    peer_max: int = PEER_MAX
    kind_max: int = KIND_MAX


KINDS: dict[str, Kind] = {
    "started": Kind("The container has started.", ("version",)),
    "stopped": Kind("The container has stopped in order."),
    "login": Kind(
        "A peer has logged in.", (*WHO, "mechanism"), peer_max=USERS_MAX, kind_max=USERS_MAX
    ),
    "login_refused": Kind("A login was refused.", (*WHO, "mechanism", "reason")),
    "connection_refused": Kind(
        "A connection was closed before anybody logged in.", ("peer", "listener", "reason")
    ),
    "open_refused": Kind(
        "A peer that has logged in was refused: as a client, or as another container.",
        (*WHO, "reason"),
    ),
    "attach_refused": Kind(
        "A link was refused, or detached as it was attached.",
        (*WHO, "direction", "address", "condition", "reason"),
    ),
    "send_refused": Kind(
        "A message that names its address itself was refused; told once for each connection.",
        (*WHO, "address"),
    ),
    "management_refused": Kind(
        "A request to `$management` needs a permission that is missing.",
        (*WHO, "operation", "type", "name", "vhost", "reason"),
    ),
    "management": Kind(
        "A request to `$management` was carried out that did more than look.",
        (*WHO, "operation", "type", "name", "vhost"),
        peer_max=USERS_MAX,
        kind_max=USERS_MAX,
    ),
    "connection_revoked": Kind(
        "A connection was closed because its login holds no longer.",
        (*WHO, "reason"),
        peer_max=USERS_MAX,
        kind_max=USERS_MAX,
    ),
    "link_revoked": Kind(
        "A link was detached because its permission is gone.",
        (*WHO, "direction", "address", "reason"),
        peer_max=USERS_MAX,
        kind_max=USERS_MAX,
    ),
    "reloaded": Kind("The configuration was read again and holds.", ("changes",)),
    "reload_refused": Kind("The configuration was read again and is refused.", ("reason",)),
    "left_out": Kind("So many events of a kind were more than are written.", ("of", "count")),
    "dropped": Kind("So many lines could not be written in time.", ("count",)),
}
"""By their names, which stand in `event`."""
