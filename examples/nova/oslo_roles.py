"""The same roles in terms of oslo.messaging, with the driver of this project: `--driver oslo`.

Services and clients are threads, as in OpenStack. Each compute has a transport of its own, and so a
connection; conductors and listeners, too. Casts are not settled beforehand here, which the option
`pre_settled` says, so that one that returns was accepted.
"""

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import oslo_messaging
from oslo_config import cfg
from plan import EXCHANGE, GRACE_S, SCHEDULER, TOPIC, Plan, host
from role import Notes

SCHEDULERS = 3
LAST_CALLS_AT_ONCE = 8
LAST_TIMEOUT_S = 30.0
STARTS_AT_ONCE = 16
NOTIFICATION_TOPIC = "notifications"


class Bus:
    """Transports of one process."""

    def __init__(self, plan: Plan, notes: Notes) -> None:
        self.plan = plan
        self.notes = notes
        self.lock = threading.Lock()
        self.transports: list[oslo_messaging.Transport] = []
        cfg.CONF([], project="nova")
        oslo_messaging.set_transport_defaults(EXCHANGE)

    def url(self, number: int) -> str:
        """Return the transport URL that begins with a client's own container."""
        hosts = ",".join(urlsplit(url).netloc for url in self.plan.urls_of(number))
        return f"amqp://{hosts}/?pre_settled=rpc-reply"

    def for_calls(self, number: int) -> oslo_messaging.Transport:
        """Make a transport for calls."""
        return self._kept(oslo_messaging.get_rpc_transport(cfg.CONF, url=self.url(number)))

    def for_notifications(self, number: int) -> oslo_messaging.Transport:
        """Make a transport for notifications."""
        url = self.url(number)
        return self._kept(oslo_messaging.get_notification_transport(cfg.CONF, url=url))

    def _kept(self, transport: oslo_messaging.Transport) -> oslo_messaging.Transport:
        with self.lock:
            self.transports.append(transport)
        return transport

    def note(self, what: str, name: object) -> None:
        """Note a name, from any thread."""
        with self.lock:
            self.notes.note(what, name)

    def count(self, what: str, by: int = 1) -> None:
        """Count, from any thread."""
        with self.lock:
            self.notes.counts[what] += by

    def serve(self, number: int, topic: str, server: str, endpoint: object) -> Callable[[], None]:
        """Serve calls in threads of their own; return what ends it."""
        target = oslo_messaging.Target(exchange=EXCHANGE, topic=topic, server=server)
        serving = oslo_messaging.get_rpc_server(
            self.for_calls(number), target, [endpoint], executor="threading"
        )
        serving.start()

        def end() -> None:
            serving.stop()
            serving.wait()

        return end

    def client(self, transport: oslo_messaging.Transport, topic: str) -> oslo_messaging.RPCClient:
        """Make a client of a topic."""
        target = oslo_messaging.Target(exchange=EXCHANGE, topic=topic)
        return oslo_messaging.get_rpc_client(transport, target, timeout=self.plan.timeout_s)

    def close(self) -> None:
        """Close all connections."""
        with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
            list(pool.map(lambda transport: transport.cleanup(), self.transports))


class ComputeEndpoint:
    """What can be called at a compute."""

    def __init__(self, bus: Bus, name: str) -> None:
        self.bus = bus
        self.name = name

    def build(self, _context: dict[str, object], instance: int) -> str:
        """Build an instance, which takes a moment."""
        time.sleep(0.005)
        self.bus.count("built")
        return f"{instance} on {self.name}"

    def stop_instance(self, _context: dict[str, object], instance: int) -> None:
        """Stop an instance; nobody waits for it."""
        self.bus.note("casts run", instance)

    def refresh(self, _context: dict[str, object], number: int) -> None:  # noqa: ARG002  # passed by name
        """Look at its configuration again."""
        self.bus.count("fanouts reached")


class SchedulerEndpoint:
    """What can be called at a scheduler."""

    def __init__(self, computes: int) -> None:
        self.computes = computes

    def select(self, _context: dict[str, object], instance: int) -> str:
        """Choose a compute."""
        return host(instance % self.computes)


async def serve(plan: Plan, process: int, notes: Notes, stop: asyncio.Event) -> None:
    """Run the computes of one process; one thread notifies for all of them."""
    bus = Bus(plan, notes)
    over = threading.Event()
    numbers = range(process, plan.computes, plan.compute_processes)

    def begin(number: int) -> Callable[[], None]:
        end = bus.serve(number, TOPIC, host(number), ComputeEndpoint(bus, host(number)))
        bus.count("computes")
        return end

    with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
        ends = await asyncio.to_thread(lambda: list(pool.map(begin, numbers)))
        notifying = asyncio.create_task(asyncio.to_thread(_notify, bus, numbers, over))
        await stop.wait()
        over.set()
        await notifying
        await asyncio.to_thread(lambda: list(pool.map(lambda end: end(), ends)))
    bus.count("computes", -len(numbers))
    await asyncio.to_thread(bus.close)


