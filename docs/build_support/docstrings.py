"""What griffe cannot see in our sources: signatures of modules, and our examples."""

import importlib
import inspect
import re

import griffe


class SoftcviDocstrings(griffe.Extension):
    """Give Equinox modules a signature, and examples their own section."""

    def on_object(self, *, obj: griffe.Object, **kwargs) -> None:
        """Turn ``Example:``, an admonition to griffe, into its examples section."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M
            )

    def on_class(self, *, cls: griffe.Class, **kwargs) -> None:
        """Add the ``__init__`` that Equinox makes from the fields of a module."""
        if "__init__" in cls.members or not cls.path.startswith("softcvi."):
            return
        runtime = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if not isinstance(runtime, type) or inspect.isabstract(runtime):
            return
        try:
            signature = inspect.signature(runtime.__init__)
        except ValueError:
            return
        if runtime.__init__ is object.__init__:
            return
        parameters = [_parameter(p, cls) for p in signature.parameters.values()]
        init = griffe.Function(
            "__init__",
            lineno=cls.lineno,
            endlineno=cls.lineno,
            parameters=griffe.Parameters(*parameters),
            parent=cls,
        )
        cls.set_member("__init__", init)


def _parameter(parameter: inspect.Parameter, cls: griffe.Class) -> griffe.Parameter:
    field = cls.members.get(parameter.name)
    has_default = parameter.default is not inspect.Parameter.empty
    return griffe.Parameter(
        parameter.name,
        annotation=getattr(field, "annotation", None),
        kind=getattr(griffe.ParameterKind, _KINDS[parameter.kind]),
        default=_shown(parameter.default) if has_default else None,
    )


def _shown(value: object) -> str:
    """A default as one writes it, ``TemperedProposal(0.75)`` for a module."""
    text = repr(value)
    return re.sub(r"\b(\w+)\(\w+=([^(),=]+)(?:, \w+=False)?\)", r"\1(\2)", text)


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional_only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional_or_keyword",
    inspect.Parameter.VAR_POSITIONAL: "var_positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword_only",
    inspect.Parameter.VAR_KEYWORD: "var_keyword",
}
