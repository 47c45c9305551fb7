"""Whether a message of Protocol Buffers can be read by a newer descriptor of it.

Theory of operation. What is on the wire are numbers of fields, and values in one of a few shapes
(https://protobuf.dev/programming-guides/proto3/#updating). A field that has gone is kept as an
unknown one, a field that is new has its default: neither is in the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

__all__ = ("is_required", "why_unreadable")

_ALIKE = (
    {
        *(FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32),
        *(FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_ENUM),
    },
    {FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64},
    {FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32},
    {FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64},
)
"""Types that have one shape on the wire."""

LABEL_REQUIRED, LABEL_REPEATED = 2, 3
"""As in descriptor.proto; newer libraries have properties instead."""


def why_unreadable(new: Descriptor, old: Descriptor) -> str | None:
    """Return why a message type may not read all messages of an older one; None where it does."""
    return _compare(new, old, "", set())


def _compare(new: Descriptor, old: Descriptor, path: str, seen: set[tuple[str, str]]) -> str | None:
    names = (new.full_name, old.full_name)
    if names in seen:
        return None
    seen.add(names)
    before = old.fields_by_number
    for number, field in new.fields_by_number.items():
        place = f"{path}.{field.name}".lstrip(".")
        if number not in before:
            if is_required(field):
                return f"{place} is required, and was not there"
        elif (reason := _compare_fields(field, before[number], place, seen)) is not None:
            return reason
    return None


def _compare_fields(
    new: FieldDescriptor, old: FieldDescriptor, place: str, seen: set[tuple[str, str]]
) -> str | None:
    if is_required(new) and not is_required(old):
        return f"{place} was not required"
    if _is_repeated(old) and not _is_repeated(new):
        return f"{place} was repeated"
    if not _is_readable(new.type, old.type):
        return f"{place} had another type under its number {new.number}"
    if new.message_type is not None and old.message_type is not None:
        return _compare(new.message_type, old.message_type, place, seen)
    return None


def is_required(field: FieldDescriptor) -> bool:
    """Return whether a message has to have a field, as in proto2."""
    found: bool = getattr(field, "is_required", getattr(field, "label", None) == LABEL_REQUIRED)
    return found


def _is_repeated(field: FieldDescriptor) -> bool:
    found: bool = getattr(field, "is_repeated", getattr(field, "label", None) == LABEL_REPEATED)
    return found


def _is_readable(new: int, old: int) -> bool:
    if new == old:
        return True
    if new == FieldDescriptor.TYPE_BYTES:
        return old in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE)
    return any(new in alike and old in alike for alike in _ALIKE)
