"""What a user asks of the sink, and what its rows look like; checked and picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.client.connection.certificates import NONE, Certificates
from cogwork.pipeline.spark.errors import OptionError
from cogwork.pipeline.spark.words import (
    CERTIFICATES,
    STREAMS,
    TOKEN_FILE,
    certificates_in,
    count_in,
    known_only,
    names_in,
    token_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from cogwork.client.connection.tokens import TokenFile

__all__ = ("COLUMNS", "STREAMS", "WriteOptions", "check_rows", "is_stream", "write_options")

KNOWN = (
    *("url", "address", "transactionId", "idempotencyColumns", "idempotencySeconds"),
    "timeoutSeconds",
    "queryName",
    *CERTIFICATES,
    TOKEN_FILE,
)

COLUMNS = {
    "address": "string",
    "subject": "string",
    "message_id": "string",
    "correlation_id": "string",
    "reply_to": "string",
    "content_type": "string",
    "group_id": "string",
    "properties": "map<string,string>",
    "body": "binary or string",
}

TIMEOUT_S = 120
"""A container may be away for a minute."""

LOOKBACK_S = 86_400


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of the sink.

    Attributes:
        url: Of a container, or several between commas.
        address: Where all rows go; None where each says it.
        transaction_id: What names a batch write, so that it can be tried again.
        idempotency_columns: The columns that tell a row from all others.
        query: The name of the query, in which they do; may be empty.
        lookback_s: How far back to look for rows that are there.
        timeout_s: How long to go on trying where rows are not taken.
        certificates: For TLS; the files are read wherever a connection is made.
        token: Reads the token to log in by, wherever a connection is made; None without.
    """

    url: str = field(repr=False)  # may have a password in it
    address: str | None = None
    transaction_id: str | None = None
    idempotency_columns: tuple[str, ...] = ()
    query: str = ""
    lookback_s: int = LOOKBACK_S
    timeout_s: int = TIMEOUT_S
    certificates: Certificates = NONE
    token: TokenFile | None = None


def write_options(
    options: Mapping[str, str], schema: StructType, *, is_streaming: bool
) -> WriteOptions:
    """Check what the user said.

    Args:
        options: As Spark has them; names in any case.
        schema: Of the rows.
        is_streaming: Whether a streaming query writes.

    Raises:
        OptionError: An option is unknown, missing, or makes no sense; or a column.
    """
    known_only(options, KNOWN)
    if "url" not in options:
        raise OptionError("the option url is missing, such as amqp://localhost")
    found = WriteOptions(
        url=options["url"],
        address=options.get("address", options.get("path")),
        transaction_id=options.get("transactionId"),
        idempotency_columns=names_in(options.get("idempotencyColumns", "")),
        query=options.get("queryName", ""),
        lookback_s=count_in(options, "idempotencySeconds") or LOOKBACK_S,
        timeout_s=count_in(options, "timeoutSeconds") or TIMEOUT_S,
        certificates=certificates_in(options),
        token=token_in(options),
    )
    check_rows(found, {field.name: field.dataType.simpleString() for field in schema.fields})
    _check_identity(found, is_streaming=is_streaming)
    return found


def check_rows(options: WriteOptions, columns: Mapping[str, str]) -> None:
    """Refuse rows that make no messages.

    Args:
        options: The user's.
        columns: The types of the columns by their names.

    Raises:
        OptionError: A column is unknown, missing or of another type.
    """
    for name, found in columns.items():
        if name in options.idempotency_columns and name not in COLUMNS:
            continue
        if name not in COLUMNS:
            raise OptionError(
                f"a message has no column {name!r:.60}: there are {', '.join(COLUMNS)}"
            )
        if found not in COLUMNS[name].split(" or "):
            raise OptionError(f"the column {name} is to be {COLUMNS[name]}, not {found}")
    if "body" not in columns:
        raise OptionError("rows need a column body, binary or string")
    if options.address is None and "address" not in columns:
        raise OptionError("rows need the option address, or a column of that name")
    for name in options.idempotency_columns:
        if name not in columns:
            raise OptionError(f"idempotencyColumns names {name!r:.60}, which rows do not have")
    if options.idempotency_columns and "message_id" in columns:
        raise OptionError(
            "idempotencyColumns gives each row a message-id of its own, and rows have a column "
            "message_id: leave out one of the two, or give the column another name"
        )


def _check_identity(options: WriteOptions, *, is_streaming: bool) -> None:
    if options.idempotency_columns:
        if options.address is None or not is_stream(options.address):
            raise OptionError("idempotencyColumns needs the option address, of a stream")
        if options.transaction_id is not None:
            raise OptionError("idempotencyColumns and transactionId cannot both be given")
        return
    if is_streaming:
        if options.transaction_id is not None:
            raise OptionError("transactionId is for a batch: a query has an identity of its own")
        return
    may_be_stream = options.address is None or is_stream(options.address)
    if may_be_stream and options.transaction_id is None:
        raise OptionError(
            "a batch that is written into a stream needs the option transactionId, a name of its "
            "own, so that it can be written again without being there twice"
        )


def is_stream(address: str) -> bool:
    """Return whether an address is a stream's."""
    return address.removeprefix("/").startswith(STREAMS)
