"""Disks that fail, or stand still, while a file is there: a library under a container's process."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FAILS, STALLS = "fails", "stalls"

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fdatasync(int fd) {
    static int (*real)(int);
    const char *file = getenv("COGWORK_TEST_FAULT_FILE");
    const char *fault = getenv("COGWORK_TEST_FAULT");
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    while (file && fault && access(file, F_OK) == 0) {
        if (strcmp(fault, "fails") == 0) { errno = EIO; return -1; }
        usleep(10000);
    }
    return real(fd);
}
"""


def faulty_disk(folder: Path, fault: str, file: Path) -> dict[str, str]:
    """Make the library; return the variables of a process that gets such a disk.

    Args:
        folder: Takes the library.
        fault: `FAILS` or `STALLS`.
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
    }
