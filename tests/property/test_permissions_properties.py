"""Permissions under random grants: a pattern lets through only what its grants let through."""

from hypothesis import given
from hypothesis import strategies as st

from cogwork.router.patterns import address_words, takes
from cogwork.router.permissions import Grant, Permissions, Right

WORDS = st.sampled_from(["a", "b"])
NAMES = st.lists(WORDS, min_size=1, max_size=5).map("/".join)
PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).map(".".join)


@given(st.lists(PATTERNS, max_size=4), PATTERNS, NAMES)
def test_what_an_allowed_pattern_takes_is_allowed_by_name(
    grants: list[str], asked: str, name: str
) -> None:
    user = Permissions(Grant(each, frozenset({Right.RECEIVE})) for each in grants)
    if user.allows(Right.RECEIVE, asked) and takes(address_words(asked), address_words(name)):
        assert user.allows(Right.RECEIVE, name)


@given(st.lists(PATTERNS, max_size=4), NAMES)
def test_a_name_is_allowed_where_a_grant_takes_it(grants: list[str], name: str) -> None:
    user = Permissions(Grant(each, frozenset({Right.SEND})) for each in grants)
    expected = any(takes(address_words(each), address_words(name)) for each in grants)
    assert user.allows(Right.SEND, name) == expected
