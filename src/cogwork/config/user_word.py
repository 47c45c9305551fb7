"""The word of a permission's pattern that stands for the name of its user."""

from cogwork.router.patterns import address_words

__all__ = ("USER", "names_user")

USER = "$user"


def names_user(address: str) -> bool:
    """Tell whether a pattern has the word that stands for a user's name."""
    return USER in address_words(address)
