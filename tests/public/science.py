"""Solvers, samplers and simulations, each in the style of its library."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def optax_lbfgs() -> tuple[Any, ...]:
    """Minimize the Rosenbrock function by L-BFGS with a zoom line search."""
    import optax

    def rosenbrock(x):
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    solver = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(rosenbrock)

    def step(carry):
        params, state = carry
        value, grad = value_and_grad(params, state=state)
        updates, state = solver.update(grad, state, params, value=value, grad=grad, value_fn=rosenbrock)
        return optax.apply_updates(params, updates), state

    def going(carry):
        _, state = carry
        count = optax.tree.get(state, "count")
        return (count == 0) | ((count < 50) & (optax.tree.norm(optax.tree.get(state, "grad")) >= 1e-3))

    @jax.jit
    def minimize(params):
        return jax.lax.while_loop(going, step, (params, solver.init(params)))

    return minimize, jnp.zeros(64)


def blackjax_nuts() -> tuple[Any, ...]:
    """Sample a linear regression's posterior with NUTS."""
    import blackjax

    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(200, 3)), jnp.float32)
    y = x @ jnp.array([1.0, -2.0, 0.5]) + 0.1

    def logdensity(params):
        mean = x @ params["w"] + params["b"]
        scale = jnp.exp(params["log_scale"])
        prior = sum(jax.scipy.stats.norm.logpdf(leaf, 0.0, 2.0).sum() for leaf in jax.tree.leaves(params))
        return jax.scipy.stats.norm.logpdf(y, mean, scale).sum() + prior

    sampler = blackjax.nuts(logdensity, step_size=1e-2, inverse_mass_matrix=jnp.ones(5))

    @jax.jit
    def sample(key, state):
        def one(state, key):
            state, info = sampler.step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(one, state, jax.random.split(key, 20))

    start = {"w": jnp.zeros(3), "b": jnp.zeros(()), "log_scale": jnp.zeros(())}
    return sample, jax.random.key(0), sampler.init(start)


def jax_md_nvt() -> tuple[Any, ...]:
    """Simulate a Lennard-Jones fluid at constant temperature, by a Nosé-Hoover chain."""
    from jax_md import energy, simulate, space

    size, count = 9.0, 128
    displacement, shift = space.periodic(size)
    energy_of = energy.lennard_jones_pair(displacement)
    start, step = simulate.nvt_nose_hoover(energy_of, shift, dt=5e-3, kT=0.5)
    grid = np.stack(np.meshgrid(*[np.arange(6)] * 3), -1).reshape(-1, 3)[:count] * (size / 6)
    state = start(jax.random.PRNGKey(0), jnp.asarray(grid, jnp.float32))

    @jax.jit
    def run(state):
        def body(state, _):
            return step(state), (energy_of(state.position), simulate.nvt_nose_hoover_invariant(energy_of, state, 0.5))

        return jax.lax.scan(body, state, None, length=20)

    return run, state


def _eight_schools(j: int, sigma: Any, y: Any = None) -> None:
    """Model of the effects of coaching in eight schools, from NumPyro's documentation."""
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", j):
        shifted = dist.transforms.AffineTransform(mu, tau)
        theta = numpyro.sample("theta", dist.TransformedDistribution(dist.Normal(0, 1), shifted))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


_SCHOOLS = {
    "sigma": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], np.float32),
    "y": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], np.float32),
}


def numpyro_nuts() -> tuple[Any, ...]:
    """Sample the eight schools with NUTS."""
    from numpyro.infer import NUTS

    kernel = NUTS(_eight_schools)
    given = {name: jnp.asarray(value) for name, value in _SCHOOLS.items()}
    state = kernel.init(jax.random.PRNGKey(0), 100, None, model_args=(8,), model_kwargs=given)

    @jax.jit
    def sample(state):
        return jax.lax.fori_loop(0, 20, lambda _, state: kernel.sample(state, (8,), given), state)

    return sample, state


