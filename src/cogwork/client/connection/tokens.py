"""Tokens that a client logs in by, and where it gets fresh ones from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from cogwork.client.errors import ConnectError
from cogwork.io.secret_file import SecretFileError, read_secret

__all__ = ("Token", "TokenFile", "fresh_token", "is_token")

Token = str | Callable[[], str | Awaitable[str]]
"""A token, or what returns one that is valid now, for each connection anew."""

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""What may stand behind `Bearer` (RFC 6750 §2.1)."""


def is_token(text: object) -> bool:
    """Tell whether a text can be sent as a token."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Reads a token from a file for each connection: others keep it fresh.

    It can be sent to another process, which finds a file of that name: the token is in no command
    line and in no plan.

    Attributes:
        name: The file's name.
    """

    name: str

    def __call__(self) -> str:
        """Return the token that the file holds now.

        Raises:
            SecretFileError: It cannot be read, or holds no token; the message never shows it.
        """
        text = read_secret(Path(self.name)).text
        if not is_token(text):
            raise SecretFileError(
                f"'{self.name}', which holds no token", "a line of letters, digits and -._~+/="
            )
        return text


async def fresh_token(token: Token) -> str:
    """Return a token to log in by now.

    Args:
        token: As `connect` was given it.

    Raises:
        ConnectError: There is none; the message never shows what there is instead.
    """
    if isinstance(token, str):
        return token
    try:
        found = token()
        text = await found if inspect.isawaitable(found) else found
    except Exception as error:
        made = ConnectError(f"cannot get a token: {error or type(error).__name__}")
        raise made from error
    if not is_token(text):
        raise ConnectError("cannot get a token: what `token` returns is none")
    return text
