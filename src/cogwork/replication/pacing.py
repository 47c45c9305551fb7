"""How much an outbox sends at once, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Pacing",)


@dataclass(frozen=True, slots=True)
class Pacing:
    """How much, and how long.

    Attributes:
        waiting_bytes_max: What may be unanswered; one batch more is `Busy`.
        call_bytes_max: What goes in one call, but for a batch that is larger by itself.
        in_flight_bytes_max: What is on its way to the leader at once.
        busy_bytes: With so much on its way, less than `gather_bytes` waits for an answer: what goes
            in one call is one entry, and costs once what an entry costs.
        gather_bytes: So much goes at once, whatever is on its way.
        answer_timeout_s: An answer that has taken so long is not waited for, unless answers take
            longer: see `AnswerTimeout`.
        answer_timeout_max_s: So long an answer is waited for at most.
        pause_s: Before the same candidates are asked again that refused.
        last_answer_s: So long the answer to a fence's last copy is waited for, where one to an
            earlier copy has come, before it is sent once more.
        give_up_s: So long a command is tried while nothing at all is answered.
    """

    waiting_bytes_max: int = 32 << 20
    call_bytes_max: int = 1 << 20
    in_flight_bytes_max: int = 8 << 20
    busy_bytes: int = 32 << 10
    gather_bytes: int = 256 << 10
    answer_timeout_s: float = 0.4
    answer_timeout_max_s: float = 5.0
    pause_s: float = 0.02
    last_answer_s: float = 5.0
    give_up_s: float = 10.0
