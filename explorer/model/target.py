"""Hardware that a program is compiled for, here or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Hardware:
    """Published figures of one kind of device.

    Args:
        key: Name in `target=`: `h100`, `v5e`.
        name: Name used by the maker and by JAX.
        platform: Compiler platform: `cuda`, `rocm`, `tpu`, `cpu`.
        memory: Bytes per device; 0 if it depends on the machine, as for a CPU.
        bandwidth: Memory bandwidth in bytes per second; 0 if unknown.
        links: Bytes per second that one device sends to others of its node or slice over all its links, one way; 0 if
            unknown.
        network: Bytes per second that one device sends to other nodes or slices, one way; 0 if unknown.
        peers: Number of devices that a GPU's links lead to, without a switch; 0 with one.
        wraps: Divisor of the sides of a TPU's topology whose ends are connected; 0 if none are.
        flops: Operations per second of a dense matrix product, by HLO dtype.
        vector: The same for other operations.
        clock: GHz of a TPU, which converts cycles to seconds; 0 if unknown.
        topology: Smallest arrangement of several devices that the compiler accepts, empty for any number.
        chip: The compiler's name for the use of a chip's cores, empty for the default.
        per_chip: Number of JAX devices per chip of the topology.
        compiler: Device properties that the compiler needs, named as in `figures.toml`.
        sources: Sources of the figures.

    Example:
        >>> import explorer
        >>> h100 = explorer.targets()["h100"].device
        >>> h100.name, h100.memory >= 80 * 10**9, h100.flops["bf16"] > h100.flops["f32"]
        ('NVIDIA H100 80GB HBM3', True, True)
    """

    key: str
    name: str
    platform: str
    memory: int = 0
    bandwidth: float = 0.0
    links: float = 0.0
    network: float = 0.0
    peers: int = 0
    wraps: int = 0
    flops: Mapping[str, float] = field(default_factory=dict[str, float])
    vector: Mapping[str, float] = field(default_factory=dict[str, float])
    clock: float = 0.0
    topology: str = ""
    chip: str = ""
    per_chip: int = 1
    compiler: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sources: Sequence[str] = ()


def sides_of(topology: str) -> list[int]:
    return [int(side) for side in topology.split("x")]


@dataclass(frozen=True)
class Target:
    """One or more devices of one kind, as in `target="8xh100"`.

    Args:
        device: Kind of device.
        count: Number of devices; for a topology, the product of its sides times the devices per chip, and the slices.
        topology: Wiring of the TPUs of a slice, such as `4x4`; empty for a plain number of devices.
        nodes: Number of nodes of GPUs, or slices of TPUs, with the same number of devices each.
        compile_seconds: Time limit of a compile in seconds; 0 for none.
        compile_memory: Memory limit of the compiler in bytes; 0 for none.

    Example:
        >>> import explorer
        >>> eight = explorer.target("8xh100")
        >>> eight.count, eight.device.key, eight.platform
        (8, 'h100', 'cuda')
        >>> two = explorer.target("2xv5e:4x4")
        >>> two.count, two.nodes, str(two)
        (32, 2, '2xv5e:4x4')
    """

    device: Hardware
    count: int = 1
    topology: str = ""
    compile_seconds: float = 0.0
    compile_memory: int = 0
    nodes: int = 1

    @property
    def platform(self) -> str:
        """Return the compiler platform: `cuda`, `rocm`, `tpu`, `cpu`."""
        return self.device.platform

    @property
    def caveat(self) -> str:
        """Return text on how the result may differ from a compile on the hardware itself; empty if in no known way."""
        return _CAVEATS.get(self.platform, "")

    def __str__(self) -> str:
        nodes = f"{self.nodes}x" if self.nodes > 1 else ""
        if self.topology:
            return f"{nodes}{self.device.key}:{self.topology}"
        return self.device.key if self.count == 1 else f"{nodes}{self.count // self.nodes}x{self.device.key}"


# A GPU's compiler measures the tiles of matrix products and asks cuDNN or MIOpen which convolution is fastest, on the
# device. Without one it takes a default: the kernels are the same in kind, not in their tiles. A TPU's doesn't measure.
_CAVEATS = {
    "cpu": "kernels of libraries choose their instructions at run time, whatever the target",
    "cuda": "no GPU here: tiles of matrix products untuned, no cuDNN search",
    "rocm": "no GPU here: tiles of matrix products untuned, no MIOpen search",
}
