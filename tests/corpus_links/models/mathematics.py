"""Linear algebra, transforms, special functions: operations that become library calls, loops or many instructions."""

import jax
import jax.numpy as jnp
from jax.scipy import special


def decompositions():
    def f(a, b):
        q, r = jnp.linalg.qr(a)
        lower = jnp.linalg.cholesky(a @ a.T + jnp.eye(4))
        u, s, v = jnp.linalg.svd(a, full_matrices=False)
        sign, log = jnp.linalg.slogdet(a)
        x = jnp.linalg.solve(a, b) + jax.scipy.linalg.cho_solve((lower, True), b)
        values, vectors = jnp.linalg.eigh(a + a.T)
        return q @ r + (u * s) @ v, x, sign * log, vectors * values, jax.scipy.linalg.expm(a / 9), jnp.linalg.inv(a)

    return f, jnp.eye(4) * 3 + 0.2, jnp.ones((4, 2))


def decompositions_gradient():
    def f(a, b):
        lower = jnp.linalg.cholesky(a @ a.T + 2 * jnp.eye(4))
        half = jax.scipy.linalg.solve_triangular(lower, b, lower=True)
        q, r = jnp.linalg.qr(a)
        values = jnp.linalg.eigvalsh(a + a.T)
        return jnp.sum(half**2) + jnp.linalg.slogdet(a)[1] + jnp.sum(q * r) + jnp.sum(jnp.log1p(values**2))

    return jax.grad(f), jnp.eye(4) * 3 + 0.2, jnp.ones((4, 2))


def gaussian_process():
    def kernel(x, y, scale):
        return jnp.exp(-0.5 * jnp.sum((x[:, None] - y) ** 2, -1) / scale**2)

    def loss(params, x, y):
        k = jnp.exp(params["gain"]) * kernel(x, x, jnp.exp(params["scale"])) + jnp.exp(params["noise"]) * jnp.eye(
            len(x)
        )
        lower = jnp.linalg.cholesky(k)
        alpha = jax.scipy.linalg.cho_solve((lower, True), y)
        return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diagonal(lower)))

    return (
        jax.value_and_grad(loss),
        {name: jnp.array(0.1) for name in ("gain", "scale", "noise")},
        jnp.ones((6, 2)),
        jnp.ones(6),
    )


def spectra():
    def f(signal, centres):
        window = 0.5 - 0.5 * jnp.cos(jnp.linspace(0, 2 * jnp.pi, signal.size))
        spectrum = jnp.fft.rfft(signal * window)
        bank = jnp.exp(-((jnp.fft.rfftfreq(signal.size) - centres[:, None]) ** 2) / 1e-3)
        bands = jnp.fft.irfft(spectrum * bank)
        image = jnp.fft.ifft2(jnp.fft.fftshift(jnp.fft.fft2(signal.reshape(8, 8)))).real
        return jnp.log(jnp.mean(bands**2, -1) + 1e-6), image, jnp.abs(bands).max(-1)

    return f, jnp.ones(64), jnp.linspace(0.1, 0.4, 3)


def spectra_gradient():
    def f(signal, filters):
        framed = jnp.stack([signal[i : i + 16] for i in range(0, 33, 8)])
        spectrum = jnp.fft.rfft(framed * jnp.hanning(16))
        power = spectrum.real**2 + spectrum.imag**2
        return jnp.sum(jnp.log(power @ filters + 1e-3))

    return jax.grad(f, (0, 1)), jnp.ones(48), jnp.ones((9, 4))


def special_functions():
    def f(x, n):
        a = special.erf(x) + special.erfinv(x / 9) + special.gammaln(x + 3) + special.digamma(x + 2)
        b = (
            jax.nn.sigmoid(x)
            + jax.nn.gelu(x)
            + jax.nn.elu(x)
            + jax.nn.mish(x)
            + jax.nn.glu(jnp.stack([x, x], -1))[..., 0]
        )
        c = (
            special.i0e(x)
            + jnp.sinc(x)
            + x**7
            + x**-2
            + jnp.cbrt(x)
            + jnp.arctan2(x, 2.0)
            + jnp.log1p(x)
            + jnp.expm1(x)
        )
        d = (
            jnp.logaddexp(x, 1.0)
            + jnp.hypot(x, 3.0)
            + jnp.exp2(x)
            + special.logit(x / 7)
            + special.betainc(2.0, 3.0, x / 8)
        )
        whole = (n // 3) ** 3 + n % 5 + jax.lax.population_count(n) + (n << 2) + jax.lax.clz(n)
        return a + b + c + d, whole

    return f, jnp.linspace(0.1, 0.9, 12), jnp.arange(12)


def sequences():
    def f(x, n):
        order = jnp.argsort(x, axis=-1)
        ranks = jnp.take_along_axis(jnp.cumsum(x, -1), order, -1) + jnp.cumprod(x, -1) + jax.lax.cummax(x, axis=1)
        pairs = jax.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, x + 1), axis=1)
        top, where = jax.lax.top_k(x, 3)
        counts = jnp.bincount(n, length=6)
        sums = jax.ops.segment_sum(x, n[:4], 3)
        return (
            ranks,
            pairs,
            top,
            where,
            counts,
            sums,
            jnp.median(x, -1),
            jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2),
        )

    return f, jnp.ones((4, 8)), jnp.arange(7)


def random_numbers():
    def f(key):
        keys = jax.random.split(key, 8)
        return (
            jax.random.normal(keys[0], (5,)),
            jax.random.uniform(keys[1], (4,), minval=-2.0),
            jax.random.bernoulli(keys[2], 0.3, (6,)),
            jax.random.categorical(keys[3], jnp.ones((3, 4))),
            jax.random.truncated_normal(keys[4], -1.0, 1.0, (7,)),
            jax.random.gumbel(keys[5], (9,)),
            jax.random.permutation(keys[6], 10),
            jax.random.randint(jax.random.fold_in(keys[7], 3), (11,), 0, 77),
        )

    return f, jax.random.key(0)


def unrolled_windows():
    """Equal operations on one line, many times, told apart by nothing but what they are of."""

    def f(x):
        shifted = [jnp.pad(x, ((i, 3 - i), (0, 0)))[1:-2] for i in range(4)]
        slices = [x[i : i + 4] * (i + 1) for i in range(5)]
        rolled = sum(jnp.roll(x, i, 0) for i in range(1, 4))
        return sum(shifted), sum(slices), rolled, jnp.concatenate([x[::2], x[1::2]])

    return f, jnp.ones((8, 5))


def image_pyramid():
    def f(x):
        levels = []
        for _ in range(3):
            smooth = jax.lax.reduce_window(x, 0.0, jax.lax.add, (3, 3), (1, 1), "SAME") / 9
            levels.append(x - smooth)
            x = smooth[::2, ::2]
        edges = jnp.stack([jnp.abs(jnp.diff(level, axis=0)).sum() for level in levels])
        return x, edges, jax.scipy.signal.convolve2d(levels[0], jnp.ones((3, 2))), jnp.flip(levels[1]).T

    return f, jnp.ones((16, 16))
