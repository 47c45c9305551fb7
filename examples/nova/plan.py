"""What the load is: who there is, what they say, and how often. Every process is told it."""

from dataclasses import dataclass

TOPIC = "compute"
SCHEDULER = "scheduler"
EXCHANGE = "nova"
NOTIFICATIONS = "openstack.org/om/notify/anycast/nova/notifications.info"

GRACE_S = 3.0
"""How much after its deadline a call may end on a machine that has more to do than it can."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The load.

    Attributes:
        urls: The containers.
        computes: How many services there are.
        compute_processes: Over how many processes they are spread.
        conductors: How many clients call them.
        pause_s: What a conductor waits between two requests, on average.
        timeout_s: What a call or cast may take.
        notify_each_s: How often a compute tells how it is, on average.
        fanout_each_s: How often all computes are told something.
        listeners: Who takes notifications.
        folder: Takes what the processes have noted.
        seed: Of all that is left to chance.
        driver: Whether they speak by the client of this project, or by oslo.messaging.
    """

    urls: list[str]
    computes: int
    compute_processes: int
    conductors: int
    pause_s: float
    timeout_s: float
    notify_each_s: float
    fanout_each_s: float
    listeners: int
    folder: str
    seed: int
    driver: str = "cogwork"

    def urls_of(self, number: int) -> list[str]:
        """Return all containers, beginning with the one that a client belongs to."""
        first = number % len(self.urls)
        return [*self.urls[first:], *self.urls[:first]]


def host(number: int) -> str:
    """Name a compute service."""
    return f"host-{number}"
