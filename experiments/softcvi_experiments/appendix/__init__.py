"""The experiments of the paper's appendix, and what it leaves open."""

from softcvi_experiments.appendix._additive_metrics import (
    AdditiveMetrics,
    additive_metrics,
)
from softcvi_experiments.appendix._additive_model import (
    additive_data,
    additive_guide,
    additive_target,
)
from softcvi_experiments.appendix._additive_report import (
    additive_figure,
    additive_table,
)
from softcvi_experiments.appendix._early_stopping import PlainAdam, fit_keeping_best
from softcvi_experiments.appendix._images import IMAGE_SETS, Images, load_images
from softcvi_experiments.appendix._negatives import reproduce_negatives
from softcvi_experiments.appendix._neural_additive import (
    AdditiveSettings,
    fit_additive,
    reproduce_neural_additive,
)
from softcvi_experiments.appendix._snr import (
    SNR_DIMENSIONS,
    SNR_METHODS,
    reproduce_snr,
    snr_curve,
    snr_values,
)
from softcvi_experiments.appendix._snr_figure import snr_figure
from softcvi_experiments.appendix._studies import reproduce_study
from softcvi_experiments.appendix._toy_normal import (
    LogScaleNormal,
    toy_normal_guide,
    toy_normal_target,
)
from softcvi_experiments.appendix._vae import (
    VAE_METHODS,
    VaeSettings,
    fit_vae,
    reproduce_vae,
)
from softcvi_experiments.appendix._vae_figure import vae_figure
from softcvi_experiments.appendix._vae_model import (
    Decoder,
    Encoder,
    bounds,
    decoded_grid,
)
from softcvi_experiments.appendix._variants import (
    STUDIES,
    LabelEssNegative,
    Variant,
    get_study,
)
from softcvi_experiments.appendix._variants_report import (
    variants_figure,
    variants_table,
)

__all__ = [
    "IMAGE_SETS",
    "SNR_DIMENSIONS",
    "SNR_METHODS",
    "STUDIES",
    "VAE_METHODS",
    "AdditiveMetrics",
    "AdditiveSettings",
    "Decoder",
    "Encoder",
    "Images",
    "LabelEssNegative",
    "LogScaleNormal",
    "PlainAdam",
    "VaeSettings",
    "Variant",
    "additive_data",
    "additive_figure",
    "additive_guide",
    "additive_metrics",
    "additive_table",
    "additive_target",
    "bounds",
    "decoded_grid",
    "fit_additive",
    "fit_keeping_best",
    "fit_vae",
    "get_study",
    "load_images",
    "reproduce_negatives",
    "reproduce_neural_additive",
    "reproduce_snr",
    "reproduce_study",
    "reproduce_vae",
    "snr_curve",
    "snr_figure",
    "snr_values",
    "toy_normal_guide",
    "toy_normal_target",
    "vae_figure",
    "variants_figure",
    "variants_table",
]
