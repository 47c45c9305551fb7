"""Which cluster a data directory belongs to, and whether its container founded that or joins it.

Theory of operation. A cluster has a UUID, in `cluster.json` of every data directory. A primary with
an empty directory does not begin by itself: its disk may have been lost, and two that begin anew
would be a majority that knows nothing. It asks the other primaries. The one of highest priority
makes the UUID once all others have said that they are empty; they are the *founders*, known by the
tokens of their directories, and begin together. Whoever is empty and hears of a cluster that it did
not found joins that: its replicas begin with what the others say of each (`rejoin`), and help to
elect and to commit only once they have caught up. A directory of before clusters had a UUID adopts
one when a majority of the primaries is of that kind, or knows one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from google_crc32c import value as crc32c

from cogwork.cluster.levels import HIGHEST_LEVEL
from cogwork.config.errors import DataDirectoryError, DataFileError
from cogwork.log.directory import DIRECTORY_MODE, opened_privately
from cogwork.plugin.engine.errors import ConsensusError, Unavailable
from cogwork.plugin.engine.placement import Placement  # noqa: TC001  # msgspec reads the annotations
from cogwork.replication.calls import GetIdentity, IdentityIs, StreamKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cogwork.cluster.members import MemberFacts
    from cogwork.replication.service import RaftService

__all__ = ("Identity", "Kept", "init", "read_kept", "write_kept")

FILE_NAME = "cluster.json"

ANSWER_TIMEOUT_S = 0.5
LOOK_S = 2.0
"""How often the other primaries are asked which cluster they are in, until all have said it."""

LOOK_SOON_S = 0.25
"""The same while one has not said it since this container began: it waits for that."""

REST_S = 30.0
"""How often after that."""

NO_STREAM = StreamKey("")

log = logging.getLogger("cogwork")


class Kept(msgspec.Struct, omit_defaults=True):
    """What `cluster.json` says.

    Attributes:
        token: The directory's own, made with it; empty where there is none.
        uuid: The cluster's; empty while it is not known.
        is_empty: Whether it is not decided yet whether this container founds a cluster or joins.
        is_joined: Whether it joined a cluster that was there before its directory.
        known_before: For one that joined: what was declared with a lower number is older than its
            directory; None while that is not known.
        founders: The tokens of the founders' directories, by container.
        is_recovered: Whether the cluster was made of one container's data, and others may be left.
        primaries: Who holds the declarations, once they were moved: it is by these that a container
            finds them, or its own replica, and the configuration may name nobody who is left.
    """

    token: str
    uuid: str = ""
    is_empty: bool = False
    is_joined: bool = False
    known_before: int | None = None
    founders: dict[str, str] = {}
    is_recovered: bool = False
    primaries: Placement | None = None


class _Written(Kept):
    """The same as it is written: what has been changed must not be taken for a cluster's.

    Attributes:
        checksum: Of the JSON text of the rest; None in files of before, or written by hand.
    """

    checksum: int | None = None


def read_kept(data_dir: Path) -> Kept | None:
    """Return what a data directory says of its cluster; None where it says nothing.

    Raises:
        DataFileError: It cannot be read, or has been changed.
    """
    file = data_dir / FILE_NAME
    try:
        written = msgspec.json.decode(file.read_bytes(), type=_Written)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataFileError(str(file), error.strerror or "it cannot be read") from error
    except (ValueError, RecursionError) as error:  # of the text, or of what it says
        raise _damaged(file, f"it is not what was written ({error})") from error
    kept = Kept(*(getattr(written, name) for name in Kept.__struct_fields__))
    if written.checksum not in (None, _checksum(kept)):
        raise _damaged(file, "it is not what was written (its checksum is another one)")
    if not kept.token or (kept.uuid and not _is_uuid(kept.uuid)):
        raise _damaged(file, f"{kept.uuid!r:.80} is not a UUID, or the token is empty")
    return kept


def _damaged(file: Path, what: str) -> DataFileError:
    return DataFileError(
        str(file),
        f"{what}; put the file back from a backup, or, if the other primaries are up, start this "
        "container with an empty data directory: it gets everything from them. A container that "
        "is alone can do without the file: remove it",
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _checksum(kept: Kept) -> int:
    checksum: int = crc32c(msgspec.json.encode(kept))
    return checksum


def write_kept(data_dir: Path, kept: Kept) -> None:
    """Write what a data directory says of its cluster, durably."""
    temporary = data_dir / f"{FILE_NAME}.tmp"
    written = _Written(**msgspec.structs.asdict(kept), checksum=_checksum(kept))
    with open(temporary, "wb", opener=opened_privately) as file:
        file.write(msgspec.json.format(msgspec.json.encode(written)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(data_dir / FILE_NAME)
    folder = os.open(data_dir, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def init(data_dir: Path, given: str | None = None) -> str:
    """Make an empty data directory one of a founder; return the cluster's UUID.

    Args:
        data_dir: Which one; it is made where it is not there.
        given: The UUID; None for a new one.

    Raises:
        DataDirectoryError: It is not empty, or cannot be written to.
    """
    try:
        data_dir.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        if any(data_dir.iterdir()):
            raise DataDirectoryError(str(data_dir), "it is not empty")
        made = Kept(secrets.token_hex(8), given or str(uuid.uuid4()))
        write_kept(data_dir, made)
    except OSError as error:
        raise DataDirectoryError(str(data_dir), error.strerror or "an error") from error
    return made.uuid


class Identity:
    """Owned by the container's replication.

    Attributes:
        on_known: Called with the cluster's UUID when that is known, or is another one.
        on_refused: Called with the containers that nothing is to be taken from, or sent to.
        tell_facts: Returns what the container says of itself as a member.
    """

    def __init__(
        self, own: str, primaries: Sequence[str], data_dir: str | None, *, is_empty: bool
    ) -> None:
        """Read what the data directory says.

        Args:
            own: The container's id.
            primaries: Those that the configuration names, in order of leader priority.
            data_dir: Where the container keeps files; None where it keeps none.
            is_empty: Whether nothing is kept there.

        Raises:
            DataDirectoryError: It cannot be read, or written.
        """
        self._own = own
        self._primaries = list(primaries)
        self._folder = None if data_dir is None else Path(data_dir)
        found = None if self._folder is None else read_kept(self._folder)
        self._kept = found or Kept(secrets.token_hex(8), is_empty=is_empty)
        self._service: RaftService
        self._foreign: dict[str, str] = {}
        self.on_known: Callable[[str], object] = _ignore
        self.on_refused: Callable[[set[str]], object] = _ignore
        self.tell_facts: Callable[[], MemberFacts | None] = lambda: None
        self._unverified: set[str] = set()
        self._deciding = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        if found is None and self._folder is not None:
            self._write()
        if self._folder is None:
            self._kept.token = ""  # which says that there is nothing to found a cluster with
        elif self._kept.is_empty and {*primaries} == {own}:
            self._found({own: self._kept.token})
        elif not self._kept.uuid and {*primaries} == {own}:
            self._adopt(str(uuid.uuid4()))

    @property
    def uuid(self) -> str:
        """The cluster's; empty while it is not known."""
        return self._kept.uuid

    @property
    def is_recovered(self) -> bool:
        """Whether containers of the cluster that it was may be left, and come back."""
        return self._kept.is_recovered

    @property
    def primaries(self) -> Placement | None:
        """Who holds the declarations, as far as it was known last; None where they never moved."""
        return self._kept.primaries

    @property
    def is_joined(self) -> bool:
        """Whether the cluster was there before this data directory."""
        return self._kept.is_joined

    @property
    def is_decided(self) -> bool:
        """Whether replicas may be opened here."""
        return not self._kept.is_empty or self._folder is None

    @property
    def lacks_past(self) -> bool:
        """Whether it is not known yet what was declared before this container joined."""
        return self._kept.is_joined and self._kept.known_before is None

    def is_older(self, number: int) -> bool:
        """Tell whether what is declared with a number may be older than this data directory."""
        known_before = self._kept.known_before
        return self._kept.is_joined and (known_before is None or number < known_before)

    def note_past(self, next_number: int) -> None:
        """Take note that what is declared from a number on is newer than this data directory."""
        self._kept.known_before = next_number
        self._write()

    def note_primaries(self, placement: Placement) -> None:
        """Take note of who holds the declarations now; where the disk fails, that is told only."""
        if placement == self._kept.primaries:
            return
        self._kept.primaries = placement
        try:
            self._write()
        except DataFileError as error:
            log.error("cannot keep who the cluster's primaries are: %s", error)

    # -- what others are told, and say

    def tell(self, call: GetIdentity) -> IdentityIs:
        """Answer another container."""
        kept = self._kept
        is_empty = kept.is_empty and self._folder is not None
        facts = self.tell_facts() if call.wants_facts else None
        return IdentityIs(
            call.number, kept.uuid, is_empty, kept.token, kept.founders, HIGHEST_LEVEL, facts
        )

    def start(self, service: RaftService) -> None:
        """Begin to ask the other primaries, again and again."""
        self._service = service
        if self._kept.uuid and self._folder is not None:
            # One that comes back from another cluster must not be listened to for a moment.
            self._unverified = {*self._primaries} - {self._own}
            self.on_refused(set(self._unverified))
        if {*self._primaries} - {self._own}:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Ask nobody any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            answers = await self._ask_all()
            self._look_for_strangers(answers)
            if self.is_decided and not self._kept.uuid:
                self._look_for_one(answers)
            is_known = self._kept.uuid and len(answers) == len({*self._primaries} - {self._own})
            pause_s = REST_S if is_known and not self._foreign else LOOK_S
            await asyncio.sleep(LOOK_SOON_S if self._unverified else pause_s)

    async def decide(self) -> None:
        """See to it that it is known whether this container founds a cluster or joins one.

        Raises:
            Unavailable: It is not yet; the text says why.
        """
        if self.is_decided:
            return
        async with self._deciding:
            if not self.is_decided:
                self._decide(await self._ask_all())

    async def _ask_all(self) -> dict[str, IdentityIs]:
        others = [each for each in self._primaries if each != self._own]
        found = await asyncio.gather(*map(self._ask, others), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, ConsensusError):
                raise each
        pairs = zip(others, found, strict=True)
        return {other: each for other, each in pairs if isinstance(each, IdentityIs)}

    async def _ask(self, container: str) -> IdentityIs:
        return await self._service.ask(
            container, GetIdentity, IdentityIs, NO_STREAM, ANSWER_TIMEOUT_S
        )

    def _decide(self, answers: Mapping[str, IdentityIs]) -> None:
        """Found the cluster, or join the one that is there.

        Raises:
            Unavailable: Neither can be done now.
        """
        known = {each.uuid for each in answers.values() if each.uuid}
        if len(known) > 1:
            told = ", ".join(
                f"{name} in {each.uuid}" for name, each in answers.items() if each.uuid
            )
            raise Unavailable(f"the primaries are in different clusters: {told}")
        begun = [name for name, each in answers.items() if each.token and not each.is_empty]
        if known or begun:
            self._join(next(iter(known), ""), answers)
            return
        lacking = [name for name, each in answers.items() if not each.token]
        missing = [each for each in self._primaries if each not in answers and each != self._own]
        if lacking or missing:
            why = [f"no answer comes from {', '.join(missing)}"] if missing else []
            if lacking:
                are = "is" if len(lacking) == 1 else "are"
                why.append(f"{', '.join(lacking)} {are} up without a data directory")
            raise Unavailable(
                "a cluster begins once each primary has said that its data directory is empty, and "
                f"{', and '.join(why)}"
            )
        if self._primaries[0] != self._own:
            raise Unavailable(f"the cluster begins as soon as {self._primaries[0]} has made it")
        tokens = {name: each.token for name, each in answers.items()}
        self._found({self._own: self._kept.token, **tokens})

    def _found(self, founders: dict[str, str]) -> None:
        self._kept.founders = founders
        self._adopt(str(uuid.uuid4()))

    def _join(self, cluster: str, answers: Mapping[str, IdentityIs]) -> None:
        """Begin as one of its founders, where it knows this directory, or else join it."""
        founders = next((each.founders for each in answers.values() if each.founders), {})
        is_founder = founders.get(self._own) == self._kept.token
        self._kept.founders = dict(founders) if is_founder else {}
        self._kept.is_joined = not is_founder
        if not is_founder and self._own in self._primaries:
            log.warning(
                "the data directory is empty but the cluster is not: this container joins it and "
                "counts towards a majority once it has caught up"
            )
        self._adopt(cluster)

    def _adopt(self, cluster: str) -> None:
        self._kept.uuid = cluster
        self._kept.is_empty = False
        self._write()
        self.on_known(cluster)

    def _look_for_one(self, answers: Mapping[str, IdentityIs]) -> None:
        """Adopt the UUID that others know; the first primary makes it for directories of old."""
        known = {each.uuid for each in answers.values() if each.uuid}
        if len(known) == 1:
            self._adopt(known.pop())
        elif not known and self._primaries[0] == self._own and self._folder is not None:
            old = 1 + sum(bool(each.token) and not each.is_empty for each in answers.values())
            if 2 * old > len(self._primaries):
                self._adopt(str(uuid.uuid4()))

    def _look_for_strangers(self, answers: Mapping[str, IdentityIs]) -> None:
        """Refuse what comes from primaries that are in another cluster."""
        self._unverified -= answers.keys()
        foreign = {
            name: each.uuid
            for name, each in answers.items()
            if each.uuid and self._kept.uuid and each.uuid != self._kept.uuid
        }
        told = self._foreign
        self._foreign = {**{k: v for k, v in told.items() if k not in answers}, **foreign}
        for name, cluster in foreign.items():
            if name not in told:
                log.error(
                    "container %s belongs to cluster %s and this one to %s: ignoring it; give one "
                    "of them an empty data directory or other primaries",
                    *(name, cluster, self._kept.uuid),
                )
        self.on_refused({*self._foreign, *self._unverified})

    @property
    def problem(self) -> str:
        """What is wrong with the primaries that the configuration names; empty for nothing."""
        if not self._foreign:
            return ""
        return f"in another cluster: {', '.join(sorted(self._foreign))}"

    def _write(self) -> None:
        """Write down what is known.

        A directory that was begun before clusters had a UUID does without, where its disk is full.

        Raises:
            DataDirectoryError: It cannot be written, and a start would not know what is decided.
        """
        if self._folder is None:
            return
        kept = self._kept
        try:
            write_kept(self._folder, kept)
        except OSError as error:
            reason = error.strerror or "an error"
            if kept.is_empty or kept.is_joined or kept.founders:
                raise DataFileError(str(self._folder / FILE_NAME), reason) from error
            log.warning("cannot write %s: %s", self._folder / FILE_NAME, reason)


def _ignore(_what: object) -> None:
    """Tell nobody."""
