"""Passwords that nobody has to think of, and what a configuration keeps of them."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field

from cogwork.config.password_hash import hash_password
from cogwork.sasl.verifier import HASHES, make_verifier

__all__ = ("Login",)

PASSWORD_BYTES = 18
"""144 bits: more than anybody can try, and a multiple of three, so that no padding is written."""


@dataclass(frozen=True)
class Login:
    """A password, and the lines of a `[[user]]` that take it.

    Attributes:
        password: The password itself.
        lines: Its hash and verifiers, without the user's name.
    """

    password: str = field(repr=False)
    lines: str = field(repr=False)

    @classmethod
    def new(cls) -> Login:
        """Make one with a random password."""
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        verifiers = ",\n".join(
            f"  {json.dumps(str(make_verifier(each, password)))}" for each in HASHES
        )
        lines = (
            f"password_hash = {json.dumps(hash_password(password))}\n"
            f"scram_verifiers = [\n{verifiers},\n]"
        )
        return cls(password, lines)
