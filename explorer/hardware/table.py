"""targets() and target(): the hardware that a program can be compiled for, and one piece of it with its limits."""

from __future__ import annotations

from dataclasses import replace

from explorer.errors import OptionError
from explorer.hardware.cpu_features import lacking_feature
from explorer.hardware.installed import compiler_of, is_available
from explorer.hardware.names import all_hardware, parse_target
from explorer.model.results.targets import TargetRow, Targets
from explorer.model.target import Target


def targets() -> Targets:
    """The hardware that `target=` takes, with its published figures, and whether its compiler is installed.

    None of it need be here: the compiler is, in a folder of Explorer's own, `python -m explorer targets install cuda`.

    Example:
        >>> import explorer
        >>> rows = explorer.targets()
        >>> rows["h100"].device.memory, rows["v5e"].device.platform
        (84942979072, 'tpu')
    """
    installed: dict[str, bool] = {}
    rows: list[TargetRow] = []
    for device in all_hardware().values():
        platform = device.platform
        if platform not in installed:
            installed[platform] = is_available(platform)
        lacks = lacking_feature(device)
        is_here = installed[platform] and not lacks
        rows.append(TargetRow(device, is_here, f"needs {lacks}" if lacks else _hint(platform, is_here)))
    return Targets(tuple(rows))


def target(text: str | Target, *, compile_seconds: float = 0.0, compile_memory: int = 0) -> Target:
    """Hardware to compile for, as every `target=` takes it, with what a compile may take of this machine.

    Without limits the name alone does the same: `target="8xh100"`.

    Args:
        text: A device of `explorer.targets()`; several as `8xh100`, or `v5e:4x4` in the topology of a TPU's pod.
        compile_seconds: After how many a compile is given up; 0 for never, or for `EXPLORER_TARGET_SECONDS`.
        compile_memory: Bytes that the compiler may take of this machine; 0 for all, or for `EXPLORER_TARGET_MEMORY`.
            On Linux it is held.

    Raises:
        UnknownTargetError: There is no such device, or no such number or topology of it.
        OptionError: A limit is no number, or below 0.

    Example:
        >>> import explorer
        >>> pod = explorer.target("v5e:4x4", compile_seconds=600)
        >>> pod.device.name, pod.count, pod.compile_seconds
        ('TPU v5e', 16, 600)
    """
    for name, value in (("compile_seconds", compile_seconds), ("compile_memory", compile_memory)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"{name} is {value!r}; allowed is a number above 0, or 0 for no limit.")
    return replace(parse_target(text), compile_seconds=compile_seconds, compile_memory=int(compile_memory))


def _hint(platform: str, is_installed: bool) -> str:
    if platform == "cpu":
        return "JAX's own; for ARM on ARM machines alone"
    lacks = compiler_of(platform).lacks
    hint = "" if is_installed else f"python -m explorer targets install {platform}"
    return f"{hint}{'; ' if hint and lacks else ''}{f'needs {lacks}' if lacks else ''}"
