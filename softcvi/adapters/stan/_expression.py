"""Values of the simple expressions that stand for locations and scales in programs."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

_SYMBOLS = ((" .* ", " % "), (" ./ ", " // "), ("^", "**"))
_FUNCTIONS: dict[str, Callable] = {
    "exp": np.exp,
    "head": lambda x, n: x[: int(n)],
    "inv": np.reciprocal,
    "inv_sqrt": lambda x: 1 / np.sqrt(x),
    "log": np.log,
    "pow": np.power,
    "rep_vector": lambda x, n: np.full(int(n), x),
    "sqrt": np.sqrt,
    "square": np.square,
    "sum": lambda x: np.sum(x, axis=0),
    "tail": lambda x, n: x[len(x) - int(n) :],
    "to_vector": np.asarray,
}


class UnknownExpressionError(ValueError):
    """The expression holds what cannot be evaluated here."""


class Expression:
    """An expression of a Stan program.

    Args:
        text: The expression, as stanc prints it.

    Raises:
        UnknownExpressionError: If it is not made of names, numbers, the usual
            operators, a few functions and indices.

    Example:
        >>> value = Expression("a + b[2] * x").value
        >>> value({"a": 1.0, "b": [0.0, 3.0], "x": [1.0, 2.0]}).tolist()
        [4.0, 7.0]
    """

    def __init__(self, text: str):
        for ours, python in _SYMBOLS:
            text = text.replace(ours, python)
        try:
            self.tree = ast.parse(" ".join(text.split()), mode="eval").body
        except SyntaxError as error:
            raise UnknownExpressionError(text) from error
        nodes = list(ast.walk(self.tree))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self.names = frozenset(
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and id(node) not in called
        )

    def value(self, names: Any) -> np.ndarray:
        """The value.

        Args:
            names: Values of the variables.

        Raises:
            UnknownExpressionError: If a variable or a function is not known.
        """
        return self._value(_Evaluator(names))

    def over_points(self, names: Any) -> np.ndarray:
        """The values at many points at once.

        Args:
            names: Values of the variables, with points along the last axis; numbers
                that are the same at all points may be without it.

        Raises:
            UnknownExpressionError: As above, and for products of matrices.

        Example:
            >>> points = {"x": np.array([[1.0, 2.0], [3.0, 4.0]]), "t": 2}
            >>> Expression("2 * x[t - 1] + x[t]").over_points(points).tolist()
            [5.0, 8.0]
        """
        return self._value(_OverPoints(names))

    def _value(self, evaluator: "_Evaluator") -> np.ndarray:
        try:
            return np.asarray(evaluator.visit(self.tree), np.float64)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UnknownExpressionError(str(error)) from error


class _Evaluator(ast.NodeVisitor):
    """Python's operators in Stan's meaning: ``*`` of two arrays is a matrix product."""

    def __init__(self, names: Any):
        self.names = names

    def generic_visit(self, node: ast.AST) -> Any:
        raise UnknownExpressionError(type(node).__name__)

    def visit_Name(self, node: ast.Name) -> Any:
        return np.asarray(self.names[node.id])

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return _BINARY[type(node.op)](self.visit(node.left), self.visit(node.right))

    def visit_Call(self, node: ast.Call) -> Any:
        function = _FUNCTIONS[getattr(node.func, "id", "")]
        return function(*map(self.visit, node.args))

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(map(self.visit, node.elts))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        index = self.visit(node.slice)
        index = index if isinstance(index, tuple) else (index,)
        return self.visit(node.value)[tuple(map(self.from_one, index))]

    def visit_Slice(self, node: ast.Slice) -> Any:
        ends = (node.lower, node.upper)
        return slice(*(None if end is None else int(self.visit(end)) for end in ends))

    def from_one(self, index: Any) -> Any:
        """Python's index, which counts from zero, from Stan's."""
        if not isinstance(index, slice):
            return np.asarray(index, int) - 1
        start = 0 if index.start is None else index.start - 1
        # Stan has no index from the end, and what is empty there is so here.
        if min(start, start if index.stop is None else index.stop) < 0:
            raise IndexError(index)
        return slice(start, index.stop)


class _OverPoints(_Evaluator):
    """The same where the last axis of all arrays stands for points."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.visit(node.left), self.visit(node.right)
        if not isinstance(node.op, ast.Mult):
            return _BINARY[type(node.op)](left, right)
        if np.ndim(left) > 1 and np.ndim(right) > 1:
            raise UnknownExpressionError("a product of matrices")
        return np.multiply(left, right)

    def from_one(self, index: Any) -> Any:
        if not isinstance(index, slice) and np.ndim(index):
            index = np.asarray(index)[..., 0]  # an index is the same at all points
        return super().from_one(index)


def _product(left: Any, right: Any) -> Any:
    is_matrix = np.ndim(left) and np.ndim(right)
    return left @ right if is_matrix else np.multiply(left, right)


_UNARY: dict[type, Callable] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_BINARY: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _product,
    ast.Mod: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.true_divide,
    ast.Pow: np.power,
}
