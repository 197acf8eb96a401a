"""Changes to a function that leave its code alone, and the changed function."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import chain
from typing import Any, cast

import jax

from explorer._jax.arguments import is_jitted, jit_options, static_arguments
from explorer._jax.settings import settings_restored
from explorer._jax.traces import jaxpr_as_fun
from explorer.capture.backends import backend_of
from explorer.capture.explore import CompileRequest
from explorer.capture.filtered import arrays_of, filtered, inner_jit, is_filtered
from explorer.errors import OptionError
from explorer.measure.arguments import (
    as_float,
    bind_constants,
    cast_floats,
    has_floats,
    signature_of_callable,
    value_text,
)
from explorer.measure.calls import name_of
from explorer.measure.compiled_subject import (
    CompiledSubject,
    called_through,
    compile_subject,
    donated_leaves,
    filled,
    leaves_of,
)
from explorer.model.target import Target
from explorer.model.text import did_you_mean

Place = int | str  # position or name of an argument

# The policies of jax.checkpoint_policies; its other functions make one.
_POLICIES = (
    *("nothing_saveable", "everything_saveable", "dots_saveable", "checkpoint_dots"),
    *("dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims"),
)
_PRECISIONS = (
    *("default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "bfloat16_3x", "bfloat16_6x"),
    *("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "TF32_TF32_F32", "F16_F16_F32", "F32_F32_F32"),
)


@dataclass(frozen=True)
class Change:
    """One change to a function, or several at once.

    Args:
        kind: `donate`, `remat`, `precision`, `dtype`, `options` or `together`; `plain` for no change.
        name: `donate x`.
        doing: `donating x`, to begin a sentence.
        donate: The arguments to donate; None for all that an output could reuse.
        policies: Of `jax.checkpoint`, applied one around the other; None for the default, which saves nothing.
        precision: Of matrix products, as for `jax.default_matmul_precision`.
        dtype: To cast floating-point arguments to.
        options: XLA's compiler options.
    """

    kind: str
    name: str
    doing: str
    donate: tuple[Place, ...] | None = ()
    policies: tuple[Callable[..., Any] | None, ...] = ()
    precision: str = ""
    dtype: Any = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


PLAIN = Change("plain", "plain", "the function as it is")


@dataclass(frozen=True)
class Subject:
    """A function and its arguments, without static ones, so that any transformation can wrap it.

    Args:
        shown, given: The user's function, and its arguments by position and by name.
        function, args, kwargs: The function to transform and its arguments; a wrapper around `jax.jit` stays as it is.
        names: Name of each positional argument.
        donated: Arguments that the function donates already.
        order: Name of each positional argument of the user's call.
        options: Other options of its `jax.jit`.
        is_derived: True to wrap it in `jax.value_and_grad`.
        target: Hardware to compile for; None for this machine.
    """

    shown: Callable[..., Any]
    given: tuple[tuple[Any, ...], dict[str, Any]]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]
    donated: frozenset[Place]
    order: tuple[str, ...]
    options: Mapping[str, Any]
    is_derived: bool = False
    target: Target | None = None

    def place(self, given: Any) -> Place:
        """Return the position of the argument that `given`, a position or name, means; the name of one passed by name.

        Raises:
            OptionError: The call has no such argument.
        """
        __tracebackhide__ = True
        names = [*self.names, *self.kwargs]
        name = self.order[given] if type(given) is int and 0 <= given < len(self.order) else given
        if name in names:
            return self.names.index(name) if name in self.names else name
        near = did_you_mean(given, names) if isinstance(given, str) else ""
        raise OptionError(
            f"donate has {given!r}, which is no array argument of this call; it has {', '.join(names) or 'none'}.\n"
            f"  Hint:{near} donate takes positions from 0, names, a tuple of them, or True for all that can be reused."
        )

    def name(self, place: Place) -> str:
        return self.names[place] if isinstance(place, int) else place

    def built(self, change: Change, verb: str) -> CompiledSubject:
        """Return the function compiled with a change; for `PLAIN`, the user's own function compiled.

        If the derivative is measured, compile that.
        """
        __tracebackhide__ = True
        if change == PLAIN and not self.is_derived:
            backend = backend_of(self.target)
            return compile_subject(self.shown, *self.given, verb=verb, backend=backend, is_known=True)
        if inner_jit(self.function) is not None:
            return self._built_of_wrapper(change, verb)
        function = _checkpointed(self.function, change)
        if self.is_derived:
            function = cast(Any, jax.value_and_grad(function))
        args, kwargs = self.args, self.kwargs
        if change.dtype is not None:
            args, kwargs = cast_floats((args, kwargs), change.dtype)
        given = self.donated | frozenset(change.donate or ())
        target = jax.jit(
            function,
            donate_argnums=sorted(place for place in given if isinstance(place, int)),
            donate_argnames=sorted(place for place in given if isinstance(place, str)),
            **self.options,
        )
        return self._compiled(target, args, kwargs, change, verb)

    def _compiled(self, target: Any, args: Any, kwargs: Any, change: Change, verb: str) -> CompiledSubject:
        how: Any = {"target": target, "options": change.options, "backend": backend_of(self.target)}
        return compile_subject(self.shown, args, kwargs, verb=verb, within=partial(_within, change), **how)

    def _built_of_wrapper(self, change: Change, verb: str) -> CompiledSubject:
        # The wrapper's jaxpr has all outputs, updates of state included.
        __tracebackhide__ = True
        args, kwargs = filled((self.args, self.kwargs))
        if change.dtype is not None:
            args, kwargs = cast_floats((args, kwargs), change.dtype)
        with _within(change):
            traced = CompileRequest(self.shown, args, kwargs).trace().shown
        function = _checkpointed(jaxpr_as_fun(traced.jaxpr), change)
        if jit_options(inner_jit(self.shown)) is None:
            raise OptionError(
                f"the jit of {name_of(self.shown)} sets where its arguments are placed, which a variant would lose.\n"
                "  Hint: leave out in_shardings and out_shardings, and place the arrays themselves."
            )
        leaves = leaves_of(self.shown, traced, args, kwargs)
        donated = [args[place] if isinstance(place, int) else kwargs[place] for place in change.donate or ()]
        given = {id(leaf) for leaf in jax.tree.leaves(donated)}
        flags = zip(leaves, donated_leaves(traced), strict=True)
        numbers = [i for i, (leaf, is_donated) in enumerate(flags) if is_donated or id(leaf) in given]

        @wraps(self.shown)
        def call(*arrays: Any) -> Any:
            return function(*arrays)

        del call.__wrapped__  # its signature isn't that of `call`
        built = self._compiled(jax.jit(call, donate_argnums=numbers, **self.options), leaves, {}, change, verb)
        if self.target is not None:
            return built
        return called_through(self.shown, built.capture, traced, built.call, args, kwargs)


def _checkpointed(function: Any, change: Change) -> Any:
    for policy in change.policies:
        function = cast(Any, jax.checkpoint(function, policy=policy))
    return function


@contextmanager
def _within(change: Change) -> Generator[None]:
    with settings_restored(), jax.default_matmul_precision(change.precision) if change.precision else nullcontext():
        yield


def subject_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], grad: bool) -> Subject:
    """Return the subject of a function: its static arguments bound, with the options of its `jax.jit`."""
    __tracebackhide__ = True
    shown_as, called = function, (tuple(args), dict(kwargs))
    args, kwargs = called
    settings: dict[str, Any] = {}
    statics: set[str] = set()
    if is_filtered(function) and grad:
        function = filtered(function, args, kwargs)
        args, kwargs = cast("tuple[tuple[Any, ...], dict[str, Any]]", arrays_of(called))
    elif (inner := inner_jit(function)) is not None:
        if grad:
            raise OptionError(
                f"grad=True takes a derivative of the function, and {name_of(function)} returns updated state with its "
                "result.\n  Hint: take the derivative inside of the function, as a training step does."
            )
        settings = {} if is_filtered(function) else jit_options(inner) or {}
    signature = signature_of_callable(function)
    if is_jitted(function):
        settings, statics = jit_options(function) or {}, set(static_arguments(function)[1])
        function = function.__wrapped__ if settings else function
    order = _names(signature, args)
    donated = _donated_names(settings, order)
    if signature is not None and statics:
        function, args, kwargs = bind_constants(function, signature, args, kwargs, statics)
    names = order[: len(args)]
    places: dict[str, Place] = {name: i for i, name in enumerate(names)} | {name: name for name in kwargs}
    keep = {name: settings[name] for name in ("keep_unused", "inline", "compiler_options") if name in settings}
    return Subject(
        shown_as, called, function, args, kwargs, tuple(names),
        frozenset(places[name] for name in donated if name in places), tuple(order), keep, grad,
    )  # fmt: skip


def _names(signature: inspect.Signature | None, args: Sequence[Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, each in signature.parameters.items() if each.kind in kinds] if signature else []
    return [names[i] if i < len(names) else f"args[{i}]" for i in range(len(args))]


def _donated_names(settings: Mapping[str, Any], order: Sequence[str]) -> set[str]:
    """Return the names of the arguments that a `jax.jit` with these options donates."""
    numbers: tuple[int, ...] = settings.get("donate_argnums", ())
    by_position = {order[i] for i in numbers if -len(order) <= i < len(order)}
    return by_position | {*map(str, settings.get("donate_argnames", ()))}


def reusable(subject: Subject, built: CompiledSubject) -> tuple[Place, ...]:
    """Return the arguments, by position or name, whose memory an output of the same type could reuse: each output
    once, without arguments that are donated already.
    """

    def types(tree: Any) -> list[tuple[Any, Any]]:
        return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]

    free = Counter(types(built.traced.out_info))
    places: list[tuple[Place, Any]] = [*enumerate(subject.args), *subject.kwargs.items()]
    donated = set(subject.donated)
    if inner_jit(subject.function) is not None:  # the wrapper's own jit may donate
        args, kwargs = filled((subject.args, subject.kwargs))
        flags = zip(leaves_of(subject.shown, built.traced, args, kwargs), donated_leaves(built.traced), strict=True)
        leaves = {id(leaf) for leaf, is_donated in flags if is_donated}
        arrays: list[tuple[Place, Any]] = [*enumerate(args), *kwargs.items()]
        donated |= {place for place, value in arrays if leaves & {*map(id, jax.tree.leaves(value))}}
    for place, value in places:
        if place in donated:
            free.subtract(types(value))
    reused: list[Place] = []
    for place, value in places:
        fits = [type_ for type_ in types(value) if place not in donated and free[type_] > 0]
        if fits:
            free.subtract(fits)
            reused.append(place)
    return tuple(reused)


def changes_of(subject: Subject, *, donate: Any, remat: Any, precision: Any, dtype: Any, options: Any) -> list[Change]:
    """Return the requested changes in the order of these options; a list gives several.

    Raise OptionError for an impossible change.
    """
    __tracebackhide__ = True
    named = isinstance(remat, Mapping)
    policies = cast("Mapping[Any, Any]", remat).items() if named else [("", given) for given in _each(remat)]
    return [
        *(_donation(subject, given) for given in _each(donate)),
        *(_rematerialization(str(name), given) for name, given in policies),
        *(_precision(given) for given in _each(precision)),
        *(_dtype(subject, given) for given in _each(dtype)),
        *_options(options),
    ]


def together(changes: Sequence[Change]) -> Change:
    """Return one change that makes the first of `changes` of each kind."""
    first: dict[str, Change] = {}
    for change in changes:
        first.setdefault(change.kind, change)
    every = list(first.values())
    donations = [change.donate for change in every]
    options: dict[str, Any] = {}
    for change in every:
        options |= change.options
    return Change(
        "together",
        "together",
        "all together",
        # None is everything that an output could reuse.
        None if None in donations else tuple(place for places in donations for place in places or ()),
        tuple(chain.from_iterable(change.policies for change in every)),
        next((change.precision for change in every if change.precision), ""),
        next((change.dtype for change in every if change.dtype is not None), None),
        options,
    )


def _donation(subject: Subject, given: Any) -> Change:
    __tracebackhide__ = True
    if given is True:
        return Change("donate", "donate all", "donating what can be reused", None)
    every = cast("tuple[Any, ...]", given if isinstance(given, tuple) else (given,))
    places = tuple(subject.place(one) for one in every)
    names = ", ".join(subject.name(place) for place in places)
    return Change("donate", f"donate {names}", f"donating {names}", places)


def _rematerialization(name: str, given: Any) -> Change:
    __tracebackhide__ = True
    if given is True:
        return Change("remat", name or "remat", "rematerialising", policies=(None,))
    policy: Any = getattr(jax.checkpoint_policies, given, None) if isinstance(given, str) else given
    if (isinstance(given, str) and given not in _POLICIES) or not callable(policy):
        raise OptionError(
            f"remat is {value_text(given)}; allowed are True, a policy of jax.checkpoint_policies by name, a callable "
            f"one, a list of policies, or a dict that names them.\n"
            f"  Hint:{did_you_mean(given, _POLICIES) if isinstance(given, str) else ''} by name there are "
            f"{', '.join(_POLICIES)}."
        )
    called = name or f"remat {value_text(given)}"
    return Change("remat", called, f"rematerialising by {value_text(given)}", policies=(policy,))


def _precision(given: Any) -> Change:
    __tracebackhide__ = True
    if given not in _PRECISIONS:
        near = did_you_mean(given, _PRECISIONS) if isinstance(given, str) else ""
        raise OptionError(
            f"precision is {value_text(given)}; allowed are {', '.join(_PRECISIONS[:6])}, …, or a list of them.\n"
            f"  Hint:{near} jax.default_matmul_precision documents each of them."
        )
    return Change("precision", f"precision {given}", f"precision {given}", precision=given)


def _dtype(subject: Subject, given: Any) -> Change:
    __tracebackhide__ = True
    dtype = as_float(given, "dtype")
    if not has_floats((subject.args, subject.kwargs)):
        raise OptionError("dtype casts floating-point arguments, and this call has no float.\n  Hint: leave it out.")
    return Change("dtype", f"dtype {dtype.name}", f"{dtype.name} arguments", dtype=dtype)


def _options(given: Any) -> list[Change]:
    __tracebackhide__ = True
    changes: list[Change] = []
    for one in _each(given):
        if not isinstance(one, Mapping) or not one or not all(isinstance(key, str) for key in cast("Any", one)):
            raise OptionError(
                f"options is {value_text(one)}; allowed are a dict of XLA's options, a list of such, or a dict that "
                "names them.\n  Hint: options={'wide': {'xla_cpu_prefer_vector_width': 512}}."
            )
        values = cast("Mapping[str, Any]", one)
        sets = values if all(isinstance(value, Mapping) for value in values.values()) else {value_text(values): values}
        for name, options in sets.items():
            changes.append(Change("options", name, name, options=cast("Mapping[str, Any]", options)))
    return changes


def _each(given: Any) -> Iterable[Any]:
    """Return the items of a list, nothing for None and False, and any other value as the only item."""
    if given is None or given is False:
        return ()
    return cast("list[Any]", given) if isinstance(given, list) else (given,)
