"""What a reader is told when a reference file is missing or damaged."""


class ReferenceFileError(ValueError):
    """A reference file is missing or damaged.

    Args:
        file: The file.
        problem: What is wrong with it.
        expected: What should have been there.
        remedy: How to get a good one.

    Example:
        >>> print(ReferenceFileError("a.npz", "is missing", "SHA256 1f", "build it"))
        reference file a.npz is missing (expected SHA256 1f); to get it: build it
    """

    def __init__(self, file: object, problem: str, expected: str, remedy: str) -> None:
        super().__init__(
            f"reference file {file} {problem} (expected {expected}); "
            f"to get it: {remedy}"
        )
