"""Schemas: what messages at an address look like, for those who send, receive, or let pass.

Carriers know no schema; this is the layer above them. A `Registry` knows the schema of each
address, and checks, encodes and decodes by it. Its content is a row of events, so that a stream can
keep it.
"""

from __future__ import annotations

from cogwork.schema.errors import (
    Conflict,
    Incompatible,
    InvalidAddress,
    InvalidBody,
    InvalidSchema,
    NotRegistered,
    SchemaError,
)
from cogwork.schema.events import Registered
from cogwork.schema.registry import SCHEMAS, Registry
from cogwork.schema.schema import Schema, make_schema

__all__ = (
    "SCHEMAS",
    "Conflict",
    "Incompatible",
    "InvalidAddress",
    "InvalidBody",
    "InvalidSchema",
    "NotRegistered",
    "Registered",
    "Registry",
    "Schema",
    "SchemaError",
    "make_schema",
)
