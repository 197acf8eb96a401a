"""The Pythons of this machine, by version: on the PATH, and under pyenv."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def python_of(version: str) -> str | None:
    """An interpreter of a version, as `3.12`; None where there is none."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)
    for candidate in (sys.executable, f"python{version}", *map(str, pyenv)):
        if _version(candidate) == version:
            return candidate
    return None


def _version(python: str) -> str:
    """`3.12`; empty of what doesn't run, as a shim of pyenv's without a version behind it."""
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run([python, "-c", script], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
