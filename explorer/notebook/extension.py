"""Loading and unloading of the magics; IPython can register magics but not remove them."""

from __future__ import annotations

from typing import Any

from explorer.notebook.magics import MAGICS


def load(shell: Any) -> None:
    """Register the magics and their completers with a shell, once."""
    for kind, completers in MAGICS:
        if kind.__name__ not in shell.magics_manager.registry:
            _register(shell, kind(shell=shell))
            for name, completer in _with_signs(completers):
                shell.set_hook("complete_command", completer, str_key=name)


def unload(shell: Any) -> None:
    """Undo `load`, if it was called."""
    for kind, completers in MAGICS:
        magics = shell.magics_manager.registry.pop(kind.__name__, None)
        if magics is not None:
            magics.stop()
            _unregister(shell, magics)
            for name, completer in _with_signs(completers):
                _remove_completer(shell.strdispatchers["complete_command"].strs, name, completer)


def _with_signs(completers: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return each completer for the line magic and for the cell magic."""
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
            if registered[kind].get(name) == function:  # a later extension may have taken the name
                del registered[kind][name]
                registered[kind].update({n: old for n, old in magics.replaced[kind].items() if n == name})


def _remove_completer(chains: Any, name: str, completer: Any) -> None:
    if name in chains:
        chains[name].chain[:] = [hook for hook in chains[name].chain if hook[1].__func__ is not completer]
        if not chains[name].chain:
            del chains[name]
