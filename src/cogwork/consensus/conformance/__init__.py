"""The conformance kit of engines: what every engine must do, built in or foreign.

An engine's own tests need no more than this:

    from cogwork.consensus.conformance import EngineConformance

    class TestMine(EngineConformance):
        def make_host(self):
            return MyHost("localhost:1234")

Each test opens a stream of its own and holds the engine to one promise of the contract. What an
engine does not declare is skipped, and nothing else.
"""

from __future__ import annotations

from cogwork.consensus.conformance.endings import EndingTests
from cogwork.consensus.conformance.epochs import EpochTests
from cogwork.consensus.conformance.limits import LimitTests
from cogwork.consensus.conformance.members import MemberTests
from cogwork.consensus.conformance.once import OnceTests
from cogwork.consensus.conformance.order import OrderTests
from cogwork.consensus.conformance.snapshots import SnapshotTests
from cogwork.consensus.conformance.starts import StartTests
from cogwork.consensus.conformance.stories import StoryTests
from cogwork.consensus.conformance.trimming import TrimmingTests

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
