"""The address table, held to a slow reading of its rule."""

from hypothesis import given
from hypothesis import strategies as st

from cogwork.router.addresses import AddressRule, AddressTable, _specificity
from cogwork.router.patterns import address_words, takes

WORDS = st.sampled_from(["a", "b", "c"])
NAMES = st.lists(st.tuples(WORDS, st.sampled_from("/.")), min_size=1, max_size=5).map(
    lambda pairs: "".join(word + separator for word, separator in pairs)[:-1]
)


@given(st.sets(NAMES, max_size=8), NAMES)
def test_the_longest_prefix_holds(prefixes: set[str], address: str) -> None:
    table = AddressTable(AddressRule(prefix=each) for each in prefixes)
    fitting = [p for p in prefixes if address == p or address.startswith((p + "/", p + "."))]
    rule, subject = table.split(address)
    longest = max(fitting, key=len, default="")
    assert rule.prefix == longest
    assert address in (longest + "/" + subject, longest + "." + subject, longest, subject)


PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=4).map(".".join)


@given(st.sets(PATTERNS, max_size=8), NAMES)
def test_the_pattern_that_says_most_holds(patterns: set[str], address: str) -> None:
    table = AddressTable(AddressRule(pattern=each) for each in patterns)
    fitting = [each for each in patterns if takes(each.split("."), address_words(address))]
    found = table.resolve(address).pattern
    if found is None:
        assert not fitting
        return
    assert found in fitting
    said = {each: _specificity(tuple(each.split("."))) for each in fitting}
    assert said[found] == max(said.values())  # several may say as much


@given(st.sets(NAMES, max_size=8), NAMES)
def test_a_leading_slash_changes_nothing(prefixes: set[str], address: str) -> None:
    table = AddressTable(AddressRule(prefix="/" + each) for each in prefixes)
    assert table.split("/" + address) == table.split(address)
