"""How a receiving end gives credit: for what is neither unsettled nor held, and wanted by consumers."""

import cython
from cython.cimports.cogwork.dataplane.addresses.holding import MULTICAST

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class CreditingEnd(ReceivingEnd):
    """The end of a link on which the peer sends, as far as credit and windows go.

    Attributes:
        window: Deliveries that may be unsettled or held; 0 leaves credit to `grant`.
        limit: The furthest delivery-count the peer was ever told it may reach.
    """

    def start_at(self, delivery_count: int) -> None:
        """Take over where its sender starts to count (AMQP 1.0 §2.7.3, initial-delivery-count)."""
        self.delivery_count = delivery_count
        self.limit = delivery_count
        if self.credit:
            self.flow_later()

    def grant(self, credit: int, drain: bool = False) -> None:
        """Set the credit to `credit`, as one that counts its own messages does."""
        self.credit = credit
        self.drain = drain
        self.flow_later()

    def top_up(self):
        """Give credit for what is neither unsettled nor held, half of that at a time.

        Half of the window would leave a sender without any while so much is unsettled.
        """
        used: uint32_t = self.unsettled + self.charged
        target: uint32_t = self.window - used if self.window > used else 0
        # What is due anyway carries as much as there is.
        quantum: uint32_t = 1 if self.flow_due or self.session.flow_due else self.window >> 1
        ration: uint32_t
        entry: AddressEntry = self.entry
        if self.window == 0 or self.detached:
            return 0
        if entry is not None and entry.distribution != MULTICAST:
            if not entry.offered:
                return self._ask_credit_back()
            if self.drain:
                self.drain = False
                quantum = 1
                self.flow_later()
            quantum = min(quantum, max(target >> 1, cython.cast(uint32_t, 1)))
            if target < self.credit + quantum:
                return 0
            ration = entry.ration(self)
            if ration < target:
                entry.rationed = True
                target = ration
                quantum = min(quantum, ration >> 1)
        else:
            quantum = min(quantum, max(target >> 1, cython.cast(uint32_t, 1)))
        if target > self.credit and target - self.credit >= quantum:
            self.credit = target
            return self.flow_later()
        return 0

    def _ask_credit_back(self):
        """Have the sender use its credit up, by a drain (AMQP 1.0 §2.6.7).

        Less credit, told while transfers are under way, would be less than nothing to their sender,
        and some clients take that for very much. A sender that does not know of drains may use what
        it has: that is taken, and released.
        """
        if self.credit and not self.drain:
            self.drain = True
            return self.flow_later()
        return 0

    def _take_back_credit(self):
        if self.credit:
            self.credit = 0
            self.flow_later()
        return 0

    def open_credit(self) -> None:
        """Give the first credit, once the attach has been answered."""
        self.top_up()

    def end_credit(self) -> None:
        """Take back the credit, and tops it up no more; what is under way already is taken."""
        self.window = 0
        self._take_back_credit()

    def resume_credit(self, window: int) -> None:
        """Give credit again after `end_credit`.

        Args:
            window: Deliveries that may be unsettled or held.
        """
        if self.window == 0 and not self.detached:
            self.window = window
            self.top_up()

    def flow_later(self):
        if not self.flow_due and not self.detached:
            self.flow_due = True
            self.session.links_due.append(self)
            self.session.mark_dirty()
        return 0

    def ask(self, due):
        """Have the peer answer with a flow of its own, and end the batch of `due` then."""
        self.asking = due
        return self.session.write_flow(self, True)

    def promise(self):
        """Note the furthest delivery-count the peer was ever told it may reach.

        Where credit is taken back, transfers may be under way already: they are taken, as AMQP 1.0
        §2.6.7 lets a receiver do.
        """
        limit: uint32_t = self.delivery_count + self.credit
        if cython.cast(cython.int, limit - self.limit) > 0:
            self.limit = limit

    def on_flow(self, f):
        passed: uint32_t = 0
        if f.has_delivery_count:
            passed = f.delivery_count - self.delivery_count
            if 0 < passed <= self.credit:
                self.delivery_count += passed
                self.credit -= passed
        if f.echo:
            self.flow_later()
        if self.asking is not None:
            self.core.put_off(self.asking)
            self.asking = None
        if self.drain and self.credit == 0:
            self.drain = False
            if self.owner is not None:
                self.owner.on_drained(self)
        elif passed:
            self.top_up()  # it gave back credit that was to stay by now
        return 0

    def hold_output(self):
        self.session.wire.hold()
        return True

    def hold(self, size_bytes, is_assembled):
        self.session.wire.held_bytes += size_bytes
        if is_assembled:
            return 0
        self.held_bytes += size_bytes
        self.session.held_bytes += size_bytes
        return 0

    def let_go(self, size_bytes, is_assembled):
        self.session.wire.held_bytes -= size_bytes
        if is_assembled:
            return 0
        self.held_bytes -= size_bytes
        self.session.held_bytes -= size_bytes
        return self.session.replenish()

    def may_send(self):
        return self.session.incoming_window > 0
