"""JAX's persistent cache in a folder, for as long as something is compiled: what one process compiled, others load."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

_FOLDER = "jax_compilation_cache_dir"
# JAX keeps what took a second to compile; here all of it is wanted once more.
_KEEP_ALL = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}


def user_folder() -> str:
    """The folder that the user gave JAX; empty if there is none."""
    config: Any = jax.config
    return str(getattr(config, _FOLDER, None) or "")


@contextmanager
def cache_in(folder: str, keeps_all: bool = False) -> Generator[None]:
    """Have JAX use a folder within; its own again after. Nothing changes where there is no such folder.

    Args:
        folder: Where; empty for whatever JAX has.
        keeps_all: Whether to keep also what took no time.
    """
    if not folder or (folder == user_folder() and not keeps_all) or not Path(folder).is_dir():
        yield
        return
    config: Any = jax.config
    wanted = {_FOLDER: folder, **(_KEEP_ALL if keeps_all else {})}
    before = {name: getattr(config, name) for name in wanted}
    _update(wanted)
    try:
        yield
    finally:
        _update(before)


def _update(values: dict[str, Any]) -> None:
    for name, value in values.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # it holds the folder that it was first used with


@contextmanager
def program_folders(count: int) -> Generator[str]:
    """A folder with a folder for each of some programs, `0`, `1`, …; it goes with the context.

    Apart, since a program that another one equals would be found in the other's place, and seem to compile in no time.
    """
    with TemporaryDirectory(prefix="explorer-programs-") as folder:
        for at in range(count):
            Path(folder, str(at)).mkdir()
        yield folder
