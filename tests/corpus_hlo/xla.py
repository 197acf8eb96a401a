"""What XLA's parser reads."""

from dataclasses import dataclass

from tests.support.hlo_proto import fields, integers, signed
from tests.support.parser_child import answers

# xla/xla_data.proto, PrimitiveType
_NUMBERED = (
    "? pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 tuple opaque c64 bf16 token c128 f8e5m2 f8e4m3fn s4 u4 "
    "f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu"
)
_TYPES = dict(enumerate(_NUMBERED.split()))
_TUPLE, _BUFFER = 13, 34


@dataclass(frozen=True)
class Instruction:
    """What XLA read; operands are positions in the computation, called computations their ids."""

    name: str
    op: str
    type: str
    layouts: tuple[tuple[int, ...], ...]
    operands: tuple[int, ...]
    called: tuple[int, ...]
    is_root: bool
    attributes: dict[str, str]


@dataclass(frozen=True)
class Computation:
    name: str
    is_entry: bool
    instructions: list[Instruction]


def parse_all(texts):
    """For each text a dictionary of computations by id, or a string that says why there is none."""
    return answers(__name__, texts)


def parse(text):
    """The computations, or what XLA says."""
    from jaxlib import _hlo

    try:
        return computations(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    except Exception as error:  # whatever XLA raises is its answer
        return str(error)


def computations(module):
    """By id, the computations of a serialized HloModuleProto, their instructions as XLA made them."""
    proto = fields(module)
    entry = proto.get(6, [0])[0]
    return {
        number: Computation(_text(computation, 1), number == entry, _instructions(computation))
        for computation in map(fields, proto[3])
        for number in computation.get(5, [0])
    }


def _instructions(computation):
    # XLA numbers instructions as it reads them; the proto has them in an order of its own.
    protos = sorted(map(fields, computation[2]), key=_id)
    position = {_id(proto): i for i, proto in enumerate(protos)}
    root = computation.get(6, [0])[0]
    return [
        Instruction(
            _text(proto, 1),
            _text(proto, 2),
            _type(fields(proto[3][0])),
            tuple(_layouts(fields(proto[3][0]))),
            tuple(position[number] for number in integers(proto.get(36, []))),
            tuple(integers(proto.get(38, []))),
            _id(proto) == root,
            {
                "op_name": _text(fields(proto[7][0]), 2) if 7 in proto else "",
                "custom_call_target": _text(proto, 28),
                "parameter_number": str(proto.get(9, [0])[0]),
                "index": str(proto.get(13, [0])[0]),
            },
        )
        for proto in protos
    ]


def _id(proto):
    return proto.get(35, [0])[0]


def _text(proto, number):
    return proto.get(number, [b""])[0].decode(errors="replace")


def _type(shape):
    """`f32[2,<=3]`, or a tuple's types in parentheses, without layouts and spaces."""
    kind = shape.get(2, [0])[0]
    if kind == _TUPLE:
        return f"({','.join(_type(fields(part)) for part in shape.get(4, []))})"
    if kind == _BUFFER:
        return f"b({_type(fields(shape[4][0]))})"
    sizes = [signed(size) for size in integers(shape.get(3, []))]
    dynamic = integers(shape.get(6, [])) or [0] * len(sizes)
    dims = ["?" if size < 0 else f"<={size}" if is_dynamic else str(size)
            for size, is_dynamic in zip(sizes, dynamic, strict=True)]  # fmt: skip
    return f"{_TYPES.get(kind, kind)}[{','.join(dims)}]"


def _layouts(shape):
    """Of each array: minor to major."""
    if shape.get(2, [0])[0] in (_TUPLE, _BUFFER):
        for part in shape.get(4, []):
            yield from _layouts(fields(part))
    else:
        yield tuple(integers(fields(shape[5][0]).get(1, []))) if 5 in shape else ()
