"""The page in a real browser: it renders, sorts, zooms, and fits a phone."""

import dataclasses

import numpy as np
import pytest

from softcvi.report import FitView, write_index, write_report


def views():
    rng = np.random.default_rng(1)
    good = dataclasses.replace(
        FitView.example(), settings={"steps": 1000}, versions={"jax": "0.0"}
    )
    columns = {"mu": rng.normal(1.5, 0.5, 500), "tau": rng.gamma(1.0, size=500)}
    poor = dataclasses.replace(
        good, name="ELBO", method="elbo", columns=columns, khat=0.91,
        level="not trusted", reasons=("k-hat 0.91 is above 0.7",),
    )  # fmt: skip
    unknown = dataclasses.replace(good, name="other", method="mine", khat=None)
    reference = {"mu": rng.normal(size=800), "tau": rng.gamma(2.0, size=800)}
    return [view.with_reference(reference) for view in (good, poor, unknown)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    one = dataclasses.replace(
        FitView.example(),
        columns={
            **FitView.example().columns,
            "a_rather_long_name_of_a_parameter[12,34]": np.linspace(0, 1, 500),
            "count": np.arange(500) % 4,
        },
    )
    return {
        "one": write_report(one, folder / "one.html"),
        "beside": write_report(views()[0], folder / "beside.html"),
        "many": write_report(views(), folder / "many.html"),
        "index": write_index(views(), folder / "index"),
    }


@pytest.fixture
def open_page(browser, files):
    opened = []

    def open_(name, width=1200, scheme="light"):
        page = browser.new_page(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        problems = []
        page.on("console", lambda m: problems.append(m.text))
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("request", lambda r: problems.append(r.url) if "http" in r.url else 0)
        page.goto(files[name].as_uri())
        opened.append((page, problems))
        return page

    yield open_
    for page, problems in opened:
        page.close()
        assert problems == []


def test_the_verdict_comes_first_in_words(open_page):
    page = open_page("one")
    assert page.locator("main > *").nth(1).inner_text().startswith("This answer can be")
    assert page.locator("h1").inner_text() == "example, SoftCVI"


def test_every_chart_renders_and_has_words_and_numbers(open_page):
    page = open_page("many")
    charts = page.locator("figure.chart")
    assert charts.count() >= 8
    for chart in charts.all():
        picture = chart.locator("svg[role=img]")
        assert picture.bounding_box()["height"] > 50
        for mark in picture.get_attribute("aria-labelledby").split():
            assert page.locator(f"[id='{mark}']").text_content().strip()
        chart.locator("details summary").click()
        assert chart.locator("details table").is_visible()
    assert "nan" not in page.locator("main").inner_html().lower()


def column(page, index):
    rows = page.locator("table.sortable").first.locator("tbody tr")
    return [row.locator("th, td").nth(index).inner_text() for row in rows.all()]


def test_tables_sort_by_mouse_and_keyboard(open_page):
    page = open_page("index")
    head = page.locator("th", has_text="k-hat")
    head.locator("button").click()
    assert column(page, 2) == ["0.21", "0.91", "–"]  # noqa: RUF001
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert column(page, 2) == ["0.91", "0.21", "–"]  # noqa: RUF001
    page.locator("th", has_text="fit").first.locator("button").click()
    assert column(page, 0)[0] == "example, ELBO"


def test_the_index_leads_to_pages(open_page):
    page = open_page("index")
    page.get_by_role("link", name="example, ELBO").click()
    assert page.locator(".headline").inner_text() == "Do not trust this answer yet."


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_switched(open_page, scheme):
    page = open_page("one", scheme=scheme)
    own = background(page)
    button = page.locator("#theme")
    button.click()
    assert button.inner_text() == "Theme: light"
    light = background(page)
    button.press("Enter")
    assert button.inner_text() == "Theme: dark"
    dark = background(page)
    assert light != dark
    assert own == (light if scheme == "light" else dark)
    page.reload()
    assert background(page) == dark


@pytest.mark.parametrize("name", ["one", "many", "index"])
def test_a_phone_need_not_scroll_sideways(open_page, name):
    page = open_page(name, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(("name", "what"), [("one", "Pairs"), ("index", "Fits")])
def test_what_a_phone_cuts_says_that_it_scrolls(open_page, name, what):
    page = open_page(name, width=390)
    area = page.locator(f".scroll[aria-label^='{what}']")
    hint = page.locator(f".scroll[aria-label^='{what}'] + .scroll-hint")
    assert hint.inner_text().startswith("Scroll sideways")
    faded = "e => getComputedStyle(e).maskImage !== 'none'"
    assert area.evaluate(faded)
    area.evaluate("e => e.scrollTo(e.scrollWidth, 0)")
    page.wait_for_function(
        "e => e.classList.contains('at-end')", arg=area.element_handle()
    )
    assert not area.evaluate(faded)
    page.set_viewport_size({"width": 1280, "height": 800})
    hint.wait_for(state="hidden")


def size_of_text(locator):
    return locator.locator("text").first.bounding_box()["height"]


@pytest.mark.parametrize("size", [(390, 800), (800, 360), (1280, 900)])
def test_enlarged_pairs_are_no_smaller_than_on_the_page(open_page, size):
    page = open_page("one")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    own = size_of_text(page.locator("figure.wide svg[role=img]"))
    page.get_by_label("Enlarge Pairs").click()
    stage = page.locator("#zoom-stage > svg")
    assert size_of_text(stage) >= own * 0.999
    start = [float(x) for x in stage.get_attribute("viewBox").split()]
    page.keyboard.press("-")
    page.keyboard.press("+")
    page.keyboard.press("+")
    area = stage.bounding_box()
    middle = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    before = stage.get_attribute("viewBox")
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1])
    page.mouse.up()
    after = stage.get_attribute("viewBox")
    assert float(after.split()[0]) > float(before.split()[0])
    page.get_by_role("button", name="Reset").click()
    again = [float(x) for x in stage.get_attribute("viewBox").split()]
    assert again == pytest.approx(start)


def colours(page, selector):
    found = page.locator(selector).evaluate_all(
        "marks => marks.map(mark => getComputedStyle(mark).stroke)"
    )
    return set(found)


def test_dots_have_colours_of_their_own_in_the_dark(open_page):
    dots = "figure.wide [id$=dots] path"
    light = colours(open_page("beside"), dots)
    dark = colours(open_page("beside", scheme="dark"), dots)
    assert len(light) == len(dark) == 2
    assert not light & dark


def test_legends_show_dots_for_dots_and_lines_for_lines(open_page):
    page = open_page("beside")
    pairs = page.locator("figure.wide .legend").first
    assert pairs.locator("circle").count() == 2
    assert pairs.locator("path").count() == 0
    assert page.locator(".grid .legend").first.locator("path").count() == 2


def test_charts_enlarge_and_zoom_by_keyboard(open_page):
    page = open_page("one")
    page.locator(".enlarge").first.focus()
    page.keyboard.press("Enter")
    stage = page.locator("#zoom-stage > svg")
    assert stage.is_visible()
    whole = stage.get_attribute("viewBox")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert stage.get_attribute("viewBox") != whole
    page.keyboard.press("0")
    assert stage.get_attribute("viewBox") == whole
    page.keyboard.press("Escape")
    assert not page.locator("#zoom").is_visible()
