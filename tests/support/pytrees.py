"""Structures of calls, as the ledger reads them from JAX."""

import jax

from explorer.ledger.trees import read_tree


def paths_of(named):
    """The paths of all leaves of some arguments by name."""
    return [
        name + jax.tree_util.keystr(path)
        for name, value in named.items()
        for path, _ in jax.tree_util.tree_leaves_with_path(value)
    ]


def call_tree(positional, keywords=None):
    """The structure of a call whose positional and keyword arguments are these, by name."""
    keywords = dict(sorted((keywords or {}).items()))
    treedef = jax.tree.structure((tuple(positional.values()), keywords))
    return read_tree(treedef, [*paths_of(positional), *paths_of(keywords)])