def _notify(bus: Bus, numbers: range, over: threading.Event) -> None:
    """Notify for one compute after the other; a notifier of oslo would only log what fails."""
    chance = random.Random(f"{bus.plan.seed}/{numbers.start}")
    target = oslo_messaging.Target(exchange=EXCHANGE, topic=f"{NOTIFICATION_TOPIC}.info")
    transport = bus.for_notifications(numbers.start)
    pause_s = bus.plan.notify_each_s / len(numbers)
    for count in itertools.count(1):
        if over.wait(chance.expovariate(1 / pause_s)):
            return
        name = f"{host(chance.choice(numbers))}/{numbers.start}/{count}"
        message = {
            "message_id": name,
            "publisher_id": name,
            "event_type": "compute.update",
            "priority": "INFO",
            "payload": {"name": name},
            "timestamp": "",
        }
        try:
            transport._send_notification(target, {}, message, version=2.0, retry=-1)
        except oslo_messaging.MessagingException as error:
            bus.count(f"notifications refused: {type(error).__name__}")
        else:
            bus.note("notifications accepted", name)


class Conductors:
    """All conductors, and the schedulers that they ask."""

    def __init__(self, plan: Plan, notes: Notes) -> None:
        self.plan = plan
        self.bus = Bus(plan, notes)
        self.numbers = itertools.count(1)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until all is to stop, and then ask every compute whether it is there."""
        over = threading.Event()
        ends = [
            self.bus.serve(n, SCHEDULER, f"{n}", SchedulerEndpoint(self.plan.computes))
            for n in range(SCHEDULERS)
        ]
        works = [lambda n=n: self._conduct(n, over) for n in range(self.plan.conductors)]
        works.append(lambda: self._tell_all(over))
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        await stop.wait()
        over.set()
        end_s = time.monotonic() + self.plan.timeout_s + GRACE_S
        for thread in threads:
            await asyncio.to_thread(thread.join, max(0.0, end_s - time.monotonic()))
        self.bus.count("calls that hung", sum(thread.is_alive() for thread in threads))
        await asyncio.to_thread(self._ask_everybody)
        for end in ends:
            await asyncio.to_thread(end)
        await asyncio.to_thread(self.bus.close)

    def _conduct(self, number: int, over: threading.Event) -> None:
        chance = random.Random(f"{self.plan.seed}/conductor {number}")
        transport = self.bus.for_calls(number)
        computes, schedulers = (self.bus.client(transport, each) for each in (TOPIC, SCHEDULER))
        while not over.wait(chance.expovariate(1 / self.plan.pause_s)):
            kind = chance.choices(["build", "select", "cast"], [5, 2, 3])[0]
            with self.bus.lock:
                asked = next(self.numbers)
            name = host(chance.randrange(self.plan.computes))
            begin_s = time.monotonic()
            try:
                if kind == "build":
                    made = computes.prepare(server=name).call({}, "build", instance=asked)
                    assert made == f"{asked} on {name}"
                elif kind == "select":
                    made = schedulers.call({}, "select", instance=asked)
                    assert made == host(asked % self.plan.computes)
                else:
                    computes.prepare(server=name).cast({}, "stop_instance", instance=asked)
            except (oslo_messaging.MessagingException, oslo_messaging.ClientSendError) as error:
                self.bus.count(f"{kind} failed: {type(error).__name__}")
            else:
                self._done(kind, asked)
            self._took(kind, time.monotonic() - begin_s)

    def _done(self, kind: str, asked: int) -> None:
        if kind == "cast":
            self.bus.note("casts accepted", asked)
        else:
            self.bus.count(f"{kind} returned")

    def _took(self, kind: str, took_s: float) -> None:
        """A cast has a time of its own, `default_send_timeout`, that is not the call's."""
        if kind == "cast":
            return
        self.bus.note("call seconds", round(took_s, 4))
        if took_s > self.plan.timeout_s + GRACE_S:
            self.bus.note(f"{kind} late", round(took_s, 3))

    def _tell_all(self, over: threading.Event) -> None:
        everybody = self.bus.client(self.bus.for_calls(0), TOPIC).prepare(fanout=True)
        while not over.wait(self.plan.fanout_each_s):
            with self.bus.lock:
                number = next(self.numbers)
            with suppress(oslo_messaging.MessagingException):
                everybody.cast({}, "refresh", number=number)
                self.bus.count("fanouts sent")

    def _ask_everybody(self) -> None:
        """Call each compute once, now that no container is killed any more."""
        client = self.bus.client(self.bus.for_calls(0), TOPIC)

        def ask(name: str) -> None:
            try:
                client.prepare(server=name, timeout=LAST_TIMEOUT_S).call({}, "build", instance=0)
            except oslo_messaging.MessagingException as error:
                self.bus.note("computes that do not answer", f"{name}: {error}")
            else:
                self.bus.count("computes that answer")

        with ThreadPoolExecutor(LAST_CALLS_AT_ONCE) as pool:
            list(pool.map(ask, [host(n) for n in range(self.plan.computes)]))


class NotificationEndpoint:
    """What takes notifications."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus

    def info(
        self,
        _context: dict[str, object],
        publisher_id: str,
        _event_type: str,
        _payload: dict[str, object],
        _metadata: dict[str, object],
    ) -> None:
        """Note one."""
        self.bus.note("notifications taken", publisher_id)


async def listen(plan: Plan, notes: Notes, stop: asyncio.Event) -> None:
    """Take notifications until all is to stop."""
    bus = Bus(plan, notes)
    target = oslo_messaging.Target(exchange=EXCHANGE, topic=NOTIFICATION_TOPIC)
    listeners = [
        oslo_messaging.get_notification_listener(
            bus.for_notifications(n), [target], [NotificationEndpoint(bus)], executor="threading"
        )
        for n in range(plan.listeners)
    ]
    for listener in listeners:
        listener.start()
    await stop.wait()
    for listener in listeners:
        await asyncio.to_thread(listener.stop)
        await asyncio.to_thread(listener.wait)
    await asyncio.to_thread(bus.close)
