"""The client's side of mechanisms with one message."""

from __future__ import annotations

from cogwork.sasl.sides import SaslError

__all__ = ("Silent",)


class Silent:
    """Says all there is to say at once."""

    def __init__(self, response: bytes) -> None:
        """Initialize it; it knows what to say.

        Args:
            response: The initial response.
        """
        self._response = response

    def first(self) -> bytes:
        """Return the one message."""
        return self._response

    def respond(self, challenge: bytes) -> bytes:
        """Refuse: the server has been told everything.

        Raises:
            SaslError: Always.
        """
        raise SaslError(f"the server asks once more, by a challenge of {len(challenge)} bytes")

    def finish(self, data: bytes | None) -> None:
        """Demand nothing: the mechanism proves no server."""