def numpyro_svi() -> tuple[Any, ...]:
    """Fit the eight schools with an automatic guide: one update of stochastic variational inference."""
    from numpyro.infer import SVI, Trace_ELBO, autoguide
    from numpyro.optim import Adam

    guide = autoguide.AutoMultivariateNormal(_eight_schools)
    svi = SVI(_eight_schools, guide, Adam(1e-2), Trace_ELBO(num_particles=4))
    given = {name: jnp.asarray(value) for name, value in _SCHOOLS.items()}
    state = svi.init(jax.random.PRNGKey(0), 8, **given)
    return jax.jit(lambda state: svi.update(state, 8, **given)), state


def brax_ant() -> tuple[Any, ...]:
    """Step 16 ants of Brax's positional physics."""
    from brax import envs

    env = envs.get_environment("ant", backend="positional")
    state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), 16))
    return jax.jit(jax.vmap(env.step)), state, jnp.zeros((16, env.action_size))


def lineax_solve() -> tuple[Any, ...]:
    """Differentiate linear solves: QR, GMRES and a tagged conjugate gradient."""
    import lineax as lx

    def loss(matrix, vector):
        dense = lx.MatrixLinearOperator(matrix)
        least = lx.linear_solve(dense, vector, solver=lx.QR()).value
        krylov = lx.linear_solve(dense, vector, solver=lx.GMRES(rtol=1e-4, atol=1e-4), throw=False).value
        definite = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
        gradient = lx.linear_solve(definite, vector, solver=lx.CG(rtol=1e-4, atol=1e-4), throw=False).value
        return jnp.sum(least**2) + jnp.sum(krylov) + jnp.sum(gradient)

    matrix = jnp.eye(32) * 4 + jnp.asarray(np.random.default_rng(0).normal(size=(32, 32)) * 0.1, jnp.float32)
    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1))), matrix, jnp.arange(32.0)


def diffrax_neural_ode() -> tuple[Any, ...]:
    """Differentiate an adaptive solve of a neural ordinary differential equation."""
    import diffrax
    import equinox as eqx

    field = eqx.nn.MLP(2, 2, 32, 2, activation=jax.nn.softplus, key=jax.random.key(0))
    times = jnp.linspace(0.0, 2.0, 20)

    @eqx.filter_jit
    def fit(field, start, data):
        def loss(field):
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, args: field(y)),
                diffrax.Tsit5(),
                *(times[0], times[-1], 0.1, start),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
                saveat=diffrax.SaveAt(ts=times),
            )
            return jnp.mean((solution.ys - data) ** 2)

        return eqx.filter_value_and_grad(loss)(field)

    return fit, field, jnp.array([1.0, 0.0]), jnp.stack([jnp.cos(times), jnp.sin(times)], 1)


def optimistix_least_squares() -> tuple[Any, ...]:
    """Fit a sum of exponentials by Levenberg-Marquardt, and differentiate the fit by its data."""
    import optimistix as optx

    t = jnp.linspace(0, 4, 64)

    def residuals(params, data):
        return params[0] * jnp.exp(-params[1] * t) + params[2] * jnp.exp(-params[3] * t) - data

    def loss(data):
        solver = optx.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
        start = jnp.array([1.0, 1.0, 0.5, 0.2])
        return optx.least_squares(residuals, solver, start, args=data, throw=False, max_steps=32).value.sum()

    return jax.jit(jax.value_and_grad(loss)), 2 * jnp.exp(-0.5 * t) + jnp.exp(-3 * t)


def jaxopt_lasso() -> tuple[Any, ...]:
    """Differentiate the solution of a lasso by its regularization, through implicit differentiation."""
    import jaxopt
    from jaxopt import objective, prox

    def validation(strength, x, y):
        solver = jaxopt.ProximalGradient(objective.least_squares, prox.prox_lasso, maxiter=50, implicit_diff=True)
        params = solver.run(jnp.zeros(16), hyperparams_prox=strength, data=(x[:48], y[:48])).params
        return jnp.mean((x[48:] @ params - y[48:]) ** 2)

    x = jnp.asarray(np.random.default_rng(0).normal(size=(64, 16)), jnp.float32)
    return jax.jit(jax.value_and_grad(validation)), jnp.float32(0.1), x, x @ jnp.arange(16.0)


