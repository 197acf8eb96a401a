"""What print was given, as a format and its values: written so, it prints the same."""

import ast
import contextlib
import io

import pytest

from explorer.pitfalls.fix_prints import as_format

LOSS, STEP, NAME = 0.125, 7, "train"
NAMES = {"loss": LOSS, "step": STEP, "name": NAME}


def printed(call):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        eval(call, {**NAMES, "show": lambda text, *values: print(text.format(*values))})
    return out.getvalue()


def written(arguments):
    return as_format(ast.parse(f"print({arguments})", mode="eval").body.args)


@pytest.mark.parametrize(
    ("arguments", "as_written"),
    [
        ("loss", '"{}", loss'),
        ("'loss', loss", '"loss {}", loss'),
        ("'loss', loss, step", '"loss {} {}", loss, step'),
        ("'at {step}'", '"at {{step}}"'),  # braces of a text are none of a format
        ("'it\\'s', loss", '"it\'s {}", loss'),
        ("'say \"x\"', loss", "'say \"x\" {}', loss"),
        ("'say \"x\" it\\'s', loss", "'say \"x\" it\\'s {}', loss"),
        ("'a\\nb', loss", "'a\\nb {}', loss"),
        ("f'loss {loss}'", '"loss {}", loss'),
        ("f'loss {loss:.2f} of {step}'", '"loss {:.2f} of {}", loss, step'),
        ("f'{name!r} {{}}'", '"{!r} {{}}", name'),
        ("f'{loss!s:>8}'", '"{!s:>8}", loss'),
        ("str(loss)", '"{}", loss'),
        ("'loss ' + str(loss)", '"loss {}", loss'),
        ("'loss ' + str(loss) + ' at ' + str(step)", '"loss {} at {}", loss, step'),
        ("'loss {} of {:d}'.format(loss, step)", '"loss {} of {:d}", loss, step'),
        ("'loss %s' % loss", '"loss {}", loss'),
        ("'loss %.3f at %s' % (loss, step)", '"loss {:.3f} at {}", loss, step'),
        ("'%.1e%% of {}' % loss", '"{:.1e}% of {{}}", loss'),
        ("loss + step", '"{}", loss + step'),
    ],
)
def test_the_format_prints_what_print_did(arguments, as_written):
    assert written(arguments) == as_written
    assert printed(f"show({as_written})") == printed(f"print({arguments})")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("*values", "nobody knows how many there are"),
        ("loss, *values", "nobody knows how many there are"),
        ("f'{loss:{width}}'", "its format is made of a value"),
        ("loss, f'{loss:{width}}'", "one of its arguments has no format"),
        ("'{:{}}'.format(loss, 3)", "its format is made of a value"),
        ("'{loss}'.format(loss=loss)", "its values are named"),
        ("'{0} {1}'.format(loss, step)", "its values are numbered"),
        ("'{} {}'.format(loss)", "there are too few values"),
        ("'{}'.format(loss, step)", "there are too many values"),
        ("'{}'.format(*values)", "nobody knows how many there are"),
        ("'{'.format(loss)", "it is no format"),
        ("'%d of %s' % (step, loss)", "an array has no %d"),
        ("'%5.2f' % loss", "an array has no width"),
        ("'%s %s' % loss", "there are too few values"),
        ("'%s' % (loss, step)", "there are too many values"),
        ("'loss ' + f'{loss:{width}}'", "the format of one half is made of a value"),
        ("f'{loss:{width}}' + 'loss'", "the format of one half is made of a value"),
        ("', '.join(names)", "a text is made of tracers"),
        ("repr(loss)", "a text is made of tracers"),
        ("describe(str(loss))", "a text is made of tracers"),
        ("[f'{loss}']", "a text is made of tracers"),
        ("len('loss ' + name)", "a text is made of tracers"),
        ("('%s' % loss).upper()", "a text is made of tracers"),
    ],
)
def test_where_it_is_not_certain_there_is_no_format(arguments, why):
    assert written(arguments) == ""


def test_a_sum_or_a_remainder_of_numbers_is_no_text():
    assert [written(text) for text in ("loss % 2", "loss + 2")] == ['"{}", loss % 2', '"{}", loss + 2']
