"""Topics: who takes a subject, and what is left when bindings go."""

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from cogwork.router.topics import CACHE_LIMIT, MAX_PATTERN_WORDS, PatternTooLongError, TopicTrie


class Outlet:
    """Something to deliver to."""


class Leaving:
    """Garbage, once made, that only the collector finds, and that does something when it goes."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.itself = self
        self.action = action

    def __del__(self) -> None:
        self.action()


@pytest.fixture
def trie() -> TopicTrie:
    return TopicTrie()


@pytest.fixture
def eager_collector() -> Iterator[None]:
    """Let the garbage collector run wherever it can."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what other tests have left would be looked through each time
    gc.set_threshold(1)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def bound(trie: TopicTrie, **patterns: bytes) -> TopicTrie:
    for outlet, pattern in patterns.items():
        trie.bind(pattern, outlet)
    return trie


def test_a_literal_pattern_takes_its_own_subject_alone(trie: TopicTrie) -> None:
    bound(trie, a=b"flights.JFK.LAX")
    assert trie.match(b"flights.JFK.LAX") == ["a"]
    assert trie.match(b"flights.JFK") == []
    assert trie.match(b"flights.JFK.LAX.AA") == []


def test_a_star_is_exactly_one_word(trie: TopicTrie) -> None:
    bound(trie, a=b"flights.*.LAX.*")
    assert trie.match(b"flights.JFK.LAX.AA") == ["a"]
    assert trie.match(b"flights..LAX.AA") == ["a"]
    assert trie.match(b"flights.JFK.LAX") == []
    assert trie.match(b"flights.JFK.X.LAX.AA") == []


@pytest.mark.parametrize(
    ("pattern", "subject", "takes"),
    [
        (b"#", b"", True),
        (b"#", b"a.b", True),
        (b"flights.#", b"flights", True),
        (b"flights.#", b"flights.JFK.LAX", True),
        (b"flights.#", b"flightsJFK", False),
        (b"#.AA", b"AA", True),
        (b"#.AA", b"flights.JFK.AA", True),
        (b"#.AA", b"flights.AA.JFK", False),
        (b"a.#.b", b"a.b", True),
        (b"a.#.b", b"a.b.b.c.b", True),
        (b"#.#", b"", True),
        (b"#.*", b"", False),
        (b"#.*", b"a", True),
        (b"*", b"", False),
        (b"", b"", True),
        (b"", b"a", False),
        (b"a.*", b"a.", True),
        (b"a*.b", b"a*.b", True),
        (b"a*.b", b"ax.b", False),
        (b"#.a.#.a.#", b"a", False),
        (b"#.a.#.a.#", b"x.a.y.a.z", True),
    ],
)
def test_the_rules_of_wildcards(
    trie: TopicTrie, pattern: bytes, subject: bytes, takes: bool
) -> None:
    bound(trie, a=pattern)
    assert trie.match(subject) == (["a"] if takes else [])


def test_wildcards_in_a_subject_are_plain_words(trie: TopicTrie) -> None:
    bound(trie, literal=b"a.b", star=b"a.*", hash=b"#")
    assert trie.match(b"a.*") == ["hash", "star"] or trie.match(b"a.*") == ["star", "hash"]
    assert trie.match(b"#") == ["hash"]


def test_an_outlet_with_several_patterns_gets_one_copy(trie: TopicTrie) -> None:
    for pattern in (b"a.b", b"a.*", b"#", b"*.b", b"#.b"):
        assert trie.bind(pattern, "one")
    trie.bind(b"a.#", "two")
    assert sorted(map(str, trie.match(b"a.b"))) == ["one", "two"]
    assert len(trie) == 6


def test_outlets_of_one_pattern_come_in_the_order_of_binding(trie: TopicTrie) -> None:
    for outlet in range(100):
        trie.bind(b"a.#", outlet)
    assert trie.match(b"a.b") == list(range(100))


def test_binding_twice_is_once(trie: TopicTrie) -> None:
    assert trie.bind(b"a.#", "x")
    version = trie.version
    assert not trie.bind(b"a.#", "x")
    assert trie.version == version
    assert trie.unbind(b"a.#", "x")
    assert not trie.unbind(b"a.#", "x")
    assert not trie.unbind(b"never.bound", "x")
    assert trie.version == version + 1
    assert trie.match(b"a") == []


def test_a_kept_result_is_forgotten_with_the_next_change(trie: TopicTrie) -> None:
    bound(trie, a=b"a.#")
    for _ in range(3):
        assert trie.match(b"a.b") == ["a"]
    trie.bind(b"a.b", "b")
    for _ in range(3):
        assert sorted(map(str, trie.match(b"a.b"))) == ["a", "b"]
    trie.unbind(b"a.#", "a")
    assert trie.match(b"a.b") == ["b"]


