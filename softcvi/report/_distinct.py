"""Fits that would look alike: a name and a colour of its own for each."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from softcvi.report._view import FitView
from softcvi.report.style import Style, own_style


def with_own_names(views: Sequence[FitView]) -> list[FitView]:
    """Call fits of one title by their folders, or by numbers if they have none."""
    alike = Counter(view.title for view in views)
    clashing = [view for view in views if alike[view.title] > 1]
    folders = _short_paths([view.source for view in clashing])
    # One label for all says nothing that the folder would not.
    keep_label = len({view.label for view in views}) > 1
    named = [
        _called(view, folders[view.source], keep_label)
        if alike[view.title] > 1
        else view
        for view in views
    ]
    return _numbered(named)


def with_own_styles(views: Sequence[FitView]) -> list[FitView]:
    """Give fits that share a chart and a method a colour each; the first keeps its."""
    alike = Counter((view.posterior, view.style) for view in views)
    seen: set[tuple[str, Style]] = set()
    given: Counter[str] = Counter()
    styled = []
    for view in views:
        shared = (view.posterior, view.style)
        if alike[shared] == 1:
            styled.append(view)
            continue
        if shared in seen:
            style = own_style(view.label, given[view.posterior])
            given[view.posterior] += 1
        else:
            style = dataclasses.replace(view.style, label=view.label)
        seen.add(shared)
        styled.append(dataclasses.replace(view, own_style=style))
    return styled


def _called(view: FitView, folder: str, keep_label: bool) -> FitView:
    if not folder:
        return view
    name = f"{folder} ({view.label})" if keep_label else folder
    return dataclasses.replace(view, name=name)


def _short_paths(paths: Sequence[str]) -> dict[str, str]:
    """The shortest ends of paths that tell them apart."""
    parts = {path: PurePath(path).parts for path in paths}
    longest = max((len(p) for p in parts.values()), default=0)
    for length in range(1, longest + 1):
        ends = {path: "/".join(p[-length:]) for path, p in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return dict.fromkeys(paths, "")


def _numbered(views: Sequence[FitView]) -> list[FitView]:
    alike = Counter(view.title for view in views)
    count: Counter[str] = Counter()
    numbered = []
    for view in views:
        if alike[view.title] > 1:
            count[view.title] += 1
            name = f"{view.label} {count[view.title]}"
            view = dataclasses.replace(view, name=name)
        numbered.append(view)
    return numbered
