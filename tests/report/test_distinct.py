"""Several fits, and more parameters than fit on a page."""

import dataclasses

import numpy as np

from softcvi.report import (
    METHOD_STYLES,
    FitView,
    read_fit,
    save_fit,
    style_of,
    write_index,
    write_report,
)
from softcvi.report._check_charts import check_charts
from softcvi.report._curves import training_charts
from softcvi.report._distinct import with_own_names, with_own_styles
from softcvi.report._draw_charts import marginal_charts, pairs_chart
from softcvi.report._table import comparison_table, estimates_table


def fits(tmp_path, *folders):
    for folder in folders:
        save_fit(FitView.example(), tmp_path / folder)
    return [read_fit(tmp_path / folder) for folder in folders]


def named(name, **changes):
    return dataclasses.replace(FitView.example(), name=name, **changes)


def test_fits_of_one_name_are_called_by_their_folders(tmp_path):
    views = fits(tmp_path, "a", "b")
    assert [v.title for v in with_own_names(views)] == ["example, a", "example, b"]
    index = write_index(views, tmp_path / "many")
    pages = sorted(page.name for page in index.parent.iterdir())
    assert pages == ["01-example-a.html", "02-example-b.html", "index.html"]
    assert "<h1>example, a</h1>" in (index.parent / pages[0]).read_text()
    both = write_report(views, tmp_path / "both.html").read_text()
    assert '<p class="which">example, b</p>' in both


def test_folders_of_one_name_are_told_apart_by_what_holds_them(tmp_path):
    views = fits(tmp_path, "first/out", "second/out")
    assert [v.label for v in with_own_names(views)] == ["first/out", "second/out"]
    twice = with_own_names(fits(tmp_path, "first/out") * 2)
    assert [v.label for v in twice] == ["out 1", "out 2"]


def test_names_that_tell_fits_apart_stay(tmp_path):
    views = [*fits(tmp_path, "a", "b"), named("ELBO", method="elbo")]
    labels = [v.label for v in with_own_names(views)]
    assert labels == ["a (SoftCVI)", "b (SoftCVI)", "ELBO"]
    elsewhere = dataclasses.replace(FitView.example(), posterior="other")
    kept = with_own_names([FitView.example(), elsewhere])
    assert [v.label for v in kept] == ["SoftCVI", "SoftCVI"]


def test_each_fit_has_a_colour_and_a_legend_of_its_own():
    views = with_own_styles([named(f"fit {i}") for i in range(5)])
    assert len({view.style.colour for view in views}) == 5
    assert len({view.style.dark for view in views}) == 5
    assert views[0].style.colour == style_of("softcvi").colour
    taken = {style.colour for style in METHOD_STYLES.values()}
    assert not taken & {view.style.colour for view in views[1:]}
    charts = [*marginal_charts(views), *check_charts(views), *training_charts(views)]
    for chart in charts:
        if chart.legend:
            shown = [style.label for style in chart.legend][:5]
            assert shown == [view.label for view in views]
    assert "fit 4" in check_charts(views)[0].drawing


def test_a_fit_alone_among_its_posteriors_keeps_the_colour_of_its_method():
    views = [
        FitView.example(),
        named("other", posterior="other"),
        named("", method="elbo"),
    ]
    assert [v.style for v in with_own_styles(views)] == [
        style_of(v.method) for v in views
    ]


def test_labels_from_folders_are_escaped_and_shortened():
    evil = "<b>" + "long" * 20
    views = with_own_styles([named(evil), named("other")])
    drawing = check_charts(views)[0].drawing
    assert "<b>" not in drawing
    assert "\N{HORIZONTAL ELLIPSIS}" in drawing


def hierarchical(**changes):
    rng = np.random.default_rng(0)
    names = [*(f"a[{i}]" for i in range(20)), "mu", "tau"]
    columns = {name: rng.normal(size=500) for name in names}
    return dataclasses.replace(FitView.example(), columns=columns, **changes)


def test_scalars_are_shown_before_elements_of_arrays():
    view = hierarchical()
    titles = [chart.title for chart in marginal_charts([view])]
    assert titles[:3] == ["mu", "tau", "a[0]"]
    assert pairs_chart(view).rows[0][:2] == ("mu", "tau")
    rows = [row[0].text for row in estimates_table([view]).rows]
    assert rows[:3] == ["mu", "tau", "a[0]"]
    assert sorted(rows) == sorted(view.columns)


def test_what_the_verdict_names_is_shown_first():
    view = hierarchical()
    shifted = {**view.columns, "a[17]": view.columns["a[17]"] + 3.0}
    view = view.with_reference(shifted)
    assert "a[17]" in view.reasons[0]
    titles = [chart.title for chart in marginal_charts([view])]
    assert titles[:3] == ["a[17]", "mu", "tau"]


def test_the_caption_of_estimates_says_what_is_shown():
    view = FitView.example()
    alone = estimates_table([view])
    assert "5% and 95%" in alone.caption
    assert "Draws are corrected by importance weights" in alone.caption
    assert alone.header[-2:] == ("5%", "95%")
    chain = dataclasses.replace(view, draws_are="from chains (NUTS)")
    assert "Draws are from chains (NUTS)" in estimates_table([chain]).caption
    both = estimates_table([view, named("other")])
    assert "95%" not in both.caption


def test_rows_of_a_comparison_differ(tmp_path):
    table = comparison_table(with_own_names(fits(tmp_path, "a", "b")))
    assert [row[0].text for row in table.rows] == ["example, a", "example, b"]