def test_a_subject_that_comes_again_shares_its_result(trie: TopicTrie) -> None:
    bound(trie, a=b"a.#")
    trie.match(b"a.b")
    second = trie.match(b"a.b")
    assert trie.match(b"a.b") is second


def test_status_counts_the_outlets_of_each_pattern(trie: TopicTrie) -> None:
    bound(trie, a=b"x.y", b=b"x.y", c=b"x.#")
    assert trie.patterns() == {b"x.y": 2, b"x.#": 1}


def test_more_subjects_than_are_kept(trie: TopicTrie) -> None:
    bound(trie, a=b"*.0", b=b"s.#")
    for _ in range(3):
        for number in range(CACHE_LIMIT + 10):
            expected = ["b"] if number else ["a", "b"]
            found = trie.match(b"s.%d" % number)
            assert sorted(map(str, found)) == expected


def test_a_released_outlet_is_held_by_nothing(trie: TopicTrie) -> None:
    outlet = Outlet()
    gone = weakref.ref(outlet)
    trie.bind(b"a.*", outlet)
    trie.bind(b"a.b", outlet)
    for _ in range(3):
        trie.match(b"a.b")
    trie.unbind(b"a.*", outlet)
    trie.unbind(b"a.b", outlet)
    del outlet
    gc.collect()
    assert gone() is None


def test_churn_leaves_no_branch_behind(trie: TopicTrie) -> None:
    trie.bind(b"keep.*.this", "k")
    gc.collect()
    before = len(gc.get_objects())
    for number in range(2000):
        pattern = b"a.*.%d.#.z" % number
        trie.bind(pattern, number)
        trie.match(b"a.b.%d.z" % number)
        if number >= 50:
            trie.unbind(b"a.*.%d.#.z" % (number - 50), number - 50)
    for number in range(1950, 2000):
        assert trie.match(b"a.b.%d.c.z" % number) == [number]
        trie.unbind(b"a.*.%d.#.z" % number, number)
    gc.collect()
    assert len(trie) == 1
    assert trie.patterns() == {b"keep.*.this": 1}
    assert trie.match(b"keep.on.this") == ["k"]
    assert len(gc.get_objects()) - before < 20
    assert trie.branch_count == 4


def test_pruning_spares_what_others_use(trie: TopicTrie) -> None:
    bound(trie, short=b"a.*", long=b"a.*.c", named=b"a.b.*")
    trie.unbind(b"a.*.c", "long")
    assert trie.match(b"a.x") == ["short"]
    trie.unbind(b"a.*", "short")
    assert trie.match(b"a.b.c") == ["named"]
    trie.bind(b"a.*.c", "long")
    assert sorted(map(str, trie.match(b"a.b.c"))) == ["long", "named"]


def test_a_pattern_has_a_limit_of_words(trie: TopicTrie) -> None:
    at_limit = b".".join([b"*"] * MAX_PATTERN_WORDS)
    assert trie.bind(at_limit, "a")
    assert trie.match(at_limit) == ["a"]
    with pytest.raises(PatternTooLongError, match="129 words; at most 128"):
        trie.bind(at_limit + b".*", "a")
    assert len(trie) == 1


def test_many_hashes_in_a_hostile_pattern_cost_little(trie: TopicTrie) -> None:
    trie.bind(b".".join([b"#.a"] * 60) + b".b", "never")
    subject = b".".join([b"a"] * 120)
    start_s = time.process_time()
    assert trie.match(subject) == []
    assert time.process_time() - start_s < 1.0


def test_words_that_collide_are_told_apart() -> None:
    trie = TopicTrie(secret=0)
    patterns = [b"a.*.b", b"a.*.c", b"b.*.b", b"a.b.*", b"a.*"]
    for pattern in patterns:
        trie.bind(pattern, pattern)
    assert trie.match(b"a.x.b") == [b"a.*.b"]
    assert trie.match(b"b.x.b") == [b"b.*.b"]
    assert trie.match(b"c.x.b") == []
    for pattern in patterns[:3]:
        trie.unbind(pattern, pattern)
    assert trie.match(b"a.b.b") == [b"a.b.*"]
    assert trie.match(b"a.b") == [b"a.*"]


def test_long_words_that_collide_are_held_to_the_bytes() -> None:
    trie = TopicTrie(secret=0)
    words = [b"departures", b"departureS", b"arrivals", b"departures.late", b"Departures"]
    for word in words:
        trie.bind(word + b".#", word)
    for _ in range(3):
        assert trie.match(b"departures.now") == [b"departures"]
        assert trie.match(b"departureS") == [b"departureS"]
        assert trie.match(b"arrivals") == [b"arrivals"]
        assert trie.match(b"arrival") == []
        assert trie.match(b"departures_") == []
    trie.unbind(b"departures.late.#", b"departures.late")
    trie.unbind(b"departureS.#", b"departureS")
    assert trie.match(b"departures") == [b"departures"]
    assert trie.match(b"departureS") == []


