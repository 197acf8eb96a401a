"""What a project says of Explorer in its pyproject.toml: the tables `[tool.explorer.…]`."""

from __future__ import annotations

from os import PathLike
from typing import Any, cast

from explorer.errors import OptionError
from explorer.files.disk import parse_toml, read_text


def project_settings(path: str | PathLike[str], section: str) -> Any:
    """What stands under `[tool.explorer.SECTION]`, a table if it is right; an empty one where nothing does.

    Raises:
        OptionError: The file can't be read, or is no TOML.
    """
    try:
        table: Any = parse_toml(read_text(path))
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} can't be read: {str(error).rstrip('.'):.300}.") from None
    for name in ("tool", "explorer", section):
        table = cast(dict[str, Any], table).get(name, {}) if isinstance(table, dict) else {}
    return table
