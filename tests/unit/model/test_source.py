"""Which files are the user's and which are a library's."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import jax
import pytest

import explorer
from explorer.model.stage import is_library_file


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/.venv/lib/python3.12/site-packages/flax/linen/linear.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/opt/python/lib/python3.13t/json/decoder.py",
        "/opt/env/lib64/python3.11/asyncio/base_events.py",
        r"C:\Users\me\ml\.venv\Lib\site-packages\equinox\_module.py",
        r"C:\Users\me\AppData\Local\Programs\Python\Python312\Lib\functools.py",
        r"C:\Users\me\miniconda3\envs\ml\Lib\runpy.py",
        "site-packages/optax/_src/base.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        jax.__file__,
        json.__file__,
        explorer.__file__,
    ],
)
def test_pythons_own_installed_packages_and_explorer_are_libraries(file):
    assert is_library_file(file)


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/train.py",
        "/home/me/lib/python/train.py",
        "/home/me/src/flax/flax/linen/linear.py",
        "/home/me/my-site-packages.py",
        "/home/me/explorer/model.py",
        r"C:\Users\me\Lib\train.py",
        "/tmp/ipykernel_4242/1234567890.py",
        "<ipython-input-3-c0ffee>",
        "<stdin>",
        "<python-input-0>",
        "<doctest train.step[2]>",
        "",
        __file__,
    ],
)
def test_scripts_cells_and_packages_installed_in_place_are_the_users(file):
    assert not is_library_file(file)


def test_code_that_dataclasses_generate_is_a_librarys():
    @dataclasses.dataclass
    class Point:
        x: int

    assert is_library_file(Point.__init__.__code__.co_filename)


def test_it_needs_no_jax():
    code = "import sys; sys.modules['jax'] = None; from explorer.model.stage import is_library_file as f; print(f(''))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stdout == "False\n", out.stderr
