"""targets() and target(), hardware to compile for; `python -m explorer targets …`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from explorer.errors import OptionError
from explorer.files.reports import add_format, is_json, present
from explorer.hardware.cpu_features import lacking_feature
from explorer.hardware.installed import compiler_of, install, is_available, platform_of, remove
from explorer.hardware.names import all_hardware, parse_target
from explorer.model.results.targets import TargetRow, Targets
from explorer.model.target import Target


def targets() -> Targets:
    """List the hardware that `target=` takes, with published figures, and whether its compiler is installed.

    The hardware itself need not be here. `python -m explorer targets install cuda` installs a compiler into Explorer's
    own folder.

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
    """Return hardware for `target=`, with limits for the compile.

    Without limits, the name alone does the same: `target="8xh100"`.

    Args:
        text: A device of `explorer.targets()`; several as `8xh100`; nodes of several as `4x8xh100`; a TPU slice with
            its topology as `v5e:4x4`; several slices as `2xv5e:4x4`.
        compile_seconds: Time limit for a compile; 0 for none, or for `EXPLORER_TARGET_SECONDS`.
        compile_memory: Memory limit for the compiler in bytes; 0 for none, or for `EXPLORER_TARGET_MEMORY`. Enforced
            on Linux.

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
        return "JAX's own; for ARM only on ARM machines"
    lacks = compiler_of(platform).lacks
    hint = "" if is_installed else f"python -m explorer targets install {platform}"
    return f"{hint}{'; ' if hint and lacks else ''}{f'needs {lacks}' if lacks else ''}"


def add_targets(verbs: Any) -> None:
    about = (
        "List hardware to compile for, which need not be here. Install its compiler into Explorer's own folder, "
        "outside of JAX's environment, with pip as configured; or remove it."
    )
    verb = verbs.add_parser("targets", help="list hardware to compile for; install a compiler", description=about)
    verb.add_argument("action", nargs="?", choices=("list", "install", "remove"), default="list")
    verb.add_argument("target", nargs="*", help="h100, v5e, …; or a compiler: cuda, tpu, rocm")
    add_format(verb)
    verb.set_defaults(run=_targets)


def _targets(given: argparse.Namespace) -> int:
    if given.action == "list":
        if given.target:
            raise OptionError("list takes no target.\n  Hint: python -m explorer targets install " + given.target[0])
        listed = targets()
        present(given, "targets", listed, lambda: _print(listed))
        return 0
    if not given.target:
        raise OptionError(f"{given.action} what?\n  Hint: python -m explorer targets {given.action} h100")
    lines: list[str] = []
    emit = lines.append if is_json(given) else print  # a download takes minutes, so text is printed line by line
    for platform in dict.fromkeys(platform_of(text) for text in given.target):
        if given.action == "install":
            install(platform, emit)
        else:
            emit(f"{platform}: {'removed' if remove(platform) else 'was not installed'}")
    present(given, "targets", targets(), lambda: None, summary=lines)
    return 0


def _print(targets: Targets) -> None:
    from rich.console import Console

    Console(soft_wrap=True).print(targets, highlight=False)
