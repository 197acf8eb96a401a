"""Packages in a folder of Explorer's own, filled by pip whole or not at all, which the user's JAX never sees."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from explorer.errors import MissingPackageError
from explorer.files.disk import write_text

_DONE = "installed-by-explorer"  # written last: a folder without it is half of one
_PATIENCE = 1800.0  # seconds for 200 MB over a slow line


def is_whole(folder: Path) -> bool:
    """Whether `install_into` has filled it."""
    return (folder / _DONE).is_file()


def install_into(folder: Path, requirement: str, *options: str, needs: str = "") -> None:
    """Install a package where only those look who know the folder; what is there already stays.

    pip does it, or uv where there is no pip, with the index, proxy and cache that it is configured for.

    Args:
        folder: Where to.
        requirement: As pip takes it: `jax==0.11.0`.
        options: Of pip's and uv's, as `--no-deps`; and further packages.
        needs: What must be in the folder then.

    Raises:
        MissingPackageError: It failed; says why in a line. Nothing is left behind.
    """
    if is_whole(folder):
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
