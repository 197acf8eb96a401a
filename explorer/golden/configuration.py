"""Golden files of a project: `[tool.explorer.check]` in its pyproject.toml.

[tool.explorer.check]
files = ["tests/golden/*.golden"]     # relative to pyproject.toml; default: all `*.golden` in and below its folder
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from explorer.errors import OptionError
from explorer.files.disk import project_settings
from explorer.model.text import brief

_HIDDEN = (".", "node_modules")  # environments and caches hold other people's files


def golden_files(folder: Path) -> list[Path]:
    """Return the golden files of the project that a folder is in, sorted.

    Raises:
        OptionError: pyproject.toml can't be read, or its `files` is no list of patterns.
    """
    for above in (folder, *folder.parents):
        path = above / "pyproject.toml"
        if path.is_file():
            return _sorted(above, _patterns(path))
    return _sorted(folder, None)


def _sorted(folder: Path, patterns: Sequence[str] | None) -> list[Path]:
    if patterns is not None:
        try:
            return sorted({path for pattern in patterns for path in folder.glob(pattern)})
        except (ValueError, NotImplementedError, RecursionError, OSError) as error:  # an empty pattern, an absolute one
            raise OptionError(f"a path of [tool.explorer.check] is no pattern: {error!s:.200}.") from None
    paths = ((path, path.relative_to(folder).parts) for path in folder.rglob("*.golden"))
    return sorted(path for path, parts in paths if not any(part.startswith(_HIDDEN) for part in parts))


def _patterns(path: Path) -> Sequence[str] | None:
    table = project_settings(path, "check")
    files: object = cast(dict[str, Any], table).get("files") if isinstance(table, dict) else None
    if files is None:
        return None
    if not isinstance(files, list) or not all(isinstance(each, str) for each in cast(list[object], files)):
        raise OptionError(
            f"files is {brief(cast(object, files))} in [tool.explorer.check] of {path}; "
            'allowed is a list of paths: ["tests/*.golden"].'
        )
    return cast(list[str], files)
