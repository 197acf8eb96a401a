"""Loading and unloading. IPython can register magics but not take them back, so that is done here."""

from __future__ import annotations

from typing import Any

from explorer.notebook.lint import LintMagics, complete_lint
from explorer.notebook.magics import (
    ExplorerMagics,
    HotPathsMagics,
    RecompilesMagics,
    SessionMagics,
    complete,
    complete_hotpaths,
    complete_recompiles,
)
from explorer.notebook.measure import MeasureMagics, complete_jprofile, complete_jtime

# Each with what completes after its names.
MAGICS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (ExplorerMagics, {"explore": complete}),
    (LintMagics, {"lint": complete_lint}),
    (MeasureMagics, {"jtime": complete_jtime, "jprofile": complete_jprofile}),
    (HotPathsMagics, {"hotpaths": complete_hotpaths}),
    (RecompilesMagics, {"recompiles": complete_recompiles}),
    (SessionMagics, {}),
)


def load(shell: Any) -> None:
    """Register the magics with a shell; nothing happens if they are already."""
    for kind, completers in MAGICS:
        if kind.__name__ not in shell.magics_manager.registry:
            _register(shell, kind(shell=shell))
            for name, completer in _with_signs(completers):
                shell.set_hook("complete_command", completer, str_key=name)


def unload(shell: Any) -> None:
    """Undo `load`; nothing happens if there is nothing to undo."""
    for kind, completers in MAGICS:
        magics = shell.magics_manager.registry.pop(kind.__name__, None)
        if magics is not None:
            magics.stop()
            _unregister(shell, magics)
            for name, completer in _with_signs(completers):
                _remove_completer(shell.strdispatchers["complete_command"].strs, name, completer)


def _with_signs(completers: dict[str, Any]) -> list[tuple[str, Any]]:
    """Each completer as of a line and as of a cell."""
    return [(sign + name, completer) for name, completer in completers.items() for sign in ("%", "%%")]


def _register(shell: Any, magics: Any) -> None:
    # Another extension may own one of the names: unloading gives it back.
    for kind, table in magics.magics.items():
        magics.replaced[kind] = {name: old for name in table if (old := shell.magics_manager.magics[kind].get(name))}
    shell.register_magics(magics)


def _unregister(shell: Any, magics: Any) -> None:
    shell.configurables.remove(magics)
    registered = shell.magics_manager.magics
    for kind, table in magics.magics.items():
        for name, function in table.items():
            if registered[kind].get(name) == function:  # not if somebody took the name after us
                del registered[kind][name]
                registered[kind].update({n: old for n, old in magics.replaced[kind].items() if n == name})


def _remove_completer(chains: Any, name: str, completer: Any) -> None:
    if name in chains:
        chains[name].chain[:] = [hook for hook in chains[name].chain if hook[1].__func__ is not completer]
        if not chains[name].chain:
            del chains[name]
