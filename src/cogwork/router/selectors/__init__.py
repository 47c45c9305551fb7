"""Selectors: conditions on a message's header, properties and application-properties.

The language of the filter `apache.org:selector-filter:string`: the message selectors of JMS 1.1
§3.8.1, a subset of SQL-92's conditions. Text goes through `lexer` to `parser`, which makes a tree,
and `evaluator`, which makes a function of the tree; `names` says what identifiers stand for.
"""

from cogwork.router.selectors.evaluator import STEPS_MAX, SelectorCostError
from cogwork.router.selectors.lexer import MAX_SELECTOR_LENGTH, SelectorSyntaxError
from cogwork.router.selectors.names import section_lookup
from cogwork.router.selectors.parser import MAX_NESTING
from cogwork.router.selectors.selector import Lookup, Selector, compile_selector

__all__ = (
    "MAX_NESTING",
    "MAX_SELECTOR_LENGTH",
    "STEPS_MAX",
    "Lookup",
    "Selector",
    "SelectorCostError",
    "SelectorSyntaxError",
    "compile_selector",
    "section_lookup",
)
