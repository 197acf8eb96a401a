"""Where Explorer keeps what it need not make again: the figures of a machine, compilers of other hardware."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`EXPLORER_CACHE_DIR`, else `explorer` in the system's folder for caches; it need not be there."""
    if own := os.environ.get("EXPLORER_CACHE_DIR"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path(os.path.expanduser("~"), ".cache")) / "explorer"
