"""What a command's exit code says, and how an error becomes one line and a code.

Types are named, not imported: a command that succeeds never loads the modules of errors that it
did not meet. `docs/cli.md` has the codes for people who write scripts.
"""

from __future__ import annotations

import errno
from enum import IntEnum

__all__ = ("ExitCode", "code_of", "innermost", "line_of")


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    ERROR = 1
    USAGE = 2
    CONFIGURATION = 3
    CONNECTION = 4
    AUTHENTICATION = 5
    NOT_FOUND = 6
    TIMEOUT = 7
    NOT_ACCEPTED = 8
    VIOLATED = 9
    INTERRUPTED = 130
    BROKEN_PIPE = 141


OF_CONDITION = {
    "amqp:not-found": ExitCode.NOT_FOUND,
    "amqp:unauthorized-access": ExitCode.AUTHENTICATION,
    "amqp:connection:forced": ExitCode.CONNECTION,
    "amqp:connection:framing-error": ExitCode.CONNECTION,
}
"""Errors that a peer sent carry their condition (AMQP 1.0 §2.8.15, §2.8.16)."""

OF_FILES = {errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EROFS}
"""What only files have, our output among them."""

OF_TYPE = {
    "cogwork.client.errors.InvalidUrlError": ExitCode.USAGE,
    "cogwork.client.errors.InDoubt": ExitCode.NOT_ACCEPTED,
    "cogwork.client.errors.Rejected": ExitCode.NOT_ACCEPTED,
    "cogwork.client.errors.Released": ExitCode.NOT_ACCEPTED,
    "cogwork.rpc.errors.BadArguments": ExitCode.USAGE,
    "cogwork.rpc.errors.NoSuchMethod": ExitCode.NOT_FOUND,
    "cogwork.rpc.errors.Unserialisable": ExitCode.USAGE,
    "cogwork.log.errors.ForeignFile": ExitCode.CONFIGURATION,
    "cogwork.schema.errors.Conflict": ExitCode.NOT_ACCEPTED,
    "cogwork.schema.errors.Incompatible": ExitCode.NOT_ACCEPTED,
    "cogwork.schema.errors.InvalidAddress": ExitCode.USAGE,
    "cogwork.schema.errors.NotRegistered": ExitCode.NOT_FOUND,
    "cogwork.pipeline.arrow.errors.UnknownStream": ExitCode.NOT_FOUND,
    "cogwork.cluster.levels.NotUnderstood": ExitCode.CONFIGURATION,
    "cogwork.config.addressing.AddressingError": ExitCode.CONFIGURATION,
    "cogwork.config.errors.ConfigurationError": ExitCode.CONFIGURATION,
    "cogwork.container.security.outputs.SecurityLogError": ExitCode.CONFIGURATION,
    "cogwork.config.errors.OptionError": ExitCode.USAGE,
    "cogwork.config.password_hash.PasswordHashError": ExitCode.CONFIGURATION,
    "cogwork.tls.contexts.TlsFilesError": ExitCode.CONFIGURATION,
    "cogwork.io.listener.ListenError": ExitCode.CONNECTION,
    "cogwork.io.stream.StreamError": ExitCode.CONNECTION,
    "cogwork.plugin.gateway.GatewayError": ExitCode.CONFIGURATION,
    "cogwork.plugin.gateway.GatewayListenError": ExitCode.CONNECTION,
    "cogwork.pipeline.spark.errors.OptionError": ExitCode.USAGE,
    "cogwork.amqp.exceptions.CogworkError": ExitCode.ERROR,
    "builtins.TimeoutError": ExitCode.TIMEOUT,
    "builtins.OSError": ExitCode.CONNECTION,
}
"""Of several classes that an error belongs to, the nearest one decides."""


def code_of(error: BaseException) -> ExitCode | None:
    """Classify an error; None is one that no command expects, so a mistake of ours."""
    error = innermost(error)
    condition = str(getattr(error, "condition", ""))
    if condition in OF_CONDITION:
        return OF_CONDITION[condition]
    if isinstance(error, OSError) and (error.filename is not None or error.errno in OF_FILES):
        return ExitCode.ERROR  # a file, not the network
    names = (f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__)
    return next((OF_TYPE[name] for name in names if name in OF_TYPE), None)


def line_of(error: BaseException) -> str:
    """Say in one line what went wrong."""
    error = innermost(error)
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(text.split()) or type(error).__name__


def innermost(error: BaseException) -> BaseException:
    """Find what went wrong first in a group of tasks; the others were cancelled for it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
