"""What durable queues were declared with besides their node's options, kept over a restart.

Theory of operation. A queue on disk is declared anew from its journal, which has the options of its
node. What AMQP 0-9-1 says besides (whether it goes with its last consumer, the arguments as they
were given) is a record of the file that keeps the exchanges. A record whose queue has gone without
this file's knowledge means nothing, and goes when a queue of that name goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.container.vhost.table_text import table_of, text_of_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.types import Table
    from cogwork.container.vhost.kept_exchanges import ExchangeFile, Key

__all__ = ("KeptQueue", "KeptQueues")

KIND: Final = ("", "queue")
"""No exchange that is kept has an empty name: so no key is an exchange's or a binding's."""


class KeptQueue(NamedTuple):
    """What is kept of a queue.

    Attributes:
        is_auto_delete: Whether it goes with its last consumer.
        arguments: As they were given.
    """

    is_auto_delete: bool
    arguments: Table


class KeptQueues:
    """What is kept of the queues of one virtual host."""

    def __init__(self, file: ExchangeFile, vhost: str) -> None:
        """Initialize it with the file of the container.

        Args:
            file: Where everything is kept.
            vhost: The name of the virtual host.
        """
        self._file = file
        self._vhost = vhost

    def _key_of(self, name: str) -> Key:
        return (self._vhost, *KIND, name)

    def names(self) -> list[str]:
        """List the queues of which anything is kept."""
        length = len(self._key_of(""))
        return [key[-1] for key in self._file.names() if self._is_mine(key, length)]

    def _is_mine(self, key: Key, length: int) -> bool:
        return len(key) == length and key[:-1] == (self._vhost, *KIND)

    def find(self, name: str) -> KeptQueue | None:
        """Return what is kept of a queue; None if nothing is."""
        record = self._file.find(self._key_of(name))
        if record is None:
            return None
        is_auto_delete, arguments = record
        return KeptQueue(bool(is_auto_delete), table_of(arguments))

    def put(self, name: str, *, is_auto_delete: bool, arguments: Mapping[str, object]) -> None:
        """Keep what a queue was declared with, if that says more than its options.

        Raises:
            OSError: It cannot be written.
        """
        if is_auto_delete or arguments:
            self._file.put(self._key_of(name), (is_auto_delete, text_of_table(arguments)))

    def remove(self, name: str) -> None:
        """Keep nothing of a queue any more.

        Raises:
            OSError: That cannot be written.
        """
        key = self._key_of(name)
        if self._file.has(key):
            self._file.remove([key])
