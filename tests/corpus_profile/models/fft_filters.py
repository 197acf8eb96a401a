"""A bank of filters: one transform forth, one back for every filter."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def full(signal, centres):
    window = 0.5 - 0.5 * jnp.cos(jnp.linspace(0, 2 * jnp.pi, signal.size))  # without: jnp.linspace(0, 1, signal.size)
    spectrum = jnp.fft.rfft(signal * window)  # without: (signal * window)[: signal.size // 2 + 1].astype(jnp.complex64)
    frequencies = jnp.fft.rfftfreq(signal.size)
    bank = jnp.exp(-((frequencies - centres[:, None]) ** 2) / 1e-3)  # without: frequencies - centres[:, None]
    bands = jnp.fft.irfft(spectrum * bank)  # hot; without: jnp.tile((spectrum * bank).real[:, :-1], 2)
    energy = jnp.mean(bands**2, axis=-1)  # without: bands[:, 0]
    return jnp.log(energy + 1e-6), jnp.abs(bands).max(-1)


def arguments():
    signal = np.random.default_rng(0).normal(size=2**16)
    return jnp.asarray(signal, jnp.float32), jnp.linspace(0.02, 0.45, 48)
