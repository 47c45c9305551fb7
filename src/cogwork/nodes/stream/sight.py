"""What people see of a stream that its engine knows: where it begins and ends, and who holds it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.consensus.engine import Bounds, PromptEngine
from cogwork.consensus.errors import ConsensusError

if TYPE_CHECKING:
    from cogwork.consensus.engine import Engine, Members

__all__ = ("Sight",)

LOOK_LATEST_S = 30.0
"""How old it may be where nothing comes and nobody looks; an engine has to be asked each time."""


class Sight:
    """As an engine told it last.

    Attributes:
        bounds: The first offset, and the next one.
        members: Who holds the stream; None before that is known.
        prompt: The engine where it tells at once; else None.
    """

    def __init__(self) -> None:
        """Sees nothing yet."""
        self.bounds = Bounds(0, 0)
        self.members: Members | None = None
        self.prompt: PromptEngine | None = None
        self._engine: Engine | None = None
        self._is_shown = False
        self._looked_s = 0.0

    def open(self, engine: Engine) -> None:
        """Looks at an engine from now on."""
        self._engine = engine
        self.prompt = engine if isinstance(engine, PromptEngine) else None

    def close(self) -> None:
        """Looks at none any more."""
        self._engine = self.prompt = None

    def show(self) -> None:
        """Looks for somebody: at once, where that is possible, and else when it is due."""
        self._is_shown = True
        self.glance()

    def glance(self) -> bool:
        """Looks at once, where that is possible; returns whether it was."""
        if self.prompt is None:
            return False
        with suppress(ConsensusError):
            seen = self.prompt.glance()
            if seen is not None:
                self.bounds, self.members = seen
                return True
        return False

    def is_due(self, now_s: float, *, is_quiet: bool) -> bool:
        """Says whether to ask the engine; not where nothing comes and nobody looks.

        Args:
            now_s: The time.
            is_quiet: Whether nothing has come lately.
        """
        if is_quiet and not self._is_shown and now_s - self._looked_s < LOOK_LATEST_S:
            return False
        self._is_shown = False
        self._looked_s = now_s
        return True

    async def look(self) -> None:
        """Asks the engine for everything."""
        if self._engine is not None:
            with suppress(ConsensusError):
                self.bounds = await self._engine.bounds()
                self.members = await self._engine.members()

    async def measure(self) -> None:
        """Asks the engine for the bounds."""
        if self._engine is not None:
            self.bounds = await self._engine.bounds()
