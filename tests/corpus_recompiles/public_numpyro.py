"""Retold from NumPyro's and Diffrax's trackers and documentation."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows

_NUM, _DIFF = "num.pyro.ai", "docs.kidger.site/diffrax"


def _model(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(w * x, 1.0), obs=y)


def _data(size):
    x = np.linspace(0, 1, size, dtype=np.float32)
    return jnp.asarray(x), jnp.asarray(2 * x)


def _svi():
    return SVI(_model, AutoNormal(_model), numpyro.optim.Adam(0.01), Trace_ELBO())


@cause("shape", "args[0].shape[0]", "args[1].shape[0]", source="pyro-ppl/numpyro#869")
def an_svi_update_on_another_batch(cured):
    svi = _svi()
    few, many = _data(8 if cured else 6), _data(8)
    state = svi.init(jax.random.key(0), *few)
    update = jax.jit(svi.update)
    update(state, *few)
    yield
    update(state, *many)


@cause("function", source="pyro-ppl/numpyro#745")
def an_svi_update_jitted_in_each_step(cured):
    svi, data = _svi(), _data(8)
    state = svi.init(jax.random.key(0), *data)
    once = jax.jit(svi.update)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(svi.update))(state, *data)


@cause("function", source="pyro-ppl/numpyro#955")
def a_predictive_called_through_a_new_jit(cured):
    predictive = Predictive(_model, num_samples=2)
    x, _ = _data(4)
    once = jax.jit(lambda key, x: predictive(key, x))
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(lambda key, x: predictive(key, x)))(jax.random.key(1), x)


@cause("shape", "x.shape[0]", source="pyro-ppl/numpyro#955")
def a_predictive_for_a_larger_data_set(cured):
    predictive = Predictive(_model, num_samples=2)
    predict = jax.jit(lambda key, x: predictive(key, x))
    few, many = _data(8 if cured else 5)[0], _data(8)[0]
    key = jax.random.key(1)
    predict(key, few)
    yield
    predict(key, many)


@cause("structure", "y", source=f"{_NUM}/tutorials/bayesian_regression")
def a_log_density_with_and_without_observations(cured):
    @jax.jit
    def density(w, x, y):
        return numpyro.infer.util.log_density(_model, (x, y), {}, {"w": w} if y is not None else {"w": w, "y": x})[0]

    x, y = _data(8)
    w = np.float32(1)
    density(w, x, y)
    yield
    density(w, x, y if cured else None)


@cause("dtype", "y", source="dfm/tinygp#239")
def fluxes_in_another_precision(cured):
    @jax.jit
    def density(w, x, y):
        return numpyro.infer.util.log_density(_model, (x, y), {}, {"w": w})[0]

    x, y = _data(8)
    w = np.float32(1)
    density(w, x, y)
    other = y if cured else y.astype(jnp.float16)
    yield
    density(w, x, other)


@cause("static", "num_samples", source="pyro-ppl/numpyro#1503")
def another_number_of_samples(cured):
    draw = jax.jit(lambda key, num_samples: dist.Normal(0.0, 1.0).sample(key, (num_samples,)), static_argnums=1)
    key = jax.random.key(0)
    draw(key, 4)
    yield
    draw(key, 4 if cured else 5)


def _sampler(**options):
    return MCMC(NUTS(_model), num_warmup=4, num_samples=4, progress_bar=False, **options)


@cause("structure", "d.validate_args", "d._validate_args", "d", source="pyro-ppl/numpyro#1676")
def a_distribution_of_another_class(cured):
    log = jax.jit(lambda d, x: d.log_prob(x).sum())
    x = rows()
    log(dist.Normal(np.float32(0), np.float32(1)), x)
    other = (dist.Normal if cured else dist.Cauchy)(np.float32(0), np.float32(1))
    yield
    log(other, x)


# Diffrax


def _decay(t, y, args):
    return -y


_TERM, _SOLVER = diffrax.ODETerm(_decay), diffrax.Euler()


def _solve(**options):
    arguments = {"t0": 0.0, "t1": 1.0, "dt0": 0.5, "max_steps": 8, "terms": _TERM, "solver": _SOLVER} | options
    return diffrax.diffeqsolve(**arguments)


@cause("shape", "y0.shape[0]", source=f"{_DIFF}/usage/getting-started")
def a_system_of_another_size(cured):
    few, many = jnp.ones(4 if cured else 2), jnp.ones(4)
    _solve(y0=few)
    yield
    _solve(y0=many)


@cause("static", "max_steps", source=f"{_DIFF}/api/diffeqsolve")
def another_bound_on_the_steps(cured):
    y0 = jnp.ones(2)
    _solve(y0=y0)
    yield
    _solve(y0=y0, max_steps=8 if cured else 16)


@cause("static", "terms.vector_field", source=f"{_DIFF}/usage/how-to-choose-a-solver")
def a_vector_field_written_as_a_lambda(cured):
    y0 = jnp.ones(2)
    kept = diffrax.ODETerm(lambda t, y, args: -y)
    _solve(y0=y0, terms=kept if cured else diffrax.ODETerm(lambda t, y, args: -y))
    other = kept if cured else diffrax.ODETerm(lambda t, y, args: -y)
    yield
    _solve(y0=y0, terms=other)


@cause("shape", "saveat.subs.ts.shape[0]", source="patrick-kidger/diffrax#606")
def more_times_to_save_at(cured):
    y0 = jnp.ones(2)
    few = diffrax.SaveAt(ts=jnp.linspace(0, 1, 5 if cured else 3))
    many = diffrax.SaveAt(ts=jnp.linspace(0, 1, 5))
    _solve(y0=y0, saveat=few)
    yield
    _solve(y0=y0, saveat=many)


@cause("structure", "args", source=f"{_DIFF}/api/diffeqsolve")
def arguments_for_the_vector_field_from_now_on(cured):
    y0, args = jnp.ones(2), jnp.ones(2)
    _solve(y0=y0, args=args if cured else None)
    yield
    _solve(y0=y0, args=args)


@cause("static", "stepsize_controller.rtol", source="patrick-kidger/diffrax#466")
def another_tolerance(cured):
    y0 = jnp.ones(2)
    first = diffrax.PIDController(rtol=1e-3, atol=1e-3)
    second = diffrax.PIDController(rtol=1e-3 if cured else 1e-2, atol=1e-3)
    _solve(y0=y0, solver=diffrax.Tsit5(), stepsize_controller=first, max_steps=64)
    yield
    _solve(y0=y0, solver=diffrax.Tsit5(), stepsize_controller=second, max_steps=64)
