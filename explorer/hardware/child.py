"""The compiler process for other hardware, started by `process.py`.

It reads requests from standard input and writes answers to its original standard output; output of compilers goes to
standard error, which the parent keeps for errors. A request or an answer is a line of JSON, followed by `size` bytes:

    {"platform", "topology", "config", "slices", "count", "options", "code", "most", "size"} + MLIR bytecode
    {"memory", "cost", "size"} + HLO text, or {"error"}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, BinaryIO, cast

from explorer._jax.target_compiler import compile_for, devices_of
from explorer.hardware.limits import limit_memory


def main() -> None:
    """Read requests from standard input and write an answer to each, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libtpu and plugins print what they like
    _write(answers, {"ready": True})
    while line := sys.stdin.buffer.readline():
        request = cast("dict[str, Any]", json.loads(line))
        program = sys.stdin.buffer.read(int(request["size"]))
        try:
            head, text = _answer(request, program)
        except Exception as error:  # any error of a compiler is an answer
            head, text = {"error": str(error), "kind": type(error).__name__}, b""
        _write(answers, head, text)


def _answer(request: Mapping[str, Any], program: bytes) -> tuple[dict[str, Any], bytes]:
    limit_memory(int(request["most"]))
    devices = _devices(request["platform"], request["topology"], request["config"], int(request["slices"]))
    count = int(request["count"])
    if len(devices) < count:
        raise ValueError(f"the topology {request['topology']} has {len(devices)} devices, and {count} are needed")
    compiled = compile_for(devices[:count], program, request["options"], request["code"])
    return {"memory": compiled.memory, "cost": compiled.cost}, compiled.text.encode()


# Cached, because most compiles of a process are for the same devices.
_devices = cache(devices_of)


def _write(answers: BinaryIO, head: Mapping[str, Any], body: bytes = b"") -> None:
    answers.write(json.dumps({**head, "size": len(body)}).encode() + b"\n" + body)
    answers.flush()


if __name__ == "__main__":
    main()
