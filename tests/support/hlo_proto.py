"""What XLA's own parser says of an instruction, from a serialized HloModuleProto: just the fields that tests compare.

Field numbers are those of xla/service/hlo.proto and xla_data.proto.
"""

__all__ = ["instructions"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(data):
    """By number, the values of a message: integers, or bytes."""
    at, found = 0, {}
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = varint(data, at)
        elif kind == _BYTES:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = {_FIXED64: 8, _FIXED32: 4}[kind]
            value, at = data[at : at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def integers(values):
    """Of a repeated integer, packed or not."""
    numbers = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


def window(values):
    """Of each dimension: size, stride, padding below."""
    dimensions = [fields(dimension) for value in values for dimension in fields(value).get(1, [])]
    return [[signed(dimension.get(number, [0])[0]) for number in (1, 2, 3)] for dimension in dimensions]


def signed(number):
    return number - (1 << 64) if number >> 63 else number


def instructions(module):
    """By names of computation and instruction, what the proto of a module says."""
    found = {}
    for computation in map(fields, fields(module)[3]):
        root = computation.get(6, [0])[0]
        for proto in map(fields, computation.get(2, [])):
            groups = [*proto.get(49, []), *fields(proto[87][0]).get(1, [])] if 87 in proto else proto.get(49, [])
            found[computation[1][0].decode(), proto[1][0].decode()] = {
                "custom_call_target": proto.get(28, [b""])[0].decode(),
                "dimensions": integers(proto.get(14, [])),
                "window": window(proto.get(15, [])),
                "parameter_number": proto.get(9, [0])[0],
                "index": proto.get(13, [0])[0],
                "channel_id": proto.get(26, [0])[0],
                "replica_groups": [integers(fields(group).get(1, [])) for group in groups],
                "root": proto.get(35, [0])[0] == root,
            }
    return found
