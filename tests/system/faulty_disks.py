"""Disks that fail, stand still or are slow while a file is there, and that lose their power.

A library under a container's process stands between it and the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

FAILS, STALLS, SLOW = "fails", "stalls", "slow"

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fault_now(void) {
    const char *file = getenv("COGWORK_TEST_FAULT_FILE");
    const char *fault = getenv("COGWORK_TEST_FAULT");
    int slept = 0;
    while (file && fault && access(file, F_OK) == 0) {
        if (strcmp(fault, "fails") == 0) { errno = EIO; return -1; }
        if (strcmp(fault, "slow") == 0 && slept++ == 20) break;
        usleep(10000);
    }
    return 0;
}

/* What is beyond this size when the power goes may be lost. */
static void note(const struct stat *synced) {
    const char *file = getenv("COGWORK_TEST_SYNCED_FILE");
    char line[64];
    int out = file ? open(file, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (out < 0) return;
    int size = snprintf(line, sizeof line, "%lu %lld\n", (unsigned long)synced->st_ino,
                        (long long)synced->st_size);
    if (write(out, line, (size_t)size) < 0) abort();
    close(out);
}

static int synced(int fd, const char *name) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int is_known = fstat(fd, &before) == 0;
    if (fault_now() < 0) return -1;
    int result = real(fd);
    if (result == 0 && is_known) note(&before);
    return result;
}

int fdatasync(int fd) { return synced(fd, "fdatasync"); }
int fsync(int fd) { return synced(fd, "fsync"); }
"""


def faulty_disk(folder: Path, fault: str, file: Path) -> dict[str, str]:
    """Make the library; return the variables of a process that gets such a disk.

    Args:
        folder: Takes the library.
        fault: `FAILS`, `STALLS` or `SLOW`.
        file: While it is there, each synchronisation does so.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler makes a disk that fails")
    source, library = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return {
        "LD_PRELOAD": str(library),
        "COGWORK_TEST_FAULT": fault,
        "COGWORK_TEST_FAULT_FILE": str(file),
        "COGWORK_TEST_SYNCED_FILE": f"{file}.synced",
    }


def lose_power(data: Path, file: Path, chance: Random) -> None:
    """Have the files of a dead container lose what was appended and never synchronised.

    Args:
        data: Its data directory.
        file: As given to `faulty_disk`.
        chance: Decides how much of that is left.
    """
    noted = file.with_name(f"{file.name}.synced")
    lines = noted.read_text().splitlines() if noted.exists() else []
    sizes_bytes = {int(inode): int(size) for inode, size in (each.split() for each in lines)}
    for each in sorted(data.rglob("*")):
        if each.is_file():
            found = each.stat()
            kept_bytes = min(found.st_size, sizes_bytes.get(found.st_ino, 0))
            os.truncate(each, chance.randint(kept_bytes, found.st_size))
