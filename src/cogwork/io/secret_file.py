"""Files that hold one secret: a password, a token, the passphrase of a key."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("SECRET_BYTES_MAX", "Secret", "SecretFileError", "one_secret", "read_secret")

SECRET_BYTES_MAX = 64 * 1024
"""A token has some thousand bytes; what is longer is some other file."""


class SecretFileError(CogworkError):
    """A file holds no secret that can be used.

    Attributes:
        found: What is there; never the secret.
        expected: What would be right.
    """

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found = found
        self.expected = expected


class Secret(NamedTuple):
    """What a file holds.

    Attributes:
        text: The secret, without the end of its line.
        is_readable_by_others: Whether every user of the machine could read it.
        identity: Differs once the file has been written or replaced.
    """

    text: str
    is_readable_by_others: bool
    identity: tuple[int, ...]

    def __repr__(self) -> str:
        """Show no secret: reprs end in logs."""
        return "Secret(...)"


def read_secret(path: Path) -> Secret:
    """Read a secret from a regular file.

    Args:
        path: The file. A pipe is refused: to read one again, on a reload, could take for ever.

    Raises:
        SecretFileError: It cannot be read, or holds no secret.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            data = file.read(SECRET_BYTES_MAX + 1) if stat.S_ISREG(found.st_mode) else None
    except OSError as error:
        raise SecretFileError(f'"{path}": {error.strerror}', "a readable file") from error
    if data is None:
        raise SecretFileError(f'"{path}", which is no regular file', "a file with the secret")
    return Secret(
        one_secret(data, str(path)),
        bool(found.st_mode & stat.S_IROTH),
        (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
    )


def one_secret(data: bytes, name: str) -> str:
    """Return the secret in what was read, without one end of a line.

    Args:
        data: What was read.
        name: Where, for errors.

    Raises:
        SecretFileError: It is none.
    """
    wanted = "a secret in UTF-8, on one line"
    if len(data) > SECRET_BYTES_MAX:
        raise SecretFileError(f'more than {SECRET_BYTES_MAX} bytes in "{name}"', wanted)
    try:
        text = data.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretFileError(f'something else than text in "{name}"', wanted) from None
    if not text:
        raise SecretFileError(f'nothing in "{name}"', wanted)
    if "\0" in text or "\n" in text:
        raise SecretFileError(f'several lines or a NUL character in "{name}"', wanted)
    return text
