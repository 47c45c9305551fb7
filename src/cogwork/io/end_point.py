"""What a TLS connection is known by to both ends: the hash of the server's certificate (RFC 5929).

Theory of operation. The binding `tls-server-end-point` is the hash of the whole certificate by the
hash of its signature, so a little of its DER has to be read: a certificate is a sequence of what is
signed, the algorithm, and the signature. Where the algorithm names no hash (Ed25519) or hides it in
parameters (RSASSA-PSS), the binding is not defined, or not worth the reading: there is none.
"""

from __future__ import annotations

import hashlib
import re
import ssl

__all__ = ("end_point", "end_point_of_pem")

_RSA = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01"
_ECDSA = b"\x2a\x86\x48\xce\x3d\x04\x03"
_HASHES = {
    _RSA + b"\x04": "sha256",  # MD5 and SHA-1 count as SHA-256 (RFC 5929 §4.1)
    _RSA + b"\x05": "sha256",
    _RSA + b"\x0b": "sha256",
    _RSA + b"\x0c": "sha384",
    _RSA + b"\x0d": "sha512",
    _RSA + b"\x0e": "sha224",
    b"\x2a\x86\x48\xce\x3d\x04\x01": "sha256",
    _ECDSA + b"\x01": "sha224",
    _ECDSA + b"\x02": "sha256",
    _ECDSA + b"\x03": "sha384",
    _ECDSA + b"\x04": "sha512",
}
"""Object identifiers of signature algorithms, in DER."""

_SEQUENCE, _OBJECT_IDENTIFIER = 0x30, 0x06
_CERTIFICATE = re.compile(
    "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


def end_point(certificate: bytes | None) -> bytes | None:
    """Return the binding of a server's certificate; None where it has none.

    Args:
        certificate: In DER.
    """
    if certificate is None:
        return None
    try:
        begin, _ = _inside(certificate, 0, _SEQUENCE)
        _, signed_end = _inside(certificate, begin, _SEQUENCE)
        begin, _ = _inside(certificate, signed_end, _SEQUENCE)
        begin, end = _inside(certificate, begin, _OBJECT_IDENTIFIER)
    except (IndexError, ValueError):
        return None
    name = _HASHES.get(certificate[begin:end])
    return None if name is None else hashlib.new(name, certificate).digest()


def end_point_of_pem(text: str) -> bytes | None:
    """Return the binding of the first certificate in a PEM file: the server's own.

    Args:
        text: What the file holds.
    """
    found = _CERTIFICATE.search(text)
    return None if found is None else end_point(ssl.PEM_cert_to_DER_cert(found[0]))


def _inside(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Return where the contents of an element begin and end."""
    if data[at] != tag:
        raise ValueError(f"tag {data[at]} is not {tag}")
    size = data[at + 1]
    begin = at + 2
    if size & 0x80:  # the long form: so many octets hold the length
        octets = size & 0x7F
        size = int.from_bytes(data[begin : begin + octets])
        begin += octets
    return begin, begin + size
