"""What is measured: inputs from one seed, and what must come out, worked out in float64 by NumPy.

The guides of MLX, GT and Tripy, which Explorer follows, name them: gelu, the sum of an exponential and the training of
a linear layer are MLX's, the table of patterns and the MLP are GT's, GEGLU is Tripy's. Where they give no size, one is
chosen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

__all__ = ["QUICK", "WORKLOADS", "Arrays", "Workload", "error"]

Arrays = list[np.ndarray]
RATE, MLP_RATE, MOMENTUM = 0.1, 0.01, 0.8


@dataclass(frozen=True)
class Workload:
    """One function on inputs of one size.

    Args:
        name: As in a command: `gelu-large`.
        function: What the libraries' modules call it.
        title: For the table.
        size: Of its inputs, for the table.
        shapes: Of its inputs, in the order of its arguments; float32, uniform in 0…1.
        tolerance: How far a result may be from the reference, over the largest value in it.
        steps: How many calls in a row are checked: what trains must have kept its state.
    """

    name: str
    function: str
    title: str
    size: str
    shapes: tuple[tuple[int, ...], ...]
    tolerance: float = 1e-5
    steps: int = 1

    def inputs(self) -> Arrays:
        generator = np.random.default_rng(0)
        return [generator.random(shape, dtype=np.float32) for shape in self.shapes]

    def reference(self, inputs: Arrays) -> Arrays:
        """What the function returns at the last of its steps: its arrays in order, those of training with its state."""
        function = REFERENCES[self.function]
        if self.steps > 1:
            return function(inputs, self.steps)
        if self.function in ROW_BY_ROW:  # float64 of half a gigabyte at a time would be too much
            rows = [function([one[i : i + 1].astype(np.float64) for one in inputs])[0] for i in range(len(inputs[0]))]
            return [np.concatenate([row.astype(np.float32) for row in rows])]
        return function([one.astype(np.float64) for one in inputs])


def error(results: Arrays, expected: Arrays) -> float:
    """How far results are from what is expected, over the largest value in that; infinite for other shapes or NaN."""
    if [one.shape for one in results] != [one.shape for one in expected]:
        return math.inf
    apart = [np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30) for a, b in zip(results, expected, strict=True)]
    return float(np.nan_to_num(np.max(apart), nan=math.inf))


def _normalised(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return (centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)).max(-1)


def _chain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.exp(-np.abs(x * y - 0.5))
    return np.sqrt(z * z + x) * 2 + y


def _geglu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    value, gate = np.split(x @ weight + bias, 2, -1)
    return value * 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))


def _mlp(inputs: Arrays, steps: int) -> Arrays:
    """GT's loop: two layers, the mean squared error, plain gradient descent; backward by hand."""
    x, y, w1, b1, w2, b2 = (one.astype(np.float64) for one in inputs)
    loss = np.float64(0)
    for _ in range(steps):
        hidden = np.maximum(x @ w1 + b1, 0)
        apart = hidden @ w2 + b2 - y
        loss = (apart**2).mean()
        back = 2 * apart / apart.size
        back_hidden = (back @ w2.T) * (hidden > 0)
        w2, b2 = w2 - MLP_RATE * hidden.T @ back, b2 - MLP_RATE * back.sum(0)
        w1, b1 = w1 - MLP_RATE * x.T @ back_hidden, b1 - MLP_RATE * back_hidden.sum(0)
    return [np.asarray(loss), w1, b1, w2, b2]


def _linear(inputs: Arrays, steps: int) -> Arrays:
    """MLX's training graph: one layer, binary cross entropy of its logits, gradient descent with momentum."""
    x, y, w, b = (one.astype(np.float64) for one in inputs)
    y = y.round()
    loss, speed_w, speed_b = np.float64(0), np.zeros_like(w), np.zeros_like(b)
    for _ in range(steps):
        logits = (x @ w + b).squeeze(-1)
        loss = (np.logaddexp(0, logits) - logits * y).mean()
        back = ((1 / (1 + np.exp(-logits)) - y) / y.size)[:, None]
        speed_w, speed_b = MOMENTUM * speed_w + x.T @ back, MOMENTUM * speed_b + back.sum(0)
        w, b = w - RATE * speed_w, b - RATE * speed_b
    return [np.asarray(loss), w, b]


REFERENCES: dict[str, Callable[..., Arrays]] = {
    "copy": lambda a: [a[0].copy()],
    "gelu": lambda a: [a[0] * (1 + erf(a[0] / math.sqrt(2))) / 2],
    "matmul_relu": lambda a: [np.maximum(a[0] @ a[1], 0)],
    "matmul_relu_sum": lambda a: [np.maximum(a[0] @ a[1], 0).sum()],
    "chain": lambda a: [_chain(*a)],
    "reduction": lambda a: [_normalised(a[0])],
    "simple": lambda a: [np.exp(-a[0]) + a[1]],
    "add": lambda a: [a[0] + a[1]],
    "geglu": lambda a: [_geglu(*a)],
    "mlp": _mlp,
    "linear": _linear,
}
ROW_BY_ROW = {"copy", "gelu"}

_LARGE, _SMALLER, _SMALL = (32, 1000, 4096), (32, 1000, 128), (32, 128)
_MLP = ((128, 784), (128, 10), (784, 256), (256,), (256, 10), (10,))


def _sized(name: str, function: str, title: str, *shapes: tuple[int, ...], **more: float | int | str) -> Workload:
    size = str(more.pop("size", "×".join(map(str, shapes[0])) or "scalars"))
    return Workload(name, function, title, size, shapes, **more)  # pyright: ignore[reportArgumentType]


def _all(large: tuple[int, ...], side: int) -> list[Workload]:
    square = (side, side)
    return [
        _sized("copy-large", "copy", "copy to new memory", large),
        _sized("gelu-large", "gelu", "gelu", large),
        _sized("gelu-smaller", "gelu", "gelu", _SMALLER),
        _sized("gelu-small", "gelu", "gelu", _SMALL),
        _sized("matmul-relu", "matmul_relu", "matmul + relu", square, square),
        _sized("matmul-relu-sum", "matmul_relu_sum", "matmul → relu → sum", (100, 100), (100, 100)),
        _sized("chain", "chain", "element-wise chain", square, square),
        _sized("reduction", "reduction", "reduction sequence", square, tolerance=1e-4),
        _sized("simple", "simple", "simple ops: exp(−x) + y", (), ()),
        _sized("geglu", "geglu", "GEGLU", (1, 2), (2, 2), (2,)),
        _sized("mlp", "mlp", "MLP, a training step", *_MLP, size="784-256-10, 128 rows", steps=3, tolerance=1e-4),
        _sized(
            "linear", "linear", "linear, a training step", (4, 10), (4,), (10, 1), (1,), size="10-1, 4 rows", steps=3
        ),
        _sized("add", "add", "call overhead: x + y", (2, 2), (2, 2)),
    ]


WORKLOADS = {one.name: one for one in _all(_LARGE, 1024)}
QUICK = {one.name: one for one in _all((32, 1000, 512), 512)}
