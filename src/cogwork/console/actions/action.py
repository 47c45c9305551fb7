"""An action: a form that people fill in, and what becomes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cogwork.console.errors import WrongForm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cogwork.console.session import Session

__all__ = ("Action", "Done", "Field", "Shown", "flag_of", "number_of", "pairs_of", "words_of")

NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Field:
    """What a form asks for.

    Attributes:
        name: In the form.
        label: For people.
        kind: What it is entered in.
        default: What it holds at first.
        is_required: Whether it may not be empty.
        hint: How to fill it in.
        choices: What can be chosen.
        most: The highest number.
    """

    name: str
    label: str
    kind: Literal["text", "number", "area", "choice", "flag", "password"] = "text"
    default: str = ""
    is_required: bool = False
    hint: str = ""
    choices: Sequence[str] = ()
    most: int = NUMBER_MAX


class Shown(NamedTuple):
    """A message that a page shows.

    Attributes:
        title: Which one it is.
        facts: What is known of it, besides what it says.
        message: The message, encoded.
    """

    title: str
    facts: Mapping[str, Any]
    message: bytes


class Done(NamedTuple):
    """What an action has come to.

    Attributes:
        text: For people.
        is_gone: Whether the entity has no page any more.
        shown: Messages that it gave.
        is_problem: Whether something is left to be looked at.
    """

    text: str
    is_gone: bool = False
    shown: Sequence[Shown] = ()
    is_problem: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done.

    Attributes:
        name: In the path of its form.
        title: What it is called.
        run: Does it, as the session's user, with the fields of the form; `name` is the entity's.
        button: What the button says; the title without it.
        fields: What the form asks for.
        is_dangerous: Whether something is lost by it.
        warning: What is lost.
    """

    name: str
    title: str
    run: Callable[[Session, Mapping[str, str]], Awaitable[Done]]
    button: str = ""
    fields: Sequence[Field] = field(default=())
    is_dangerous: bool = False
    warning: str = ""

    @property
    def needs_name(self) -> bool:
        """Whether the page of the form says what it is done to."""
        return self.name != "permission.add"

    def demand_fields(self, fields: Mapping[str, str]) -> None:
        """Check what somebody has entered.

        Raises:
            WrongForm: Something is missing, is no number, or cannot be chosen.
        """
        for each in self.fields:
            text = fields.get(each.name, "")
            if each.is_required and not text:
                raise WrongForm(f"{each.label} is missing")
            if each.kind == "number" and text:
                number_of(text, each.label, each.most)
            if each.kind == "choice" and text and text not in each.choices:
                raise WrongForm(f"{each.label}: expected one of {', '.join(each.choices)}")


def number_of(text: str, label: str, most: int = NUMBER_MAX) -> int:
    """Read a whole number from 0 on.

    Args:
        text: What somebody has entered.
        label: For the error.
        most: The highest.

    Raises:
        WrongForm: It is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise WrongForm(f"{label}: expected a whole number from 0 to {most:,}")
    return int(text)


def flag_of(fields: Mapping[str, str], name: str) -> bool:
    """Return whether a box is ticked."""
    return fields.get(name, "") != ""


def words_of(text: str) -> list[str]:
    """Read names between commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


def pairs_of(text: str, label: str) -> dict[str, Any]:
    """Read `K=V` from each line; the value is JSON, or text where it is none.

    Args:
        text: What somebody has entered.
        label: For the error.

    Raises:
        WrongForm: A line is no K=V.
    """
    pairs: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise WrongForm(f"{label}: {line!r:.80} is no K=V")
        try:
            pairs[key.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            pairs[key.strip()] = value.strip()
    return pairs
