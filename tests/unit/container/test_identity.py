"""Which cluster a data directory says it is of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cogwork.config.errors import DataDirectoryError, DataFileError
from cogwork.container.cluster import identity
from cogwork.container.cluster.identity import Identity, init, read_kept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_container_alone_is_a_cluster_at_once_and_stays_it(tmp_path: Path) -> None:
    first = Identity("a", ["a"], str(tmp_path), is_empty=True)
    again = Identity("a", ["a"], str(tmp_path), is_empty=False)
    assert first.is_decided
    assert first.uuid == again.uuid != ""
    assert not again.is_older(1)


def test_an_empty_primary_of_several_decides_nothing_alone(tmp_path: Path) -> None:
    first = Identity("a", ["a", "b", "c"], str(tmp_path), is_empty=True)
    assert not first.is_decided
    again = Identity("a", ["a", "b", "c"], str(tmp_path), is_empty=False)
    assert not again.is_decided, "it has a write-ahead log by now, and nothing in it"


def test_a_directory_of_before_goes_on_without_a_uuid_also_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_what: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(identity, "write_kept", full)
    found = Identity("a", ["a", "b", "c"], str(tmp_path), is_empty=False)
    assert found.is_decided
    assert found.uuid == ""
    with pytest.raises(DataDirectoryError, match="No space left"):
        Identity("a", ["a", "b", "c"], str(tmp_path), is_empty=True)


def test_a_founder_that_is_made_by_hand_begins(tmp_path: Path) -> None:
    made = init(tmp_path / "a")
    assert init(tmp_path / "b", made) == made
    with pytest.raises(DataDirectoryError, match="it is not empty"):
        init(tmp_path / "b")
    found = Identity("a", ["a", "b", "c"], str(tmp_path / "a"), is_empty=True)
    assert found.is_decided
    assert found.uuid == made
    assert not found.is_joined


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda _data: b"{", "it is not what was written"),
        (lambda _data: b"", "it is not what was written"),
        (lambda data: data[:-20], "it is not what was written"),
        (lambda data: bytes(len(data)), "it is not what was written"),
        (lambda _data: b"[" * 100_000, "it is not what was written"),
        (lambda data: data.replace(b"-4", b"-5"), "its checksum is another one"),
        (lambda data: data.replace(b'"token"', b'"tokem"'), "token"),
        (lambda _data: b'{"token": "", "uuid": ""}', "the token is empty"),
        (lambda _data: b'{"token": "t", "uuid": "mine"}', "'mine' is not a UUID"),
    ],
)
def test_what_is_damaged_is_told_with_what_to_do(
    tmp_path: Path, change: Callable[[bytes], bytes], text: str
) -> None:
    init(tmp_path / "a")
    file = tmp_path / "a" / "cluster.json"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DataFileError) as told:
        read_kept(file.parent)
    assert str(told.value).startswith(f"{file}: ")
    assert text in str(told.value)
    assert "put the file back from a backup" in str(told.value)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").mkdir()
    with pytest.raises(DataFileError, match=r"cluster\.json: Is a directory"):
        read_kept(tmp_path)


def test_what_was_written_without_a_checksum_is_read(tmp_path: Path) -> None:
    made = init(tmp_path / "a")
    file = tmp_path / "a" / "cluster.json"
    written = json.loads(file.read_bytes())
    del written["checksum"]
    file.write_text(json.dumps(written))
    kept = read_kept(file.parent)
    assert kept is not None
    assert kept.uuid == made
