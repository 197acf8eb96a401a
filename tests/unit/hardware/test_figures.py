"""Published figures: each has a source, and they agree with each other where physics says they must."""

import pytest

import explorer as ex
from explorer.hardware.cpu_features import target_config
from explorer.hardware.names import all_hardware

DEVICES = list(all_hardware().values())


ACCELERATORS = [device for device in DEVICES if device.platform != "cpu"]  # a CPU's figures are its machine's


@pytest.mark.parametrize("device", ACCELERATORS, ids=lambda device: device.key)
def test_each_has_memory_bandwidth_rates_and_sources(device: ex.types.Hardware) -> None:
    assert device.memory > 10e9
    assert 1e11 < device.bandwidth < 1e13
    assert device.flops["bf16"] > 1e13
    assert device.sources


@pytest.mark.parametrize("device", [d for d in DEVICES if "matrix" in d.compiler], ids=lambda device: device.key)
def test_published_rates_are_what_the_units_do_at_their_clock(device: ex.types.Hardware) -> None:
    """The data sheet's figure against cores × units × operations × clock, which the compiler is told."""
    figures = device.compiler
    for dtype in ("f16", "f32", "s8"):
        matrix = figures["matrix"]
        made = figures["cores"] * matrix["units"] * matrix[dtype] * 2 * matrix["clock"] * 1e9
        assert made == pytest.approx(device.flops[dtype], rel=0.05)


@pytest.mark.parametrize("device", [d for d in ACCELERATORS if d.compiler], ids=lambda device: device.key)
def test_the_compiler_is_told_a_proto_with_balanced_braces(device: ex.types.Hardware) -> None:
    text = target_config(device)
    assert text.count("{") == text.count("}")
    assert f"device_memory_size: {device.memory}" in text


def test_targets_is_a_table_by_name_and_position() -> None:
    table = ex.targets()
    assert table["h100"].device.name == table[0].device.name == "NVIDIA H100 80GB HBM3"
    assert len(table) == len(DEVICES)
    with pytest.raises(ex.errors.UnknownNameError, match="v5e"):
        table["abacus"]


def test_the_table_names_each_target_and_how_to_get_its_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    text = ex.targets().to_text()
    assert all(device.key in text and device.name in text for device in DEVICES)
    assert "python -m explorer targets install cuda" in text
    assert "<table>" in ex.targets()._repr_mimebundle_()["text/html"]
