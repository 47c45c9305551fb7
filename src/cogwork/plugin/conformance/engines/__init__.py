"""The conformance kit of engines: what every engine must do, built in or foreign.

An engine's own tests need no more than this:

    from cogwork.plugin.conformance.engines import EngineConformance

    class TestMine(EngineConformance):
        def make_host(self):
            return MyHost("localhost:1234")

Each test opens a stream of its own and holds the engine to one promise of the contract. What an
engine does not declare is skipped, and nothing else.
"""

from __future__ import annotations

from cogwork.plugin.conformance.engines.endings import EndingTests
from cogwork.plugin.conformance.engines.epochs import EpochTests
from cogwork.plugin.conformance.engines.limits import LimitTests
from cogwork.plugin.conformance.engines.members import MemberTests
from cogwork.plugin.conformance.engines.once import OnceTests
from cogwork.plugin.conformance.engines.order import OrderTests
from cogwork.plugin.conformance.engines.snapshots import SnapshotTests
from cogwork.plugin.conformance.engines.starts import StartTests
from cogwork.plugin.conformance.engines.stories import StoryTests
from cogwork.plugin.conformance.engines.trimming import TrimmingTests

__all__ = ("EngineConformance",)


class EngineConformance(
    OrderTests,
    OnceTests,
    EpochTests,
    StartTests,
    StoryTests,
    LimitTests,
    TrimmingTests,
    SnapshotTests,
    MemberTests,
    EndingTests,
):
    """Tests that any engine passes; pytest collects them from a subclass."""
