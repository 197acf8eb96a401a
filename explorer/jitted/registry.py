"""The programs by function and options, so that jitting a function again finds what was compiled for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import PurePath
from threading import RLock
from typing import Any

from explorer.errors import RecompilationWarning
from explorer.jitted.program import STORM, Options, Program
from explorer.jitted.reading import Same
from explorer.jitted.references import Method, Reference, is_dead, reference
from explorer.jitted.warn import users_line, warn_user
from explorer.model.events.family_counts import warned_functions

_Site = tuple[str, int, str, int]  # where a function is defined, and where it was jitted
_Key = tuple[Reference, Reference | None, Reference | None, Options]


class Registry:
    """A bounded table of programs. It keeps no function alive; an entry goes with its function.

    Args:
        limit: How many programs are kept; past it the least recently asked for goes.
    """

    def __init__(self, limit: int = 256) -> None:
        self.limit = limit
        self._programs: dict[_Key, Program] = {}
        self._dropped: dict[_Key, None] = {}  # to make room; a dead one equals no other, and goes in its turn
        self._returns = 0  # of those
        self._died: dict[_Site, int] = {}  # how many functions from there are gone
        self._sites: dict[Reference, _Site] = {}
        self._lock = RLock()  # a collection of garbage, and so a callback, can come at any point

    def program(
        self, function: Callable[..., Any], inputs: Any, outputs: Any, options: Options, names: tuple[str, str]
    ) -> Program:
        """The program of a function, new or known."""
        key = (
            reference(function, self._forget),
            None if inputs is None else reference(inputs, self._forget),
            None if outputs is None else reference(outputs, self._forget),
            options,
        )
        with self._lock:
            program = self._programs.pop(key, None)
            if program is None:
                program = Program(*key, names=names)
                self._watch_site(key[0], function)
                if key in self._dropped:
                    self._note_return(key)
            self._programs[key] = program
            while len(self._programs) > self.limit:
                self._drop(next(iter(self._programs)))
            return program

    def _drop(self, key: _Key) -> None:
        self._programs.pop(key, None)
        if not any(isinstance(reference, Same) for reference in key[:3]):  # that would keep it alive
            self._dropped[key] = None
        while len(self._dropped) > 4 * self.limit:
            self._dropped.pop(next(iter(self._dropped)))

    def _note_return(self, key: _Key) -> None:
        """One or the other may come back by chance; several are a rotation."""
        self._dropped.pop(key)
        self._returns += 1
        if self._returns == STORM:
            warn_user(
                f"more than {self.limit} functions are jitted in turn, and what was compiled for no more is kept: each "
                "is traced and compiled again.\n"
                "  Hint: keep what jit returns, fast = jit(f), and call that: it keeps its own.",
                RecompilationWarning,
            )

    def _watch_site(self, program: Reference, function: Any) -> None:
        code = getattr(function, "__code__", None)
        # A `def` with variables from around it is a factory's: each is another function, and meant so.
        if code is None or isinstance(program, Method) or (function.__closure__ and function.__name__ != "<lambda>"):
            return
        site = (code.co_filename, code.co_firstlineno, *users_line())
        while len(self._sites) >= 4 * self.limit:
            self._sites.pop(next(iter(self._sites)))
        self._sites[program] = site
        if self._died.get(site, 0) == STORM:
            self._died[site] += 1
            if not warned_functions.add(function.__name__, *site[:2]):
                return
            warn_user(
                f"{STORM + 1} functions from {PurePath(site[0]).name}, line {site[1]} ({function.__name__}) were "
                f"jitted, each a new one that is traced and compiled for itself.\n"
                "  Hint: define and jit it once, before the loop.",
                RecompilationWarning,
            )

    def _forget(self, dead: Any, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():  # what this needs may be gone before it, this module's own names among it
            return
        with self._lock:
            site = self._sites.pop(dead, None)
            if site is not None:
                self._died[site] = self._died.get(site, 0) + 1
                while len(self._died) > self.limit:
                    self._died.pop(next(iter(self._died)))
            for key in [key for key in self._programs if any(map(is_dead, filter(None, key[:3])))]:
                self._programs.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._programs.clear()
            self._dropped.clear()

    def __len__(self) -> int:
        return len(self._programs)

    def __iter__(self) -> Iterator[Program]:
        return iter(list(self._programs.values()))

    def __repr__(self) -> str:
        return f"Registry({', '.join(f'{p.name}: {len(p.traces)} traced' for p in self)})"


registry = Registry()
