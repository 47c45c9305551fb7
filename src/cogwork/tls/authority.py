"""A private certificate authority: a key pair that vouches for the containers of one mesh.

It needs the library `cryptography`, which the extra `auth` brings as well. Keys are on the curve
P-256, which every TLS library knows.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Authority",)

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 825
"""The longest that clients of Apple take from a private authority."""

CLOCK_SKEW = timedelta(hours=1)
"""Certificates hold from a while ago on: clocks differ, and a machine may be started at once."""


class Authority:
    """Issues certificates, which servers and clients may show.

    Attributes:
        certificate: Its own one, PEM.
    """

    def __init__(self, name: str) -> None:
        """Make a new one.

        Args:
            name: Its common name, for people.
        """
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        building = (
            self._begun(self._name, self._key.public_key(), AUTHORITY_DAYS)
            # Its certificates issue no further ones (RFC 5280 §4.2.1.9).
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        self.certificate = self._signed(building)

    @property
    def key(self) -> bytes:
        """Its private key, PEM: who has it can issue certificates that the containers trust."""
        return _written(self._key)

    def issue(self, common_name: str, hosts: Sequence[str]) -> bytes:
        """Issue a certificate.

        Args:
            common_name: Who shows it: a container's id, or a user's name.
            hosts: The names and addresses under which a server that shows it is reached.

        Returns:
            Private key and certificate, PEM.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        building = (
            self._begun(_named(common_name), key.public_key(), CERTIFICATE_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName(list(map(_alternative, hosts)))
            building = building.add_extension(names, critical=False)
        return _written(key) + self._signed(building)

    def _begun(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        authority = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + timedelta(days=days))
            # With these two, OpenSSL's strict checks pass (RFC 5280 §4.2.1.1, §4.2.1.2).
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False
            )
        )

    def _signed(self, building: x509.CertificateBuilder) -> bytes:
        made = building.sign(self._key, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.PEM)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _written(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
