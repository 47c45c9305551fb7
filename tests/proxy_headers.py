"""Headers of the PROXY protocol, as load balancers send them."""

from __future__ import annotations

import socket
import struct

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
TLV = b"\x02\x00\x07example"


def header(command: int, family: int, body: bytes) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(body)) + body


def of_ipv4(host: str, port: int, tlvs: bytes = b"") -> bytes:
    ends = socket.inet_aton(host) + socket.inet_aton("192.0.2.1")
    return header(0x21, 0x11, ends + struct.pack("!HH", port, 5672) + tlvs)


def of_ipv6(host: str, port: int, tlvs: bytes = b"") -> bytes:
    ends = socket.inet_pton(socket.AF_INET6, host) + socket.inet_pton(
        socket.AF_INET6, "2001:db8::1"
    )
    return header(0x21, 0x21, ends + struct.pack("!HH", port, 5672) + tlvs)


def of_path(path: str, tlvs: bytes = b"") -> bytes:
    return header(0x21, 0x31, path.encode().ljust(108, b"\0") + bytes(108) + tlvs)


LOCAL = header(0x20, 0x00, b"")
UNKNOWN = header(0x21, 0x00, TLV)
