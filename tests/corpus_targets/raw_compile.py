"""A compiler of other hardware without Explorer: whether it takes a program of a size, or runs out of memory.

    python -m tests.corpus_targets.raw_compile tpu v5e:2x2 [CHIP] < LINES

reads lines `NAME SIZE` (a program of `sized`, tab between), and answers each with `fits`, `memory`, or `other` and the
error's first line; CHIP is how its cores are used, `megacore`. Run it with the compiler on the path.
"""

import sys

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding

from tests.corpus_targets.sized import SIZED

PROGRAMS = {program.name: program for program in SIZED}


def main(platform: str, topology: str, chip: str = "") -> None:
    options = {"chip_config_name": chip} if chip else {}
    devices = topologies.get_topology_desc(topology, platform, **options).devices
    for line in sys.stdin:
        name, _, size = line.rstrip("\n").partition("\t")
        program = PROGRAMS[name]
        args = jax.tree.map(lambda arg, count=program.devices: placed(arg, devices[:count]), program.args(int(size)))
        try:
            jax.jit(program.function).lower(*args).compile()
        except Exception as error:  # of a compiler, whatever it raises: it is the answer
            first = str(error).partition("\n")[0]
            print(f"{'memory' if 'Ran out of memory' in str(error) else 'other'}\t{first}", flush=True)
        else:
            print("fits\t", flush=True)


def placed(arg: jax.ShapeDtypeStruct, devices: list[object]) -> jax.ShapeDtypeStruct:
    """The argument on devices of the topology."""
    if len(devices) == 1:
        return jax.ShapeDtypeStruct(arg.shape, arg.dtype, sharding=SingleDeviceSharding(devices[0]))
    mesh = Mesh(np.array(devices), ("data",))
    return jax.ShapeDtypeStruct(arg.shape, arg.dtype, sharding=NamedSharding(mesh, arg.sharding.spec))


if __name__ == "__main__":
    main(*sys.argv[1:])
