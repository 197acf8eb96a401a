"""`jit()`: compile a function at its first call, with the state it reads and changes; and the registry of programs."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from threading import RLock
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import jax

from explorer.capture.explore import CompileRequest, HoldsState, compile_with_findings, explore
from explorer.errors import OptionError, RecompilationWarning
from explorer.jitted.program import STORM, Options, Program
from explorer.jitted.state import Method, Reference, Same, is_dead, reference
from explorer.jitted.surface import Passed, StatefulLowered, check_function, check_root, copy_names, name_of
from explorer.jitted.switch import on_change
from explorer.jitted.traces import users_line, warn_user
from explorer.model.capture import Capture
from explorer.model.events.family_counts import warned_functions
from explorer.model.results.dynamic_report import Specialization
from explorer.runtime import Table


def jit(
    function: Callable[..., Any] | None = None,
    *,
    inputs: Any = None,
    outputs: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    keep_unused: bool = False,
    inline: bool = False,
    device: Any = None,
    backend: str | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    max_specializations: int = 128,
    shapeless: bool = False,
) -> Any:
    """Compile a function at its first call, and again for other shapes, dtypes and constants.

    Also a decorator: `@jit`, `@jit(outputs=state)`, `@partial(jit, inputs=state)`.

    Args:
        function: Any callable. Values that it reads from elsewhere are constants of the program, as of the first call.
        inputs: A container whose arrays are read at each call: a list, a dict, an object with attributes, a flax nnx or
            equinox module; with any nesting, also of tuples and other pytrees. Everything else in it is a constant: if
            one changes, the function is traced again.
        outputs: A container into which each call writes, in place, what the function left there. It is also read at
            each call. May be the same as `inputs`, or share parts with it.
        static_argnums, static_argnames, donate_argnums, donate_argnames: As of `jax.jit`.
        in_shardings, out_shardings, keep_unused, inline, device, backend, compiler_options: As of `jax.jit`; shardings
            apply to the arguments and the result, without the captured state.
        max_specializations: Maximum number of variants; beyond it all are dropped, with a warning.
        shapeless: Run the function's Python once for each rank and dtype of its arguments, not for each shape. Values
            that it reads from elsewhere are then the same for all shapes. From the second shape on, if padding is
            proven to change results only by the order of sums, calls are padded to powers of two, and one binary serves
            all smaller shapes; a shape that is called often gets its own. Otherwise XLA compiles for each shape. Equal
            dimensions may have to stay equal, and dimensions of size 1 may have to stay 1, if the function requires
            that: other shapes are then traced again. A function that tests a size in a way that no symbol can answer
            (`if x.shape[0] > 4`) is traced for each shape, with a `RecompilationWarning` that names the line. Captured
            state keeps its shapes.

    Returns:
        A `Jitted`, called like the function; without a function, a decorator.

    Raises:
        NotCallableError: `function` isn't callable, is a generator function, or is an unbound static or class method.
        StateError: `inputs` or `outputs` can't be captured.
        OptionError: `max_specializations` isn't an int of at least 1; the function lacks a static or donated argument;
            or one sharding is given for all arguments of a function with captured state and a varying number of them.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> state = {"total": jnp.zeros(())}
        >>> @explorer.jit(inputs=state, outputs=state)
        ... def add(x):
        ...     state["total"] += x
        >>> add(2.0), add(3.0)
        (None, None)
        >>> state
        {'total': Array(5., dtype=float32)}
    """
    options = Options(
        _several(static_argnums, int),
        _several(static_argnames, str),
        _several(donate_argnums, int),
        _several(donate_argnames, str),
        max_specializations,
        bool(shapeless),
        Passed.of(
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            keep_unused=keep_unused,
            inline=inline,
            device=device,
            backend=backend,
            compiler_options=None if compiler_options is None else dict(compiler_options),
        ),
    )
    if type(max_specializations) is not int or max_specializations < 1:
        raise OptionError(f"max_specializations is {max_specializations!r}; allowed is an int of at least 1.")
    check_root("inputs", inputs)
    check_root("outputs", outputs)

    def decorate(function: Callable[..., Any]) -> Jitted:
        check_function(function)
        return Jitted(function, inputs, outputs, options)

    return decorate if function is None else decorate(function)


def _several(value: Any, of: type) -> tuple[Any, ...] | None:
    return None if value is None else (value,) if isinstance(value, of) else tuple(value)


class Jitted(HoldsState):
    """A function that is compiled when it is called; made by `jit`.

    Several threads may call it. Calls of functions with captured state run one after another, even of different
    functions, because they may share it: each reads the state, runs, and writes it. Other code that reads the state
    while a function is traced sees traced values. If the function raises, the state keeps its arrays from before.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> state = {"count": jnp.zeros(())}
        >>> @explorer.jit(inputs=state, outputs=state)
        ... def step(x):
        ...     state["count"] += 1
        ...     return x * 2
        >>> step(jnp.ones(3)).tolist(), float(state["count"])
        ([2.0, 2.0, 2.0], 1.0)
        >>> len(step.specializations)
        1
    """

    # Python looks for the call here. Each object stores its own, as the compiled one is a C++ function.
    __slots__ = ("__call__",)

    if TYPE_CHECKING:

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def __init__(self, function: Callable[..., Any], inputs: Any, outputs: Any, options: Options) -> None:
        copy_names(function, self)
        self._inputs, self._outputs, self._options = inputs, outputs, options
        names = name_of(inputs, function, "inputs"), name_of(outputs, function, "outputs")
        self._program = registry.program(function, inputs, outputs, options, names)
        if self._program.signature is not None:
            self.__signature__ = self._program.signature
        self.__call__ = self._program.due(function)
        self._program.users.add(self)
        _all.add(self)

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        """Return the function bound to `owner`, or itself without one.

        The object is an argument of the program if it is static or a pytree, else a constant.
        """
        if owner is None:
            return self
        parameters = list(inspect.signature(self.__wrapped__).parameters)[:1]
        static = 0 in (self._options.static_argnums or ()) or set(parameters) & {*(self._options.static_argnames or ())}
        # JAX takes such an object as an argument: one program serves all of them.
        if static or not jax.tree_util.all_leaves([owner]):
            return MethodType(self, owner)
        bound = MethodType(self.__wrapped__, owner)
        return Jitted(bound, self._inputs, self._outputs, _without_self(self._options))

    @property
    def specializations(self) -> tuple[Specialization, ...]:
        """Return one specialization per trace, in order: shapes, reason, and seconds to the end of the compilation."""
        return tuple(trace.to_specialization() for trace in self._program.traces)

    @property
    def padded_specializations(self) -> tuple[Specialization, ...]:
        """Binaries of a `shapeless` function that also serve smaller shapes, with the shapes they are compiled for.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> total = explorer.jit(lambda x: x.sum(), shapeless=True)
            >>> [float(total(jnp.ones(n))) for n in (3, 100, 70, 65)]
            [3.0, 100.0, 70.0, 65.0]
            >>> total.padded_specializations
            (Specialization({x: (128,)}, 'padded: for these shapes, and all that are smaller'),)
        """
        shapeless = self._program.shapeless
        return tuple(shapeless.padded) if shapeless is not None else ()

    @property
    def captured(self) -> tuple[Any, ...]:
        """Return the containers that `inputs` and `outputs` name, without those that were left out.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> state = {"count": jnp.zeros(())}
            >>> step = explorer.jit(lambda x: x + state["count"], inputs=state)
            >>> _ = step(1.0)
            >>> step.captured
            ({'count': Array(0., dtype=float32)},)
        """
        return tuple(root for root in (self._inputs, self._outputs) if root is not None)

    def clear(self) -> None:
        """Drop all compiled variants; the same as `clear_cache`.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> double = explorer.jit(lambda x: x * 2)
            >>> _ = double(jnp.ones(3))
            >>> before = len(double.specializations)
            >>> double.clear()
            >>> before, len(double.specializations)
            (1, 0)
        """
        self.clear_cache()

    def clear_cache(self) -> None:
        """Drop all compiled variants, as the `clear_cache` of a `jax.jit` function does."""
        self._program.clear()

    def trace(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return a `jax.stages.Traced`, as a `jax.jit` function does. The captured state is its first argument."""
        return self._program.trace(*args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return a `jax.stages.Lowered`, as a `jax.jit` function does.

        With captured state, the result of its `compile()` reads and writes that state at each call.
        """
        lowered = self._program.trace(*args, **kwargs).lower()
        return StatefulLowered(self._program, lowered) if self._program.has_state else lowered

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of a call's result; nothing runs, and the state doesn't change."""
        out = self._program.trace(*args, **kwargs).out_info
        return out[0] if self._program.has_state else out

    def _cache_size(self) -> int:
        return self._program.dispatch._cache_size()  # as of `jax.jit`: libraries that count compiles read it

    def __getattr__(self, name: str) -> Any:
        # Attributes that were set on the function (`step.version = 2`) are read there and not copied: if a module is
        # the function, copies would go out of date.
        wrapped = self.__dict__.get("__wrapped__")
        try:
            return vars(wrapped)[name]
        except (TypeError, KeyError):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def explore(self, /, *args: Any, **kwargs: Any) -> Capture:
        """Return the capture of a call's compile, without running it; the captured state doesn't change.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> double = explorer.jit(lambda x: x * 2)
            >>> double.explore(jnp.ones(3)).signature
            '(x: f32[3])'
        """
        if args or kwargs:
            return explore(self, *args, **kwargs)
        return compile_with_findings(CompileRequest(self, (), {})).capture

    def __getstate__(self) -> dict[str, Any]:
        """Return the function and the options, as a `jax.jit` function does."""
        own = {name: value for name, value in vars(self._options).items() if name != "passed"}
        options = {**own, **self._options.passed.values, "inputs": self._inputs, "outputs": self._outputs}
        return {"function_name": self.__name__, "fun": self.__wrapped__, "options": options}

    def __reduce__(self) -> Any:
        state = self.__getstate__()
        return partial(jit, state["fun"], **state["options"]), ()

    def __deepcopy__(self, memo: Any) -> Jitted:
        return self  # as functions, which aren't copied either

    def __repr__(self) -> str:
        options = [f"{name}=…" for name in ("inputs", "outputs") if getattr(self, f"_{name}") is not None]
        defaults = vars(Options())
        own = {name: value for name, value in vars(self._options).items() if value != defaults[name]}
        passed = own.pop("passed", Passed()).values
        options += [f"{name}={value!r}" for name, value in {**own, **passed}.items()]
        return f"jit({', '.join([self._program.name, *options])})"


def _without_self(options: Options) -> Options:
    def moved(positions: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if positions is None else tuple(i - 1 if i > 0 else i for i in positions)

    return dataclasses.replace(
        options, static_argnums=moved(options.static_argnums), donate_argnums=moved(options.donate_argnums)
    )


_all: WeakSet[Jitted] = WeakSet()


def _switch_all() -> None:
    # Each object stores the function that answers its calls, so all of them change.
    for program in {jitted._program for jitted in _all}:  # pyright: ignore[reportPrivateUsage] - ours
        program.switch()


on_change(_switch_all)


_Site = tuple[str, int, str, int]  # file and line of a function's definition and of its jit call
_Key = tuple[Reference, Reference | None, Reference | None, Options]


class Registry:
    """Bounded table of programs, least recently used dropped first. It keeps no function alive.

    Args:
        limit: Maximum number of programs.
    """

    def __init__(self, limit: int = 256) -> None:
        self.limit = limit
        self._programs = Table[_Key, Program](limit, 4 * limit)
        self._returns = 0  # programs that were dropped and made again
        self._died = Table[_Site, int](limit)  # number of dead functions by site
        self._sites = Table[Reference, _Site](4 * limit)
        self._lock = RLock()  # garbage collection, and so the callback `_forget`, can happen at any point

    def program(
        self, function: Callable[..., Any], inputs: Any, outputs: Any, options: Options, names: tuple[str, str]
    ) -> Program:
        """Return the program of a function with these containers and options. The first call makes it; later calls
        return the same one.
        """
        key = (
            reference(function, self._forget),
            None if inputs is None else reference(inputs, self._forget),
            None if outputs is None else reference(outputs, self._forget),
            options,
        )
        with self._lock:
            program = self._programs.used(key)
            if program is not None:
                return program
            program = Program(*key, names=names)
            self._watch_site(key[0], function)
            if key in self._programs.dropped:
                del self._programs.dropped[key]
                self._note_return()
            for dropped in self._programs.put(key, program):
                if any(isinstance(reference, Same) for reference in dropped[:3]):  # the key would keep it alive
                    self._programs.dropped.pop(dropped, None)
            return program

    def _note_return(self) -> None:
        # A few programs may return by chance; several are a rotation.
        self._returns += 1
        if self._returns == STORM:
            warn_user(
                f"more than {self.limit} functions are jitted in turn, and jit keeps the compiled programs of no more: "
                "each is traced and compiled again.\n"
                "  Hint: keep what jit returns, fast = jit(f), and call that: it keeps its own.",
                RecompilationWarning,
            )

    def _watch_site(self, program: Reference, function: Any) -> None:
        code = getattr(function, "__code__", None)
        # A `def` with a closure comes from a factory, which makes different functions on purpose.
        if code is None or isinstance(program, Method) or (function.__closure__ and function.__name__ != "<lambda>"):
            return
        site = (code.co_filename, code.co_firstlineno, *users_line())
        self._sites.put(program, site)
        if self._died.get(site, 0) == STORM:
            # Past the limit: the warning comes once.
            self._died[site] += 1
            if not warned_functions.add(function.__name__, *site[:2]):
                return
            warn_user(
                f"{STORM + 1} functions from {PurePath(site[0]).name}, line {site[1]} ({function.__name__}) were "
                f"jitted, each a new one that is traced and compiled separately.\n"
                "  Hint: define and jit it once, before the loop.",
                RecompilationWarning,
            )

    def _forget(self, dead: Any, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():  # globals of this module may already be gone
            return
        with self._lock:
            site = self._sites.pop(dead, None)
            if site is not None:
                self._died.put(site, self._died.get(site, 0) + 1)
            for key in [key for key in self._programs if any(map(is_dead, filter(None, key[:3])))]:
                self._programs.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._programs.clear()
            self._programs.dropped.clear()

    def __len__(self) -> int:
        return len(self._programs)

    def __iter__(self) -> Iterator[Program]:
        return iter(list(self._programs.values()))

    def __repr__(self) -> str:
        return f"Registry({', '.join(f'{p.name}: {len(p.traces)} traced' for p in self)})"


registry = Registry()
