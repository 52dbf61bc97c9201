"""One colour and one label a method, in every figure."""

METHOD_COLOURS = {
    "softcvi-0.75": "#0072b2",
    "softcvi-1": "#56b4e9",
    "softcvi-0": "#cc79a7",
    "snis-fkl": "#e69f00",
    "snis-fkl-low-variance": "#f0e442",
    "elbo": "#d55e00",
    "elbo-stl": "#882255",
}
METHOD_LABELS = {
    "softcvi-0.75": "SoftCVI, alpha 0.75",
    "softcvi-1": "SoftCVI, alpha 1",
    "softcvi-0": "SoftCVI, alpha 0",
    "snis-fkl": "SNIS-fKL",
    "snis-fkl-low-variance": "SNIS-fKL, low variance",
    "elbo": "ELBO",
    "elbo-stl": "ELBO, STL",
}
REFERENCE_COLOUR = "#009e73"
