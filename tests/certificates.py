"""An authority of one's own, what it has issued, and what it has revoked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

if TYPE_CHECKING:
    from pathlib import Path


DAY = timedelta(days=1)


class Authority:
    """Writes PEM files into a folder.

    Attributes:
        file: Its own certificate.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca = trustme.CA()
        self.file = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def issue(self, name: str, *identities: str, common_name: str | None = None) -> Path:
        """Issue a certificate; return the file that holds it, its chain and its key."""
        issued = self._ca.issue_cert(*identities, common_name=common_name)
        path = self._folder / f"{name}.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def encrypt(self, path: Path, password: str) -> Path:
        """Return a file with the same certificate, and its key encrypted."""
        data = path.read_bytes()
        key = serialization.load_pem_private_key(data, None)
        sealed = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
        found = path.with_suffix(".sealed.pem")
        found.write_bytes(sealed + data[data.index(b"-----BEGIN CERTIFICATE-----") :])
        return found

    def revoke(self, *certificates: Path, until: datetime | None = None) -> Path:
        """Write the list of what is revoked; until when it holds, a day from now by default."""
        now = datetime.now(UTC)
        own = x509.load_pem_x509_certificate(self.file.read_bytes())
        end = until or now + DAY
        building = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(own.subject)
            .last_update(min(now, end) - DAY)
            .next_update(end)
        )
        for each in certificates:
            revoked = (
                x509.RevokedCertificateBuilder()
                .serial_number(x509.load_pem_x509_certificate(each.read_bytes()).serial_number)
                .revocation_date(now - DAY)
                .build()
            )
            building = building.add_revoked_certificate(revoked)
        key = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        path = self._folder / "crl.pem"
        fresh = path.with_suffix(".new")
        fresh.write_bytes(
            building.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        return fresh.rename(path)
