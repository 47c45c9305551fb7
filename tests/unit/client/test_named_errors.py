"""What the client's docstrings say that a call raises can be imported, and is explained."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest

import cogwork
from cogwork import schema

ROOT = Path(__file__).parents[3]

USED_BY_APPLICATIONS = (
    "client/receiving/consumer.py",
    "client/client.py",
    "client/publishing/publisher.py",
    "client/links/receiver.py",
    "client/schemas.py",
    "client/streams/stream.py",
    "client/streams/publisher.py",
    "client/streams/reader.py",
    "client/receiving/subscription.py",
    "sync/rpc.py",
    "dataplane/client/claims.py",
    "dataplane/client/items.py",
    "sync/ends.py",
    "sync/client.py",
    "sync/schemas.py",
    "sync/stream.py",
)


def raised_in(file: str) -> set[str]:
    """Return the names in the `Raises` sections of a file's docstrings."""
    text = (ROOT / "src/cogwork" / file).read_text()
    sections = re.findall(r"^( +)Raises:\n((?:\1 +.*\n)+)", text, re.MULTILINE)
    names = [
        re.findall(r"^ +((?:[A-Z]\w+(?:, )?)+): ", section, re.MULTILINE) for _, section in sections
    ]
    return {name for found in names for each in found for name in each.split(", ")}


@pytest.mark.parametrize("file", USED_BY_APPLICATIONS)
def test_errors_that_an_application_may_get_are_exported(file: str) -> None:
    known = {*dir(cogwork), *schema.__all__, *dir(builtins)}
    assert raised_in(file) - known == set()


def test_errors_that_an_application_may_get_are_documented() -> None:
    documented = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    raised = set[str]().union(*map(raised_in, USED_BY_APPLICATIONS)) - {*dir(builtins)}
    assert "LocalProtocolError" in raised
    assert {name for name in raised if not re.search(rf"`(cogwork\.)?{name}`", documented)} == set()


def test_an_error_of_this_program_is_one_of_cogworks() -> None:
    assert issubclass(cogwork.LocalProtocolError, cogwork.CogworkError)
    assert not issubclass(cogwork.LocalProtocolError, cogwork.ClientError)
