"""Checks of `[[exchange]]` and `[[binding]]`, which name each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.errors import EncodeError
from cogwork.amqp091.tables import encode_table
from cogwork.config.problems import Problem, each, twice
from cogwork.plugin.exchange_types import PluginError, exchange_type, exchange_types
from cogwork.router.exchanges.addresses import destination_in
from cogwork.router.exchanges.binding import EXCHANGE
from cogwork.router.exchanges.names import PREDECLARED, problem_of_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.settings import Binding, Configuration, Exchange, Vhost

__all__ = ("check_exchanges",)


def check_exchanges(vhost: Configuration | Vhost) -> Iterator[Problem]:
    """Find what is wrong with the exchanges and bindings of a virtual host."""
    yield from each("exchange", vhost.exchanges, _exchange)
    yield from twice("exchange", "name", [exchange.name for exchange in vhost.exchanges])
    there = {*PREDECLARED, *(exchange.name for exchange in vhost.exchanges)}
    yield from each("binding", vhost.bindings, lambda binding: _binding(binding, there))


def _exchange(exchange: Exchange) -> Iterator[Problem]:
    problem = problem_of_name(exchange.name)
    if problem:
        yield Problem(("name",), f'"{exchange.name:.80}"', problem)
    try:
        if exchange_type(exchange.type) is None:
            known = ", ".join(exchange_types())
            yield Problem(("type",), f'"{exchange.type:.80}"', f"one of {known}")
    except PluginError as error:
        yield Problem(("type",), str(error), "a type that can be loaded")
    yield from _arguments(exchange.arguments)


def _binding(binding: Binding, there: set[str]) -> Iterator[Problem]:
    expected = "an exchange: one of [[exchange]], or amq.direct and its like"
    if binding.source not in there:
        yield Problem(("source",), f'"{binding.source:.80}"', expected)
    destination = destination_in(binding.destination)
    if destination is None:
        text = "queue/NAME or exchange/NAME"
        yield Problem(("destination",), f'"{binding.destination:.80}"', text)
    elif destination.kind == EXCHANGE and destination.name not in there:
        yield Problem(("destination",), f'"{binding.destination:.80}"', expected)
    yield from _arguments(binding.arguments)


def _arguments(arguments: dict[str, object]) -> Iterator[Problem]:
    try:
        encode_table(arguments)
    except EncodeError as error:
        yield Problem(("arguments",), str(error), "strings, numbers, booleans, arrays and tables")
