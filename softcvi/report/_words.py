"""The verdict in words, and what to do about it."""

from softcvi.report._view import FitView

_HEADLINES = {
    "trusted": "This answer can be trusted.",
    "caution": "Use this answer with caution.",
    "not trusted": "Do not trust this answer yet.",
}
_MEANINGS = {
    "trusted": "Nothing that was checked speaks against it.",
    "caution": "It is probably close, but something speaks against it.",
    "not trusted": "What was checked says that it differs from the posterior.",
}


def headline(level: str) -> str:
    """The verdict as a sentence."""
    return _HEADLINES.get(level, level)


def meaning(level: str) -> str:
    """What the verdict rests on."""
    return _MEANINGS.get(level, "")


def advice(view: FitView) -> list[str]:
    """What to try next."""
    tips = []
    if view.status == "interrupted":
        tips.append("It was interrupted: run it again with --resume to go on.")
    if view.num_bad[0]:
        tips.append(
            f"{view.num_bad[0]} log densities were not numbers: check the model where "
            "parameters are extreme."
        )
    if view.level == "trusted":
        return tips
    tips += [tip for tip in view.advice if tip not in tips]
    return tips or ["Look at the charts of the checks below."]
