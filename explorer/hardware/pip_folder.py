"""Packages in a folder of Explorer's own, filled by pip whole or not at all, which the user's JAX never sees."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISVTX, S_IWGRP, S_IWOTH
from tempfile import mkdtemp

from explorer.errors import MissingPackageError
from explorer.files.disk import cache_folder, write_text

_DONE = "installed-by-explorer"  # written last: a folder without it is half of one
_PATIENCE = 1800.0  # seconds for 200 MB over a slow line


def is_whole(folder: Path) -> bool:
    """Whether `install_into` has filled it."""
    return (folder / _DONE).is_file()


def distrust(folder: Path) -> str:
    """Return why code in a folder may not run: another user can put code there. Empty if only this user and root can.

    The folder and those of Explorer's cache above it belong to this user or root, who alone can write there; above them
    nothing may be writable for all, as in a shared folder where another user can exchange the next one.
    """
    if not hasattr(os, "getuid"):
        return ""  # Windows, where the user's profile is private
    folder, own = folder.resolve(), cache_folder().resolve()
    for path in (folder, *folder.parents):
        status = path.stat()
        is_below = path == own or own in path.parents
        if is_below and status.st_uid not in (os.getuid(), 0):
            return f"{path} belongs to another user, number {status.st_uid}.\n  Hint: rm -r {shlex.quote(str(path))}"
        open_to = S_IWOTH | (S_IWGRP if is_below and _is_shared(status.st_gid) else 0)
        if status.st_mode & open_to and not (status.st_mode & S_ISVTX and not is_below):
            return f"other users can write to {path}.\n  Hint: chmod go-w {shlex.quote(str(path))}"
    return ""


def _is_shared(group: int) -> bool:
    """Return False for a user's private group, by which Linux lets nobody else write."""
    import grp
    import pwd

    try:
        members, owner = grp.getgrgid(group), pwd.getpwuid(os.getuid())
    except KeyError:
        return True
    return owner.pw_gid != group or owner.pw_name != members.gr_name or bool({*members.gr_mem} - {owner.pw_name})


def install_into(folder: Path, requirement: str, *options: str, needs: str = "") -> None:
    """Install a package where only those look who know the folder; what is there already stays.

    pip does it, or uv where there is no pip, with the index, proxy and cache that it is configured for.

    Args:
        folder: Where to.
        requirement: As pip takes it: `jax==0.11.0`.
        options: Of pip's and uv's, as `--no-deps`; and further packages.
        needs: What must be in the folder then.

    Raises:
        MissingPackageError: It failed; says why in a line. Nothing is left behind. Or it is there, and another user can
            write to it.
    """
    if is_whole(folder):
        if reason := distrust(folder):
            raise MissingPackageError(f"{requirement} is not used: {reason}")
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(mkdtemp(prefix="unfinished-", dir=folder.parent))
    try:
        _pip(unfinished, requirement, options)
        if not (unfinished / needs).exists():
            raise MissingPackageError(f"{requirement} was installed and has no {needs}.")
        write_text(unfinished / _DONE, f"{requirement}\n")
        shutil.rmtree(folder, ignore_errors=True)  # half of one, as an interrupted removal leaves it
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _pip(folder: Path, requirement: str, options: tuple[str, ...]) -> None:
    target = ["--only-binary=:all:", "--quiet", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    if find_spec("pip") is None:
        uv = shutil.which("uv")
        if uv is None:
            raise MissingPackageError("neither pip nor uv is here to install it.\n  Hint: python -m ensurepip")
        command = [uv, "pip", "install", "--python", sys.executable]
    try:
        done = subprocess.run(
            [*command, *options, *target, requirement], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise MissingPackageError(f"{requirement} was not installed after {_PATIENCE:.0f} s.") from error
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    if done.returncode:
        why = errors[0] if errors else done.stderr.strip()[-300:]
        raise MissingPackageError(
            f"{requirement} can't be installed: {why}\n  Hint: the index that pip is configured for must have it."
        )
