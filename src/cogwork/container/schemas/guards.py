"""Which addresses are held to schemas, as `[[schema]]` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.vhost.reply_addresses import REPLY_PREFIX
from cogwork.router.addresses import AddressRule, AddressTable, InvalidAddressError, normalize
from cogwork.schema import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.config.settings import Schema

__all__ = ("ENFORCE", "ENFORCE_REGISTERED", "IGNORE", "Guards")

IGNORE, ENFORCE, ENFORCE_REGISTERED = 0, 1, 2

_POLICIES = {"ignore": IGNORE, "enforce": ENFORCE, "enforce-registered": ENFORCE_REGISTERED}

FREE = ("$", REPLY_PREFIX)
"""What begins like this is the container's own, and free of schemas."""

KNOWN_MAX = 10_000
"""Decisions that are remembered."""


class Guards(dict[bytes, int]):
    """The policy of each address, decided once for each; never raises."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        """Start with rules.

        Args:
            schemas: `[[schema]]`, checked.
        """
        super().__init__()
        self.replace(schemas)

    def replace(self, schemas: Iterable[Schema]) -> None:
        """Go by other rules from now on."""
        rules = [
            AddressRule(pattern=each.address, options={"policy": _POLICIES[each.policy]})
            for each in schemas
        ]
        self.clear()
        self._table = AddressTable(rules)
        self.is_any = any(rule.options["policy"] for rule in rules)

    def __missing__(self, address: bytes) -> int:
        """Decide, and remember."""
        policy = self._decided(address)
        if len(self) >= KNOWN_MAX:
            self.clear()
        self[address] = policy
        return policy

    def _decided(self, address: bytes) -> int:
        try:
            name = normalize(address.decode())
        except (InvalidAddressError, UnicodeDecodeError):
            return IGNORE
        if name == SCHEMAS or name.startswith(FREE):
            return IGNORE
        found = self._table.resolve(name).options.get("policy", IGNORE)
        assert isinstance(found, int)
        return found
