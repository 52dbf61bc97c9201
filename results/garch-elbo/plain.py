"""GARCH by the paper's recipe with the parts of FlowJAX and optax alone.

An independent check of `softcvi reproduce metrics --tasks garch`: only the log density
and the reference draws are softcvi's.

    python results/garch-elbo/plain.py REFERENCES [--method softcvi] [--clip 1e9]
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import paramax
from flowjax.bijections import Invert, RationalQuadraticSpline
from flowjax.distributions import LogNormal, Normal, Transformed, Uniform
from jax.flatten_util import ravel_pytree
from softcvi_experiments.references import get_source
from softcvi_experiments.tasks import get_task
from softcvi_experiments.tasks._garch import garch_log_prob

NAMES = ("mu", "alpha0", "alpha1", "beta1")


def spline():
    """FlowJAX's spline on (0, 1)."""
    return RationalQuadraticSpline(knots=10, interval=(0, 1))


class Guide(eqx.Module):
    """The paper's guide, with ``beta1`` as a share of what ``alpha1`` leaves."""

    mu: Normal
    alpha0: LogNormal
    alpha1: Invert
    network: eqx.nn.MLP

    def __init__(self, key):
        arrays = eqx.filter(spline(), eqx.is_inexact_array)
        size = ravel_pytree(arrays)[0].size
        self.mu, self.alpha0 = Normal(), LogNormal()
        self.alpha1 = Invert(spline())
        self.network = eqx.nn.MLP(2, size, 20, 1, key=key)

    def parts(self, alpha0, alpha1):
        """Distributions of ``alpha1`` and of the share."""
        arrays, static = eqx.partition(spline(), eqx.is_inexact_array)
        start, unravel = ravel_pytree(arrays)
        raw = start + self.network(jnp.stack([alpha0, alpha1])) / 5
        bent = paramax.unwrap(eqx.combine(unravel(raw), static))
        share = Transformed(Uniform(0.0, 1.0), Invert(bent))
        return Transformed(Uniform(0.0, 1.0), self.alpha1), share

    def sample(self, key):
        """One draw."""
        keys = jr.split(key, 4)
        mu, alpha0 = self.mu.sample(keys[0]), self.alpha0.sample(keys[1])
        alpha1 = self.parts(alpha0, alpha0)[0].sample(keys[2])
        return mu, alpha0, alpha1, self.parts(alpha0, alpha1)[1].sample(keys[3])

    def log_prob(self, x):
        """Log density of a draw."""
        mu, alpha0, alpha1, share = x
        first, second = self.parts(alpha0, alpha1)
        log_prob = self.mu.log_prob(mu) + self.alpha0.log_prob(alpha0)
        return log_prob + first.log_prob(alpha1) + second.log_prob(share)


def main():
    """Fit all runs at once and print medians and quartiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("references")
    parser.add_argument("--method", choices=("elbo", "softcvi"), default="elbo")
    parser.add_argument("--particles", type=int, default=8)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--clip", type=float, default=10.0)
    args = parser.parse_args()
    source = get_source("posteriordb-sbibm", args.references)
    data = get_task("garch").data(jr.key(0), [0], source)
    draws = {name: jnp.asarray(data.draws[name][0]) for name in NAMES}
    y = jnp.asarray(data.observed["y"][0])

    def log_p(x):
        mu, alpha0, alpha1, share = x
        room = jnp.maximum(1 - alpha1, 1e-8)
        model = dict(zip(NAMES, (mu, alpha0, alpha1, room * share), strict=True))
        return garch_log_prob(model, {"y": y}) + jnp.log(room)

    def loss(params, static, key):
        guide = paramax.unwrap(eqx.combine(params, static))
        x = jax.vmap(guide.sample)(jr.split(key, args.particles))
        if args.method == "elbo":
            return jnp.mean(jax.vmap(guide.log_prob)(x) - jax.vmap(log_p)(x))
        x = jax.lax.stop_gradient(x)
        log_q = jax.vmap(guide.log_prob)(x)
        negative = 0.75 * jax.lax.stop_gradient(log_q)
        labels = jax.nn.softmax(jax.vmap(log_p)(x) - negative)
        return -jnp.sum(labels * jax.nn.log_softmax(log_q - negative))

    clip = optax.clip_by_global_norm(args.clip)
    optimizer = optax.apply_if_finite(optax.chain(clip, optax.adam(5e-4)), 100)

    def one(key):
        guide_key, run_key = jr.split(key)
        params, static = eqx.partition(Guide(guide_key), eqx.is_inexact_array)

        def step(i, carry):
            params, state = carry
            grads = jax.grad(loss)(params, static, jr.fold_in(run_key, i))
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state

        start = params, optimizer.init(params)
        params, _ = jax.lax.fori_loop(0, args.steps, step, start)
        guide = paramax.unwrap(eqx.combine(params, static))
        room = jnp.maximum(1 - draws["alpha1"], 1e-8)
        reference = (*(draws[name] for name in NAMES[:3]), draws["beta1"] / room)
        log_prob = jnp.mean(jax.vmap(guide.log_prob)(reference) - jnp.log(room))
        mu, alpha0, alpha1, share = jax.vmap(guide.sample)(jr.split(run_key, 5000))
        ours = (mu, alpha0, alpha1, (1 - alpha1) * share)
        squares = [
            ((value.mean() - draws[name].mean()) / draws[name].std()) ** 2
            for name, value in zip(NAMES, ours, strict=True)
        ]
        return log_prob, -jnp.sqrt(sum(squares))

    scores = jax.device_get(jax.jit(jax.vmap(one))(jr.split(jr.key(7), args.runs)))
    for name, values in zip(("log probability", "mean accuracy"), scores, strict=True):
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        print(f"{name}: {middle:.3f} ({low:.3f}, {high:.3f})")


if __name__ == "__main__":
    main()
