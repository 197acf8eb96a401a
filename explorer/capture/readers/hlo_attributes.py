"""What stands after an HLO instruction's operands, or in a module's first line: `key=value`, separated by commas."""

from __future__ import annotations

import re

from explorer.capture.readers.attribute_values import shorten_value, unescape
from explorer.model.graph import CALL_ROLES

_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_SHORT = r'"[^"\\]*+"'


def _bracketed(inner: str) -> str:
    """A pattern of brackets that hold strings without escapes, and what `inner` is of."""
    return rf"[({{\[](?:[^\"(){{}}\[\]]++|{_SHORT}{inner})*+[)}}\]]"


# A value of which no bracket holds another one, as nearly all are; or as deep as a CPU's backend_config.
_PLAIN = re.compile(rf', ([\w.\-]++)=([^,"(){{}}\[\]]++|\{{[^"{{}}]*+\}}|{_SHORT}|{_bracketed("|" + _bracketed(""))})')
_TOKEN = re.compile(rf"{_STRING}|/\*(?:[^*]|\*(?!/))*+\*/|[(){{}}\[\],]|[^\"(){{}}\[\],/]++|/")
_STEP = {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
# In the JSON that cuBLAS is configured by, the contracted dimensions of the left operand.
_CONTRACTED = re.compile(r'"lhs_contracting_dimensions":\[([\d,"]*)')
# What a compiler itself expects of an instruction: a GPU's by several models, each with its name, a TPU's in cycles.
_MODEL = re.compile(r'"exec_time_us":([\d.eE+-]+)[^{}]*?"name":"([^"]*)"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
# The nearest to the kernel first: where it has one, by the tiles that XLA chose. The one without a name takes every
# access of a softmax for one that nothing is near to: 8.6 ms for 256 × 256 numbers, where the other says 0.6 µs.
_MODELS = ("indexing-cost-model", "")
_HEADER = re.compile(r"HloModule\s+([^\s,]++)")


def read_attributes(text: str) -> list[tuple[str, str]]:
    """The pairs of a text such as `, dimensions={0,1}, to_apply=%add`, each key once.

    A quoted string stands without its quotes, a computation without its `%`. What XLA found out about a loop is in its
    `backend_config`, and is given as `known_trip_count` too; what a matrix product of a library contracts is there as
    well, and is `lhs_contracting_dims` as it is of a `dot`. What the compiler expects it to take is
    `estimated_microseconds` of a GPU's, `estimated_cycles` of a TPU's.
    """
    pairs: list[tuple[str, str]] = _PLAIN.findall(text)
    plain = sum(len(key) + len(value) + 3 for key, value in pairs)  # `, ` and `=` of each
    if plain != len(text) or "/*" in text:
        pairs = [(key.strip(), value.strip()) for key, sign, value in map(_halves, _pieces(text)) if sign]
    attributes: dict[str, str] = {}
    for key, value in _with_devices(text, pairs):
        if value.startswith('"') and value.endswith('"'):
            value = unescape(value[1:-1])
        elif key in CALL_ROLES:
            value = value.replace("%", "")
        if key == "backend_config":
            attributes |= _estimate(value)
        if key == "backend_config" and (trips := _TRIPS.search(value)):
            attributes["known_trip_count"] = trips[1]
        if key == "backend_config" and (contracted := _CONTRACTED.search(value)):
            attributes["lhs_contracting_dims"] = "{" + contracted[1].replace('"', "") + "}"
        attributes.setdefault(key, shorten_value(value))
    return list(attributes.items())


def _with_devices(text: str, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The order of a mesh's devices beside the groups along its axes: `mesh['x'=4], device_ids=(0,2,1,3) {'x'}`."""
    if ", device_ids=" not in text:
        return pairs
    devices = dict(pairs).get("device_ids", "")
    return [
        (key, f"{value}, device_ids={devices}" if key == "replica_groups" and devices else value)
        for key, value in pairs
        if key != "device_ids"
    ]


def _estimate(config: str) -> dict[str, str]:
    """What the compiler expects an instruction to take; empty where it says nothing."""
    if '"exec_time_us"' in config:
        models = {name: microseconds for microseconds, name in _MODEL.findall(config)}
        for name in _MODELS:
            if float(models.get(name, 0)) > 0:
                return {"estimated_microseconds": models[name]}
    cycles = _CYCLES.search(config)
    return {"estimated_cycles": cycles[1]} if cycles and cycles[1] != "0" else {}


def read_header(line: str) -> dict[str, str]:
    """What the line `HloModule name, key=value, …` says of the module; its `name` too. Nothing is cut."""
    name = _HEADER.match(line)
    if name is None:
        return {}
    pairs = (_halves(piece) for piece in _pieces(line[name.end() :]))
    return {"name": name[1]} | {key.strip(): value.strip().strip('"') for key, sign, value in pairs if sign}


def _halves(piece: str) -> tuple[str, str, str]:
    return piece.partition("=")


def _pieces(text: str) -> list[str]:
    """The text between the commas that are in no brackets and no string; without comments."""
    pieces, depth = [[""]], 0
    for token in _TOKEN.findall(text):
        if token == "," and depth <= 0:
            pieces.append([])
        elif not token.startswith("/*"):
            depth += _STEP.get(token, 0)
            pieces[-1].append(token)
    return ["".join(piece) for piece in pieces]
