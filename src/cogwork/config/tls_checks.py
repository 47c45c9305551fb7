"""What is wrong with what a configuration says of TLS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.config.problems import Problem
from cogwork.tls.contexts import TlsFilesError, check_ciphers, check_crl, check_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.settings import Configuration, Link, Tls

__all__ = ("check_ciphers_of", "check_tls", "find_unusable_secret")


def check_tls(tls: Tls) -> Iterator[Problem]:
    """Find contradictions in a `[listen.tls]`."""
    yield from check_ciphers_of(tls)
    if tls.client_ca is None:
        given = (("crl_file", tls.crl_file), ("users", tls.users))
        for key, value in (*given, ("identity_from", tls.identity_from != "cn")):
            if value:
                yield Problem((key,), "this without client_ca", "client_ca, whom clients trust")
    for pattern, user in tls.users.items():
        if not pattern or not user:
            yield Problem(("users", pattern), f'"{user}"', "a pattern and the name of a user")


def check_ciphers_of(table: Tls | Link) -> Iterator[Problem]:
    """Find ciphers that there are not, or that have no effect."""
    if table.ciphers is None:
        return
    if table.minimum_version == "1.3":
        found = f'"{table.ciphers:.80}" with minimum_version = "1.3"'
        yield Problem(("ciphers",), found, "none: they are those of TLS 1.2")
    elif not check_ciphers(table.ciphers):
        expected = 'names of ciphers as OpenSSL has them, such as "ECDHE+AESGCM"'
        yield Problem(("ciphers",), f'"{table.ciphers:.80}"', expected)


def find_unusable_secret(configuration: Configuration) -> Problem | None:
    """Find the first revocation list, or password of a key, that cannot be used.

    Args:
        configuration: With the names of files as this process finds them.
    """
    for at, listen in enumerate(configuration.listeners):
        if listen.tls is not None:
            for problem in _unusable(listen.tls):
                return problem.below("listen", at, "tls")
    for at, link in enumerate(configuration.links):
        for problem in _unusable(link):
            return problem.below("link", at)
    return None


def _unusable(table: Tls | Link) -> Iterator[Problem]:
    if table.crl_file is not None:
        try:
            check_crl(Path(table.crl_file))
        except TlsFilesError as error:
            yield Problem(("crl_file",), str(error), "a PEM file with revocation lists")
    if table.key_password is not None and table.certificate is not None:
        key = "key_password" if table.key_password_file is None else "key_password_file"
        own = None if table.key is None else Path(table.key)
        try:
            check_key(Path(table.certificate), own, table.key_password)
        except TlsFilesError as error:
            yield Problem((key,), str(error), "the password of the private key")
