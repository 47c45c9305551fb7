"""Checks tokens (RFC 7519), and reads in their claims who somebody is and in which groups.

Theory of operation. What is cheap to see comes first: size, header, algorithm. Then the key that
the header names verifies the signature, and only what was signed is looked at further. The reason
of a refusal is for the log: it quotes of a token what cannot be used to log in, never the token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jwt

from cogwork.container.security.oauth.key_store import KeyStore
from cogwork.sasl.sides import Grant, LoginBusyError, TokenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.config.oauth_settings import OAuth
    from cogwork.container.security.oauth.jwks import Key

__all__ = ("TokenChecker",)

TOKEN_BYTES_MAX = 16_384
"""Tokens with some hundreds of groups; what is longer is refused unread."""

USER_BYTES_MAX = 256
GROUPS_MAX = 256
KEYS_TRIED_MAX = 8
"""For a token that names no key."""

_CLAIMS = ("exp", "iss", "aud")
"""A token without an end would be a password that nobody can change."""

_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is from the future: its nbf or iat is not reached yet",
    jwt.InvalidAudienceError: "it is for another audience",
    jwt.InvalidIssuerError: "it is from another issuer",
    jwt.InvalidSignatureError: "it is not signed by the key that it names",
}


class TokenChecker:
    """Of one container. Owned by its event loop."""

    def __init__(self, options: OAuth) -> None:
        """Read no keys yet.

        Args:
            options: The rules.
        """
        self._options = options
        self._keys = KeyStore(options)

    async def check(self, token: str) -> Grant:
        """Verify a token.

        Args:
            token: As the peer gave it.

        Raises:
            LoginBusyError: There are no keys to verify it by now.
            TokenError: It is not valid; the reason is for the log.
        """
        if len(token) > TOKEN_BYTES_MAX:
            raise TokenError(f"it has {len(token)} characters, over {TOKEN_BYTES_MAX}")
        name, algorithm = self._header(token)
        keys = await self._keys.find(name, algorithm)
        if not keys:
            raise self._without_key(name, algorithm)
        return self._grant(_signed(token, keys, algorithm, self._options))

    def close(self) -> None:
        """Wait for no more keys."""
        self._keys.close()

    def _header(self, token: str) -> tuple[str | None, str]:
        """Return the name of the key, and the algorithm, which must be one that is taken."""
        try:
            header: dict[str, Any] = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise TokenError("it is no token: three parts in base64url, with dots") from error
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in self._options.algorithms:
            taken = ", ".join(self._options.algorithms)
            raise TokenError(f"its algorithm is {algorithm!r:.40} (expected one of {taken})")
        if "crit" in header:  # RFC 7515 §4.1.11
            raise TokenError("its header has a critical extension, which is not known here")
        return None if name is None else str(name), str(algorithm)

    def _without_key(self, name: str | None, algorithm: str) -> Exception:
        if self._keys.is_empty:
            return LoginBusyError("there are no keys to check tokens by: see the warning before")
        if name is None:
            return TokenError(f"it names no key, and there is none for {algorithm}")
        return TokenError(f"there is no key {name!r:.80} for {algorithm}")

    def _grant(self, claims: Mapping[str, Any]) -> Grant:
        options = self._options
        user = _claim(claims, options.user_claim)
        if not isinstance(user, str) or not user or not user.isprintable():
            raise TokenError(f"its claim {options.user_claim} names no user")
        if len(user.encode()) > USER_BYTES_MAX:
            raise TokenError(f"its claim {options.user_claim} is longer than {USER_BYTES_MAX}")
        told = [] if options.groups_claim is None else _claim(claims, options.groups_claim)
        values = told.split() if isinstance(told, str) else told
        names = map(str, values[:GROUPS_MAX]) if isinstance(values, list) else ()
        known = (options.groups.get(each) for each in names) if options.groups else names
        groups = dict.fromkeys((*options.default_groups, *filter(None, known)))
        return Grant(user, tuple(groups), claims["exp"] + options.leeway_s)


def _signed(token: str, keys: list[Key], algorithm: str, options: OAuth) -> Mapping[str, Any]:
    """Return the claims of a token that one of the keys has signed, and that holds now."""
    problem = TokenError("it is not signed by any key")
    for key in keys[:KEYS_TRIED_MAX]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.public,
                algorithms=[algorithm],
                audience=options.audience,
                issuer=options.issuer,
                leeway=options.leeway_s,
                options={"require": list(_CLAIMS)},
            )
            return {**claims, "exp": float(claims["exp"])}
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            problem = TokenError(_reason(error))
            if isinstance(error, jwt.InvalidSignatureError):
                continue
            break
    raise problem


def _reason(error: Exception) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"it has no claim {error.claim}"
    return _REASONS.get(type(error), "its claims cannot be read")


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """Return a claim by its name, or by a path with dots into tables."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
