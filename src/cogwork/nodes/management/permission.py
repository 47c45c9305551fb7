"""Who may manage what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.management import FORBIDDEN, UNAUTHORIZED, ManagementError
from cogwork.router.own_addresses import MANAGEMENT as ADDRESS
from cogwork.router.own_addresses import missing

if TYPE_CHECKING:
    from typing import NoReturn

    from cogwork.plugin.management import Requester

__all__ = ("ADDRESS", "demand", "demand_right", "refuse")


def demand(requester: Requester, address: str) -> None:
    """Check the permission to manage an address; who may manage `$management` has all of them.

    What is denied is denied to those, too.

    Raises:
        ManagementError: It is missing.
    """
    demand_right(requester, "manage", address)


def demand_right(requester: Requester, right: str, address: str) -> None:
    """Check a right at an address; who may manage `$management` has all of them.

    Raises:
        ManagementError: It is missing.
    """
    if requester.may(right, address):
        return
    if requester.is_denied(right, address) or not requester.may("manage", ADDRESS):
        refuse(requester, right, address)


def refuse(requester: Requester, right: str, address: str) -> NoReturn:
    """Return that a permission is missing.

    Raises:
        ManagementError: Always.
    """
    status = UNAUTHORIZED if requester.identity is None else FORBIDDEN
    raise ManagementError(status, missing(right, address))
