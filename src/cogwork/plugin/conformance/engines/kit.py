"""What every part of the kit is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cogwork.plugin.conformance.engines.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.engine.contract import EngineHost

__all__ = ("Kit",)


class Kit:
    """How to reach the engine under test, and what it needs to show itself.

    Attributes:
        options: The streams'.
        timeout_s: For each test.
        records_to_trim: So many records of 1 KiB a stream has to have before a trim to its end must
            give up any: engines trim by the segment.
    """

    options: ClassVar[Mapping[str, object]] = {}
    timeout_s: ClassVar[float] = 60.0
    records_to_trim: ClassVar[int] = 10

    def make_host(self) -> EngineHost:
        """Make a host; those of one test reach the same streams, where streams outlive a host."""
        raise NotImplementedError

    def trial(self) -> Trial:
        """Make what a test works with."""
        return Trial(self.make_host, self.options, self.timeout_s)
