"""Something was requested that is not there, or is nothing that could be."""

from __future__ import annotations

from explorer.errors.base import ExplorerError


class ExpressionError(ExplorerError, ValueError):
    """A magic was given an option or an expression that it can't take.

    What to do:
        Write one call after the magic, and its options before the call: `%explore --html page.html f(x)`.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> import explorer
        >>> shell = InteractiveShell.instance()
        >>> explorer.load_ipython_extension(shell)
        >>> shell.run_line_magic("explore", "1 + 1")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.ExpressionError: %explore takes one call.
          given:  1 + 1
          Hint: write the call as ever, %explore f(x, y=1); it is compiled instead of run.
    """


class ForeignNodeError(ExplorerError, ValueError):
    """A node was given that belongs to another capture, or to a stage that the question can't be asked of.

    What to do:
        Take the node from the stage of the capture that is asked: `capture.jaxpr.graph` for a fate.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(jnp.sin, jnp.ones(2))
        >>> capture.fate(next(iter(capture.hlo.graph.nodes)))
        Traceback (most recent call last):
            ...
        explorer.errors.requests.ForeignNodeError: param_0 is no node of this capture's jaxpr or stablehlo
            stage.
    """


class InputInfoError(ExplorerError, ValueError):
    """A shape or dtype that no input can have.

    What to do:
        A dimension is a number from 0 on, a range (smallest, usual, largest) or a `NamedDimension`; a dtype one of
        JAX's.

    Example:
        >>> import explorer
        >>> explorer.InputInfo((4, -1), "float32")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.InputInfoError: dimension 1 of a shape is -1; allowed are an int of at least 0,
            below 2**63, (min, opt, max), or a NamedDimension.
          Hint: InputInfo(((1, 8, 64), 128), jnp.float32) takes 1 to 64 rows and is fastest for 8.
    """


class NotRecordedError(ExplorerError, LookupError):
    """A capture, a dump or a ledger lacks what was asked of it.

    What to do:
        Record it first: the message says with what.

    Example:
        >>> import explorer
        >>> explorer.Ledger().families("step")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.NotRecordedError: the ledger has no function 'step': nothing was compiled while
            it watched.
          Hint: give a function's name, the function, or '[name/0]'.
    """


class OpenError(ExplorerError, ValueError):
    """What open_hlo() was given can't be opened, is empty, or holds no module or several.

    What to do:
        Give the text of a module, a file of one, or a folder that XLA dumped with `--xla_dump_to`.

    Example:
        >>> import explorer
        >>> explorer.open_hlo("")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.OpenError: there is nothing to open: the text is empty.
    """


class OptionError(ExplorerError, ValueError):
    """An option of compile(), lint(), time(), sweep(), watch(), … is out of range, or one in pyproject.toml.

    What to do:
        Take one of the values that the message lists.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.time(jnp.sin, jnp.ones(2), seconds=-1)
        Traceback (most recent call last):
            ...
        explorer.errors.requests.OptionError: seconds is -1; allowed is a number above 0.
          Hint: seconds=1 is the default; more is surer.
    """


class OutOfRangeError(ExplorerError, IndexError):
    """There is no step, or position, of this number.

    What to do:
        Take a number that is there; the message says how many there are.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin, jnp.ones(2)).live_memory.at(1000)
        Traceback (most recent call last):
            ...
        explorer.errors.requests.OutOfRangeError: step 1000 is none of the 2 of this schedule, counted from 0.
    """


class QueryError(ExplorerError, ValueError):
    """A query of a graph's nodes can't be read, or asks for something that is not known of them.

    What to do:
        `op:dot and flops>1e6`: fields, comparisons, `and`, `or`, `not`; the message lists the fields.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin, jnp.ones(2)).hlo.graph.where("flops>")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.QueryError: this query can't be read: a value should follow `flops>`.
          flops>
                ^
          Hint: write `op:dot`, `bytes > 1MB and op == "copy"`, `line:12`, `/regex/`.
    """


class UnknownNameError(ExplorerError, KeyError):
    """There is no stage, node, pass or variant of this name; the message lists those that there are, or close ones.

    What to do:
        Take one of the names that the message lists.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin, jnp.ones(2)).stage("llvm")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.UnknownNameError: this capture has no stage 'llvm'; it has: jaxpr, stablehlo,
            hlo
    """

    __str__ = Exception.__str__  # a KeyError would show the repr of its message


class UnreadableTextError(ExplorerError, ValueError):
    """The text holds no module of the expected kind, or no findings.

    What to do:
        Give the text of one module as XLA prints it, from `HloModule` on; of findings what `to_json` wrote.

    Example:
        >>> import explorer
        >>> explorer.Findings.from_json("something else")
        Traceback (most recent call last):
            ...
        explorer.errors.requests.UnreadableTextError: this text holds no findings: JSONDecodeError: Expecting
            value: line 1 column 1 (char 0).
          Hint: Findings.to_json() writes them.
    """


class ViewError(ExplorerError, ValueError):
    """A view was told to show something that is not of its capture.

    What to do:
        A bookmark's parts are texts, its notes are `Note`s, and what it selects is of that capture.

    Example:
        >>> import explorer
        >>> explorer.Bookmark(notes=("why f32?",))
        Traceback (most recent call last):
            ...
        explorer.errors.requests.ViewError: notes are explorer.Note(on, text); got 'why f32?'.
    """
