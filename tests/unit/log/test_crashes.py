"""A writer that is killed in the middle: all that it reported as durable is there afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from logs import Log

WRITER = """
import random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import cogwork.log.wal
from cogwork.log.errors import LogBusy
from logs import Log

random = random.Random(int(sys.argv[2]))
if int(sys.argv[2]) % 2:
    cogwork.log.wal.FILL_AFTER_FLUSHES = 3
log = Log(Path(sys.argv[1]), file_bytes=1 << 16)
number = len(log.found) and int(log.payloads()[-1].split()[0]) + 1
log.wal.on_durable = lambda _: report()
waiting = []

def report():
    done = [number for number, lsn in waiting if lsn < log.wal.durable_lsn]
    if done:
        del waiting[: len(done)]
        print(done[-1], flush=True)

while True:
    for _ in range(random.randrange(1, 30)):
        payload = b"%d %s" % (number, b"x" * random.randrange(300))
        while True:
            try:
                lsn = log.wal.append(1, 1, number, 0, payload)
                break
            except LogBusy:
                log.wal.flush()
                log.queue.wait()
        waiting.append((number, lsn))
        number += 1
    log.wal.flush()
    if random.random() < 0.1:
        log.wal.low_water(1, waiting[0][1])
    log.queue.wait(0)
"""

TESTS = str(Path(__file__).parents[2])


@pytest.mark.parametrize("seed", range(6))
def test_what_was_durable_survives_a_kill_at_any_moment(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for turn in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(seed * 10 + turn), TESTS]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        reported = [int(writer.stdout.readline()) for _ in range(chance.randrange(1, 60))]
        os.kill(writer.pid, signal.SIGKILL)
        reported += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        log = Log(tmp_path, file_bytes=1 << 16)
        found = [record.index for record in log.found]
        assert found == list(range(found[0], found[-1] + 1))
        assert found[-1] >= max(reported)
        assert all(int(record.payload.split()[0]) == record.index for record in log.found)
        log.abandon()
