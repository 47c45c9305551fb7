"""An archiver that is killed, or overtaken, at any point: each record once, and no orphan."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyiceberg", reason="the extra [spark] is not installed")

import archives
from archives import STREAM, archived, assert_no_orphan, assert_whole

import cogwork.testing
from cogwork.pipeline.archive import Archive, work
from cogwork.pipeline.archive.upkeep import compact, keep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.pipeline.archive.notice import Notice

RECORDS = 600
COMMIT_ROWS = 100
SEED = 20261122


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        archives.create(url)
        archives.append(url, range(RECORDS))
        yield url


POINTS = [
    "planned",
    "writing",
    "written",
    "committing",
    "metadata",
    "committed",
    "compacting",
    "compacted",
    "expired",
    "sweeping",
]


@pytest.mark.parametrize("step", POINTS)
def test_kill_9_at_a_point(url: str, tmp_path: Path, step: str) -> None:
    chance = random.Random(f"{SEED} {step}")
    most = 1 if step in {"compacted", "expired"} else 3
    times = chance.randint(1, most)
    code = archives.in_child(
        archives.archive_and_die, url, tmp_path / "archive", step, times, COMMIT_ROWS
    )
    assert code == -9, f"it was not killed when {step} the {times}. time, seed {SEED}"
    archived(url, tmp_path / "archive", commit_rows=COMMIT_ROWS)
    assert_whole(url, tmp_path / "archive")
    assert_no_orphan(tmp_path / "archive")
    assert_whole(url, tmp_path / "archive")


def test_killed_again_and_again(url: str, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    told: list[tuple[str, int]] = []
    for _ in range(4):
        step, times = chance.choice(POINTS[:6]), chance.randint(1, 2)
        told.append((step, times))
        archives.in_child(archives.archive_and_die, url, tmp_path, step, times, 70)
    assert archived(url, tmp_path, commit_rows=70).mark >= RECORDS, f"seed {SEED}: {told}"
    assert_no_orphan(tmp_path)
    assert_whole(url, tmp_path)


def test_two_at_once(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path, commit_rows=1, name=_small(url))  # the catalog is there
    both = [archives.start_child(archives.archive_to_the_end, url, tmp_path, 20) for _ in range(2)]
    for child in both:
        child.join(60)
    assert [child.exitcode for child in both] == [0, 0]
    assert_whole(url, tmp_path)
    assert_no_orphan(tmp_path)


def _small(url: str) -> str:
    archives.create(url, "small")
    archives.append(url, range(1), "small")
    return "small"


def test_who_is_overtaken_drops_what_it_wrote(url: str, tmp_path: Path) -> None:
    overtaken: list[int] = []

    def overtake(notice: Notice) -> None:
        if notice.step == "committing" and not overtaken:
            overtaken.append(archived(url, tmp_path, commit_rows=250).commits)

    outcome = archived(url, tmp_path, commit_rows=100, on_notice=overtake)
    assert overtaken == [3]
    assert (outcome.rows, outcome.dropped, outcome.mark) == (0, 1, RECORDS)
    assert_whole(url, tmp_path)
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table(STREAM)
        folder = table.location.removeprefix("file://") + "/data"
        assert len(list(Path(folder).rglob("*.parquet"))) == 3, (
            "what was dropped is removed at once"
        )


def test_a_lost_race_is_never_repeated_by_pyiceberg(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path, commit_rows=RECORDS // 2)
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table(STREAM)
        table.set_properties({"commit.retry.num-retries": "4"})
        archives.append(url, range(RECORDS, RECORDS + 50))
        archived(url, tmp_path)
        table.refresh()
        assert table.properties["commit.retry.num-retries"] == "0"


def test_compaction_beside_an_archiver(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path, commit_rows=50)
    with Archive.open(str(tmp_path)) as archive:
        table = archive.table(STREAM)

        def go_on(notice: Notice) -> None:
            if notice.step == "compacting" and notice.items:
                archives.append(url, range(10))
                archived(url, tmp_path)

        went, came = compact(table, archives.TIGHT, go_on)
        assert (went > 10, came) == (True, 1)
    assert_whole(url, tmp_path)


def test_two_compactions_at_once(url: str, tmp_path: Path) -> None:
    archived(url, tmp_path, commit_rows=100)

    def overtake(notice: Notice) -> None:
        if notice.step == "compacting" and notice.items:
            with Archive.open(str(tmp_path)) as other:
                compact(other.table(STREAM), archives.TIGHT)

    with Archive.open(str(tmp_path)) as archive:
        assert compact(archive.table(STREAM), archives.TIGHT, overtake) == (0, 0)
        assert len(archive.files(STREAM)) == 1
    assert_whole(url, tmp_path)
    assert_no_orphan(tmp_path)


def test_a_sweep_leaves_a_live_archiver_alone(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files lie above the mark, and are young; what is below the mark goes at once."""
    monkeypatch.setattr(work, "remove", lambda _io, _path: False)
    swept: list[int] = []

    def sweep(notice: Notice) -> None:
        if notice.step == "committing":
            with Archive.open(str(tmp_path)) as other:
                how = archives.TIGHT._replace(orphan_age_s=3600, small_files_min=99)
                swept.append(keep(other.table(STREAM), how).swept)

    outcome = archived(url, tmp_path, commit_rows=200, on_notice=sweep)
    assert outcome.commits == len(swept)
    assert_whole(url, tmp_path)
    assert_no_orphan(tmp_path)
