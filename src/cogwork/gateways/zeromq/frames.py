"""A message's frames: read with every length and type checked, and written.

frame 0   COG1                the protocol and its version
frame 1   a verb              HELLO, CALL, ...
frame 2   a session's id      empty in HELLO
frame 3   the header          a map, in JSON or MessagePack
frame 4   the body            in the same, or as the header's `raw` says; may be missing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.codec import JSON, Codec, codec_of
from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.values import is_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("MAGIC", "Frames", "parse")

MAGIC = b"COG1"

HEADER_BYTES_MAX = 16 * 1024
"""Names, ids and a few properties; what is larger belongs into a body."""

ID_CHARACTERS_MAX = 64
"""A client's name for what it asks: a number or a short text."""

NAME_BYTES_MAX = 1024
"""More than any address or subject of a person's making."""

FRAMES_LEAST, FRAMES_MOST = 4, 5

TIMEOUT_S_MAX = 86_400.0
"""A day: what takes longer is no call but a job, and belongs into a queue."""


TTL_S_MAX = 4_294_967.0
"""What AMQP's header holds in milliseconds (§3.2.1): 49 days."""


@dataclass(slots=True)
class Frames:
    """One message from a client.

    Attributes:
        verb: What is wanted.
        session: The sender's id, as it says.
        header: What else there is to know.
        body: Not decoded; None without one.
        codec: What header and body are written in.
    """

    verb: bytes
    session: bytes
    header: dict[str, object]
    body: bytes | None
    codec: Codec

    @property
    def id(self) -> int | str | None:
        """The client's name for this message; None where it has none.

        Raises:
            Fault: It is neither a number nor a short text.
        """
        found = self.header.get("id")
        if found is None:
            return None
        if type(found) is int and is_integer(found):
            return found
        if isinstance(found, str) and len(found) <= ID_CHARACTERS_MAX:
            return found
        raise Fault(
            Code.BAD_MESSAGE,
            "id: an integer of at most 64 bits, or a text of at most "
            f"{ID_CHARACTERS_MAX} characters is expected",
        )

    def need_id(self) -> int | str:
        """Return the client's name for this message.

        Raises:
            Fault: There is none.
        """
        found = self.id
        if found is None:
            raise Fault(Code.BAD_MESSAGE, f"{self.verb.decode()} needs an id in its header")
        return found

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return a text of the header.

        Raises:
            Fault: It is none, or too long.
        """
        found = self.header.get(key, default)
        if found is None:
            return None
        if not isinstance(found, str) or not 0 < len(found.encode()) <= NAME_BYTES_MAX:
            text = f"{key}: a text of 1 to {NAME_BYTES_MAX} bytes is expected"
            raise Fault(Code.BAD_MESSAGE, text)
        return found

    def count(self, key: str, default: int, most: int) -> int:
        """Return a count of the header, from 1 on.

        Raises:
            Fault: It is none.
        """
        found = self.header.get(key, default)
        if type(found) is not int or not 1 <= found <= most:
            raise Fault(Code.BAD_MESSAGE, f"{key}: an integer from 1 to {most} is expected")
        return found

    def seconds(self, key: str, default: float, most: float = TIMEOUT_S_MAX) -> float:
        """Return a length of time.

        Raises:
            Fault: It is none.
        """
        found = self.header.get(key, default)
        if type(found) not in (int, float) or not 0 < float(str(found)) <= most:
            raise Fault(Code.BAD_MESSAGE, f"{key}: seconds, more than 0 and at most {most:g}")
        return float(str(found))

    def life_s(self) -> float | None:
        """Return how long a message is to live; None for as long as nobody takes it.

        Raises:
            Fault: It is no such time.
        """
        if self.header.get("ttl_s") is None:
            return None
        return self.seconds("ttl_s", 0.0, TTL_S_MAX)

    def properties(self) -> dict[str, object]:
        """Return the application's properties.

        Raises:
            Fault: They are no map of simple values.
        """
        found = self.header.get("properties")
        if found is None:
            return {}
        restored = self.codec.restore(found)
        if not isinstance(restored, dict) or any(
            isinstance(each, (list, dict)) for each in restored.values()
        ):
            raise Fault(Code.BAD_MESSAGE, "properties: a map of plain values is expected")
        return restored


def parse(parts: Sequence[bytes]) -> Frames:
    """Read a message.

    Args:
        parts: Its frames, without the one by which ZeroMQ knows the sender.

    Raises:
        Fault: It is none of this protocol.
    """
    if parts and not parts[0] and len(parts) > 1:
        text = "frame 0 is empty, as a REQ socket sends it: use a DEALER socket"
        raise Fault(Code.BAD_MESSAGE, text)
    if not FRAMES_LEAST <= len(parts) <= FRAMES_MOST:
        raise Fault(
            Code.BAD_MESSAGE, f"{len(parts)} frames: COG1, verb, session, header, body expected"
        )
    if parts[0] != MAGIC:
        raise Fault(Code.BAD_MESSAGE, f"frame 0 is {parts[0][:16]!r}: COG1 is expected")
    header = parts[3]
    if len(header) > HEADER_BYTES_MAX:
        text = f"a header of {len(header)} bytes: at most {HEADER_BYTES_MAX} are allowed"
        raise Fault(Code.BAD_MESSAGE, text)
    codec = codec_of(header)
    decoded = codec.decode_header(header) if header else {}
    if not isinstance(decoded, dict):
        raise Fault(Code.BAD_MESSAGE, "frame 3, the header, is no map")
    body = parts[4] if len(parts) == FRAMES_MOST else None
    return Frames(parts[1], parts[2], decoded, body, codec if header else JSON)
