"""The graph of exchanges under random histories, held to a model too simple to be wrong."""

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from cogwork.plugin.exchange_types import exchange_type
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Binding, Destination, Routed
from cogwork.router.exchanges.graph import ExchangeGraph

TYPES = {"d": "direct", "f": "fanout", "t": "topic", "h": "headers", "t2": "topic", "d2": "direct"}
ALTERNATES = {"d": "f", "t": "d2", "h": "", "d2": "missing"}
"""Of an exchange, of a chain of them, the default one, and one that is not there."""

NAMES = st.sampled_from(sorted(TYPES))
WORDS = st.sampled_from(["a", "b", "", "long word", "\udcff"])
KEYS = st.lists(WORDS, max_size=4).map(".".join)
PATTERNS = st.lists(st.one_of(WORDS, st.sampled_from(["*", "#"])), max_size=4).map(".".join)
VALUES = st.sampled_from([None, True, 1, 2, 1.0, "1", b"1", [1, "x"], {"k": 1}])
HEADERS = st.dictionaries(st.sampled_from(["a", "b", "x-c"]), VALUES, max_size=3)
MODES = st.sampled_from([None, "all", "any", "all-with-x", "any-with-x"])
DESTINATIONS = st.one_of(
    st.builds(Destination, st.just(QUEUE), st.sampled_from(["q1", "q2", "a"])),
    st.builds(Destination, st.just(EXCHANGE), NAMES),
)


def octets(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def made(destination: Destination, key: str, headers: dict[str, object], mode: object) -> Binding:
    arguments = headers if mode is None else headers | {"x-match": mode}
    return Binding(destination, octets(key), arguments)


BINDINGS = st.tuples(
    NAMES, st.builds(made, DESTINATIONS, st.one_of(KEYS, PATTERNS), HEADERS, MODES)
)
STEPS = st.lists(st.tuples(st.sampled_from(["bind", "bind", "unbind", "drop"]), BINDINGS))

Bound = set[tuple[str, Binding]]


def takes_topic(pattern: list[bytes], words: list[bytes]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == b"#":
        return takes_topic(pattern[1:], words) or (bool(words) and takes_topic(pattern, words[1:]))
    return bool(words) and pattern[0] in (b"*", words[0]) and takes_topic(pattern[1:], words[1:])


def words_of(key: bytes) -> list[bytes]:
    return key.split(b".") if key else []


def is_same(wanted: object, found: object) -> bool:
    return wanted is None or (type(wanted) is type(found) and wanted == found)


def takes_headers(arguments: Mapping[str, object], headers: Mapping[str, object]) -> bool:
    mode = str(arguments.get("x-match", "all"))
    wanted = {
        key: value
        for key, value in arguments.items()
        if key != "x-match" and (mode.endswith("-x") or not key.startswith("x-"))
    }
    hits = [key in headers and is_same(value, headers[key]) for key, value in wanted.items()]
    return all(hits) if mode.startswith("all") else any(hits)


def takes(kind: str, binding: Binding, key: bytes, headers: Mapping[str, object]) -> bool:
    match kind:
        case "direct":
            return binding.key == key
        case "fanout":
            return True
        case "topic":
            return takes_topic(words_of(binding.key), words_of(key))
        case _:
            return takes_headers(binding.arguments, headers)


def reached(bound: Bound, start: str, key: bytes, headers: Mapping[str, object]) -> set[str]:
    """Follow the bindings from an exchange, as the rules say it."""
    queues: set[str] = set()
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        if not name:
            queues.add(key.decode(errors="surrogateescape"))
        found = list(matching(bound, name, key, headers))
        for destination in found:
            if destination.kind == QUEUE:
                queues.add(destination.name)
            else:
                visit(destination.name)
        if not found and name in ALTERNATES:
            visit(ALTERNATES[name])

    visit(start)
    return queues


def matching(
    bound: Bound, name: str, key: bytes, headers: Mapping[str, object]
) -> Iterator[Destination]:
    for source, binding in bound:
        if source == name and takes(TYPES[name], binding, key, headers):
            yield binding.destination


def new_graph() -> ExchangeGraph:
    graph = ExchangeGraph()
    for name, kind in TYPES.items():
        factory = exchange_type(kind)
        assert factory is not None
        graph.add(name, factory({}, lambda _below: 0), ALTERNATES.get(name))
    return graph


@given(STEPS, NAMES, KEYS, HEADERS)
def test_a_message_reaches_what_the_bindings_of_the_moment_say(
    steps: list[tuple[str, tuple[str, Binding]]],
    start: str,
    key: str,
    headers: dict[str, object],
) -> None:
    graph, bound = new_graph(), Bound()
    for step, (source, binding) in steps:
        version, pair = graph.version, (source, binding)
        if step == "bind":
            assert graph.bind(source, binding) == (pair not in bound)
            bound.add(pair)
        elif step == "unbind":
            assert graph.unbind(source, binding) == (pair in bound)
            bound.discard(pair)
        else:
            lost = {each for each in bound if each[1].destination == binding.destination}
            assert set(graph.unbind_all(binding.destination)) == lost
            bound -= lost
        assert graph.version >= version
        assert graph.binding_count == len(bound)
        assert {(name, each) for name in TYPES for each in graph.bindings(name)} == bound
        route = graph.route(start, Routed((octets(key),), lambda: headers))
        assert len(route.queues) == len(set(route.queues))
        assert set(route.queues) == reached(bound, start, octets(key), headers)
        if route.is_by_key:
            assert graph.route(start, Routed((octets(key),))).queues == route.queues


@given(st.lists(BINDINGS), NAMES)
def test_an_exchange_that_is_removed_leaves_nothing(
    bindings: list[tuple[str, Binding]], name: str
) -> None:
    graph, bound = new_graph(), Bound()
    for source, binding in bindings:
        graph.bind(source, binding)
        bound.add((source, binding))
    to_it = {(s, b) for s, b in bound if b.destination == Destination(EXCHANGE, name)}
    assert set(graph.remove(name)) == to_it
    left = {(s, b) for s, b in bound - to_it if s != name}
    assert name not in graph
    assert graph.binding_count == len(left)
    assert {(s, b) for s in TYPES if s != name for b in graph.bindings(s)} == left
