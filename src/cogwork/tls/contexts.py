"""TLS contexts for both roles, with the same rules wherever Cogwork speaks TLS.

Every context that is built here refuses versions before 1.2, compression and renegotiation, never
prompts for a passphrase at the terminal of a server, and has its certificates watched
(`cogwork.tls.expiry`).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from cogwork.amqp.errors import CogworkError
from cogwork.tls.expiry import EXPIRY

if TYPE_CHECKING:
    import os

__all__ = (
    "TlsFiles",
    "TlsFilesError",
    "Version",
    "check_ciphers",
    "check_crl",
    "check_key",
    "client_context",
    "server_context",
)

Version = Literal["1.2", "1.3"]

VERSIONS: dict[str, ssl.TLSVersion] = {
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}

_CRL = b"-----BEGIN X509 CRL-----"
_ENCRYPTED = (b"ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED")


class TlsFilesError(CogworkError):
    """A certificate, key or authority file is missing or cannot be used."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where one side's certificates are, and what it demands of the other side.

    Attributes:
        certificate: PEM file with the certificate and its chain.
        key: PEM file with the private key; None where the certificate's file holds it.
        client_ca: PEM file with the authorities of client certificates; None asks for none.
        require_client_certificate: Refuse clients that show no certificate.
        key_password: What the private key is encrypted with; None where it is not.
        crl: PEM file with the revocation lists of those authorities; None checks none.
        minimum_version: The oldest version of TLS that is spoken.
        ciphers: OpenSSL's names of ciphers for TLS 1.2; None leaves them to the library.
    """

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None
    require_client_certificate: bool = False
    key_password: str | None = field(default=None, repr=False)
    crl: Path | None = None
    minimum_version: Version = "1.2"
    ciphers: str | None = None


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Build the accepting side's context.

    Args:
        files: The certificates.

    Returns:
        A context for TLS 1.2 and newer.

    Raises:
        TlsFilesError: A file is missing or cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context, files.minimum_version, files.ciphers)
    _load_certificate(context, files.certificate, files.key, files.key_password)
    if files.client_ca is not None:
        _load_authorities(context, files.client_ca)
        required = files.require_client_certificate
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    elif files.require_client_certificate:
        raise TlsFilesError("client certificates are required, but no client_ca says whose")
    if files.crl is not None:
        _load_crl(context, files.crl)
    return context


def client_context(
    authorities: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    verify: bool = True,
    key_password: str | None = None,
    *,
    crl: str | os.PathLike[str] | None = None,
    minimum_version: Version = "1.2",
    ciphers: str | None = None,
) -> ssl.SSLContext:
    """Build the connecting side's context.

    Args:
        authorities: PEM file with the authorities to trust; None trusts the system's.
        certificate: PEM file with a client certificate, for SASL EXTERNAL.
        key: PEM file with its private key; None where the certificate's file holds it.
        verify: Whether the server's certificate and name are checked; off only for experiments.
        key_password: What the private key is encrypted with; None where it is not.
        crl: PEM file with the revocation lists of the authorities; None checks none.
        minimum_version: The oldest version of TLS that is spoken.
        ciphers: OpenSSL's names of ciphers for TLS 1.2; None leaves them to the library.

    Returns:
        A context for TLS 1.2 and newer.

    Raises:
        TlsFilesError: A file is missing or cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context, minimum_version, ciphers)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load_authorities(context, Path(authorities))
    if crl is not None:
        _load_crl(context, Path(crl))
    if certificate is not None:
        own_key = None if key is None else Path(key)
        _load_certificate(context, Path(certificate), own_key, key_password)
    return context


# -- checks of a configuration, before anything is built


def check_ciphers(ciphers: str) -> bool:
    """Tell whether the library knows a list of ciphers, and has one of them."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(ciphers)
    except ssl.SSLError:
        return False
    return True


def check_crl(path: Path) -> None:
    """Look whether a file holds revocation lists.

    Raises:
        TlsFilesError: It does not.
    """
    _read_crl(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), path)


def check_key(certificate: Path, key: Path | None, password: str) -> None:
    """Look whether a password opens a private key.

    Raises:
        TlsFilesError: It does not.
    """
    _read_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key, password)


# -- reading files


def _harden(context: ssl.SSLContext, minimum_version: Version, ciphers: str | None) -> None:
    context.minimum_version = VERSIONS[minimum_version]
    # Compression leaks lengths of secrets, renegotiation lets a peer burn our processor.
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if ciphers is not None:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError as error:
            raise TlsFilesError(f"ciphers: {ciphers!r:.200} names none that there is") from error


def _load_certificate(
    context: ssl.SSLContext, certificate: Path, key: Path | None, password: str | None = None
) -> None:
    _read_pair(context, certificate, key, password)
    EXPIRY.shown(context, certificate)


def _read_pair(
    context: ssl.SSLContext, certificate: Path, key: Path | None, password: str | None
) -> None:
    for path in filter(None, (certificate, key)):
        _check_readable(path)
    try:
        context.load_cert_chain(certificate, key, password=password or _refuse_encrypted_key)
    except ssl.SSLError as error:
        if password is not None and _is_encrypted(key or certificate):
            text = f"{key or certificate}: its password does not open this private key"
            raise TlsFilesError(text) from error
        raise TlsFilesError(_explain_pair(error, certificate, key)) from error
    except ValueError as error:  # longer than the library takes
        raise TlsFilesError(f"{key or certificate}: the password of the key is too long") from error
    except _EncryptedKeyError as error:
        raise TlsFilesError(
            f"{key or certificate}: the private key is encrypted; its password or an unencrypted "
            "one is needed"
        ) from error


def _is_encrypted(path: Path) -> bool:
    data = path.read_bytes()
    return any(mark in data for mark in _ENCRYPTED)


def _load_authorities(context: ssl.SSLContext, path: Path) -> None:
    _check_readable(path)
    try:
        context.load_verify_locations(path)
        EXPIRY.trusted(context, path)
    except ssl.SSLError as error:
        raise TlsFilesError(f"{path}: no PEM certificate of an authority in it") from error


def _load_crl(context: ssl.SSLContext, path: Path) -> None:
    """Have the certificate of the other side refused where its authority has revoked it."""
    _read_crl(context, path)
    context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    EXPIRY.revoking(context, path)


def _read_crl(context: ssl.SSLContext, path: Path) -> None:
    _check_readable(path)
    try:
        if _CRL not in path.read_bytes():
            raise TlsFilesError(f"{path}: no certificate revocation list in PEM in it")
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise TlsFilesError(f"{path}: no certificate revocation list in PEM in it") from error


def _check_readable(path: Path) -> None:
    """Name the file that the library's own error would not name."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise TlsFilesError(f"cannot read '{path}': {error.strerror}") from error


class _EncryptedKeyError(Exception):
    """The library asked for a passphrase."""


def _refuse_encrypted_key() -> NoReturn:
    """Stand in for the library's own prompt, which would stop a server at its terminal."""
    raise _EncryptedKeyError


def _explain_pair(error: ssl.SSLError, certificate: Path, key: Path | None) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key or certificate}: this private key does not belong to {certificate}"
    if key is None:
        return f"{certificate}: a certificate and its private key in PEM are needed"
    return f"{certificate} and {key}: a PEM certificate and its PEM private key are needed"
