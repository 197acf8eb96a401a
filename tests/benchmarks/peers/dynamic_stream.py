"""The stream of sizes of `bench_padding`, served by torch.compile(dynamic=True) or mlx.compile(shapeless=True).

    python -m tests.benchmarks.peers.dynamic_stream torch|mlx [calls]

Prints the seconds of every call, compiling included, as JSON. It needs neither JAX nor Explorer.
"""

import json
import sys
from time import perf_counter

import numpy as np

LARGEST, WIDTH = 64, 64


def stream(count):
    random = np.random.default_rng(1)
    for batch, seq in random.integers(1, LARGEST + 1, (count, 2)):
        yield random.normal(size=(batch, seq, WIDTH)).astype(np.float32)


def weights():
    random = np.random.default_rng(0)
    shapes = [(WIDTH, 3 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    return [[(random.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in shapes] for _ in range(2)]


def in_torch():
    import torch

    torch.manual_seed(0)
    layers = [[torch.from_numpy(w) for w in layer] for layer in weights()]

    def normalized(x):
        x = x - x.mean(-1, keepdim=True)
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    def classify(x):
        for projection, up, down in layers:
            query, key, value = (normalized(x) @ projection).chunk(3, dim=-1)
            scores = query @ key.transpose(1, 2) / np.sqrt(WIDTH)
            x = x + torch.softmax(scores, dim=-1) @ value
            x = x + torch.nn.functional.gelu(normalized(x) @ up, approximate="tanh") @ down
        return x.mean(dim=1)

    compiled = torch.compile(classify, dynamic=True)

    def run(array):
        with torch.inference_mode():
            return compiled(torch.from_numpy(array)).numpy()

    return run


def in_mlx():
    import mlx.core as mx
    import mlx.nn

    # Of a slice or split MLX infers no shape: three products instead of the parts of one.
    layers = [
        [*(mx.array(w) for w in np.split(projection, 3, axis=1)), mx.array(up), mx.array(down)]
        for projection, up, down in weights()
    ]

    def normalized(x):
        x = x - x.mean(-1, keepdims=True)
        return x * mx.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def classify(x):
        for to_query, to_key, to_value, up, down in layers:
            normal = normalized(x)
            query, key, value = normal @ to_query, normal @ to_key, normal @ to_value
            x = x + mx.softmax(query @ key.swapaxes(1, 2) / np.sqrt(WIDTH).item(), axis=-1) @ value
            x = x + mlx.nn.gelu_approx(normalized(x) @ up) @ down
        return x.mean(axis=1)

    compiled = mx.compile(classify, shapeless=True)
    return lambda array: np.array(compiled(mx.array(array)))


def main(name="torch", count="200"):
    run = {"torch": in_torch, "mlx": in_mlx}[name]()
    seconds, sums = [], []
    for array in stream(int(count)):
        start = perf_counter()
        result = run(array)
        seconds.append(perf_counter() - start)
        sums.append(float(np.abs(result).mean()))
    print(json.dumps({"seconds": seconds, "sums": sums}))


if __name__ == "__main__":
    main(*sys.argv[1:])
