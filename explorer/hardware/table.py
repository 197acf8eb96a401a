"""targets(): the hardware that a program can be compiled for."""

from __future__ import annotations

from explorer.errors import MissingCompilerError
from explorer.hardware.figures import all_hardware
from explorer.hardware.installed import compiler_of, is_available
from explorer.model.results.targets import TargetRow, Targets


def targets() -> Targets:
    """The hardware that `target=` takes, with its published figures, and whether its compiler is installed.

    None of it need be here: the compiler is, in a folder of Explorer's own, `python -m explorer targets install cuda`.

    Example:
        >>> rows = targets()
        >>> rows["h100"].device.memory, rows["v5e"].device.platform
        (84942979072, 'tpu')
    """
    installed: dict[str, bool] = {}
    rows: list[TargetRow] = []
    for device in all_hardware().values():
        platform = device.platform
        if platform not in installed:
            installed[platform] = is_available(platform)
        rows.append(TargetRow(device, installed[platform], _hint(platform, installed[platform])))
    return Targets(tuple(rows))


def _hint(platform: str, is_installed: bool) -> str:
    try:
        lacks = compiler_of(platform).lacks
    except MissingCompilerError:
        return ""
    hint = "" if is_installed else f"python -m explorer targets install {platform}"
    return f"{hint}{'; ' if hint and lacks else ''}{f'needs {lacks}' if lacks else ''}"
