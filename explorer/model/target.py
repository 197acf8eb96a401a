"""Hardware that a program is compiled for, here or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Hardware:
    """What is published of one kind of device.

    Args:
        key: What `target=` calls it: `h100`, `v5e`.
        name: As its maker, and JAX, call it.
        platform: Whose compiler it has: `cuda`, `rocm`, `tpu`, `cpu`.
        memory: Bytes of one device; 0 where that depends on the machine, as for a CPU.
        bandwidth: Bytes a second to and from it; 0 where that isn't known.
        links: Bytes a second that one device sends to the others, one way; 0 where that isn't known.
        flops: Operations a second of a dense matrix product, by dtype as HLO writes it.
        vector: The same of what is no matrix product.
        clock: GHz of a TPU, by which a compiler's cycles are seconds; 0 where that isn't known.
        topology: The smallest arrangement of several devices that its compiler takes, empty where it takes any number.
        chip: What its compiler calls the use of a chip's cores, empty for its default.
        per_chip: How many devices JAX has on a chip of its topology.
        compiler: What its compiler asks of a device, by the names of `figures.toml`.
        sources: Where the figures are from.

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
    flops: Mapping[str, float] = field(default_factory=dict[str, float])
    vector: Mapping[str, float] = field(default_factory=dict[str, float])
    clock: float = 0.0
    topology: str = ""
    chip: str = ""
    per_chip: int = 1
    compiler: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sources: Sequence[str] = ()


@dataclass(frozen=True)
class Target:
    """One or more devices of a kind, as `target="8xh100"` names them.

    Args:
        device: Of which kind they are.
        count: How many; of a topology the product of its sides, times the devices of a chip.
        topology: `4x4`, as TPUs are wired; empty where it is only a number of devices.
        compile_seconds: After how many a compile is given up; 0 for never.
        compile_memory: Bytes that the compiler may take of this machine; 0 for as many as there are.

    Example:
        >>> import explorer
        >>> eight = explorer.target("8xh100")
        >>> eight.count, eight.device.key, eight.platform
        (8, 'h100', 'cuda')
    """

    device: Hardware
    count: int = 1
    topology: str = ""
    compile_seconds: float = 0.0
    compile_memory: int = 0

    @property
    def platform(self) -> str:
        """Whose compiler it has: `cuda`, `rocm`, `tpu`, `cpu`."""
        return self.device.platform

    @property
    def caveat(self) -> str:
        """What differs from a compile where the hardware is; empty where nothing is known to."""
        return _CAVEATS.get(self.platform, "")

    def __str__(self) -> str:
        if self.topology:
            return f"{self.device.key}:{self.topology}"
        return self.device.key if self.count == 1 else f"{self.count}x{self.device.key}"


# A GPU's compiler measures the tiles of matrix products and asks cuDNN or MIOpen which convolution is fastest, on the
# device. Without one it takes a default: the kernels are the same in kind, not in their tiles. A TPU's doesn't measure.
_CAVEATS = {
    "cpu": "libraries' kernels choose their instructions where they run, whatever the compiler was given",
    "cuda": "no GPU here: tiles of matrix products untuned, no cuDNN search",
    "rocm": "no GPU here: tiles of matrix products untuned, no MIOpen search",
}
