"""What version 0.1.0 saved opens, and says what it said then."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

import explorer as ex

SAVED = Path(__file__).parents[2] / "support" / "saved_0_1_0"


def test_a_capture_opens_with_its_stages_passes_fates_and_lines():
    capture = ex.load(SAVED / "loss.capture")
    assert repr(capture) == "Capture(loss: jaxpr → stablehlo → hlo)"
    assert len(capture.hlo.graph) == 273
    assert len(capture.passes) == 33
    # Its passes name no equations: of several on one line it is unknown which of them an instruction is of.
    fates = {"kept": 4, "fused": 18, "duplicated": 1, "unknown": 21}
    assert capture.fates() == fates
    assert capture.coverage("hlo") == 1
    assert {row.line for row in capture.lines() if row.kernels} >= {6, 7, 13}
    assert capture.live_memory.peak > 0
    assert "softmax" in capture.sources[capture.file].text


def test_a_ledger_opens_with_its_events_and_reasons():
    ledger = ex.Ledger.load(SAVED / "ledger.jsonl")
    assert [event.reason.text for event in ledger.recompiles(eager=True)] == [
        "the static argument `shape` was (16, 16) and is now (5, 16)",
        "`x.shape[0]` was 4 and is now 5",
        "key 'more' was added to `params`",
    ]


def test_an_executable_opens_and_runs():
    executable = ex.Executable.load(SAVED / "block.explorer")
    x = jnp.linspace(-1, 1, 6 * 16).reshape(6, 16)
    products = np.asarray(x) @ np.ones((16, 16))
    softmax = np.exp(products) / np.exp(products).sum(-1, keepdims=True)
    np.testing.assert_allclose(executable(x), softmax + x, rtol=1e-5)
