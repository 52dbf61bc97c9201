"""Ask and tell: for simulators that are too expensive to call inside a loop."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.adapters._replay import (
    Evaluations,
    excess,
    improve,
    log_mixture,
    softening,
    tempered_moments,
    weighted,
)
from softcvi.adapters._session_file import Pending, StoredSession
from softcvi.diagnostics import Evidence, Verdict, WeightEvidence, judge
from softcvi.guides import AbstractGuide
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import AbstractSpace, ModelSpace

_ESS_SHARE = 0.3


class AskTellSession:
    """A fit driven from outside: ask for points, tell their log densities.

    Every evaluation is kept and used again in many optimisation steps: points are
    weighed by the mixture of all guides that proposed them, so none is wasted. The
    length of a fit is a budget of evaluations. Points can be told one by one, in any
    order and after a restart. While the guide is far from the posterior it is placed at
    tempered moments of the evaluations, so that it may begin wide.

    Args:
        key: Random key.
        guide: The guide to fit, at its starting place.
        budget: How many evaluations there may be.
        space: Where the fit happens; points are asked in model coordinates.
        alpha: Power of the proposal in the negative distribution.
        steps: Optimisation steps after each tell.
        batch: Stored points per optimisation step.
        learning_rate: Peak rate of each round; by default four times what suits the
            guide in a whitened space.
        path: File that keeps evaluations and guides after each tell. If it exists,
            the session goes on from there.

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np, softcvi
        >>> from softcvi.adapters import AskTellSession
        >>> guide = softcvi.guides.mean_field({"a": jnp.zeros(2)})
        >>> session = AskTellSession(jax.random.key(0), guide, budget=160)
        >>> while session.remaining:
        ...     points = session.ask(16)
        ...     session.tell(-0.5 * np.sum((points["a"] - 3.0) ** 2, axis=1))
        >>> draws = session.posterior.sample(jax.random.key(1), 1000)
        >>> bool(abs(draws["a"].mean() - 3.0) < 0.2)
        True
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        *,
        budget: int,
        space: AbstractSpace | None = None,
        alpha: float = 0.75,
        steps: int = 300,
        batch: int = 128,
        learning_rate: float | None = None,
        path: str | os.PathLike | None = None,
    ):
        if budget < 2:
            raise ValueError(f"budget: at least 2 evaluations; got {budget}.")
        self.guide = guide
        self.budget = int(budget)
        self.space = ModelSpace() if space is None else space
        self.alpha = alpha
        self.steps = steps
        self.batch = batch
        suited = 4 * guide.suggested_rate
        self.learning_rate = suited if learning_rate is None else learning_rate
        self.path = None if path is None else Path(path)
        self._key = key
        self._pending: Pending = {}
        self._next_id = 0
        self._proposals: list[AbstractGuide] = []
        self._counts: list[int] = []
        like = guide.structure.like
        self._points = jax.tree_util.tree_map(
            lambda leaf: np.zeros((self.budget, *leaf.shape), leaf.dtype), like
        )
        self._log_p = np.full(self.budget, -np.inf)
        if self.path is not None and self.path.exists():
            self._restore(self.path)

    @property
    def evaluations(self) -> int:
        """Evaluations told so far."""
        return sum(self._counts)

    @property
    def remaining(self) -> int:
        """Evaluations left in the budget."""
        return self.budget - self.evaluations - len(self._pending)

    @property
    def posterior(self) -> Posterior:
        """The guide as it is now."""
        return Posterior(self.guide, space=self.space)

    @property
    def pending(self) -> tuple[int, ...]:
        """Ids of the points that were asked for and not told yet."""
        return tuple(self._pending)

    @property
    def verdict(self) -> Verdict:
        """Can the weighted evaluations be trusted: never below an ESS of 400."""
        weights = WeightEvidence.of(self.importance())
        # The weighted evaluations are the answer: early ones were far away.
        weights = dataclasses.replace(weights, correction=0.0, are_the_answer=True)
        return judge(Evidence(has_gradient=False, weights=weights))

    def ask(self, n: int) -> PyTree:
        """Points to evaluate, in model coordinates with a leading axis.

        Args:
            n: How many; the last batch may be smaller if the budget ends.
        """
        return self.ask_with_ids(n)[1]

    def points_of(self, ids: Sequence[int]) -> PyTree:
        """Pending points in model coordinates, for example after a restart.

        Args:
            ids: Some of ``pending``.
        """
        particles = [self._pending[i][1] for i in ids]
        joined = jax.tree_util.tree_map(lambda *parts: np.stack(parts), *particles)
        return jax.device_get(jax.vmap(self.space.to_model)(joined))

    def ask_with_ids(self, n: int) -> tuple[tuple[int, ...], PyTree]:
        """Points to evaluate, with a number each by which they can be told one by one.

        Args:
            n: How many; the last batch may be smaller if the budget ends.
        """
        if n < 1:
            raise ValueError(f"n: at least one point; got {n}.")
        n = min(n, self.remaining)
        if n < 1:
            raise ValueError(
                f"n: the budget of {self.budget} evaluations is used up; tell what is "
                "pending, or start a session with a larger budget on the same path."
            )
        number = self.evaluations + len(self._pending)
        keys = jax.random.split(jax.random.fold_in(self._key, 2 * number), n)
        points = jax.device_get(jax.vmap(self.guide.sample)(keys))
        if not self._proposals or self._proposals[-1] is not self.guide:
            self._proposals.append(self.guide)
            self._counts.append(0)
        ids = tuple(range(self._next_id, self._next_id + n))
        self._next_id += n
        for row, i in enumerate(ids):
            one = jax.tree_util.tree_map(lambda leaf, row=row: leaf[row], points)
            self._pending[i] = (len(self._proposals) - 1, one)
        self._save()
        return ids, self.points_of(ids)

    def tell(self, log_density: Any, ids: Sequence[int] | None = None) -> None:
        """Hand in log densities of points asked for, and improve the guide.

        Args:
            log_density: One number per point; unnormalised, in model coordinates. NaN
                and minus infinity mean no density there; plus infinity is refused.
            ids: Which points, some of ``pending``; all of them by default, in the
                order asked.
        """
        ids = self.pending if ids is None else tuple(int(i) for i in ids)
        values = np.atleast_1d(np.asarray(log_density, np.float64))
        if values.shape != (len(ids),):
            raise ValueError(
                f"log_density: {len(ids)} points are pending, but the array has shape "
                f"{values.shape}. Give one number per point, or say which with ids."
            )
        if np.isposinf(values).any():
            at = [i for i, value in zip(ids, values, strict=True) if value == np.inf]
            raise ValueError(
                f"log_density: plus infinity at the points with ids {at}. No "
                "posterior is infinitely dense; give NaN where the model fails."
            )
        if not set(ids) <= set(self._pending) or len(set(ids)) < len(ids):
            raise ValueError(
                f"ids: {list(ids)} are not pending, or told twice; pending are "
                f"{list(self.pending)}."
            )
        rows = slice(self.evaluations, self.evaluations + values.size)
        told = [self._pending.pop(i) for i in ids]
        joined = jax.tree_util.tree_map(
            lambda *parts: np.stack(parts), *[particle for _, particle in told]
        )
        jax.tree_util.tree_map(
            lambda buffer, part: buffer.__setitem__(rows, part), self._points, joined
        )
        log_det = jax.vmap(lambda u: self.space.to_model_and_log_det(u)[1])(joined)
        values = np.where(np.isfinite(values), values, -np.inf)
        self._log_p[rows] = values + np.asarray(log_det, np.float64)
        for proposal, _ in told:
            self._counts[proposal] += 1
        self._save()
        self._improve()
        self._save()

    def importance(self) -> ImportanceSample:
        """All evaluations as weighted draws, at no further cost."""
        n = self.evaluations
        points = jax.tree_util.tree_map(lambda leaf: leaf[:n], self._points)
        names = self.guide.structure.names
        log_q = self._log_proposal()[:n]
        return weighted(points, self._log_p[:n], log_q, self.space, names)

    def _log_proposal(self) -> np.ndarray:
        return log_mixture(self._proposals, self._counts, self._points)

    def _improve(self) -> None:
        n = self.evaluations
        log_proposal = self._log_proposal()
        logits = self._log_p[:n] - self.alpha * log_proposal[:n]
        temperature = softening(logits, _ESS_SHARE)
        evaluations = Evaluations.of(self._points, self._log_p, log_proposal, n)
        settings = {
            "alpha": jnp.asarray(self.alpha, float),
            "temperature": jnp.asarray(temperature, float),
        }
        nearer = self._nearer(self._log_p[:n] - log_proposal[:n])
        # Few points have most of the weight then, which gradients would follow; but
        # the moments of few points are no better than a guide that is near already.
        if nearer is not None:
            now = excess(self.guide, evaluations, **settings)
            if excess(nearer, evaluations, **settings) < now:
                self.guide = nearer
                return
        self.guide = improve(
            jax.random.fold_in(self._key, 2 * n + 1),
            self.guide,
            evaluations,
            steps=jnp.asarray(self.steps),
            batch=self.batch,
            rate=jnp.asarray(self.learning_rate, float),
            **settings,
        )

    def _nearer(self, log_weights: np.ndarray) -> AbstractGuide | None:
        """The guide at tempered moments of the evaluations, while it is far away."""
        if not self.guide.can_be_matched:
            return None
        vectors = jax.vmap(self.guide.structure.ravel)(self._points)
        vectors = np.asarray(vectors, np.float64)[: len(log_weights)]
        moments = tempered_moments(log_weights, vectors)
        if moments is None:
            return None
        mean, covariance = moments
        return self.guide.matched(jnp.asarray(mean), jnp.asarray(covariance))

    def _save(self) -> None:
        if self.path is None:
            return
        n = self.evaluations
        StoredSession(
            guide=self.guide,
            space=self.space,
            proposals=self._proposals,
            counts=self._counts,
            points=jax.tree_util.tree_map(lambda leaf: leaf[:n], self._points),
            log_p=self._log_p[:n],
            pending=self._pending,
            next_id=self._next_id,
        ).save(self.path)

    def _restore(self, path: Path) -> None:
        session = StoredSession.load(path)
        difference = self.guide.structure.difference(session.guide.structure)
        if difference:
            raise ValueError(f"path: {path} holds another guide: {difference}.")
        n = len(session.log_p)
        if n > self.budget:
            raise ValueError(
                f"budget: {path} already holds {n} evaluations; got {self.budget}."
            )
        self.guide = session.guide
        self._proposals, self._counts = session.proposals, session.counts
        self._pending, self._next_id = session.pending, session.next_id
        self._points = jax.tree_util.tree_map(
            lambda buffer, part: np.concatenate([np.asarray(part), buffer[n:]]),
            self._points,
            session.points,
        )
        self._log_p[:n] = session.log_p
