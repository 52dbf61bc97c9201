"""Guides: variational families over particles."""

from softcvi.guides._base import AbstractGuide, VectorGuide
from softcvi.guides._coupling_flow import CouplingFlow, coupling_flow
from softcvi.guides._discrete import Bernoulli, Categorical
from softcvi.guides._full_rank_t import FullRankStudentT, full_rank_t
from softcvi.guides._gaussian import (
    DiagonalNormal,
    FullRankNormal,
    full_rank,
    mean_field,
)
from softcvi.guides._hierarchical import HierarchicalGuide, hierarchical
from softcvi.guides._low_rank import LowRankNormal, low_rank, low_rank_at
from softcvi.guides._mixed import MixedGuide, mixed
from softcvi.guides._mixture import MixtureGuide, mixture
from softcvi.guides._product import MappedGuide, ProductGuide
from softcvi.guides._scalar_mixture import ScalarMixtures, scalar_mixtures
from softcvi.guides._sites import Conditional, NetworkDistribution, SiteGuide
from softcvi.guides._spline_flow import SplineFlow, spline_flow
from softcvi.guides._spline_uniform import SplineUniform
from softcvi.guides._student import Folded, StudentT, student_t
from softcvi.guides._vector import AbstractVectorDistribution
from softcvi.guides._whitened import Whitened, whitened

__all__ = [
    "AbstractGuide",
    "AbstractVectorDistribution",
    "Bernoulli",
    "Categorical",
    "Conditional",
    "CouplingFlow",
    "DiagonalNormal",
    "Folded",
    "FullRankNormal",
    "FullRankStudentT",
    "HierarchicalGuide",
    "LowRankNormal",
    "MappedGuide",
    "MixedGuide",
    "MixtureGuide",
    "NetworkDistribution",
    "ProductGuide",
    "ScalarMixtures",
    "SiteGuide",
    "SplineFlow",
    "SplineUniform",
    "StudentT",
    "VectorGuide",
    "Whitened",
    "coupling_flow",
    "full_rank",
    "full_rank_t",
    "hierarchical",
    "low_rank",
    "low_rank_at",
    "mean_field",
    "mixed",
    "mixture",
    "scalar_mixtures",
    "spline_flow",
    "student_t",
    "whitened",
]
