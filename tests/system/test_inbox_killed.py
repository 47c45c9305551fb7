"""A consumer that is killed with SIGKILL, again and again, has each effect once."""

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cogwork.inbox import Inbox

CONSUMER = Path(__file__).with_name("inbox_consumer.py")
RECORDS = 40
DEATHS = 4


def effects(path: Path, seed: int, how: str) -> tuple[list[int], int]:
    """Let the consumer die at seeded moments, then finish; return the effects and their sum."""
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE effect (number INTEGER, value INTEGER)")
        database.execute("CREATE TABLE total (value INTEGER)")
        database.execute("INSERT INTO total VALUES (0)")
        Inbox(database, "consumer").create()
    chance = random.Random(seed)
    moments = [chance.randint(1, 30) for _ in range(DEATHS)]
    for moment in (*moments, 0):
        arguments = [str(path), str(RECORDS), str(moment), how]
        done = subprocess.run([sys.executable, str(CONSUMER), *arguments], check=False, timeout=60)
        assert done.returncode == (-signal.SIGKILL if moment else 0)
    numbers = [number for (number,) in database.execute("SELECT number FROM effect")]
    ((total,),) = database.execute("SELECT value FROM total").fetchall()
    database.close()
    return numbers, total


@pytest.mark.parametrize("how", ["resume", "again"])
@pytest.mark.parametrize("seed", range(4))
def test_every_effect_is_there_once(tmp_path: Path, seed: int, how: str) -> None:
    numbers, total = effects(tmp_path / "db", seed, how)
    assert numbers == list(range(RECORDS))
    assert total == sum(i * i for i in range(RECORDS))


def test_without_an_inbox_they_would_not_be(tmp_path: Path) -> None:
    numbers, _ = effects(tmp_path / "db", 0, "without")
    assert len(numbers) > RECORDS
