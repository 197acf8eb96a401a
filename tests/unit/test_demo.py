"""`make demo`: the main job without a notebook."""

from pathlib import Path

import pytest

from tests.examples.demo import demo


@pytest.mark.slow
def test_the_demo_writes_a_page_and_sums_up_every_stage_on_one_screen(tmp_path: Path):
    page = tmp_path / "report.html"
    text = demo(page, layers=1)
    assert "</html>" in page.read_text(encoding="utf-8")
    assert str(page) in text
    assert len(text.splitlines()) < 24
    for word in ("step(", "jaxpr", "stablehlo", "hlo", "fusions", "trace", "compile"):
        assert word in text
