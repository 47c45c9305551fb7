"""What people see of a stream that its engine knows: where it begins and ends, and who holds it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.plugin.engine.contract import Bounds, PromptEngine, WatchfulEngine
from cogwork.plugin.engine.errors import ConsensusError, Unsupported, reason_of

if TYPE_CHECKING:
    from cogwork.plugin.engine.contract import Engine, Members

__all__ = ("Sight",)

LOOK_LATEST_S = 30.0
"""How old it may be where nothing comes and nobody looks; an engine has to be asked each time."""

LOOK_TIMEOUT_S = 10.0
"""An engine that has not answered for so long is away."""


class Sight:
    """As an engine told it last.

    Attributes:
        bounds: The first offset, and the next one.
        members: Who holds the stream; None before that is known.
        prompt: The engine where it tells at once; else None.
        unread: Why nothing of it can be followed; None where that is not so.
    """

    def __init__(self) -> None:
        """Initialize it; it sees nothing yet."""
        self.bounds = Bounds(0, 0)
        self.members: Members | None = None
        self.prompt: PromptEngine | None = None
        self.unread: str | None = None
        self._engine: Engine | None = None
        self._watchful: WatchfulEngine | None = None
        self._unanswered: str | None = None
        self._is_looking = False
        self._is_shown = False
        self._looked_s = 0.0

    def open(self, engine: Engine) -> None:
        """Look at an engine from now on."""
        self._engine = engine
        self.prompt = engine if isinstance(engine, PromptEngine) else None
        self._watchful = engine if isinstance(engine, WatchfulEngine) else None

    def close(self) -> None:
        """Look at none any more."""
        self._engine = self.prompt = self._watchful = None

    @property
    def outage(self) -> str | None:
        """Why what keeps the stream is away; None where it is not, as far as that is known."""
        told = self._watchful.outage if self._watchful is not None else None
        return told or self._unanswered or self.unread

    def show(self) -> None:
        """Look for somebody: at once, where that is possible, and else when it is due."""
        self._is_shown = True
        self.glance()

    def glance(self) -> bool:
        """Look at once, where that is possible; return whether it was."""
        if self.prompt is None:
            return False
        with suppress(ConsensusError):
            seen = self.prompt.glance()
            if seen is not None:
                self.bounds, self.members = seen
                return True
        return False

    def is_due(self, now_s: float, *, is_quiet: bool) -> bool:
        """Return whether to ask the engine; not where nothing comes, nobody looks and all is well.

        Args:
            now_s: The time.
            is_quiet: Whether nothing has come lately.
        """
        if self._is_looking:
            return False
        is_calm = is_quiet and not self._is_shown and self.outage is None
        if is_calm and now_s - self._looked_s < LOOK_LATEST_S:
            return False
        self._is_shown = False
        self._looked_s = now_s
        return True

    async def look(self) -> None:
        """Ask the engine for everything; note where it does not answer."""
        if self._engine is None:
            return
        self._is_looking = True
        try:
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                with suppress(Unsupported):
                    self.members = await self._engine.members()
                self.bounds = await self._engine.bounds()
            self._unanswered = None
        except TimeoutError:
            self._unanswered = f"its engine has not answered for {LOOK_TIMEOUT_S:.0f} s"
        except ConsensusError as error:
            self._unanswered = reason_of(error)
        except Exception as error:  # a plug-in's, too: it is asked again
            self._unanswered = repr(error)
        finally:
            self._is_looking = False

    async def measure(self) -> None:
        """Ask the engine for the bounds; raise whatever it does."""
        if self._engine is not None:
            self.bounds = await self._engine.bounds()
