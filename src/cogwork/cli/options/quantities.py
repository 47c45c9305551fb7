"""Numbers as options: with bounds that what they are for has, too."""

from __future__ import annotations

import math
from typing import cast

import click

__all__ = ("COUNT", "COUNT_MAX", "DURATION", "Finite", "Whole")

COUNT_MAX = 2**63 - 1
"""What a container can be asked for, and an option of a stream can be."""


class Whole(click.IntRange):
    """A whole number within bounds, in words that are not click's: an integer range."""

    name = "n"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the text."""
        try:
            number = int(cast("str", value))
        except ValueError:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        return super().convert(number, param, ctx)


COUNT = Whole(1, COUNT_MAX)
"""How many, of something that there is one of at least."""


class Finite(click.FloatRange):
    """A number within bounds; one that is none, or has no end, would pass them."""

    name = "n"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the text."""
        try:
            number = float(cast("str", value))
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        number = float(super().convert(number, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


DURATION = Finite(0, 4_294_967.295, min_open=True)
"""Seconds: as many as a message can live (AMQP 1.0 §3.2.1, milliseconds in 32 bits)."""
