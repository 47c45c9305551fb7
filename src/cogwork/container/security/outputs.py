"""Where the lines of the security log go: a file, journald, or a stream. None ever waits."""

from __future__ import annotations

import os
import socket
import stat
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cogwork.amqp.errors import CogworkError
from cogwork.container.telemetry.appender import Appender, head_of, message_of
from cogwork.io.log_output import LogOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("FileOutput", "JournalOutput", "Line", "Output", "SecurityLogError", "StreamOutput")

FILE_MODE = 0o600

UNDER_WAY_MAX = 10_000
"""Records that wait for the stream at once: a cluster that elects a leader loses none."""

NOTICE = 5
"""The priority of journald's lines: normal, but significant."""


class SecurityLogError(CogworkError):
    """The place of the security log cannot be used."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write the security log to '{path}': {reason}")


class Line(NamedTuple):
    """An event as it is written.

    Attributes:
        kind: Which it is.
        text: One line of ASCII, without its end.
    """

    kind: str
    text: str


class Output(Protocol):
    """Takes lines."""

    @property
    def dropped(self) -> int:
        """Lines that did not get there."""

    def write(self, line: Line) -> None:
        """Have a line written, and never wait for that.

        Args:
            line: What to write.
        """

    def reopen(self) -> None:
        """Go on in a new file, where the old one was moved away.

        Raises:
            SecurityLogError: It cannot be opened; lines go to the old one.
        """

    def close(self) -> None:
        """Write what waits, but not for long."""


class FileOutput:
    """Appends to a file from a thread of its own."""

    def __init__(self, path: str, line_of: Callable[[int], str]) -> None:
        """Open the file, which is its owner's alone if it is new.

        Args:
            path: Where it is.
            line_of: Return the line that tells how many lines were dropped.

        Raises:
            SecurityLogError: It cannot be opened.
        """
        self._path = path
        self._descriptor = _opened(path)
        self._output = LogOutput(self._descriptor, line_of=line_of)

    @property
    def dropped(self) -> int:
        """Lines that did not get there."""
        return self._output.dropped

    def write(self, line: Line) -> None:
        """Have a line written."""
        self._output.write(f"{line.text}\n".encode())

    def reopen(self) -> None:
        """Go on in the file of that name: whole lines are in the old one, or in the new one."""
        fresh = _opened(self._path)
        # The thread may be writing: the number stays, what it stands for changes at once.
        os.dup2(fresh, self._descriptor, inheritable=False)
        os.close(fresh)

    def close(self) -> None:
        """Write what waits, but not for long."""
        if self._output.close():
            os.close(self._descriptor)


def _opened(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, FILE_MODE)
    except OSError as error:
        raise SecurityLogError(path, error.strerror or "an error") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SecurityLogError(path, "found something else than a file, expected a regular file")
    return descriptor


class JournalOutput:
    """Sends lines to journald, in its native protocol: a datagram of fields for each."""

    def __init__(self, path: str) -> None:
        """Connect to its socket.

        Args:
            path: Where that is.

        Raises:
            SecurityLogError: There is no journald.
        """
        self.dropped = 0
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise SecurityLogError(path, error.strerror or "an error") from error

    def write(self, line: Line) -> None:
        """Send a line; journald that has been started anew has a new socket."""
        data = _fields_of(line)
        try:
            self._socket.send(data)
        except OSError:
            try:
                self._socket.connect(self._path)
                self._socket.send(data)
            except OSError:
                self.dropped += 1

    def reopen(self) -> None:
        """Do nothing: journald looks after its own files."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _fields_of(line: Line) -> bytes:
    """Return the datagram of a line."""
    fields = {
        "MESSAGE": line.text,
        "PRIORITY": NOTICE,
        "SYSLOG_IDENTIFIER": "cogwork",
        "COGWORK_EVENT": line.kind,
    }
    return "".join(f"{name}={value}\n" for name, value in fields.items()).encode()


class StreamOutput:
    """Appends to a stream of the default virtual host."""

    def __init__(self, vhost: VirtualHost, stream: str) -> None:
        """Begin with nothing under way.

        Args:
            vhost: Where the stream is.
            stream: Its name.
        """
        self._appender = Appender(vhost, f"stream/{stream}", UNDER_WAY_MAX)
        self._heads: dict[str, bytes] = {}

    @property
    def dropped(self) -> int:
        """Lines that the stream has not taken."""
        return self._appender.missed

    def write(self, line: Line) -> None:
        """Append a record, whose subject is the kind."""
        head = self._heads.get(line.kind)
        if head is None:
            head = self._heads[line.kind] = head_of(line.kind)
        self._appender.append([message_of(head, line.text.encode())])

    def reopen(self) -> None:
        """Do nothing: a stream has its own retention."""

    def close(self) -> None:
        """Do nothing: the stream is closed with the others."""
