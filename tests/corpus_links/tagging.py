"""A second program, each of whose equations carries a tag of its own in its named scope: what links are judged by.

The function's jaxpr is interpreted, equation by equation, under `jax.named_scope("T17T")`, and traced anew while that
is done; the jaxprs within an equation (of a loop, a branch, a call) likewise. The program is the same, and the path in
an instruction's `op_name` then says which equation it is of, through every call. None of it is Explorer's: neither its
reader's order of equations nor the way in which it may number them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
from jax._src import core, linear_util, shard_map, source_info_util
from jax._src.interpreters import partial_eval

_JAXPRS = (core.Jaxpr, core.ClosedJaxpr) if hasattr(core, "ClosedJaxpr") else (core.Jaxpr,)


@dataclass
class Tagger:
    """Interprets jaxprs under tags.

    Args:
        memo: By the id of a jaxpr, it and what it became: a function called twice is one object, and must stay one,
            for JAX lowers it once.
        equations: The equation of each tag.
        inner: By tag, by the parameter that holds a jaxpr, the jaxpr and the tags of its equations in order.
    """

    memo: dict[int, tuple[Any, Any, list[int]]] = field(default_factory=dict)
    equations: list[Any] = field(default_factory=list)
    inner: dict[int, dict[str, tuple[Any, list[int]]]] = field(default_factory=dict)

    def tag(self, jaxpr: Any) -> tuple[Any, list[int]]:
        """The same jaxpr, traced anew under tags, and the tags of its equations."""
        if id(jaxpr) in self.memo:
            return self.memo[id(jaxpr)][1:]
        tags: list[int] = []
        is_closed, constants = hasattr(jaxpr, "consts"), getattr(jaxpr, "consts", ())
        inside = jaxpr.jaxpr if is_closed else jaxpr
        assert is_closed or not inside.constvars

        def interpreted(*args: Any) -> list[Any]:
            return self.evaluate(inside, constants, args, tags)

        function = linear_util.wrap_init(interpreted, debug_info=inside.debug_info)
        traced, _, kept = partial_eval.trace_to_jaxpr_dynamic(function, [v.aval for v in inside.invars])
        if hasattr(traced, "with_consts"):  # jax 0.11 and later: there are closed jaxprs only
            traced = traced.with_consts(kept)
        elif is_closed:
            traced = core.ClosedJaxpr(traced, kept)
        else:
            assert not kept
        self.memo[id(jaxpr)] = jaxpr, traced, tags
        return traced, tags

    def evaluate(self, jaxpr: Any, constants: Any, args: Any, tags: list[int]) -> list[Any]:
        """Evaluate a jaxpr, each equation in a scope of its own, and note the tags."""
        values: dict[Any, Any] = {}

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else values[atom]

        values.update(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))
        for equation in jaxpr.eqns:
            tag = len(self.equations)
            self.equations.append(equation)
            tags.append(tag)
            parameters = self.tagged_parameters(equation.params, tag)
            stack = source_info_util.current_name_stack() + equation.source_info.name_stack
            with ExitStack() as scopes:
                # The scopes of the user's program, and the traceback: XLA may look at either.
                context = source_info_util.user_context(equation.source_info.traceback, name_stack=stack)
                scopes.enter_context(context)
                scopes.enter_context(equation.ctx.manager)
                scopes.enter_context(jax.named_scope(f"T{tag}T"))
                parameters = equation.primitive.get_bind_params(parameters)
                outputs = equation.primitive.bind(*map(read, equation.invars), **parameters)
            results = outputs if equation.primitive.multiple_results else [outputs]
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def tagged_parameters(self, parameters: Mapping[str, Any], tag: int) -> dict[str, Any]:
        inner = self.inner.setdefault(tag, {})
        seen: set[int] = set()

        def tagged(key: str, value: Any) -> Any:
            if isinstance(value, _JAXPRS):
                if id(value) in seen:  # equal branches are one object, and have tags of their own
                    self.memo.pop(id(value))
                seen.add(id(value))
                traced, tags = self.tag(value)
                inner[key] = getattr(value, "jaxpr", value), tags
                return traced
            if isinstance(value, (tuple, list)) and any(isinstance(each, _JAXPRS) for each in value):
                items = [tagged(f"{key}[{i}]", each) for i, each in enumerate(value)]
                return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
            return value

        with _manual_axes(parameters) if self.equations[tag].primitive.name == "shard_map" else nullcontext():
            return {key: tagged(key, value) for key, value in parameters.items()}


@contextmanager
def _manual_axes(parameters: Mapping[str, Any]) -> Iterator[None]:
    """What the inside of a `shard_map` is traced in."""
    mesh, axes = parameters["mesh"], frozenset(parameters.get("newly_manual_axes") or parameters["manual_axes"])
    with (
        shard_map._extend_axis_env(mesh, axes),
        shard_map.use_abstract_mesh(shard_map._as_manual_mesh(mesh, axes)),
        shard_map.config._check_vma(parameters["check_vma"]),
    ):
        yield


@dataclass(frozen=True)
class TaggedProgram:
    """A program with tags: its optimised HLO, who tagged it, its jaxpr without tags, and the outermost tags."""

    text: str
    tagger: Tagger
    jaxpr: Any
    tags: list[int]


def tagged_program(function: Callable[..., Any], *args: Any) -> TaggedProgram:
    """The program of a function, compiled with tags."""
    traced = (function if hasattr(function, "trace") else jax.jit(function)).trace(*args)
    tagger, plain = Tagger(), traced.jaxpr
    traced_anew, tags = tagger.tag(plain)
    traced._params = {**traced._params, "jaxpr": traced_anew}
    # Code is generated after the last pass over HLO, and takes the CPU most of the time.
    compiled = traced.lower().compile({"xla_backend_optimization_level": 0})
    return TaggedProgram(compiled.as_text(), tagger, getattr(plain, "jaxpr", plain), tags)
