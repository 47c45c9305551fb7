"""A process without a system call, as in a sandbox that does not know it; by seccomp, on Linux."""

from __future__ import annotations

import ctypes
import platform
import struct

__all__ = ("FALLOCATE", "refuse")

FALLOCATE = {"x86_64": 285, "aarch64": 47}.get(platform.machine())
"""The number of the system call here."""

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ERRNO, RET_ALLOW = 0x0005_0000, 0x7FFF_0000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse(call: int, error: int) -> None:
    """Have a system call fail from now on, in this thread and those that it starts.

    Args:
        call: Its number.
        error: The errno that it fails with.

    Raises:
        OSError: The kernel has no such filters.
    """
    steps = [
        (LOAD_WORD, 0, 0, 0),  # the number of the call
        (JUMP_IF_EQUAL, 0, 1, call),
        (RETURN, 0, 0, RET_ERRNO | error),
        (RETURN, 0, 0, RET_ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    program = _Program(len(steps), code)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if prctl(*arguments) < 0:
            raise OSError(ctypes.get_errno(), "no seccomp")
