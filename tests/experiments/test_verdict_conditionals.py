"""Answers that are normal given few parameters, beside the Hessian of their density.

Where most parameters are normal given the others, the height of a point of the lattice
is that of the density at the conditional mean, less half the log determinant of minus
the Hessian there: a second way to the same numbers, exact in many dimensions, too. No
method of the library is run, so that the families stay held out.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from softcvi_experiments.verdict import get_family
from softcvi_experiments.verdict._blind import FAMILIES as _BLIND
from softcvi_experiments.verdict._lattice import nested, split
from softcvi_experiments.verdict._new_models import FAMILIES as _NEW_MODELS
from softcvi_experiments.verdict._new_shapes import FAMILIES as _NEW_SHAPES

_NORMAL_GIVEN_FEW = [
    "cooling",
    "vapour",
    "many-patients",
    "tides",
    "two-pitches",
    "ringing",
    "bent-line",
    "slow-switch",
    "moving-target",
    "gaps",
    "towns",
    "crossover",
    "bulls",
    "age-and-year",
    "fields-of-trials",
    "known-groups",
    "polls",
    "quake",
    "loudness",
    "lamps",
    "buried",
    "creep",
    "field",
    "spillover",
    "stamp",
    "eclipse",
    "steep-or-falling",
    "polariser",
    "furnace",
    "dark-energy",
    "unknown-sample",
    "rating-curve",
    "falling",
    "simulator-and-truth",
    "late-effect",
    "fished-down",
    "lens-on-bench",
    "blind-deconvolution",
    "two-neurons",
    "hidden-bump",
    "yield-curve",
    "common-trend",
    "eccentric",
    "beacon",
    "sharpened",
    "born-when",
    "truncated-powers",
    "unknown-power",
    "gene-on-a-map",
    "drifting-slope",
    "hidden-cycle",
    "slopes-and-levels",
    "network-of-trials",
    "whitened-curve",
    "relatives",
]


# The third posterior of a family has the most parameters.
@pytest.mark.slow
@pytest.mark.parametrize("name", _NORMAL_GIVEN_FEW)
def test_conditionals_are_those_of_the_density(name, monkeypatch):
    told = []

    def listening(*args):
        told.append(args)
        return nested(*args)

    module = sys.modules[(_BLIND | _NEW_MODELS | _NEW_SHAPES)[name].__module__]
    monkeypatch.setattr(module, "nested", listening)
    posterior = get_family(name).posterior(2)
    log_prob, outer, inner, data, conditional = told[0][:5]
    shapes = {site: np.shape(corners[0]) for site, corners in outer.items()}
    shapes.update(inner)
    centre, spread = (
        np.concatenate([np.ravel(part[site]) for site in outer])
        for part in (posterior.centre, posterior.spread)
    )
    rng = np.random.default_rng(0)
    points = centre + spread * rng.uniform(-1.5, 1.5, (4, centre.size))
    height, mean, variance = conditional(points)
    with jax.enable_x64(True):
        data = {site: jnp.asarray(value, float) for site, value in data.items()}

        def density(x, point):
            return log_prob(split(jnp.concatenate([point, x]), shapes), data)

        value, slope, bend = (
            np.array([f(x, u) for x, u in zip(mean, points, strict=True)])
            for f in map(jax.jit, (density, jax.grad(density), jax.hessian(density)))
        )
    covariance = np.linalg.inv(-bend)
    found = np.diagonal(covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(variance, found, rtol=1e-5)
    np.testing.assert_allclose(slope * np.sqrt(found), 0, atol=1e-5)
    rest = value - 0.5 * np.linalg.slogdet(-bend)[1] - height
    np.testing.assert_allclose(rest - rest[0], 0, atol=1e-5)
