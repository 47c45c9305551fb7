"""The table of mechanisms: servers and clients know no other.

A further one is a file with its `MECHANISMS`, and a line here.
"""

from __future__ import annotations

from cogwork.sasl import anonymous, external, oauthbearer, plain, scram

__all__ = ("MECHANISMS", "SCRAM")

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

SCRAM = tuple(each.name for each in scram.MECHANISMS)
"""The names of those that go with a verifier."""
