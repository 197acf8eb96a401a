"""Where a display goes, asked of real shells."""

import subprocess
import sys

from explorer.view.session import in_kernel, in_terminal
from tests.support.shells import fresh_shell, run

QUESTION = "from explorer.view.session import in_kernel, in_terminal; print(in_terminal(), in_kernel())"


def test_plain_python_is_neither_a_terminal_shell_nor_a_kernel():
    done = subprocess.run([sys.executable, "-c", QUESTION], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_ipython_in_a_terminal_is_one():
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit", "-c", QUESTION],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "False"]


def test_a_shell_that_is_no_terminal_is_none():
    with fresh_shell("") as ip:
        run(ip, "1")
        assert not in_terminal()
        assert not in_kernel()
