"""Publishers whose messages interceptors see before they are sent.

They are classes of their own, so that those of a client without interceptors do what they did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from cogwork.client.fields import MessageFields, batch_of, message_of
from cogwork.client.publishing.publisher import Publisher
from cogwork.client.streams.publisher import StreamPublisher

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.client.interception.interceptors import Endings, Interceptors
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.dataplane.client.dispatches import Batch, Post

__all__ = ("InterceptedPublisher", "InterceptedStreamPublisher")

D = TypeVar("D", "Post", "Batch[Outcome]")


class InterceptedPublisher(Publisher):
    """A publisher, with interceptors; messages that are encoded already pass them by."""

    def __init__(self, interceptors: Interceptors, *arguments: Any, **options: Any) -> None:
        """Is not attached yet.

        Args:
            interceptors: See what is posted.
            *arguments: Those of the publisher.
            **options: Those of the publisher.
        """
        super().__init__(*arguments, **options)
        self._interceptors = interceptors

    def post(self, body: object, *, settled: bool = False, **fields: Unpack[MessageFields]) -> Post:
        """Send a message and go on; see `Publisher.post`."""
        message = message_of(body, self.post, **fields)
        address = self.address or message.to or ""
        endings = self._interceptors.publish(address, (message,), settled=settled)
        try:
            post = super().post(message, settled=settled)
        except BaseException as error:
            endings(error)
            raise
        return _watched(post, endings)

    def post_batch(self, bodies: Iterable[object], *, settled: bool = False) -> Batch[Outcome]:
        """Send messages and go on; see `Publisher.post_batch`."""
        messages = [message_of(body) for body in batch_of(bodies)]
        endings = self._interceptors.publish(self.address, messages, settled=settled)
        try:
            batch = super().post_batch(messages, settled=settled)
        except BaseException as error:
            endings(error)
            raise
        return _watched(batch, endings)


class InterceptedStreamPublisher(InterceptedPublisher, StreamPublisher):
    """One that appends to a stream, with interceptors."""


def _watched(dispatch: D, endings: Endings) -> D:
    """Have interceptors told once the outcome of what was posted is known."""
    if dispatch.is_done:
        endings(dispatch.error())
    else:
        dispatch.on_end = lambda done: endings(done.error())
    return dispatch
