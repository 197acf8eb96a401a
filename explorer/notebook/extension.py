"""Loading and unloading. IPython can register magics but not take them back, so that is done here."""

from __future__ import annotations

from typing import Any

from explorer.notebook.completion import complete
from explorer.notebook.magics import ExplorerMagics

__all__ = ["load", "unload"]

_COMPLETED = ("%explore", "%%explore")


def load(shell: Any) -> None:
    """Register the magics with a shell; nothing happens if they are already."""
    if ExplorerMagics.__name__ in shell.magics_manager.registry:
        return
    magics = ExplorerMagics(shell=shell)
    # Another extension may own one of the names: unloading gives it back.
    for kind, table in magics.magics.items():
        magics.replaced[kind] = {name: old for name in table if (old := shell.magics_manager.magics[kind].get(name))}
    shell.register_magics(magics)
    for key in _COMPLETED:
        shell.set_hook("complete_command", complete, str_key=key)


def unload(shell: Any) -> None:
    """Undo `load`; nothing happens if there is nothing to undo."""
    manager = shell.magics_manager
    magics = manager.registry.pop(ExplorerMagics.__name__, None)
    if magics is None:
        return
    shell.configurables.remove(magics)
    for kind, table in magics.magics.items():
        for name, function in table.items():
            if manager.magics[kind].get(name) == function:  # not if somebody took the name after us
                del manager.magics[kind][name]
                manager.magics[kind].update({n: old for n, old in magics.replaced[kind].items() if n == name})
    chains = shell.strdispatchers["complete_command"].strs
    for key in _COMPLETED:
        if key in chains:
            chains[key].chain[:] = [hook for hook in chains[key].chain if hook[1].__func__ is not complete]
            if not chains[key].chain:
                del chains[key]
