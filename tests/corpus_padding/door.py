"""The functions through `explorer.compile(dynamic="pad")`: trees, dtypes, weak types and numbers, at every size."""

from __future__ import annotations

import warnings
from typing import Any

import jax

import explorer as ex
from tests.corpus_padding.cases import Case, Sizes
from tests.corpus_padding.judge import CRASHED, EXACT, REFUSED, WRONG, Verdict, difference


def infos(case: Case) -> list[ex.InputInfo]:
    """The case's arguments, their symbols as dimensions."""
    dimensions: dict[str, Any] = {
        symbol: ex.NamedDimension(symbol, case.smallest.get(symbol, 1), largest, largest)
        for symbol, largest in case.bucket.items()
    }
    return [ex.InputInfo(argument.shape_at(dimensions), argument.dtype) for argument in case.arguments]


def judge_door(case: Case, few: bool = True) -> Verdict:
    """Compile it, call it, and compare with `jax.jit` at each size."""
    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")
        try:
            executable = ex.compile(case.function, 0, args=infos(case), dynamic="pad")
        except ex.errors.PaddingError as error:
            return Verdict(case, REFUSED, [str(error).partition("\n")[0]])
        except Exception as error:
            return Verdict(case, CRASHED, [f"{type(error).__name__}: {str(error)[:300]}"])
        compared = 0
        for sizes in case.sizes(few):
            fault = _fault_at(case, executable, sizes)
            compared += 1
            if fault:
                return Verdict(case, WRONG, [f"at {sizes}: {fault}"])
        padded = any("padded" in specialization.reason for specialization in executable.specializations)
        return Verdict(case, EXACT if padded or not case.symbols else WRONG, [], {}, compared)


def _fault_at(case: Case, executable: ex.Executable, sizes: Sizes) -> str:
    arrays = [jax.numpy.asarray(array) for array in case.valid(sizes)]
    wanted, tree = jax.tree.flatten(jax.jit(case.function)(*arrays))
    results, given_tree = jax.tree.flatten(executable(*arrays))
    if tree != given_tree:
        return f"its tree is {given_tree}, not {tree}"
    for i, (result, right) in enumerate(zip(results, wanted, strict=True)):
        fault = difference(result, result.shape, right)
        if not fault and result.weak_type != right.weak_type:
            fault = f"its weak type is {result.weak_type}"
        if fault:
            return f"output {i}: {fault}"
    return ""
