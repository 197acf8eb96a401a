"""The file of signals: YAML with settings for named parts of a program.

    forward:
      compile: true             # at the first call; false leaves its functions alone, also where hot paths are on
      optimization_level: 4     # 0 to 4
      shard: {axis: 0, workers: 4}    # or a list of devices: [0, 1, 2, 3]

A wrong entry is refused with its line and the nearest allowed name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from os import PathLike
from typing import Any, NoReturn

from explorer.errors import SignalsError
from explorer.files.disk import YamlError, compose_yaml, read_bytes
from explorer.model.results.hot_paths import Shard, SignalSettings
from explorer.model.text import brief, did_you_mean

_KEYS = ("compile", "optimization_level", "donate", "shard")
_SHARD_KEYS = ("axis", "workers")
_LEVELS = range(5)
_LARGEST = 200_000  # bytes: thousands of signals, and a few seconds of PyYAML
_MOST_DEVICES, _MOST_DIMENSIONS = 100_000, 1_000


def read_signals(path: str | PathLike[str]) -> dict[str, SignalSettings]:
    """Return the settings of each signal in a file, by the signal's name; empty for an empty file.

    Raises:
        SignalsError: The file can't be read, or has a mistake; names the line.
    """
    try:
        content = read_bytes(os.path.expanduser(path), _LARGEST, "a file of signals", SignalsError)
    except OSError as error:
        raise SignalsError(f"{path!s:.200} can't be read: {error.strerror or error}.") from error
    return _Reader(str(path)).read(content)


class _Reader:
    """Reader of one file; works on YAML nodes, because they have line numbers."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, content: bytes) -> dict[str, SignalSettings]:
        try:
            root = compose_yaml(content)
        except YamlError as error:
            self._refuse(error.line, str(error))
        if root is None:
            return {}
        yaml: Any = import_module("yaml")
        self._constructor: Any = yaml.SafeLoader("")
        return {
            name: self._signal(name, key.start_mark.line + 1, value) for name, key, value in self._items(root, None)
        }

    def _signal(self, name: str, line: int, node: Any) -> SignalSettings:
        values: dict[str, Any] = {}
        for key, key_node, value_node in self._items(node, _KEYS):
            at = key_node.start_mark.line + 1
            if key == "shard":
                values[key] = self._shard(at, value_node)
                continue
            value = self._value(value_node)
            if key == "optimization_level":
                # By `type`, because true is an int for `isinstance`.
                if type(value) is not int or value not in _LEVELS:
                    self._refuse(at, f"optimization_level is {brief(value)}; allowed are 0 to 4")
            elif type(value) is not bool:
                self._refuse(at, f"{key} is {brief(value)}; allowed are true and false")
            elif key == "donate":
                if value:
                    self._refuse(at, _DONATE)
                continue
            values[key] = value
        return SignalSettings(name, **values, file=self._path, line=line)

    def _shard(self, line: int, node: Any) -> Shard:
        values = {key: self._value(value) for key, _, value in self._items(node, _SHARD_KEYS)}
        missing = [key for key in _SHARD_KEYS if key not in values]
        if missing:
            self._refuse(line, f"shard has no {missing[0]}: it takes an axis, and workers")
        axis, workers = values["axis"], values["workers"]
        if type(axis) is not int or not 0 <= axis < _MOST_DIMENSIONS:
            self._refuse(line, f"axis is {brief(axis)}; allowed is the number of a dimension, from 0 on")
        return Shard(axis, self._devices(line, workers), line)

    def _devices(self, line: int, workers: Any) -> tuple[int, ...]:
        # Limited before the list is made: a file may name any number.
        devices: list[Any] = list(range(min(workers, _MOST_DEVICES + 1))) if type(workers) is int else workers
        is_list = type(devices) is list and 0 < len(devices) <= _MOST_DEVICES
        if not is_list or any(type(each) is not int or each < 0 for each in devices):
            self._refuse(
                line,
                f"workers is {brief(workers)}; allowed are a number from 1 on, at most {_MOST_DEVICES:,}, "
                "or a list of devices",
            )
        if len(set(devices)) < len(devices):
            self._refuse(line, f"workers has a device twice: {brief(devices)}")
        return tuple(devices)

    def _items(self, node: Any, allowed: tuple[str, ...] | None) -> Iterator[tuple[str, Any, Any]]:
        """Yield (key, node of the key, node of the value) of a mapping; SignalsError for unknown or repeated keys."""
        line = node.start_mark.line + 1
        if node.id != "mapping":
            what = f"a mapping of {', '.join(allowed)}" if allowed else "a mapping from names of signals"
            self._refuse(line, f"{brief(self._value(node))} is given; expected is {what}")
        seen: set[str] = set()
        for key_node, value_node in node.value:
            at = key_node.start_mark.line + 1
            key = self._value(key_node)
            if not isinstance(key, str) or (allowed is not None and key not in allowed):
                names = allowed or ()
                hint = did_you_mean(str(key), names)
                self._refuse(at, f"there is no {brief(key)}; allowed are {', '.join(names) or 'names'}", hint)
            if key in seen:
                self._refuse(at, f"{brief(key)} is given twice")
            seen.add(key)
            yield key, key_node, value_node

    def _value(self, node: Any) -> Any:
        try:
            return self._constructor.construct_object(node, deep=True)
        except Exception as error:  # the safe loader refuses tags
            self._refuse(node.start_mark.line + 1, f"this can't be read: {getattr(error, 'problem', error)!s:.300}")

    def _refuse(self, line: int, problem: str, hint: str = "") -> NoReturn:
        where = f"{self._path}, line {line}" if line else self._path
        raise SignalsError(f"{where}: {problem}.{hint}")


_DONATE = (
    "donate can't be true: a caller may use an argument after the call, and Explorer can't prove that none does.\n"
    "  Hint: use jax.jit(f, donate_argnums=…) where you know that none does"
)
