"""What NATS says, and what the library says of it, as errors of logs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError, NoRespondersError
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from cogwork.engines.shared.server import Gone, Moved, ServerDown, ServerRefused, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("translated",)


@contextmanager
def translated(passing: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Turn the library's errors into those of logs."""
    try:
        yield
    except (ServerDown, ServerRefused, Moved):
        raise
    except NotFoundError as error:
        raise Gone from error
    except passing:
        raise
    except MaxPayloadError as error:
        raise TooLarge(f"NATS: {error}") from error
    except (NoStreamResponseError, NoRespondersError) as error:
        raise ServerDown(f"NATS: {error}", may_have_happened=False) from error
    except APIError as error:
        if error.code == 503:
            raise ServerDown(f"NATS: {error}") from error
        raise ServerRefused(f"NATS: {error}") from error
    except (NatsError, TimeoutError, OSError) as error:
        raise ServerDown(f"NATS: {str(error) or 'no answer in time'}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ServerDown(f"NATS answers nonsense: {error}") from error
