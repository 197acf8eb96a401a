"""What makes a program worse fails, with the line at fault; what changes nothing passes."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import nullcontext

import jax
import pytest

import explorer as ex
from tests.unit.golden.edits import HARMLESS, STEP, WORSE, Edit


def _loaded(folder, source):
    path = folder / "train.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("train_for_golden", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _line_of(source, piece):
    (line,) = [number for number, text in enumerate(source.splitlines(), 1) if piece in text]
    return line


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    module = _loaded(tmp_path_factory.mktemp("golden"), STEP)
    return ex.record(module.step, *module.arguments())


def _checked(golden, folder, monkeypatch, edit: Edit):
    assert edit.old in STEP
    monkeypatch.chdir(folder)
    source = STEP.replace(edit.old, edit.new) if edit.old else STEP
    module = _loaded(folder, source)
    return source, ex.check(module.step, *module.arguments(), golden=golden)


@pytest.mark.slow
@pytest.mark.parametrize("edit", WORSE, ids=lambda edit: edit.name)
def test_what_is_worse_fails_with_the_line_at_fault(golden, tmp_path, monkeypatch, edit):
    with jax.enable_x64(True) if "f64" in edit.name else nullcontext():
        source, result = _checked(golden, tmp_path, monkeypatch, edit)
    assert not result.passed
    places = {(change.file, change.line) for change in result.regressions}
    assert places == {("train.py", _line_of(source, edit.at))}, result.to_text()


@pytest.mark.slow
@pytest.mark.parametrize("edit", HARMLESS, ids=lambda edit: edit.name)
def test_what_changes_nothing_passes(golden, tmp_path, monkeypatch, edit):
    _, result = _checked(golden, tmp_path, monkeypatch, edit)
    assert result.passed, result.to_text()
