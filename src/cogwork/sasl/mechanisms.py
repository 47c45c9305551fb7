"""The table of mechanisms: servers and clients know no other.

A further one is a file with its `MECHANISMS`, and two lines here.
"""

from __future__ import annotations

from typing import Literal, cast

from cogwork.sasl import anonymous, external, oauthbearer, plain, scram

__all__ = ("BY_PASSWORD", "MECHANISMS", "SCRAM", "MechanismName")

MechanismName = Literal[
    "ANONYMOUS",
    "PLAIN",
    "EXTERNAL",
    "OAUTHBEARER",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "SCRAM-SHA-256-PLUS",
    "SCRAM-SHA-512-PLUS",
]
"""What a configuration and a client may name; the keys of `MECHANISMS`."""

MECHANISMS = {
    each.name: each
    for each in (
        *oauthbearer.MECHANISMS,
        *external.MECHANISMS,
        *scram.MECHANISMS,
        *plain.MECHANISMS,
        *anonymous.MECHANISMS,
    )
}
"""By name, the strongest first: in this order they are offered and chosen."""

BY_PASSWORD = tuple(
    cast("MechanismName", str(each.name)) for each in MECHANISMS.values() if each.has_password
)
"""The names of those that take a password, the strongest first."""

SCRAM = tuple(each.name for each in scram.MECHANISMS)
"""The names of those that go with a verifier."""
