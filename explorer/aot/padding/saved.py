"""What is padded in a file: the programs of its buckets, and what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, cast, get_args

import jax
from jax import export

from explorer.aot.constants import ConstantMembers
from explorer.aot.dimensions import Bounds
from explorer.aot.exported import ExportedProgram
from explorer.aot.padding.buckets import Buckets
from explorer.aot.padding.padded_calls import PaddedCalls
from explorer.aot.padding.padded_program import PaddedProgram, SavedBucket
from explorer.aot.padding.verdict import Dynamic
from explorer.files.container import boolean, integer, text
from explorer.model.results.dynamic_report import DynamicChoice
from explorer.padding.proof import Proof
from explorer.padding.values import Fill

Json = dict[str, Any]

_MOST = 1024  # buckets in a file


def padding_to_json(
    dynamic: Dynamic,
    program: PaddedProgram,
    padded: PaddedCalls,
    platforms: Sequence[str] | None,
    members: dict[str, bytes],
    constants: ConstantMembers,
) -> Json:
    """What was decided, and the buckets that are compiled by now, or came from a file: their programs are members."""
    programs: list[Json] = []
    compiled = [padded.buckets.named(binary.bucket) for binary in padded.ready]
    for i, bucket in enumerate(compiled if program.buckets is None else program.buckets):
        saved = program.save(bucket, platforms)
        name = f"padded-{i}.stablehlo"
        members[name] = saved.module()
        programs.append(
            {"bucket": bucket, "module": name, "constants": [constants.to_json(c) for c in saved.constants()]}
        )
    proof = dynamic.proof
    return {
        "choice": dynamic.choice,
        "why": dynamic.why,
        "is_chosen": padded.buckets.is_chosen,
        "rules": dict(proof.rules) if proof is not None else {},
        "masks": proof.masks if proof is not None else 0,
        "relayouts": proof.relayouts if proof is not None else 0,
        "fills": [None if fill is None else repr(fill) for fill in program.fills],
        "programs": programs,
    }


def padding_from_json(
    encoded: Json,
    program: ExportedProgram,
    members: Mapping[str, bytes],
    read_constant: Callable[[Json], Any],
    read_module: Callable[[bytes], export.Exported],
) -> tuple[Dynamic, PaddedProgram]:
    """The reverse of `padding_to_json`. No program is read before it is needed."""
    bounds = program.symbols.traced_bounds
    saved = [_saved(entry, bounds, members, read_constant) for entry in encoded["programs"]]
    if not 0 < len(saved) <= _MOST or {s: b.max for s, b in bounds.items()} not in [bucket for bucket, _ in saved]:
        raise ValueError("the largest bucket isn't there")
    ladder = {symbol: sorted({bucket[symbol] for bucket, _ in saved}) for symbol in bounds}
    choice: DynamicChoice = encoded["choice"]
    if choice not in get_args(DynamicChoice):
        raise ValueError(f"{choice!r} is no way to serve sizes")
    rules = {text(name): integer(count) for name, count in cast(Json, encoded["rules"]).items()}
    fills = [None if fill is None else _fill(text(fill)) for fill in encoded.get("fills", ())]
    proof = Proof((), rules, integer(encoded["masks"]), integer(encoded["relayouts"]), tuple(bounds), tuple(fills))
    buckets = Buckets(bounds, ladder, boolean(encoded["is_chosen"]))
    outputs = program.outputs
    structs = [jax.ShapeDtypeStruct(_shape(info.shape), info.dtype) for info in outputs.infos.values()]
    return (
        Dynamic(choice, text(encoded["why"]), buckets, proof),
        PaddedProgram.of_file(structs, outputs.structure, saved, cache(read_module), fills),
    )


def _saved(
    entry: Json, bounds: Mapping[str, Bounds], members: Mapping[str, bytes], read_constant: Callable[[Json], Any]
) -> tuple[dict[str, int], SavedBucket]:
    sizes = {symbol: integer(entry["bucket"][symbol]) for symbol in bounds}
    if any(not 1 <= size <= bounds[symbol].max for symbol, size in sizes.items()):
        raise ValueError(f"{sizes} is no bucket")

    def constants() -> list[Any]:
        return [read_constant(each) for each in entry["constants"]]

    return sizes, SavedBucket(lambda: members[entry["module"]], constants)


def _fill(number: str) -> Fill:
    """A number as `repr` writes it; JSON has no infinity."""
    kinds = (int, float, complex)
    for kind in kinds:
        with suppress(ValueError):
            return kind(number)
    return boolean({"True": True, "False": False}[number])


def _shape(shape: Sequence[int | str]) -> tuple[Any, ...]:
    """Sizes and expressions, `("batch", "2*seq")`, as JAX's symbolic dimensions."""
    return tuple(export.symbolic_shape(",".join(map(str, shape)))) if shape else ()
