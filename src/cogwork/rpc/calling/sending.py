"""Sends what has no reply, again and again within its time, and says so where it could not."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from cogwork.client.errors import InDoubt, Released
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.errors import Unreachable

if TYPE_CHECKING:
    from cogwork.client.options import Retry
    from cogwork.rpc.calling.targets import Target

__all__ = ("send",)


async def send(
    target: Target,
    message: bytes,
    *,
    settled: bool,
    deadline_s: float,
    timeout_s: float,
    retry: Retry,
) -> None:
    """Send a message that nobody answers.

    Args:
        target: The link to send it on.
        message: It, encoded.
        settled: Whether it is done with once it was written.
        deadline_s: When to give up, on the loop's clock.
        timeout_s: How long that is, for errors.
        retry: Pauses between attempts where it is released.

    Raises:
        Unreachable: Nobody served the address until the deadline.
        Released: Whoever serves it did not take it until the deadline.
        Rejected: It is invalid there.
        InDoubt: Whether it was processed cannot be known.
    """
    loop = asyncio.get_running_loop()
    waits_s = retry.waits_s(random.random)
    while True:
        try:
            await _attempt(target, message, settled, deadline_s, timeout_s)
        except Unreachable:
            raise
        except Released:
            wait_s = next(waits_s)
            if loop.time() + wait_s >= deadline_s:
                raise
            await asyncio.sleep(wait_s)
        else:
            return


async def _attempt(
    target: Target, message: bytes, settled: bool, deadline_s: float, timeout_s: float
) -> None:
    target.is_used = True  # who waits long between attempts needs the link all the same
    post = target.post(Message.decode(message), settled=settled)
    if post.is_done:
        if (error := post.error()) is not None:
            raise error
        return
    try:
        async with asyncio.timeout_at(deadline_s):
            await post
    except TimeoutError:
        if target.withdraw(post):
            raise Unreachable(target.address, timeout_s) from None
        text = f"it was sent, and has no outcome within {timeout_s:g} s"
        raise InDoubt(target.address, None, text) from None
    except asyncio.CancelledError:
        target.withdraw(post)
        raise
