"""Where a client's certificates are, for programs that pass it on to other processes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from cogwork.io.tls import client_context

__all__ = ("NONE", "Certificates", "is_untrusted")


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files, by their names: a context cannot be sent to another process, and keys must not be.

    Attributes:
        ca_file: The authorities to trust; None trusts the system's.
        cert_file: This client's own certificate, for SASL EXTERNAL.
        key_file: Its private key; None where the certificate's file holds it.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def context(self) -> ssl.SSLContext | None:
        """Read the files; None where there are none, which trusts the system's authorities.

        Raises:
            TlsFilesError: A file is missing or cannot be used.
        """
        if self == NONE:
            return None
        return client_context(_path(self.ca_file), _path(self.cert_file), _path(self.key_file))


NONE = Certificates()
"""The system's authorities are trusted, and no certificate is shown."""


def is_untrusted(error: BaseException) -> bool:
    """Return whether it was the other side's certificate: that will be the same the next time."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__
    return False


def _path(file: str | None) -> Path | None:
    return None if file is None else Path(file)
