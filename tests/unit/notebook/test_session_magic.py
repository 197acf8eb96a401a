"""%explorer in an IPython shell of this process."""

import pytest

import explorer as ex

pytest.importorskip("IPython", reason="the magics need IPython")

from IPython.utils.capture import capture_output

from explorer.ledger.watch import session, stop_session
from tests.support.shells import fresh_shell, run


@pytest.fixture
def ip():
    # A name that no other test's function has: the session knows of all that this process compiled.
    with fresh_shell("import jax, jax.numpy as jnp\n@jax.jit\ndef seen_by_the_magic(x):\n    return x * 2\n") as shell:
        run(shell, "%load_ext explorer")
        yield shell
        ex.unload_ipython_extension(shell)
        stop_session()


def test_it_watches_from_there_on_shows_the_session_and_ends_with_the_extension(ip, tmp_path):
    with capture_output() as first:
        shown = ip.run_cell("%explorer").result
    assert "Now watching" not in first.stdout
    assert shown is ex.session()
    run(ip, "_ = seen_by_the_magic(jnp.ones(3)), seen_by_the_magic(jnp.ones(4))")
    with capture_output() as second:
        ip.run_cell(f"%explorer {tmp_path / 'session.html'}")
    assert "Now watching" not in second.stdout
    assert shown["seen_by_the_magic"].compiles == 2
    assert "seen_by_the_magic" in (tmp_path / "session.html").read_text(encoding="utf-8")
    ex.unload_ipython_extension(ip)
    assert session() is None


def test_a_file_that_can_t_be_written_is_an_error(ip, tmp_path):
    with capture_output():
        result = ip.run_cell(f"%explorer {tmp_path / 'none' / 'session.html'}")
    with pytest.raises(ex.errors.ExpressionError, match="can't be written"):
        result.raise_error()
