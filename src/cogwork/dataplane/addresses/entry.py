"""An address: who takes its deliveries, how they are shared out, what waits for a consumer."""

import cython
from cython.cimports.cogwork.dataplane.addresses.copying import is_branch
from cython.cimports.cogwork.dataplane.addresses.holding import BALANCED, CLOSEST, MULTICAST
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.terminus import ship_from
from cython.cimports.cogwork.dataplane.transport.consumer_end import (
    ConsumerEnd,
    is_picky,
    must_wait,
)
from cython.cimports.cogwork.dataplane.transport.credit import CreditingEnd
from cython.cimports.cogwork.dataplane.transport.deliveries import join
from cython.cimports.cogwork.dataplane.transport.delivery import age, is_over, keep_tag, ship
from cython.cimports.cogwork.dataplane.transport.outgoing import OutgoingLink
from cython.cimports.cogwork.dataplane.transport.shipment import (
    NOWHERE,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

MULTICAST_CODE, CLOSEST_CODE, BALANCED_CODE = MULTICAST, CLOSEST, BALANCED
"""How an entry shares deliveries out, as Python names it."""

AHEAD_MAX = cython.declare(uint64_t, 32)
"""Messages that a sender may be ahead of the consumers' credit."""

RATIONING_MAX = cython.declare(Py_ssize_t, 16)
"""Consumers whose credit is added up, and senders it is passed on to, in one go."""


class AddressEntry(CopyingEntry):
    """One address: who takes its deliveries, and how they are shared out.

    Attributes:
        assembles: Whether some outlet (a store, a port) takes only whole messages.
        near: The same address for what comes from other containers: this one's consumers alone.
        is_used: Whether it is known that messages come here which name their address themselves.
        expand: Puts links of this address in the place of those that serve a whole topic; None
            where there is nothing to replace.
        stored: What stores its messages, and says in `room` how many it takes more; None where
            nothing does, or nothing bounds it.
    """

    def __init__(
        self,
        core: Core,
        name: str,
        distribution: int,
        interest=None,
        subject: bytes = None,
        assembles: bool = False,
    ):
        """Make an entry.

        Args:
            core: The core it belongs to.
            name: The address, for people.
            distribution: MULTICAST, CLOSEST or BALANCED.
            interest: Where the outlets are found by subject; None where they are added here.
            subject: What to look up there.
            assembles: Whether some outlet (a store, a port) takes only whole messages.
        """
        self.core = core
        self.name = name
        self.distribution = distribution
        self.interest = interest
        self.subject = subject
        self.assembles = assembles
        self.outlets = []
        self.sources = []
        core.register(self)

    # -- who is attached

    def add_source(self, link: ReceivingEnd) -> None:
        """Let a link that sends to this address get credit as consumers come and go."""
        self.sources.append(link)

    def remove_source(self, link) -> None:
        """Forget such a link."""
        if link in self.sources:
            self.sources.remove(link)

    def add_outlet(self, outlet: Terminus) -> None:
        """Let `outlet` take deliveries of this address."""
        self.outlets.append(outlet)
        if type(outlet) is not OutgoingLink and not is_branch(outlet):
            self.assembles = True
        if _is_consumer(outlet):
            if self.distribution != MULTICAST:
                cython.cast(ConsumerEnd, outlet).feeder = self
            if cython.cast(ConsumerEnd, outlet).credit:
                self.on_ready(outlet)
        else:
            self._offer()
        if self.near is not None and not is_branch(outlet):
            self.near.add_outlet(outlet)
            self._feed(outlet)

    def _feed(self, outlet):
        """Have a consumer ask here, and not at the nearer entry, for what it can take."""
        if _is_consumer(outlet) and self.distribution != MULTICAST:
            cython.cast(ConsumerEnd, outlet).feeder = self

    def show_near(self, near) -> None:
        """Let other containers' messages reach this container's consumers by an entry of their own."""
        self.near = near
        for outlet in self.outlets:
            if not is_branch(outlet):
                near.add_outlet(outlet)
                self._feed(outlet)

    def remove_outlet(self, outlet: Terminus) -> None:
        """Stop `outlet` from taking deliveries; with the last one credit is taken back."""
        if outlet not in self.outlets:
            return
        self.outlets.remove(outlet)
        if self.near is not None:
            self.near.remove_outlet(outlet)
        if self.distribution == MULTICAST:
            return
        self.offered = any(
            not _is_consumer(o) or cython.cast(ConsumerEnd, o).offered for o in self.outlets
        )
        if not self.outlets:
            self._release_held()
        if not self.offered:
            for link in self.sources:
                cython.cast(ReceivingEnd, link).top_up()
        self.reconsider()

    def reconsider(self) -> None:
        """Serve what waits after the ways to consumers have changed: others may be nearest now."""
        if self.distribution == CLOSEST and self.outlets:
            if self.held_first != cython.NULL:
                self.serve_held()
            if self.rationed:
                self._pass_credit_on()

    def _offer(self):
        """The first credit a consumer gives lets the publishers start."""
        if self.offered:
            return
        self.offered = True
        for link in self.sources:
            cython.cast(ReceivingEnd, link).top_up()

    def on_ready(self, link):
        """Serve what waits here, and what other containers' senders left waiting, in turn first."""
        if self.near is None or cython.cast(ConsumerEnd, link).is_branch:
            return self._serve(link)
        self.serves_near_first = not self.serves_near_first
        if self.serves_near_first:
            self.near.on_ready(link)
            return self._serve(link)
        self._serve(link)
        return self.near.on_ready(link)

    def has_waiting(self):
        if self.near is not None and self.near.has_waiting():
            return True
        return self.held_first != cython.NULL

    def _serve(self, link):
        outlet: ConsumerEnd = link
        if not self.unscanned:
            self.scanned = 0
        if outlet.credit:
            outlet.offered = True
            self._offer()
        if self.held_first != cython.NULL:
            self.serve_held()
        if self.rationed:
            self._pass_credit_on()
        return 0

    def ration(self, link):
        """Return how much credit a sender may have: as much as the consumers can take at once.

        What is sent beyond that would be held here, copied once more than it need be. A sender of
        which nothing is held may always be a little ahead, so that consumers with little credit
        need not wait for it, and none is left without credit for good.
        """
        room: uint64_t = 0 if link.held_bytes else AHEAD_MAX
        total: uint64_t = 0
        nearest: uint32_t = NOWHERE
        outlet: Terminus
        if len(self.outlets) > RATIONING_MAX:
            return NOWHERE
        if self.distribution == CLOSEST:
            nearest = self._nearest()
        for outlet in self.outlets:
            if not _is_consumer(outlet):
                return self._share_of_room(link)
            if cython.cast(ConsumerEnd, outlet).cost <= nearest:
                total += cython.cast(ConsumerEnd, outlet).credit
        return cython.cast(uint32_t, min(max(room, total), cython.cast(uint64_t, NOWHERE)))

    def _nearest(self):
        """Return the cost of the way to the nearest consumer that wants every message."""
        nearest: uint32_t = NOWHERE
        outlet: Terminus
        for outlet in self.outlets:
            if _is_consumer(outlet) and not is_picky(cython.cast(ConsumerEnd, outlet)):
                nearest = min(nearest, cython.cast(ConsumerEnd, outlet).cost)
        return nearest

    def _share_of_room(self, link):
        """Return how much credit a sender may have where messages are stored, and room is bounded.

        Where there is little room the senders share it. Each may have one message's worth at least
        while there is any, so that none waits for another one that sends nothing.
        """
        count: uint32_t = cython.cast(uint32_t, max(len(self.sources), 1))
        window: uint64_t = max(cython.cast(CreditingEnd, link).window, 1)
        share: uint32_t
        other: ReceivingEnd
        if self.stored is None:
            return NOWHERE
        room: object = self.stored.room()
        if room is None or room >= window * count:
            return NOWHERE
        if room <= self.held:
            return 0
        share = max(cython.cast(uint32_t, room - self.held) // count, 1)
        for other in self.sources:
            if other is not link and other.credit > share:
                other.credit = share
                cython.cast(CreditingEnd, other).flow_later()
        return share

    def renew_credit(self):
        """Give senders credit again, as there is room."""
        for link in self.sources:
            cython.cast(ReceivingEnd, link).top_up()
        return 0

    def _pass_credit_on(self):
        """Give senders their share of credit that has just come; where they are many, in turn."""
        count: uint32_t = cython.cast(uint32_t, len(self.sources))
        step: uint32_t
        self.rationed = count > RATIONING_MAX
        for step in range(min(count, cython.cast(uint32_t, RATIONING_MAX))):
            if self.source_turn >= count:
                self.source_turn = 0
            cython.cast(ReceivingEnd, self.sources[self.source_turn]).top_up()
            self.source_turn += 1
        return 0

    # -- routing

    def route(self, s):
        self.received += 1
        self.received_bytes += s.size
        if self.distribution == MULTICAST:
            return self.multicast(s, self.matching())
        return self.anycast(s)

    def matching(self):
        """List the outlets of a multicast address; match anew only after a change."""
        if self.interest is not None and self.version != self.interest.version:
            self.outlets = self.interest.match_octets(octets_of(self.subject), len(self.subject))
            self.version = self.interest.version
            if self.expand is not None:
                self.outlets = self.expand(self.outlets)
        return self.outlets

    def leads_away(self):
        """Return whether copies go to containers or nodes, too: those take only whole messages."""
        outlet: Terminus
        for outlet in self.matching():
            if type(outlet) is not OutgoingLink or is_branch(outlet):
                return True
        return False

    def anycast(self, s):
        outlet: Terminus
        d: cython.pointer(Delivery)
        outlet = self.pick(s) if self.held_first == cython.NULL else None
        if outlet is None:
            outlet = self._exempting(s)
        if outlet is not None:
            self.delivered += 1
            return outlet.take(s)
        if not self.outlets:
            return self.unroutable(s)
        d = self.core.deliveries.make(s)
        d.complete = True
        keep_tag(d, s)
        self.core.deliveries.append(d, s.data, s.size)
        self.core.deliveries.charge(d)
        self.hold(d)
        return self.core.deliveries.release(d)

    def anycast_run(self, s, pieces, count):
        """Give a run to the only outlet as a whole; several outlets take turns, one by one."""
        at: uint32_t = 0
        outlet: Terminus
        taken: int64_t
        while at < count:
            if len(self.outlets) == 1 and self.held_first == cython.NULL:
                outlet = cython.cast(Terminus, self.outlets[0])
                s.data = pieces[at].data
                s.size = pieces[at].size
                if type(outlet) is not OutgoingLink or not is_picky(
                    cython.cast(OutgoingLink, outlet)
                ):
                    taken = outlet.take_run(s, pieces + at, count - at)
                    self.delivered += taken
                    at += cython.cast(uint32_t, taken)
                    if at == count:
                        break
            s.data = pieces[at].data
            s.size = pieces[at].size
            s.token = pieces[at].token
            self.anycast(s)
            at += 1
        return 0

    def pick(self, s):
        """Choose who takes a delivery: in turn (closest), or who has least to do (balanced).

        Closest is strict: nobody gets what a nearer consumer wants, whether that one has credit or
        not. Balanced prefers consumers of this container as far as the cost of the way says.
        """
        count: uint32_t = cython.cast(uint32_t, len(self.outlets))
        outlet: Terminus
        best: Terminus
        if count == 1:
            outlet = cython.cast(Terminus, self.outlets[0])
            if type(outlet) is OutgoingLink:
                if not cython.cast(OutgoingLink, outlet).is_ready():
                    return None
                if _must_wait(outlet):
                    self.core.postpone(self)
                    return None
                return None if cython.cast(OutgoingLink, outlet).refuses(s) else outlet
        if self.distribution == CLOSEST:
            best = self._pick_closest(s, count)
        else:
            best = self._pick_least(s, count)
        if best is not None:
            self.scanned = 0
        return best

    def _pick_later(self, turn, step):
        """Go on in a later turn with the outlets from one on; `step` have been asked in this one.

        Once all have been asked there is nothing to go on with, until one of them has room.
        """
        self.turn = turn
        self.scanned += step
        if self.scanned < cython.cast(uint32_t, len(self.outlets)):
            self.core.postpone(self)
        else:
            self.scanned = 0

    def scan_on(self):
        return self.serve_held() if self.held_first != cython.NULL else 0

    def _pick_closest(self, s, count):
        """Choose the next in turn of the nearest consumers that want a delivery, if it is ready."""
        step: uint32_t
        at: uint32_t = self.turn
        turn: uint32_t = at
        nearest: uint32_t = NOWHERE
        cost: uint32_t
        outlet: Terminus
        best: Terminus = None
        for step in range(count):
            if at >= count:
                at = 0
            outlet = cython.cast(Terminus, self.outlets[at])
            if _must_wait(outlet):
                return self._pick_later(at, step)
            at += 1
            cost = _cost(outlet)
            if cost > nearest or (cost == nearest and best is not None) or outlet.refuses(s):
                continue
            if cost < nearest:
                nearest = cost
                best = None
            if outlet.is_ready():
                best = outlet
                turn = at
                if cost == 0:
                    break
        if best is not None:
            self.turn = turn
        return best

    def _pick_least(self, s, count):
        """Choose the consumer that has least to do, with the cost of the way to it added."""
        step: uint32_t
        at: uint32_t = self.turn
        turn: uint32_t = at
        least: uint32_t = NOWHERE
        burden: uint32_t
        outlet: Terminus
        best: Terminus = None
        for step in range(count):
            if at >= count:
                at = 0
            outlet = cython.cast(Terminus, self.outlets[at])
            if _must_wait(outlet):
                return best if best is not None else self._pick_later(at, step)
            at += 1
            if not outlet.is_ready() or outlet.refuses(s):
                continue
            burden = _cost(outlet) + outlet.outstanding()
            if burden < least:
                least = burden
                best = outlet
                turn = at
        if best is not None:
            self.turn = turn
        return best

    def _exempting(self, s):
        """Find an outlet that takes a message past all that are held; None where none does."""
        outlet: Terminus
        for outlet in self.outlets:
            if outlet.makes_way(s):
                return outlet
        return None

    # -- what nobody has room for yet

    def serve_held(self):
        """Give what was held to the outlets that have room now, oldest first."""
        outlet: Terminus
        s: Shipment
        d: cython.pointer(Delivery)
        while self.held_first != cython.NULL:
            d = self.held_first
            if is_over(d, self.core.now):
                self.unhold()
                self.give_up(d, True)
                self.core.deliveries.release(d)
                continue
            self._ship_for_choice(cython.address(s), d)
            outlet = self.pick(cython.address(s))
            if outlet is not None and (d.complete or _takes_parts(outlet)):
                self.unhold()
                self.delivered += 1
                self._hand_over(d, outlet)
            elif self.sender_of(d) is not None and self._may_take_whole():
                # Not held on: of what is, the sender's session has a window for a part only.
                self.unhold()
                self.await_rest(d)
            else:
                return 0
            self.core.deliveries.release(d)
        return 0

    def _may_take_whole(self):
        """Return whether an outlet has room, and may want a delivery once it has seen all of it."""
        outlet: Terminus
        for outlet in self.outlets:
            if outlet.is_ready() and not _takes_parts(outlet):
                return True
        return False

    def serve_dead_letters(self):
        """Give the dead letters among what is held to an outlet that makes way for them."""
        outlet: Terminus
        s: Shipment
        d: cython.pointer(Delivery) = self.held_first
        following: cython.pointer(Delivery)
        while d != cython.NULL:
            following = d.next
            outlet = None
            if d.complete:
                self._ship_for_choice(cython.address(s), d)
                outlet = self._exempting(cython.address(s))
            if outlet is not None:
                d.refs += 1
                self.discard_held(d)
                self.delivered += 1
                self._hand_over(d, outlet)
                self.core.deliveries.release(d)
            d = following
        return 0

    def _ship_for_choice(self, s, d):
        """Describe what is held to find out who takes it: by its first frame, until it is whole."""
        if d.complete and d.first != d.last:
            self.core.deliveries.merge(d)
        ship(s, d, d.first.data if d.first != cython.NULL else cython.NULL)
        s.size = d.first.size if d.first != cython.NULL else 0
        return 0

    def _hand_over(self, d, outlet):
        s: Shipment
        joined: bytes
        link: ReceivingEnd
        if type(outlet) is OutgoingLink:
            if not d.complete:
                link = self.core.resolve(d.charged_index, d.charged_generation)
                if link is not None and link.current == d:
                    link.current_outlets = [outlet]
            return cython.cast(OutgoingLink, outlet).push(d)
        if d.dies_s:
            age(d, self.core.now)
        joined = join(d)
        ship(cython.address(s), d, octets_of(joined))
        return outlet.take(cython.address(s))

    def close(self) -> None:
        """Take the entry out of use."""
        self._release_held()
        self.core.unregister(self)

    def send(self, port, token: int, data: bytes, settled: bool) -> None:
        """Send a message from within the process to this address."""
        s: Shipment
        ship_from(cython.address(s), port, token, data, settled)
        self.route(cython.address(s))

    @property
    def is_idle(self) -> bool:
        """Says whether nobody of this container is attached and nothing waits."""
        outlet: Terminus
        if self.sources or self.held:
            return False
        if self.interest is None:
            for outlet in self.outlets:
                if not is_branch(outlet) or outlet.outstanding():
                    return False
        return True


@cython.cfunc
@cython.inline
def _is_consumer(outlet: Terminus) -> cython.bint:
    """Return whether an outlet is the end of a consumer's, or a branch; nearly all speak AMQP 1.0."""
    return type(outlet) is OutgoingLink or isinstance(outlet, ConsumerEnd)


@cython.cfunc
@cython.inline
def _cost(outlet: Terminus) -> uint32_t:
    return cython.cast(ConsumerEnd, outlet).cost if _is_consumer(outlet) else 0


@cython.cfunc
@cython.inline
def _takes_parts(outlet: Terminus) -> cython.bint:
    """Return whether an outlet gets a delivery before it is whole; a selector has to see all of it."""
    return type(outlet) is OutgoingLink and cython.cast(OutgoingLink, outlet).selector is None


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _must_wait(outlet: Terminus) -> cython.bint:
    """Return whether an outlet can only be asked in a later turn."""
    return _is_consumer(outlet) and must_wait(cython.cast(ConsumerEnd, outlet))
