"""`"8xh100"`, `"v5e:4x4"` → the devices that are meant."""

from __future__ import annotations

import re
from difflib import get_close_matches
from math import prod

from explorer.errors import UnknownTargetError
from explorer.hardware.cpu_features import ARM
from explorer.hardware.figures import aliases, all_hardware
from explorer.model.target import Hardware, Target

_MOST = 1 << 16  # devices: eight times the largest pod there is
_ARM = {"arm", "arm64", "aarch64", "neoverse", "neoverse-n1", "neoverse-v1", "neoverse-v2", "graviton", "grace", "sve"}
_NAME = re.compile(r"(?:(?P<count>\d+)\s*[x×]\s*)?(?P<key>[a-z][\w.\-]*?|\d[\w.\-]*?)(?:\s*:\s*(?P<sides>[\dx×]+))?")


def parse_target(text: str | Target) -> Target:
    """The devices that a name means.

    Args:
        text: A device of `explorer.targets()`; several as `8xh100`, or `v5e:4x4` in the topology of a TPU's pod.

    Raises:
        UnknownTargetError: There is no such device, or no such number or topology of it.

    Example:
        >>> target = parse_target("v5e:4x4")
        >>> target.device.name, target.count, str(target)
        ('TPU v5e', 16, 'v5e:4x4')
    """
    __tracebackhide__ = True
    if isinstance(text, Target):
        return text
    match = _NAME.fullmatch(text.strip().lower()) if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if match is None:
        raise UnknownTargetError(
            f"{text!r} names no hardware.\n  Hint: a device, 'h100'; several, '8xh100', 'v5e:4x4'."
        )
    device = _device(match["key"], text)
    if match["sides"] is None:
        return _counted(device, int(match["count"] or 1), text)
    if match["count"] is not None:
        raise UnknownTargetError(f"{text!r} has a number of devices and a topology.\n  Hint: one of the two.")
    return _arranged(device, [int(side) for side in re.split("[x×]", match["sides"]) if side], text)


def _device(key: str, text: str) -> Hardware:
    __tracebackhide__ = True
    devices = all_hardware()
    if (device := devices.get(aliases().get(key, key))) is not None:
        return device
    if key in _ARM:
        raise UnknownTargetError(f"{text!r}: {ARM}.")
    near = get_close_matches(key, [*devices, *aliases()], n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownTargetError(f"{text!r} names no hardware that is known.{meant}\n  There are: {', '.join(devices)}.")


def _counted(device: Hardware, count: int, text: str) -> Target:
    __tracebackhide__ = True
    if not 0 < count <= _MOST:
        raise UnknownTargetError(f"{text!r} is no number of devices: 1 to {_MOST:,}.")
    if device.platform == "tpu" and count > 1:
        raise UnknownTargetError(
            f"{text!r}: how TPUs are wired decides what is compiled.\n"
            f"  Hint: a topology, as '{device.key}:{device.topology}' of {prod(_sides(device.topology))} chips."
        )
    return Target(device, count)


def _arranged(device: Hardware, sides: list[int], text: str) -> Target:
    __tracebackhide__ = True
    if device.platform != "tpu":
        raise UnknownTargetError(f"{text!r}: only TPUs have a topology.\n  Hint: '{prod(sides)}x{device.key}'.")
    needed = len(_sides(device.topology))
    if len(sides) != needed or not 0 < prod(sides) <= _MOST:
        raise UnknownTargetError(
            f"{text!r}: a {device.name}'s topology has {needed} sides, as '{device.key}:{device.topology}'."
        )
    return Target(device, prod(sides) * device.per_chip, "x".join(map(str, sides)))


def _sides(topology: str) -> list[int]:
    return [int(side) for side in topology.split("x")]
