"""The site in a folder: its links, its search, and what it asks of a reader's eyes."""

import html.parser
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
# Checks of axe that matter to readers; "minor" ones are left to the theme.
_IMPACTS = ("critical", "serious", "moderate")

pytestmark = pytest.mark.slow


class _Page(html.parser.HTMLParser):
    """Names, links and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names, self.links, self.loaded = {"__top", ""}, [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") != "canonical":
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as it is built, with code printed and not run."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    env = {**os.environ, "SOFTCVI_DOCS_RUN": "no", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: _Page(path) for path in sorted(site.rglob("*.html"))}


def test_links_lead_somewhere(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or path.name == "404.html":
                continue
            there = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            known = pages.get(there)
            if not there.is_file() or (
                known and unquote(parts.fragment) not in known.names
            ):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_the_network(pages):
    loaded = {link for page in pages.values() for link in page.loaded}
    assert [link for link in loaded if urlsplit(link).scheme in ("http", "https")] == []


def test_search_works_in_a_folder_without_a_network(site, browser):
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    page.fill("[data-md-component=search-query]", "threshold")
    page.wait_for_selector(".md-search-result__link")
    links = page.eval_on_selector_all(
        ".md-search-result__link", "links => links.map(link => link.href)"
    )
    context.close()
    assert any("verdict.html" in link for link in links)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site, browser, scheme):
    playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
    axe = playwright.Axe()
    if scheme == "dark":
        names = ["index.html", "verdict.html", "getting-started.html"]
    else:
        # Reference pages are all made alike: one stands for them. The page for what is
        # not found has links to a server's root.
        every = (str(path.relative_to(site)) for path in site.rglob("*.html"))
        names = [name for name in every if not name.startswith(("api", "404"))]
        names.append("api/fitting.html")
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 1400, "height": 900}
    )
    page = context.new_page()
    found = []
    for name in names:
        page.goto((site / name).as_uri())
        page.wait_for_selector(".md-search__form")
        for violation in axe.run(page).response["violations"]:
            if violation["impact"] in _IMPACTS:
                where = violation["nodes"][0]["html"][:120]
                found.append((name, violation["id"], where))
    context.close()
    assert found == []