@pytest.mark.parametrize("size", range(20))
def test_words_of_every_length_are_read_exactly(trie: TopicTrie, size: int) -> None:
    word = b"abcdefghijklmnopqrst"[:size]
    trie.bind(b"*." + word + b".#", "it")
    assert trie.match(b"x." + word + b".y") == ["it"]
    assert trie.match(b"x." + word) == ["it"]
    assert trie.match(b"x." + word + b"_.y") == []
    assert trie.match(b"x." + word + b"\0") == []
    if word:
        assert trie.match(b"x." + word[:-1] + b".y") == []
        assert trie.match(b"x.A" + word[1:] + b".y") == []


@pytest.mark.parametrize("byte", [0x00, 0x2D, 0x2F, 0x80, 0xAE, 0xFF])
def test_bytes_that_resemble_a_dot_part_no_words(trie: TopicTrie, byte: int) -> None:
    word = bytes([byte]) * 3
    trie.bind(word + b".*." + word, "it")
    assert trie.match(word + b".." + word) == ["it"]
    assert trie.match(word + b"." + word + b"." + word) == ["it"]
    assert trie.match(word + b"." + word) == []


@pytest.mark.parametrize("pattern", [b"a.%d.*", b"*.%d", b"#.%d", b"a.number %d", b"%d.a.b"])
def test_many_names_come_and_go(trie: TopicTrie, pattern: bytes) -> None:
    numbers = range(3000)
    for number in numbers:
        trie.bind(pattern % number, number)
    for number in numbers:
        assert trie.match((pattern % number).replace(b"*", b"x")) == [number]
        if number % 100:
            trie.unbind(pattern % number, number)
    for number in numbers:
        expected = [] if number % 100 else [number]
        assert trie.match((pattern % number).replace(b"*", b"x")) == expected
        trie.unbind(pattern % number, number)
    assert trie.branch_count == 1


def test_many_outlets_of_one_pattern_come_and_go(trie: TopicTrie) -> None:
    count = 1000
    for outlet in range(count):
        trie.bind(b"a.*", outlet)
    for outlet in range(0, count, 3):
        assert trie.unbind(b"a.*", outlet)
    assert sorted(map(int, map(str, trie.match(b"a.b")))) == [n for n in range(count) if n % 3]
    for outlet in range(count):
        assert trie.unbind(b"a.*", outlet) == bool(outlet % 3)
    assert trie.match(b"a.b") == []
    assert trie.branch_count == 1


def test_an_outlet_that_is_equal_to_another_is_that_one(trie: TopicTrie) -> None:
    first, second = b"outlet %d" % 1, b"outlet %d" % 1
    assert first is not second
    assert trie.bind(b"a.*", first)
    assert not trie.bind(b"a.*", second)
    assert trie.match(b"a.b")[0] is first
    assert trie.bind(b"*.b", second)
    assert trie.match(b"a.b") == [first]
    assert trie.unbind(b"a.*", second)
    assert trie.unbind(b"*.b", second)
    assert trie.match(b"a.b") == []


@pytest.mark.usefixtures("eager_collector")
def test_a_match_that_the_collector_interrupts_is_done_again(trie: TopicTrie) -> None:
    matched: list[list[object]] = []
    bound(trie, a=b"a.*", b=b"*.b", c=b"c.#")
    for number in range(200):
        Leaving(lambda: matched.append(trie.match(b"c.d")))
        assert sorted(map(str, trie.match(b"a.b"))) == ["a", "b"]
        assert trie.match(b"a.%d" % number) == ["a"]
    gc.collect()
    assert matched == [["c"]] * 200


@pytest.mark.usefixtures("eager_collector")
def test_the_collector_may_change_the_bindings_amid_a_match(trie: TopicTrie) -> None:
    bound(trie, a=b"a.*")
    for number in range(200):
        outlet = Outlet()
        trie.bind(b"*.b", outlet)
        Leaving(partial(trie.unbind, b"*.b", outlet))
        for _ in range(3):
            assert trie.match(b"a.b") in (["a"], ["a", outlet], [outlet, "a"])
        gc.collect()
        assert trie.match(b"a.b") == ["a"]
        assert trie.match(b"x.%d" % number) == []


def test_a_trie_that_its_own_outlets_know_is_collected() -> None:
    trie, outlet = TopicTrie(), Outlet()
    gone = weakref.ref(outlet)
    outlet.__dict__["trie"] = trie
    trie.bind(b"a.*", outlet)
    assert [trie.match(b"a.b") for _ in range(3)] == [[outlet]] * 3
    del trie, outlet
    gc.collect()
    assert gone() is None


def test_long_subjects_are_read_whole(trie: TopicTrie) -> None:
    bound(trie, a=b"#.end")
    assert trie.match(b"a." * 5000 + b"end") == ["a"]
    assert trie.match(b"a." * 5000) == []
