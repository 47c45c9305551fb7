"""A listener's certificates, read again without a restart.

Theory of operation. A context is built whole from its files and then takes the place of the one
before it: new handshakes use it, connections that stand go on with theirs, and files that are
broken or half-written change nothing. (Loading into a living context would leave a certificate
without its key where the second file is bad, and could never take a client authority away.)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cogwork.io.end_point import end_point_of_pem
from cogwork.tls.contexts import TlsFiles, TlsFilesError, client_context, server_context
from cogwork.tls.expiry import EXPIRY
from cogwork.tls.identity import common_name

if TYPE_CHECKING:
    from pathlib import Path

__all__ = (
    "ServerTls",
    "TlsFiles",
    "TlsFilesError",
    "Watched",
    "client_context",
    "common_name",
    "server_context",
)


class Watched:
    """A file that may be replaced while it is in use, such as a revocation list."""

    def __init__(self, path: Path | None) -> None:
        """Remember what the file is now.

        Args:
            path: Where; None watches nothing.
        """
        self._path = path
        self._identity = _identity_of(path)

    def has_changed(self) -> bool:
        """Tell, once for each change, whether the file is another one now."""
        before, self._identity = self._identity, _identity_of(self._path)
        return self._identity not in (before, None)


class ServerTls:
    """A listener's certificates.

    Attributes:
        files: Where they are.
        context: What the next handshake uses.
        end_point: What connections with that certificate are known by; None where there is no such
            thing (see `cogwork.io.end_point`).
    """

    def __init__(self, files: TlsFiles) -> None:
        """Read the files.

        Args:
            files: Where they are.

        Raises:
            TlsFilesError: One of them is missing or cannot be used.
        """
        self.files = files
        self._crl = Watched(files.crl)
        self.context = server_context(files)
        self.end_point = _end_point_of(files)

    def reload(self, files: TlsFiles | None = None) -> None:
        """Read the files again; new handshakes use what they hold now.

        Args:
            files: Other files than before; None keeps to the same paths.

        Raises:
            TlsFilesError: A file cannot be used; everything stays as it was.
        """
        fresh = files or self.files
        crl = Watched(fresh.crl)
        context = server_context(fresh)
        self.end_point = _end_point_of(fresh)
        EXPIRY.forget(self.context)
        self._crl = crl
        self.context = context
        self.files = fresh

    def look(self) -> bool:
        """Read the files again if the revocation list is another one; tell whether it was.

        Raises:
            TlsFilesError: A file cannot be used; everything stays as it was.
        """
        if not self._crl.has_changed():
            return False
        self.reload()
        return True


def _end_point_of(files: TlsFiles) -> bytes | None:
    return end_point_of_pem(files.certificate.read_text(errors="replace"))


def _identity_of(path: Path | None) -> tuple[int, ...] | None:
    """Return what tells one file from the next; None where there is none."""
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return None
    if found is None:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
