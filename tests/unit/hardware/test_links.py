"""Least seconds of collectives, by hand from the links that each device has, as published.

H100 (data sheet): 900 GB/s of NVLink in both directions behind a switch, so 450 GB/s one way; DGX H100: one port of
400 Gb/s for each GPU, 50 GB/s. v5e (cloud.google.com/tpu/docs/v5e): four ports, 400 GB/s in both directions, so 50 GB/s
one way each; 6.4 Tb/s for a pod of 256 chips, 3.125 GB/s each. MI300X (data sheet): seven links of 128 GB/s in both
directions, one to each other GPU, 64 GB/s one way.
"""

import pytest

import explorer as ex
from explorer.hardware.links import least_seconds
from explorer.hardware.names import parse_target

NVLINK, PORT, ICI, DCN, XGMI = 450e9, 50e9, 50e9, 3.125e9, 64e9
B = 1 << 20  # bytes that each device gives


def module(op: str, groups: str, devices: int) -> str:
    """Return a program of one collective whose input is of `B` bytes on each device."""
    size = {"all-gather": B * devices, "reduce-scatter": B // devices}.get(op, B)
    name = "source_target_pairs" if op == "collective-permute" else "replica_groups"
    dims = ", dimensions={0}" if op != "all-reduce" and name == "replica_groups" else ""
    reducer = ", to_apply=add" if "reduce" in op else ""
    return f"""HloModule m, is_scheduled=true, num_partitions={devices}
add {{ a = u8[] parameter(0)
  b = u8[] parameter(1)
  ROOT c = u8[] add(a, b) }}
ENTRY main {{ x = u8[{B}] parameter(0)
  ROOT r = u8[{size}] {op}(x), {name}={groups}{dims}{reducer} }}"""


def seconds(target: str, op: str, groups: str) -> float | None:
    parsed = parse_target(target)
    (row,) = ex.open_hlo(module(op, groups, parsed.count)).collectives
    return least_seconds(row, parsed)


PAIR, FOUR, EIGHT, ALL_64 = "{{0,1}}", "{{0,1,2,3}}", "{{0,1,2,3,4,5,6,7}}", f"{{{{{','.join(map(str, range(64)))}}}}}"


@pytest.mark.parametrize(
    ("target", "op", "groups", "expected"),
    [
        # Behind a switch: all links, whatever the number of devices.
        ("8xh100", "all-reduce", PAIR, B / NVLINK),
        ("8xh100", "all-reduce", EIGHT, 2 * B * 7 / 8 / NVLINK),
        # Wired to each other: one link to each device of the group.
        ("8xmi300x", "all-reduce", PAIR, B / XGMI),
        ("8xmi300x", "all-reduce", EIGHT, 2 * B * 7 / 8 / (7 * XGMI)),
        ("8xmi300x", "collective-permute", "{{0,1},{1,0}}", B / XGMI),
        # On a torus: a side of two has one link, two sides have two, a closed ring has two.
        ("v5e:4x4", "all-reduce", PAIR, B / ICI),
        ("v5e:4x4", "all-gather", PAIR, B / ICI),
        ("v5e:2x2", "all-reduce", FOUR, 2 * B * 3 / 4 / (2 * ICI)),
        ("v5e:1x4", "all-reduce", FOUR, 2 * B * 3 / 4 / ICI),
        ("v5e:1x16", "all-reduce", "{}", 2 * B * 15 / 16 / (2 * ICI)),
        ("v5e:4x4", "collective-permute", "{{0,1},{1,2},{2,3},{3,0}}", B / ICI),
        ("v5p:4x4x4", "all-reduce", PAIR, B / 100e9),
        ("v5p:4x4x4", "all-reduce", "{}", 2 * B * 63 / 64 / 600e9),  # all six links
        ("v5p:2x2x2", "all-reduce", "{}", 2 * B * 7 / 8 / 300e9),  # three neighbors
        # Between nodes and slices: what a node has added up crosses the network once, in parts.
        ("8x8xh100", "all-reduce", ALL_64, max(2 * B / 8 * 7 / 8 / PORT, 2 * B * 7 / 8 / NVLINK)),
        ("8x8xh100", "all-reduce", EIGHT, 2 * B * 7 / 8 / NVLINK),
        ("8x8xh100", "all-reduce", "{{0,8}}", B / PORT),
        ("8x8xh100", "all-gather", "{{0,8}}", B / PORT),
        ("2x8xh100", "reduce-scatter", "{{0,1,8,9}}", max(B / 2 / 2 / PORT, B / 2 / NVLINK)),
        ("2x8xh100", "all-to-all", "{{0,1,8,9}}", B / 2 / PORT),
        ("2x8xh100", "all-gather", "{{0,1,8,9}}", max(B / PORT, 2 * B / NVLINK)),
        ("2x8xh100", "collective-permute", "{{7,8}}", B / PORT),
        ("2xv5e:4x4", "all-reduce", "{{0,16}}", B / DCN),
        ("2xv5e:4x4", "all-reduce", "{{0,1}}", B / ICI),
    ],
)
def test_a_collective_takes_as_long_as_its_links_need(target: str, op: str, groups: str, expected: float) -> None:
    assert seconds(target, op, groups) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("target", "groups"),
    [
        ("2x8xmi300x", "{{0,8}}"),  # no network is published
        ("2xv4:2x2x1", "{{0,4}}"),
        ("v7x:2x2x1", PAIR),  # two devices of one chip
        ("2xavx2", PAIR),
    ],
)
def test_a_link_of_unknown_bandwidth_leaves_the_time_unknown(target: str, groups: str) -> None:
    assert seconds(target, "all-reduce", groups) is None


def test_a_group_of_one_takes_no_time() -> None:
    assert seconds("8xh100", "all-reduce", "{{0},{1},{2},{3},{4},{5},{6},{7}}") == 0


def test_of_several_groups_the_slowest_counts() -> None:
    assert seconds("2x8xh100", "collective-permute", "{{0,1},{7,8}}") == pytest.approx(B / PORT)
