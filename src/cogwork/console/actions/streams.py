"""What can be done to streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.options.stream_names import address_of
from cogwork.console.actions.action import Action, Done, Field, number_of, pairs_of, words_of
from cogwork.console.actions.publishing import MESSAGE, publish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.console.session import Session

__all__ = ("STREAM_ACTIONS",)


async def _create(session: Session, fields: Mapping[str, str]) -> Done:
    replicas = words_of(fields.get("replicas", ""))
    options: dict[str, object] = {
        "engine": fields.get("engine") or ("raft" if replicas else None),
        "replicas": replicas or None,
        "capture": words_of(fields.get("capture", "")) or None,
        "options": pairs_of(fields.get("options", ""), "Options") or None,
        **{
            key: number_of(fields[key], key)
            for key in ("retention_s", "retention_bytes", "retention_records")
            if fields.get(key)
        },
    }
    given = {key: value for key, value in options.items() if value is not None}
    address = address_of(fields["name"])
    row = await session.change("CREATE", "stream", address, given)
    problem = row.get("problem")
    return Done(f"{address} is {row['state']}" + (f": {problem}" if problem else ""))


async def _append(session: Session, fields: Mapping[str, str]) -> Done:
    return await publish(session, fields["name"], fields)


async def _trim(session: Session, fields: Mapping[str, str]) -> Done:
    before = number_of(fields["before"], "Offset")
    left = await session.change("TRIM", "stream", fields["name"], {"before": before})
    return Done(f"Records from {left['first']:,} to {left['next']:,} are left.")


async def _move(session: Session, fields: Mapping[str, str]) -> Done:
    body = {"replicas": words_of(fields["replicas"])}
    await session.change("MOVE", "stream", fields["name"], body)
    return Done("The replicas move; the page shows when that is done.")


async def _delete(session: Session, fields: Mapping[str, str]) -> Done:
    await session.change("DELETE", "stream", fields["name"], {})
    return Done(f"{fields['name']} deleted", is_gone=True)


STREAM_ACTIONS = (
    Action(
        "stream.create",
        "Create a stream",
        _create,
        "Create",
        (
            Field("name", "Name", is_required=True, hint="Such as orders."),
            Field("engine", "Engine", hint="orb, or raft with replicas, without a name."),
            Field("replicas", "Replicas", hint="Ids of containers, between commas."),
            Field("retention_s", "Keep for, seconds", "number"),
            Field("retention_bytes", "Keep so many bytes", "number"),
            Field("retention_records", "Keep so many records", "number"),
            Field("capture", "Topics to capture", hint="Patterns, between commas."),
            Field("options", "Options of the engine", "area", hint="One K=V in each line."),
        ),
    ),
    Action("stream.append", "Append a record", _append, "Append", MESSAGE),
    Action(
        "stream.move",
        "Move replicas",
        _move,
        "Move",
        (Field("replicas", "Containers", is_required=True, hint="Their ids, between commas."),),
    ),
    Action(
        "stream.trim",
        "Trim",
        _trim,
        "Trim",
        (Field("before", "Records below the offset", "number", is_required=True),),
        is_dangerous=True,
        warning="These records are lost.",
    ),
    Action(
        "stream.delete",
        "Delete",
        _delete,
        is_dangerous=True,
        warning="The stream and all of its records are lost.",
    ),
)
