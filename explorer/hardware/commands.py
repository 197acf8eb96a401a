"""`python -m explorer targets …`: hardware to compile for, and its compilers."""

from __future__ import annotations

import argparse
from typing import Any

import explorer as ex  # loads each module at first use: the other verbs start without JAX
from explorer.files.reports import add_format, is_json, present
from explorer.hardware.installed import install, platform_of, remove


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
            raise ex.errors.OptionError(
                "list takes no target.\n  Hint: python -m explorer targets install " + given.target[0]
            )
        targets = ex.targets()
        present(given, "targets", targets, lambda: _print(targets))
        return 0
    if not given.target:
        raise ex.errors.OptionError(f"{given.action} what?\n  Hint: python -m explorer targets {given.action} h100")
    lines: list[str] = []
    emit = lines.append if is_json(given) else print  # a download takes minutes, so text is printed line by line
    for platform in dict.fromkeys(platform_of(text) for text in given.target):
        if given.action == "install":
            install(platform, emit)
        else:
            emit(f"{platform}: {'removed' if remove(platform) else 'was not installed'}")
    present(given, "targets", ex.targets(), lambda: None, summary=lines)
    return 0


def _print(targets: ex.types.Targets) -> None:
    from rich.console import Console

    Console(soft_wrap=True).print(targets, highlight=False)
