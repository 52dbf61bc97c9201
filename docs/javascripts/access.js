/* What the theme leaves out for keyboards and screen readers. */
function mend() {
  // Wide tables scroll sideways: they can be reached by the keyboard.
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .formula")) {
    box.tabIndex = 0;
  }
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  // Sections of the navigation and buttons beside code are no landmarks of their own.
  const parts = ".md-nav .md-nav[aria-labelledby], .md-code__nav";
  for (const part of document.querySelectorAll(parts)) {
    part.setAttribute("role", "presentation");
    part.removeAttribute("aria-labelledby");
    part.removeAttribute("aria-expanded");
  }
}
// The theme adds some of these after the page has loaded.
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
