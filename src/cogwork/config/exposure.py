"""What in a configuration lets others read secrets: told as warnings, for it may be meant."""

from __future__ import annotations

import re
import stat
import tomllib
from typing import TYPE_CHECKING

from cogwork.config.secrets import SECRET_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.config.settings import Configuration

__all__ = ("clear_passwords", "readable_secrets")

_LOGIN = re.compile(r"://[^/@:]*:([^/@]+)@")
_VARIABLE = re.compile(r"\$\{[^{}]*\}")
_OF_ROUTER = re.compile(r"(?i)password\w*\s*:\s*\S")


def readable_secrets(path: Path, text: str) -> str | None:
    """Tell of a file with secrets that every user can read; None where it is well.

    Args:
        path: The configuration file.
        text: What it holds.
    """
    if not path.stat().st_mode & stat.S_IROTH or not _has_secrets(text):
        return None
    return f"{path} holds secrets and every user can read it: chmod o= {path}"


def _has_secrets(text: str) -> bool:
    try:
        return _holds_secret("", tomllib.loads(text))
    except tomllib.TOMLDecodeError:  # a router's file
        return _OF_ROUTER.search(text) is not None


def _holds_secret(key: str, value: object) -> bool:
    """Tell whether a value is a secret, or a table or an array with one; not one from elsewhere."""
    match value:
        case dict():
            return any(_holds_secret(str(name), each) for name, each in value.items())
        case list():
            return any(_holds_secret(key, each) for each in value)
        case str():
            login = _LOGIN.search(value)
            secret = value if key in SECRET_KEYS - {"url"} else login[1] if login else ""
            return bool(_VARIABLE.sub("", secret))
    return False


def clear_passwords(configuration: Configuration) -> Iterator[str]:
    """Tell of each listener at which passwords or tokens travel in clear over a network."""
    told = {
        "PLAIN": "passwords" if any(user.password_hash for user in configuration.users) else None,
        "OAUTHBEARER": "tokens" if configuration.oauth is not None else None,
    }
    for listen in configuration.listeners:
        is_clear = listen.transport in ("amqp", "ws") and not listen.is_loopback
        for mechanism, secrets in told.items():
            if is_clear and secrets is not None and mechanism in listen.mechanisms:
                yield (
                    f"listen {listen.endpoint}: {secrets} are sent in clear ({mechanism} without "
                    f'TLS): use transport = "amqps" or "wss", or a loopback host'
                )
