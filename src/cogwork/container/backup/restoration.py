"""Making an empty data directory of a backup, and a new cluster of that.

Theory of operation. The files are laid out as they were, and then treated as those of the only
survivor of a lost cluster (`container.cluster.recovery`): what followed the backup is lost, and
whoever was there then may have settled any item, or may still be running. So the cluster gets
another UUID, each stream a new epoch and each item an attempt number that nobody has had; the
queues on this container's disk, too. The target only gets its name when all of that is done.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cogwork.config.errors import DataDirectoryError
from cogwork.container.backup.errors import BackupDamaged, BackupError, NoBackup
from cogwork.container.backup.folder import DIRECTORY_MODE, BackupFolder
from cogwork.container.cluster.recovery import recover
from cogwork.log.inspection import verify as verify_files
from cogwork.replication.offline import kept_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.backup.folder import Manifest
    from cogwork.container.cluster.recovery import Recovered

__all__ = ("Restored", "problems_of", "restore")


class Restored(NamedTuple):
    """What was restored.

    Attributes:
        manifest: Of the backup.
        recovered: The new cluster.
    """

    manifest: Manifest
    recovered: Recovered


def restore(folder: Path, data_dir: Path, container: str) -> Restored:
    """Make a data directory of a container's backup.

    Args:
        folder: Has the backup, perhaps those of other containers, too.
        data_dir: Empty, or not there.
        container: Whose backup, and the id of the container that is to be started.

    Raises:
        BackupError: The backup is damaged, none of this container, or of a later version.
        DataDirectoryError: The directory is not empty, or cannot be written to.
        LogError: What was backed up is damaged.
    """
    backup = BackupFolder.of(folder, container)
    manifest = backup.read()
    if manifest is None:
        known = [each.demand().container for each in BackupFolder.all_in(folder)]
        expected = ", ".join(map(repr, known))
        raise NoBackup(
            str(folder), f"there is no backup of container {container!r} (expected {expected})"
        )
    _demand_empty(data_dir)
    data_dir.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{data_dir.name}.", dir=data_dir.parent) as above:
        fresh = Path(above) / "data"
        fresh.mkdir(DIRECTORY_MODE)
        backup.lay_out(manifest, fresh)
        recovered = recover(fresh, container, has_own_queues=True)
        if data_dir.is_dir():
            data_dir.rmdir()
        fresh.rename(data_dir)
    return Restored(manifest, recovered)


def _demand_empty(data_dir: Path) -> None:
    try:
        is_empty = not data_dir.exists() or not any(data_dir.iterdir())
    except OSError as error:
        raise DataDirectoryError(str(data_dir), error.strerror or "an error") from error
    if not is_empty:
        raise DataDirectoryError(
            str(data_dir), "it is not empty (expected an empty directory, or none)"
        )


def problems_of(backup: BackupFolder) -> Iterator[Exception]:
    """Yield what is wrong with a backup: its parts, and then what they make as log files.

    Raises:
        BackupError: Its `backup.json` cannot be used.
    """
    manifest = backup.demand()
    problems = list(backup.problems(manifest))
    yield from problems
    if problems:
        return
    with tempfile.TemporaryDirectory(prefix=".verify.", dir=backup.path) as above:
        laid_out = Path(above)
        try:
            backup.lay_out(manifest, laid_out)
        except BackupDamaged as problem:
            yield problem
            return
        except OSError as error:
            text = f"cannot lay out the files to check them: {error.strerror}"
            raise BackupError(str(laid_out), text) from error
        yield from verify_files(laid_out)
        yield from (
            each for each in kept_replicas(laid_out).values() if isinstance(each, Exception)
        )
