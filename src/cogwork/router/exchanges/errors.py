"""Why something cannot be done to an exchange, or by one."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = ("ExchangeError",)


class ExchangeError(CogworkError):
    """What was asked of an exchange is refused.

    Attributes:
        code: The reply code of AMQP 0-9-1: 403, 404, 406 or 503.
        text: What was wrong, as RabbitMQ says it.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
