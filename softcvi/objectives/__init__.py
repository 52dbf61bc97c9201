"""Objectives: SoftCVI and what it is compared with, and the parts they are made of."""

from softcvi.objectives._base import AbstractObjective
from softcvi.objectives._blocks import (
    AbstractBlocks,
    AdaptiveBlocks,
    NoBlocks,
    PlateBlocks,
    RandomBlocks,
    SiteBlocks,
)
from softcvi.objectives._contrast import (
    AbstractNegative,
    CustomNegative,
    FlatNegative,
    StepInfo,
    TemperedPosterior,
    TemperedProposal,
    contrast,
)
from softcvi.objectives._divergences import (
    AbstractDivergence,
    Alpha,
    ChiSquared,
    FDivergence,
    ForwardKL,
    JensenShannon,
    ReverseKL,
)
from softcvi.objectives._elbo import ELBO
from softcvi.objectives._local_labels import LocalLabels
from softcvi.objectives._model_term import WithModelTerm, with_model_parameters
from softcvi.objectives._particles import (
    AbstractProposal,
    DefensiveProposal,
    FixedProposal,
    GuideProposal,
    Particles,
)
from softcvi.objectives._snis_fkl import SNISForwardKL
from softcvi.objectives._softcvi import SoftCVI

__all__ = [
    "ELBO",
    "AbstractBlocks",
    "AbstractDivergence",
    "AbstractNegative",
    "AbstractObjective",
    "AbstractProposal",
    "AdaptiveBlocks",
    "Alpha",
    "ChiSquared",
    "CustomNegative",
    "DefensiveProposal",
    "FDivergence",
    "FixedProposal",
    "FlatNegative",
    "ForwardKL",
    "GuideProposal",
    "JensenShannon",
    "LocalLabels",
    "NoBlocks",
    "Particles",
    "PlateBlocks",
    "RandomBlocks",
    "ReverseKL",
    "SNISForwardKL",
    "SiteBlocks",
    "SoftCVI",
    "StepInfo",
    "TemperedPosterior",
    "TemperedProposal",
    "WithModelTerm",
    "contrast",
    "with_model_parameters",
]
