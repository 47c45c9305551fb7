"""What the configuration says of logins by token: `[oauth]`."""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

__all__ = ("ALGORITHMS", "Algorithm", "OAuth")

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Signatures by a private key (RFC 7518 §3.1, RFC 8037). Neither `none` nor an HMAC is among them:
by the latter whoever knows the public key could sign."""

ALGORITHMS: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "EdDSA")

LEEWAY_S_MAX = 600
"""Clocks that are further apart are to be set, and not to be put up with."""

REFRESH_S_MIN = 10
"""Who issues tokens is not to be asked more often."""


class OAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[oauth]`: logins by tokens that somebody else issues (SASL OAUTHBEARER).

    Attributes:
        issuer: The claim `iss` that a token must have.
        audience: Of the claim `aud` a token must have one of these.
        jwks: The public keys: an https URL, or a file in the configuration's directory.
        ca: The authorities of the URL's certificate, in PEM; None trusts the system's.
        algorithms: The signatures that are taken.
        leeway_s: How far the clocks of issuer and container may be apart.
        refresh_s: After how long the keys are read again.
        user_claim: The claim that names the user.
        groups_claim: The claim with the groups: an array, or a text with spaces; None reads none.
        groups: The names of groups by the claim's values; empty takes the values as they are.
        default_groups: The groups of everybody with a token.
        anonymous_login: Whether who came as ANONYMOUS may become a token's user, by `$cbs`.
    """

    issuer: Text
    audience: Texts
    jwks: Text
    ca: Text | None = None
    algorithms: Annotated[list[Algorithm], Meta(min_length=1)] = field(
        default_factory=lambda: list(ALGORITHMS)
    )
    leeway_s: Annotated[float, Meta(ge=0, le=LEEWAY_S_MAX)] = 10.0
    refresh_s: Annotated[float, Meta(ge=REFRESH_S_MIN)] = 300.0
    user_claim: Text = "sub"
    groups_claim: Text | None = None
    groups: dict[str, str] = {}
    default_groups: list[Text] = []
    anonymous_login: bool = False
