"""How values of the container are written in a page: as text, whatever they hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cogwork.cli.terminal.rendering import encoded_as_json, encoded_as_text, jsonable
from cogwork.cli.terminal.tables import in_bytes, in_words
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("FORMS", "body", "line", "name", "plain", "rate", "sections", "value")

NAME_CHARACTERS_MAX = 200
LINE_CHARACTERS_MAX = 2000
BODY_CHARACTERS_MAX = 4000
NOTHING = "-"


def name(text: object, characters_max: int = NAME_CHARACTERS_MAX) -> Markup:
    """Write a name: cut if it is long, on its own side of any right-to-left writing."""
    whole = str(text)
    shown = visible(whole[:characters_max])
    if len(whole) > characters_max:
        return Markup('<bdi title="{} characters">{}…</bdi>').format(len(whole), shown)
    return Markup("<bdi>{}</bdi>").format(shown)


def line(text: object) -> Markup:
    """Write what went well or wrong: longer than names may be."""
    return name(text, LINE_CHARACTERS_MAX)


def body(message: bytes) -> Markup:
    """Write the body of an encoded message; line ends stay, and what is too long is cut."""
    return plain(encoded_as_text(message))


def plain(found: str | bytes) -> Markup:
    """Write a text with its line ends; octets that are no UTF-8 are shown as such."""
    whole = found if isinstance(found, str) else found.decode(errors="backslashreplace")
    lines = whole[:BODY_CHARACTERS_MAX].expandtabs(4).split("\n")
    shown = Markup("\n").join(map(visible, lines))
    if len(whole) <= BODY_CHARACTERS_MAX:
        return Markup('<pre class="body" dir="auto">{}</pre>').format(shown)
    more = f"{len(whole):,} characters in all; the first {BODY_CHARACTERS_MAX:,} are shown"
    return Markup('<pre class="body" dir="auto">{}…</pre><p class="cut">{}</p>').format(shown, more)


def sections(message: bytes) -> dict[str, Any]:
    """Return what an encoded message holds besides its body, section by section."""
    found: dict[str, Any] = json.loads(encoded_as_json(message))
    found.pop("body", None)
    if isinstance(whole := found.get("message"), dict):  # one that nobody can read
        whole.pop("base64", None)
    return found


def count(number: Any) -> str:  # noqa: ANN401  # as it came
    """Write a whole number, by thousands."""
    return NOTHING if number is None else f"{number:,}"


def octets(number: Any) -> str:  # noqa: ANN401  # as it came
    """Write a size."""
    return NOTHING if number is None else in_bytes(number)


def seconds(number: Any) -> str:  # noqa: ANN401  # as it came
    """Write a duration."""
    return NOTHING if number is None else in_words(number)


def rate(number: float) -> str:
    """Write how many a second."""
    return f"{number:,.0f}/s" if number >= 10 else f"{number:.3g}/s"


def flag(is_set: object) -> str:
    """Write yes or no."""
    return "yes" if is_set else "no"


def short_time(text: object) -> Markup:
    """Write a time that came as ISO 8601, in UTC, to the second."""
    whole = str(text)
    return Markup('<time datetime="{}">{}</time>').format(
        whole, whole[:19].replace("T", " ") if text else NOTHING
    )


def value(found: Any) -> Markup:  # noqa: ANN401  # whatever an attribute may be
    """Write any attribute: lists and maps as small tables."""
    found = jsonable(found)
    match found:
        case None | "" | []:
            return Markup(NOTHING)
        case bool() | int() | float():
            return _figure(found)
        case list():
            return Markup(", ").join(map(value, found))
        case dict():
            return _map(found)
        case _:
            return name(found)


def _figure(number: float) -> Markup:
    if isinstance(number, bool):
        return Markup(flag(number))
    return Markup(f"{number:,}" if isinstance(number, int) else f"{number:,.6g}")


def _map(found: Mapping[str, Any]) -> Markup:
    if not found:
        return Markup(NOTHING)
    rows = (
        Markup("<tr><th scope=row>{}</th><td>{}</td></tr>").format(name(key), value(each))
        for key, each in found.items()
        if each is not None
    )
    return Markup('<table class="map">{}</table>').format(Markup("").join(rows))


FORMS: dict[str, Callable[[Any], object]] = {
    "name": name,
    "text": value,
    "count": count,
    "bytes": octets,
    "seconds": seconds,
    "time": short_time,
    "flag": flag,
}
"""How a column is written, by what it says it holds."""
