"""Which of JAX's warnings lint hears: those that Python itself would show."""

import itertools
import warnings
from functools import partial
from threading import Thread

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.pitfalls.tracing import _is_shown, gather

FILE, LINE = "/home/me/train.py", 7


def would_show(message: str, category: type[Warning]) -> bool:
    """Whether Python shows it, under the filters that are set."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warnings, "showwarning", lambda *given, **_: seen.append(given))
        try:
            warnings.warn_explicit(message, category, FILE, LINE, module="train", registry={})
        except category:
            seen.append(message)
    return bool(seen)


FILTERS = [*itertools.product(
    ["ignore", "always", "error"], ["", "some text", "other", "Some"], [Warning, UserWarning, FutureWarning],
    ["", "train", "tra$"], [0, LINE, 8],
)]  # fmt: skip


def test_a_filter_hides_what_it_hides_of_python():
    for action, text, category, module, line in FILTERS:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.filterwarnings(action, text, category, module, line)
            expected = would_show("some text of JAX", UserWarning)
            shown = _is_shown(warnings.filters, "some text of JAX", UserWarning, FILE, LINE)
        assert shown == expected, (action, text, category, module, line)


@pytest.mark.parametrize(("text", "is_shown"), [("some text", False), ("some", True)])
def test_a_filter_with_plain_texts_as_pythons_own_have_means_all_of_the_text(text, is_shown):
    filters = [("ignore", text, UserWarning, "train", 0)]
    assert _is_shown(filters, "some text", UserWarning, FILE, LINE) == is_shown


def test_the_first_filter_that_fits_decides():
    filters = [("always", None, UserWarning, None, 0), ("ignore", None, Warning, None, 0)]
    assert _is_shown(filters, "text", UserWarning, FILE, LINE)
    assert not _is_shown(filters[::-1], "text", UserWarning, FILE, LINE)


def test_what_a_rule_says_jax_doesnt_warn_of_besides():
    @partial(jax.jit, donate_argnums=0)
    def mean(x):
        return x.mean()

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        findings = ex.lint(mean, jnp.ones((8, 8)))
    assert [finding.rule for finding in findings] == ["unusable-donation"]
    assert not shown


def test_a_warning_of_another_thread_is_shown_and_is_none_of_the_functions(recwarn):
    def f(x):
        thread = Thread(target=warnings.warn, args=("of another thread", UserWarning))
        thread.start()
        thread.join()
        warnings.warn("Explicitly requested dtype float64 is not available", UserWarning, stacklevel=1)
        return x

    evidence = gather(f, (jnp.ones(3),), {})
    assert [text for text, _, _ in evidence.warnings] == ["Explicitly requested dtype float64 is not available"]
    assert "of another thread" in [str(warning.message) for warning in recwarn]
