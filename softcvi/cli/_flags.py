"""The library's arguments by the names they have at the command line."""

_FLAGS = {
    "alpha": "--alpha",
    "guide": "--guide",
    "khat": "--until-khat",
    "num_particles": "--particles",
    "objective": "--objective",
    "starts": "--starts",
    "steps": "--steps",
}
# Remedies in Python, in the words of the command line.
_WORDS = {
    "softcvi.SoftCVI()": "--objective softcvi",
    "; pass allow_outside=True if that is meant": "",
}


def in_flags(text: str) -> str:
    """A message of the library that begins with an argument, for the command line."""
    argument, colon, rest = text.partition(":")
    if colon and argument == "checkpoint":
        # The library's remedy is a path or a deletion; here a flag does both.
        what = rest.rpartition(". ")[0]
        return (
            f"--resume:{what}. Give --overwrite in its place to start again, or "
            "another --out."
        )
    if not colon or argument not in _FLAGS:
        return text
    for python, shell in _WORDS.items():
        rest = rest.replace(python, shell)
    return f"{_FLAGS[argument]}:{rest}"


def names_a_flag(text: str) -> bool:
    """Whether a message of the library is about what a flag said."""
    return in_flags(text) != text