def ott_sinkhorn() -> tuple[Any, ...]:
    """Differentiate a regularized transport cost between two clouds of points."""
    from ott.geometry import pointcloud
    from ott.solvers import linear

    def cost(x, y):
        return linear.solve(pointcloud.PointCloud(x, y, epsilon=0.1), max_iterations=100).reg_ot_cost

    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.normal(size=(n, 3)), jnp.float32) for n in (60, 70))
    return jax.jit(jax.value_and_grad(cost, argnums=(0, 1))), x, y


def tinygp_regression() -> tuple[Any, ...]:
    """Differentiate the likelihood of a Gaussian process with a sum of kernels."""
    from tinygp import GaussianProcess, kernels

    def loss(theta, x, y):
        kernel = jnp.exp(theta["log_amp"]) * kernels.ExpSquared(jnp.exp(theta["log_scale"]))
        kernel += jnp.exp(theta["log_amp2"]) * kernels.ExpSineSquared(scale=1.5, gamma=jnp.exp(theta["log_gamma"]))
        process = GaussianProcess(kernel, x, diag=jnp.exp(theta["log_diag"]), mean=theta["mean"])
        _, condition = process.condition(y, x[::4] + 0.1)
        return -process.log_probability(y) + condition.loc.sum()

    names = ("log_amp", "log_scale", "log_amp2", "log_gamma", "log_diag", "mean")
    x = jnp.linspace(0, 10, 100)
    return jax.jit(jax.value_and_grad(loss)), {name: jnp.float32(0.1) for name in names}, x, jnp.sin(x)


def dynamiqs_decay() -> tuple[Any, ...]:
    """Differentiate the population of a driven, decaying oscillator by its drive and decay."""
    import dynamiqs as dq

    def population(params):
        a = dq.destroy(8)
        hamiltonian = params[0] * (a + a.dag())
        times = jnp.linspace(0, 1.0, 11)
        jumps, observed = [jnp.sqrt(params[1]) * a], [a.dag() @ a]
        result = dq.mesolve(hamiltonian, jumps, dq.fock(8, 0), times, exp_ops=observed, progress_meter=False)
        return result.expects[0, -1].real

    return jax.jit(jax.value_and_grad(population)), jnp.array([1.0, 0.5])


def evosax_cma() -> tuple[Any, ...]:
    """Run ten generations of CMA-ES on a sphere."""
    from evosax.algorithms import CMA_ES

    strategy = CMA_ES(population_size=32, solution=jnp.zeros(8))
    params = strategy.default_params
    state = strategy.init(jax.random.key(0), jnp.ones(8), params)

    @jax.jit
    def run(key, state):
        def generation(state, key):
            asking, telling = jax.random.split(key)
            population, state = strategy.ask(asking, state, params)
            fitness = jnp.sum(population**2, -1)
            state, _ = strategy.tell(telling, population, fitness, state, params)
            return state, fitness.min()

        return jax.lax.scan(generation, state, jax.random.split(key, 10))

    return run, jax.random.key(1), state


def pix_augment() -> tuple[Any, ...]:
    """Augment a batch of images with PIX."""
    import dm_pix as pix

    def augment(key, image):
        keys = jax.random.split(key, 6)
        image = pix.random_flip_left_right(keys[0], image)
        image = pix.random_brightness(keys[1], image, 0.2)
        image = pix.random_contrast(keys[2], image, 0.8, 1.2)
        image = pix.random_saturation(keys[3], image, 0.8, 1.2)
        image = pix.random_hue(keys[4], image, 0.1)
        image = pix.random_gamma(keys[5], image, 0.8, 1.2)
        return pix.rotate(pix.gaussian_blur(image, 1.5, 5), 0.3)

    images = jnp.asarray(np.random.default_rng(0).uniform(size=(8, 32, 32, 3)), jnp.float32)
    return jax.jit(jax.vmap(augment)), jax.random.split(jax.random.key(0), 8), images
