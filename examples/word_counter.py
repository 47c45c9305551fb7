"""A node of one's own: counts the words of the messages sent to it, and publishes the counts.

In the configuration:

    [[node]]
    address = "words"
    kind = "word_counter:WordCounter"
    options = { top = 3 }

Send text to `words`; receive from `words` to follow the most frequent ones.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from cogwork import Message
from cogwork.plugin import Effect, MessageNode, NodeContext


class WordCounter(MessageNode):
    """Keeps a count for each word, and tells the `top` most frequent after each batch."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._top = int(str(context.options.get("top", 10)))
        self._counts: Counter[str] = Counter()

    def on_messages(self, messages: Sequence[Message]) -> Iterable[Effect]:
        """Count the words of a batch, and tell everybody the most frequent ones."""
        for message in messages:
            if not isinstance(message.body, str):
                raise TypeError(f"a text is expected, not {type(message.body).__name__}")
            self._counts.update(message.body.lower().split())
        yield self.publish(dict(self._counts.most_common(self._top)))
