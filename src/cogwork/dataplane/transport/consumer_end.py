"""What an address or a store needs to know of a consumer's end, whatever protocol that speaks."""

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class ConsumerEnd(LinkEnd):
    """The end by which messages leave for one consumer: its credit, its filters, who feeds it.

    A feeder gives it a message (`take`) only while it is ready, and hears of it (`on_ready`) when
    it is ready again. It feeds it whole messages; only links of AMQP 1.0 take parts.

    Attributes:
        selector: Says which messages its consumer wants, of a message's octets; None wants all.
        no_local: Whether it does not want what came by its own connection.
        presettles: Whether every delivery is settled as it is sent.
        is_branch: Whether it leads to another container, not to a consumer.
        keeps_format: Whether it passes on the stored form of another protocol as it is.
        marks_acquired: Whether the lowest bit of the message-format says that a consumer was given
            the message before: the stored form of another protocol has no header to say so.
        cost: Of the way to its consumers; 0 where they are this container's own.
        priority: While it can take something, those of a lower one get nothing from the same store.
        feeder: Who hears that it can take more; None while nobody feeds it.
        is_federated: Whether its feeder hears of all credit, to let other containers use it.
    """

    def spare_credit(self):
        """Return how much it could take now."""
        return self.credit

    def exhaust(self) -> None:
        """Learn that there is nothing more to send at once, from a feeder that knows it."""
