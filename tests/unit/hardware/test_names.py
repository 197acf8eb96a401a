"""What `target=` takes, and how it refuses what it doesn't."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.hardware.names import aliases, all_hardware, parse_target

GPUS = [key for key, device in all_hardware().items() if device.platform in ("cuda", "rocm")]
TPUS = {key: device.topology.count("x") + 1 for key, device in all_hardware().items() if device.platform == "tpu"}


@given(st.sampled_from(GPUS), st.integers(1, 4096))
def test_a_number_of_gpus_is_read_and_written_alike(key: str, count: int) -> None:
    text = key if count == 1 else f"{count}x{key}"
    target = parse_target(text)
    assert (target.device.key, target.count, str(target)) == (key, count, text)


@given(st.sampled_from(sorted(TPUS)), st.lists(st.integers(1, 16), min_size=3, max_size=3))
def test_a_topology_is_as_many_chips_as_the_product_of_its_sides(key: str, sides: list[int]) -> None:
    sides = sides[: TPUS[key]]
    target = parse_target(f"{key}:{'x'.join(map(str, sides))}")
    assert target.count == math.prod(sides) * {"v7x": 2}.get(key, 1)  # an Ironwood chip is two devices
    assert parse_target(str(target)) == target


@given(st.sampled_from(GPUS), st.integers(2, 64), st.integers(1, 16))
def test_nodes_of_gpus_are_read_and_written_alike(key: str, nodes: int, each: int) -> None:
    target = parse_target(f"{nodes} x {each}x{key}")
    assert (target.nodes, target.count, str(target)) == (nodes, nodes * each, f"{nodes}x{each}x{key}")


@given(st.sampled_from(sorted(TPUS)), st.integers(2, 8), st.lists(st.integers(1, 8), min_size=3, max_size=3))
def test_slices_are_as_many_topologies(key: str, slices: int, sides: list[int]) -> None:
    one = f"{key}:{'x'.join(map(str, sides[: TPUS[key]]))}"
    target = parse_target(f"{slices}x{one}")
    assert (target.nodes, target.count) == (slices, slices * parse_target(one).count)
    assert (str(target), parse_target(str(target))) == (f"{slices}x{one}", target)


def test_one_node_or_slice_is_written_without_its_number() -> None:
    assert str(parse_target("1x8xh100")) == "8xh100"
    assert str(parse_target("1xv5e:2x2")) == "v5e:2x2"


@pytest.mark.parametrize("alias", sorted(aliases()))
def test_another_name_means_the_same_device(alias: str) -> None:
    assert parse_target(alias.upper()).device.key == aliases()[alias]


@given(st.text(max_size=20))
def test_any_other_text_is_refused_in_a_sentence(text: str) -> None:
    said = ""
    try:
        parse_target(text)
    except ex.errors.UnknownTargetError as error:
        said = str(error)
    assert not said or repr(text) in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h10", "Did you mean 'h100'?"),
        ("8xv5e", "the program depends on the topology"),
        ("v5e:4x4x4", "topology has 2 sides"),
        ("h100:2x2", "'4xh100'"),
        ("2x2xv5e:2x2", "has two numbers and a topology"),
        ("2x8xavx2", "only GPUs have nodes, and TPUs slices"),
        ("40000x2xh100", "1 to 65,536"),
        ("70000xv5e:1x1", "1 to 65,536"),
        ("0xh100", "1 to 65,536"),
        ("v5p:0x1x1", "has 3 sides"),
    ],
)
def test_a_refusal_says_what_would_do(text: str, said: str) -> None:
    with pytest.raises(ex.errors.UnknownTargetError, match=said.replace("?", r"\?")):
        parse_target(text)


def test_what_is_no_text_is_refused_too() -> None:
    with pytest.raises(ex.errors.UnknownTargetError, match="names no hardware"):
        parse_target(8)  # type: ignore[arg-type]
