"""Every library reads what every other writes, without a broker between them.

What fails here is an encoder's or decoder's fault; what fails only in the pairs is the broker's.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from .cases import possible, section_messages, type_messages
from .clients import CLIENTS
from .comparison import differences

if TYPE_CHECKING:
    from .conftest import GetPeer
    from .notation import Json

PAIRS = list(itertools.product(CLIENTS, CLIENTS))


@pytest.mark.parametrize(("writer", "reader"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@pytest.mark.parametrize("cases", [type_messages(), section_messages()], ids=["types", "sections"])
def test_one_reads_what_the_other_wrote(
    writer: str, reader: str, cases: dict[str, Json], peer: GetPeer
) -> None:
    written = possible(cases, writer, reader)
    encoded = peer(writer, "codec").run("encode", messages=list(written.values())).result
    decoded = peer(reader, "codec").run("decode", encoded=encoded["encoded"]).result
    changed = {
        name: found
        for (name, message), read in zip(written.items(), decoded["messages"], strict=True)
        if (found := differences(message, read))
    }
    assert changed == {}
