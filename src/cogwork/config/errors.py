"""What is wrong with a configuration, and where."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = (
    "UNKNOWN_KEY",
    "ConfigurationError",
    "DataDirectoryError",
    "DataFileError",
    "OptionError",
    "Unreadable",
)

UNKNOWN_KEY = "an unknown key"
"""What is found where no table has a key of that name."""


class ConfigurationError(CogworkError):
    """A configuration that cannot be used.

    Attributes:
        source: The file's name.
        line: Counts from 1; 0 where no line is to blame.
        key: The key as a person would write it, such as `listen[0].port`; may be empty.
        found: What stands there.
        expected: What would be right.
    """

    def __init__(self, source: str, line: int, key: str, found: str, expected: str) -> None:
        super().__init__(source, line, key, found, expected)
        self.source = source
        self.line = line
        self.key = key
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        if self.found == UNKNOWN_KEY:
            return f"{place}: unknown key {self.key!r} (expected {self.expected})"
        key = f"{self.key}: " if self.key else ""
        return f"{place}: {key}found {self.found}, expected {self.expected}"


class Unreadable(ConfigurationError):
    """A configuration file that cannot be read at all."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, 0, "", reason, "a readable file")
        self.args = (source, reason)

    def __str__(self) -> str:
        return f"cannot read {self.source!r}: {self.found}"


class OptionError(ConfigurationError):
    """An option of the command line that is malformed, whatever the configuration says."""

    def __init__(self, option: str, found: str, expected: str) -> None:
        super().__init__("options", 0, option, found, expected)
        self.args = (option, found, expected)


class DataDirectoryError(CogworkError):
    """Nothing can be kept where the container is to keep its files, or used of what is there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self._text = f"cannot use the data directory '{path}': {reason}"

    def __str__(self) -> str:
        return self._text


class DataFileError(DataDirectoryError):
    """A file in a data directory is damaged."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self._text = f"{path}: {reason}"
