"""How a client gets its calls, which are built upon it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import cogwork
from cogwork.client import RpcOptions
from cogwork.rpc.calls import ClientCalls

if TYPE_CHECKING:
    from cogwork.client.calls import Calls

MESSAGES_ALONE = """
import sys
import cogwork
client = cogwork.connect("amqp://localhost")
assert not [name for name in sys.modules if name.startswith("cogwork.rpc")]
"""

CALLS = MESSAGES_ALONE + "client.rpc\nassert 'cogwork.rpc.calling.caller' in sys.modules\n"


def test_a_client_that_calls_nothing_does_not_load_rpc() -> None:
    subprocess.run([sys.executable, "-c", MESSAGES_ALONE], check=True)


def test_a_client_loads_rpc_when_it_first_calls() -> None:
    subprocess.run([sys.executable, "-c", CALLS], check=True)


def test_the_client_and_its_calls_fit_the_protocols_that_they_know_each_other_by() -> None:
    client = cogwork.connect("amqp://localhost")
    calls: Calls = ClientCalls(client, RpcOptions(), None)  # here mypy compares both with them
    assert type(client.rpc) is type(calls)
    assert client.rpc is client.rpc
