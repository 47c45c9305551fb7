"""The one door of the security log: whoever refuses or changes something says so here.

Theory of operation. An event has a kind and the fields that the table in `kinds` lists for it. It
becomes one line of JSON, in ASCII, so that no peer's words make another line or do something to a
terminal; long words are cut. Its output never waits: what cannot be written is dropped and counted,
and so is what a flood of events leaves out.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cogwork.config.security_log_settings import JOURNAL_SOCKET, SECURITY_STREAM
from cogwork.container.security.flood import Flood
from cogwork.container.security.kinds import KINDS
from cogwork.container.security.outputs import (
    FileOutput,
    JournalOutput,
    Line,
    Output,
    SecurityLogError,
    StreamOutput,
)

if TYPE_CHECKING:
    from cogwork.config.security_log_settings import SecurityLogOptions
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("SecurityLog",)

TEXT_MAX, TEXTS_MAX = 256, 100
"""Characters of a text, and texts of a list, that are written."""

log = logging.getLogger("cogwork")


class SecurityLog:
    """Writes events; none before it is opened. Owned by the container.

    Attributes:
        written: Events that were handed to the output.
        left_out: Events that were more than are written.
    """

    def __init__(self, container_id: str, options: SecurityLogOptions | None) -> None:
        """Write nothing yet.

        Args:
            container_id: Whose log it is.
            options: As configured; None writes nothing at all.
        """
        self.written = 0
        self.left_out = 0
        self._container_id = container_id
        self._options = options
        self._output: Output | None = None
        self._flood = Flood()
        self._dropped = 0
        self._is_dropping = False

    def open(self, vhost: VirtualHost | None = None) -> None:
        """Begin to write.

        Args:
            vhost: Where the stream is; None where this process has no streams.

        Raises:
            SecurityLogError: The place cannot be used.
        """
        options = self._options
        if options is None:
            return
        if options.to == "file":
            assert options.path is not None
            self._output = FileOutput(options.path, self._line_of_dropped)
        elif options.to == "journald":
            self._output = JournalOutput(options.path or JOURNAL_SOCKET)
        elif vhost is not None:
            self._output = StreamOutput(vhost, SECURITY_STREAM)

    def event(self, kind: str, **fields: object) -> None:
        """Write that something has happened.

        Args:
            kind: What; one of `KINDS`.
            fields: What the table lists for it; none of them is a secret.
        """
        if self._output is None:
            return
        if self._flood.admits(kind, _place_of(fields.get("peer"))):
            self._write(self._output, kind, fields)
        else:
            self.left_out += 1

    def _write(self, output: Output, kind: str, fields: dict[str, object]) -> None:
        self.written += 1
        output.write(Line(kind, self._line_of(kind, fields)))

    def _line_of(self, kind: str, fields: dict[str, object]) -> str:
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "container": self._container_id,
            "event": kind,
        }
        told = {name: _shown(fields[name]) for name in KINDS[kind].fields}
        return json.dumps(line | told)

    def _line_of_dropped(self, count: int) -> str:
        return self._line_of("dropped", {"count": count})

    def tick(self, now_s: float) -> None:
        """Let time pass: tell what a flood has left out.

        Args:
            now_s: The monotonic clock.
        """
        output = self._output
        if output is None:
            return
        for kind, count in self._flood.turn(now_s):
            self._write(output, "left_out", {"of": kind, "count": count})
        is_dropping = output.dropped > self._dropped
        if is_dropping and not self._is_dropping:
            log.warning("the security log loses events: its place does not take them in time")
        self._dropped, self._is_dropping = output.dropped, is_dropping

    def reopen(self) -> None:
        """Go on in a new file, where the old one was moved away; the old one stays if it must."""
        if self._output is None:
            return
        try:
            self._output.reopen()
        except SecurityLogError as error:
            log.error("%s; events go to the file that is open", error)

    def close(self) -> None:
        """Write what waits, but not for long."""
        if self._output is not None:
            self._output.close()
            self._output = None

    def facts(self) -> dict[str, object] | None:
        """Return what `status` tells of it; None where there is none."""
        if self._options is None:
            return None
        return {
            "to": self._options.to,
            "written": self.written,
            "left_out": self.left_out,
            "dropped": 0 if self._output is None else self._output.dropped,
        }


def _place_of(peer: object) -> str:
    """Return where a peer is, without the port, which differs each time."""
    return str(peer).rpartition(":")[0] or str(peer)


def _shown(value: object) -> object:
    """Return a value as it is written: long words of a peer are cut."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else f"{value[: TEXT_MAX - 1]}…"
    if isinstance(value, (list, tuple)):
        more = [f"and {len(value) - TEXTS_MAX} more"] if len(value) > TEXTS_MAX else []
        return [*map(_shown, value[:TEXTS_MAX]), *more]
    return value
