"""What Redis says, and what the library says of it, as errors of logs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from cogwork.engines.shared.server import ServerDown, ServerRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("DOWN_ERRORS", "Unreached", "translated")

DOWN_ERRORS = (
    BusyLoadingError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
DOWN_CODES = ("NOREPLICAS", "MISCONF", "BUSY ")
"""A server that says so has done nothing, and may do it later: once it has its replicas, its disk,
its memory or its time again. The library has no types for these and leaves the code in the text."""


class Unreached(RedisConnectionError):
    """There is no connection to the server, so nothing was sent to it."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the library's errors into those of logs."""
    try:
        yield
    except (AuthenticationError, NoPermissionError) as error:
        raise ServerRefused(_told(error)) from error
    except DOWN_ERRORS as error:
        raise ServerDown(_told(error), may_have_happened=False) from error
    except Unreached as error:
        raise ServerDown(f"Redis: {error}", may_have_happened=False) from error
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        raise ServerDown(f"Redis: {error}") from error
    except ResponseError as error:
        if str(error).startswith(DOWN_CODES):
            raise ServerDown(_told(error), may_have_happened=False) from error
        raise ServerRefused(_told(error)) from error
    except (RedisError, ValueError, TypeError) as error:
        raise ServerDown(f"Redis answers nonsense: {error}") from error


def _told(error: RedisError) -> str:
    """Return what the server says, without where in which script."""
    return "Redis: " + str(error).partition(" script: ")[0]
