"""A capture in a terminal, and as a picture in a file."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import pytest
import rich
from rich.console import Console

import explorer as ex
from explorer.__main__ import main
from tests.examples.training import training_capture

SVG = "{http://www.w3.org/2000/svg}"


def normalise(x):
    return (x - x.mean()) / x.std()


def two_steps(x):
    return jnp.tanh(normalise(x)) @ normalise(x * 2).T


@pytest.fixture(scope="module")
def capture():
    return ex.explore(two_steps, jnp.ones((8, 16)))


@pytest.fixture(scope="module")
def step():
    return training_capture(2)


def test_the_tree_names_every_stage_with_its_counts(capture):
    text = capture.to_text()
    assert text.startswith("two_steps(x: f32[8,16])")
    for stage in capture.stages:
        assert re.search(rf"── \w+  {len(stage.graph):,} (equations|operations|instructions)", text)
    assert "memory peak" in text


def test_the_tree_tells_a_training_steps_story_in_order(step):
    text = step.to_text()
    at = [text.index(word) for word in ("forward", "backward", "update")]
    assert at == sorted(at)
    assert re.search(r"attention  \d+ kernels", text)


def test_shares_are_of_all_kernels_and_add_up(step):
    rows = re.findall(r"^    [├└]── (.*?)  ([\d,]+) kernels? \S+ (\d+)%$", step.to_text(), re.MULTILINE)
    kernels = int(re.search(r"([\d,]+) kernels ·", step.to_text())[1].replace(",", ""))
    assert sum(int(size.replace(",", "")) for _, size, _ in rows) <= kernels
    for _, size, share in rows:
        assert abs(int(size.replace(",", "")) / kernels * 100 - int(share)) <= 0.5


def test_no_line_is_wider_than_asked(step):
    for width in (60, 100):
        assert max(map(len, step.to_text(width).splitlines())) <= width


def test_rich_prints_it_in_colours(capture, capsys):
    rich.print(capture)
    assert "StableHLO" in capsys.readouterr().out
    console = Console(force_terminal=True, color_system="truecolor", record=True, width=100)
    with console.capture() as captured:
        console.print(capture)
    assert "\x1b[1;36m" in captured.get()


def test_a_failure_is_told():
    def f(x):
        return jnp.concatenate([x, x[0]])

    with pytest.raises(ex.errors.ExploreError) as raised:
        ex.explore(f, jnp.ones((2, 2)))
    assert "trace failed" in raised.value.capture.to_text()


def test_markup_in_a_name_is_inert():
    def f(x):
        return x * 2

    f.__name__ = "[red]f[/red]"
    assert ex.explore(f, jnp.ones(3)).to_text().startswith("[red]f[/red](x: f32[3])")


@pytest.mark.slow
def test_ipython_in_a_terminal_shows_the_tree():
    code = "import jax.numpy as jnp, explorer as ex\nex.explore(jnp.tanh, jnp.ones(8))\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "--simple-prompt", "--quick"],
        input=code,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "└── HLO" in done.stdout
    assert "explorer-output" not in done.stdout


def test_the_picture_goes_to_a_file_as_svg(capture, tmp_path):
    path = capture.to_svg(tmp_path / "f.svg")
    texts = [text.text or "" for text in ElementTree.parse(path).iter(f"{SVG}text")]
    assert any(text.startswith("two_steps") for text in texts)


def test_the_picture_goes_to_a_file_as_png(capture, tmp_path):
    pytest.importorskip("resvg_py")
    small = capture.to_png(tmp_path / "f.png", scale=1).read_bytes()
    large = capture.to_png(tmp_path / "f.png").read_bytes()
    assert small.startswith(b"\x89PNG\r\n")
    width = [int.from_bytes(data[16:20]) for data in (small, large)]
    assert width == [960, 1920]


def test_without_the_package_that_draws_it_the_error_names_it(capture, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ex.errors.MissingPackageError, match=r"pip install resvg_py"):
        capture.to_png(tmp_path / "f.png")
    assert not (tmp_path / "f.png").exists()


def test_a_loop_is_told_once():
    def f(x):
        for _ in range(6):
            x = jax.nn.softmax(x @ x)
        return x

    assert ex.explore(f, jnp.ones((32, 32))).to_text().count("softmax") <= 6


# python -m explorer ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def module(capture, tmp_path_factory):
    path = tmp_path_factory.mktemp("main") / "module.hlo"
    path.write_text(capture.hlo.text)
    return path


@pytest.mark.slow
def test_a_module_is_opened_from_the_command_line(module):
    command = [sys.executable, "-m", "explorer", "open", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "HLO" in done.stdout
    assert "kernels" in done.stdout


def test_its_ending_says_what_a_file_is_written_as(module, tmp_path, capsys):
    outputs = [tmp_path / f"f{ending}" for ending in (".html", ".svg", ".capture")]
    assert main(["open", str(module), *(word for path in outputs for word in ("-o", str(path)))]) == 0
    assert all(path.stat().st_size for path in outputs)
    assert capsys.readouterr().out.count(" bytes\n") == 3
    assert main(["open", str(outputs[2])]) == 0


def test_what_cannot_be_opened_is_one_line_and_a_status(tmp_path, capsys):
    assert main(["open", str(tmp_path / "none.hlo")]) == 1
    error = capsys.readouterr().err
    assert re.match(r"(OpenError|FileNotFoundError): ", error)
    assert "Traceback" not in error


def test_an_ending_that_is_none_is_refused_before_any_work(module, capsys):
    with pytest.raises(SystemExit):
        main(["open", str(module), "-o", "report.pdf"])
    assert ".html, .svg, .png or .capture" in capsys.readouterr().err
