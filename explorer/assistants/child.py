"""Process that runs one verb of the shell for an assistant: limited memory, no network, one writable folder.

    python -m explorer.assistants.child BYTES FOLDER VERB …

All printed output goes to standard error; standard output has the report alone.

On Linux a process can confine itself without privileges: Landlock limits writes to files, and a seccomp filter
refuses sockets. User namespaces would do both, but many systems and containers forbid them. Both limits also hold
for child processes, and can't be undone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import runpy
import struct
import sys
from dataclasses import dataclass
from errno import EACCES
from glob import glob
from pathlib import Path

from explorer.hardware.limits import limit_memory

_NO_NEW_PRIVILEGES, _GET_SECCOMP, _SET_SECCOMP, _FILTER = 38, 21, 22, 2  # of prctl
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # Landlock's system calls, the same on all machines
_WRITE_FILE, _MOVE, _TRUNCATE, _IOCTL = 1 << 1, 1 << 13, 1 << 14, 1 << 15
_WRITES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # and to remove, and to make a file of each kind
_NEVER = 1 << 6 | 1 << 9 | 1 << 11  # make a device, which may lead to any file, or a socket
_ON_FILES = _WRITE_FILE | _TRUNCATE | _IOCTL
# Drivers of GPUs and TPUs, and devices that store nothing.
_DEVICES = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/nvidia*", "/dev/kfd", "/dev/dri/*", "/dev/accel*", "/dev/vfio/*",
)  # fmt: skip


@dataclass(frozen=True)
class _Machine:
    """Linux's numbers for an architecture and its system calls."""

    audit: int
    socket: int
    connect: int
    socketpair: int


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 41, 42, 53),
    "aarch64": _Machine(0xC00000B7, 198, 203, 199),
}
_IO_URING_SETUP = 425  # io_uring could open sockets past the filter
_OTHER_ABI = 0x40000000  # from here on, x86-64 repeats each call for its x32 ABI
_UNIX, _DATAGRAM = 1, 2


def unconfined() -> str:
    """Return what a child process may do because this system can't confine it; empty if it can."""
    if _machine() is None:
        return "write any of the user's files, and use the network"
    missing = [] if _landlock_version() > 0 else ["write any of the user's files"]
    missing += [] if _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0 else ["use the network"]
    return ", and ".join(missing)


def confine(folder: Path) -> None:
    """Confine this process and its children: no network, and no writes outside a folder.

    Limits that the system lacks are skipped; `unconfined` names them.

    Raises:
        OSError: The system has a limit, and refused it.
    """
    machine = _machine()
    if machine is None:
        return
    # The kernel takes limits from an unprivileged process only if its children can't gain privileges either.
    _check(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if _landlock_version() > 0:
        _limit_writes(folder, _landlock_version())
    if _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0:
        _refuse_sockets(machine)


def _machine() -> _Machine | None:
    return _MACHINES.get(platform.machine()) if sys.platform == "linux" else None


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _landlock_version() -> int:
    # With flag 1 the system call returns the version; it is negative where Landlock is missing or off.
    return _libc().syscall(_CREATE_RULESET, None, 0, 1)


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"the process can't be confined: {os.strerror(ctypes.get_errno())}")
    return result


def _limit_writes(folder: Path, version: int) -> None:
    """Allow writes below a folder and to devices; a newer Landlock also refuses TCP and signals to others."""
    writes = _WRITES
    writes |= _MOVE if version >= 2 else 0  # between folders, which an older Landlock always refuses
    writes |= _TRUNCATE if version >= 3 else 0
    writes |= _IOCTL if version >= 5 else 0
    # The struct got a field for TCP in version 4, and one for signals and abstract sockets in version 6.
    ruleset = struct.pack("QQQ", writes, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 * (1 + (version >= 4) + (version >= 6))
    handle = _check(_libc().syscall(_CREATE_RULESET, ruleset[:size], size, 0))
    try:
        _allow(handle, str(folder), writes & ~_NEVER)
        for device in [path for pattern in _DEVICES for path in glob(pattern)]:
            _allow(handle, device, writes & _ON_FILES)
        _check(_libc().syscall(_RESTRICT_SELF, handle, 0))
    finally:
        os.close(handle)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _check(_libc().syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0))
    finally:
        os.close(place)


def _refuse_sockets(machine: _Machine) -> None:
    """Refuse `connect` and all sockets except local streams, which GPU drivers open."""
    load, equal, above, masked, end = 0x20, 0x15, 0x35, 0x54, 0x06  # opcodes of the kernel's packet filter
    number, kind, first, second = 0, 4, 16, 24  # offsets in `seccomp_data`
    # (code, instructions to jump over if true, if false, value); the last two allow and refuse.
    program = [
        # The architecture comes first: each one numbers its system calls differently.
        (load, 0, 0, kind),
        (equal, 0, 12, machine.audit),
        (load, 0, 0, number),
        (above, 10, 0, _OTHER_ABI),
        (equal, 9, 0, _IO_URING_SETUP),
        (equal, 8, 0, machine.connect),
        (equal, 1, 0, machine.socket),
        (equal, 0, 5, machine.socketpair),
        (load, 0, 0, first),
        (equal, 0, 4, _UNIX),
        (load, 0, 0, second),
        # The type has flags in its upper bits. A datagram socket sends without `connect`, so it is refused too.
        (masked, 0, 0, 0xF),
        (equal, 1, 0, _DATAGRAM),
        (end, 0, 0, 0x7FFF0000),
        (end, 0, 0, 0x00050000 | EACCES),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    _check(_libc().prctl(_SET_SECCOMP, _FILTER, struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)), 0, 0))


def main() -> None:
    # Limits come first: they hold for everything that runs afterwards.
    limit_memory(int(sys.argv[1]))
    confine(Path(sys.argv[2]))
    # The report has the original output alone; what the user's code prints goes to standard error.
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # for output of C++ and of child processes
    sys.stdout = report
    sys.argv[:] = ["explorer", *sys.argv[3:]]
    try:
        runpy.run_module("explorer", run_name="__main__", alter_sys=True)
    finally:
        report.flush()


if __name__ == "__main__":
    main()
