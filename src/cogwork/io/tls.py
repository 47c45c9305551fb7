"""Certificates: contexts for both roles, read again without a restart.

Theory of operation. A context is built whole from its files and then takes the place of the one
before it: new handshakes use it, connections that stand go on with theirs, and files that are
broken or half-written change nothing. (Loading into a living context would leave a certificate
without its key where the second file is bad, and could never take a client authority away.)
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from cogwork.amqp.errors import CogworkError
from cogwork.io.expiry import EXPIRY

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = (
    "ServerTls",
    "TlsFiles",
    "TlsFilesError",
    "client_context",
    "common_name",
    "server_context",
)


class TlsFilesError(CogworkError):
    """A certificate, key or authority file is missing or cannot be used."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where one side's certificates are.

    Attributes:
        certificate: PEM file with the certificate and its chain.
        key: PEM file with the private key; None where the certificate's file holds it.
        client_ca: PEM file with the authorities of client certificates; None asks for none.
        require_client_certificate: Refuse clients that show no certificate.
    """

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None
    require_client_certificate: bool = False


class ServerTls:
    """A listener's certificates: `context` is what the next handshake uses."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files.

        Args:
            files: Where they are.

        Raises:
            TlsFilesError: One of them is missing or cannot be used.
        """
        self.files = files
        self.context = server_context(files)

    def reload(self, files: TlsFiles | None = None) -> None:
        """Reads the files again; new handshakes use what they hold now.

        Args:
            files: Other files than before; None keeps to the same paths.

        Raises:
            TlsFilesError: A file cannot be used; everything stays as it was.
        """
        fresh = files or self.files
        context = server_context(fresh)
        EXPIRY.forget(self.context)
        self.context = context
        self.files = fresh


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Builds the accepting side's context.

    Args:
        files: The certificates.

    Returns:
        A context for TLS 1.2 and newer.

    Raises:
        TlsFilesError: A file is missing or cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    _load_certificate(context, files.certificate, files.key)
    if files.client_ca is not None:
        _load_authorities(context, files.client_ca)
        required = files.require_client_certificate
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    elif files.require_client_certificate:
        raise TlsFilesError("client certificates are required, but no client_ca says whose")
    return context


def client_context(
    authorities: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    verify: bool = True,
    key_password: str | None = None,
) -> ssl.SSLContext:
    """Builds the connecting side's context.

    Args:
        authorities: PEM file with the authorities to trust; None trusts the system's.
        certificate: PEM file with a client certificate, for SASL EXTERNAL.
        key: PEM file with its private key; None where the certificate's file holds it.
        verify: Whether the server's certificate and name are checked; off only for experiments.
        key_password: What the private key is encrypted with; None where it is not.

    Returns:
        A context for TLS 1.2 and newer.

    Raises:
        TlsFilesError: A file is missing or cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load_authorities(context, Path(authorities))
    if certificate is not None:
        own_key = None if key is None else Path(key)
        _load_certificate(context, Path(certificate), own_key, key_password)
    return context


def common_name(certificate: Mapping[str, object]) -> str | None:
    """Finds whom a client certificate names: the identity of SASL EXTERNAL.

    Args:
        certificate: A verified certificate as `ssl.SSLObject.getpeercert` tells it.

    Returns:
        The subject's common name; None without one, or with several, which would be ambiguous.
    """
    subject = certificate.get("subject", ())
    assert isinstance(subject, tuple)
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 and names[0] else None


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Compression leaks lengths of secrets, renegotiation lets a peer burn our processor.
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION


def _load_certificate(
    context: ssl.SSLContext, certificate: Path, key: Path | None, password: str | None = None
) -> None:
    for path in filter(None, (certificate, key)):
        _check_readable(path)
    try:
        context.load_cert_chain(certificate, key, password=password or _refuse_encrypted_key)
        EXPIRY.shown(context, certificate)
    except ssl.SSLError as error:
        raise TlsFilesError(_explain_pair(error, certificate, key)) from error
    except _EncryptedKeyError as error:
        message = (
            f"{key or certificate}: the private key is encrypted; an unencrypted one is needed"
        )
        raise TlsFilesError(message) from error


def _load_authorities(context: ssl.SSLContext, path: Path) -> None:
    _check_readable(path)
    try:
        context.load_verify_locations(path)
        EXPIRY.trusted(context, path)
    except ssl.SSLError as error:
        raise TlsFilesError(f"{path}: no PEM certificate of an authority in it") from error


def _check_readable(path: Path) -> None:
    """Names the file that the library's own error would not name."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise TlsFilesError(f"cannot read '{path}': {error.strerror}") from error


class _EncryptedKeyError(Exception):
    """The library asked for a passphrase."""


def _refuse_encrypted_key() -> NoReturn:
    """Stands in for the library's own prompt, which would stop a server at its terminal."""
    raise _EncryptedKeyError


def _explain_pair(error: ssl.SSLError, certificate: Path, key: Path | None) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key or certificate}: this private key does not belong to {certificate}"
    if key is None:
        return f"{certificate}: a certificate and its private key in PEM are needed"
    return f"{certificate} and {key}: a PEM certificate and its PEM private key are needed"
