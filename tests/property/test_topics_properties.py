"""The trie under random histories, held to a matcher too simple to be wrong."""

from hypothesis import given
from hypothesis import strategies as st

from cogwork.router.patterns import covers, matches, topic_words
from cogwork.router.topics import TopicTrie

WORDS = st.sampled_from(["a", "b", "c", "", "ab", "long word", "long work", "eighteen"])
SUBJECTS = st.lists(WORDS, max_size=6).map(".".join)
PATTERNS = st.lists(st.one_of(WORDS, st.sampled_from(["*", "#"])), max_size=6).map(".".join)
OUTLETS = st.integers(0, 4)
ACTIONS = st.sampled_from(["bind", "unbind", "match"])
SECRETS = st.sampled_from([0, 0x9E37_79B9_7F4A_7C15])
STEPS = st.lists(st.tuples(ACTIONS, PATTERNS, OUTLETS, SUBJECTS))


def takes(pattern: list[str], words: list[str]) -> bool:
    """The rule as the specification says it."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return takes(pattern[1:], words) or (bool(words) and takes(pattern, words[1:]))
    return bool(words) and pattern[0] in ("*", words[0]) and takes(pattern[1:], words[1:])


def branches(patterns: set[str]) -> int:
    """Count the beginnings that the patterns have, the empty one included."""
    words = [tuple(topic_words(pattern)) for pattern in patterns]
    return len({each[:end] for each in words for end in range(len(each) + 1)} | {()})


@given(STEPS, SECRETS)
def test_every_match_is_what_the_bindings_of_the_moment_say(
    steps: list[tuple[str, str, int, str]], secret: int
) -> None:
    trie = TopicTrie(secret)
    pairs: set[tuple[str, int]] = set()
    for step, pattern, outlet, subject in steps:
        version = trie.version
        pair = (pattern, outlet)
        if step == "bind":
            assert trie.bind(pattern.encode(), outlet) == (pair not in pairs)
            pairs.add(pair)
        elif step == "unbind":
            assert trie.unbind(pattern.encode(), outlet) == (pair in pairs)
            pairs.discard(pair)
        found = trie.match(subject.encode())
        words = topic_words(subject)
        expected = {o for p, o in pairs if takes(topic_words(p), words)}
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert trie.match(subject.encode()) == found
        assert trie.version >= version
        assert trie.branch_count == branches({p for p, _ in pairs})
    assert len(trie) == len(pairs)


@given(st.lists(st.tuples(PATTERNS, OUTLETS)), SUBJECTS)
def test_nothing_is_left_when_all_is_unbound(pairs: list[tuple[str, int]], subject: str) -> None:
    trie = TopicTrie()
    for pattern, outlet in pairs:
        trie.bind(pattern.encode(), outlet)
    for pattern, outlet in reversed(pairs):
        trie.unbind(pattern.encode(), outlet)
    assert trie.match(subject.encode()) == []
    assert trie.patterns() == {}
    assert len(trie) == 0
    assert trie.branch_count == 1


@given(PATTERNS, SUBJECTS)
def test_one_pattern_at_a_time_follows_the_same_rule(pattern: str, subject: str) -> None:
    assert matches(pattern, subject) == takes(topic_words(pattern), topic_words(subject))


@given(PATTERNS, PATTERNS, SUBJECTS)
def test_what_a_covered_pattern_takes_the_wider_one_takes(
    wide: str, narrow: str, subject: str
) -> None:
    if covers(topic_words(wide), topic_words(narrow)) and matches(narrow, subject):
        assert matches(wide, subject)


@given(PATTERNS)
def test_a_pattern_covers_itself_and_is_covered_by_all(pattern: str) -> None:
    assert covers(topic_words(pattern), topic_words(pattern))
    assert covers(["#"], topic_words(pattern))
