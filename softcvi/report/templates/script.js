(() => {
  "use strict";

  // Theme: follow the system until told otherwise; remember what was told.
  const root = document.documentElement;
  const themeButton = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  const store = {
    get() { try { return localStorage.getItem("softcvi-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("softcvi-theme", value); } catch { /* private mode */ } },
  };
  const setTheme = (theme) => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    themeButton.textContent = `Theme: ${theme}`;
  };
  setTheme(themes.includes(store.get()) ? store.get() : "system");
  themeButton.addEventListener("click", () => {
    const now = root.dataset.theme || "system";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    setTheme(next);
    store.set(next);
  });

  // Tables sort by what their cells say they are worth; what is missing goes last.
  const compare = (a, b) => {
    if (a === "" || b === "") return 0;
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.key;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        if ((key(a) === "") !== (key(b) === "")) return key(a) === "" ? 1 : -1;
        return (up ? 1 : -1) * compare(key(a), key(b));
      });
      table.tBodies[0].append(...rows);
    }));
  }

  // What is cut at the edge says so, until its end is reached.
  const mark = (area) => {
    const hidden = area.scrollWidth - area.clientWidth;
    area.classList.toggle("overflows", hidden > 1);
    area.classList.toggle("at-end", area.scrollLeft >= hidden - 1);
  };
  const watcher = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  for (const area of document.querySelectorAll(".scroll")) {
    watcher.observe(area);
    area.addEventListener("scroll", () => mark(area), { passive: true });
  }

  // A chart enlarged: buttons, keys, wheel and drag move one view box, which has the
  // shape of the stage.
  const dialog = document.getElementById("zoom");
  const stage = document.getElementById("zoom-stage");
  let box, full, least, first;
  const show = () => stage.firstElementChild.setAttribute("viewBox", box.join(" "));
  const setScale = (scale, fx, fy) => {
    const width = stage.clientWidth / scale, height = stage.clientHeight / scale;
    box = [box[0] + (box[2] - width) * fx, box[1] + (box[3] - height) * fy, width, height];
    move(0, 0);
  };
  const zoom = (factor, fx = 0.5, fy = 0.5) => {
    const scale = stage.clientWidth / box[2] / factor;
    setScale(Math.min(40 * least, Math.max(least, scale)), fx, fy);
  };
  // A side with room to spare is centred; the other cannot leave the drawing.
  const within = (start, size, low, length) => size >= length
    ? low - (size - length) / 2 : Math.min(low + length - size, Math.max(low, start));
  const move = (dx, dy) => {
    box[0] = within(box[0] + dx * box[2], box[2], full[0], full[2]);
    box[1] = within(box[1] + dy * box[3], box[3], full[1], full[3]);
    show();
  };
  const reset = () => { box = [...full]; setScale(first, 0, 0); };
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const original = figure.querySelector(".drawing > svg");
      const copy = original.cloneNode(true);
      copy.removeAttribute("style");
      copy.removeAttribute("aria-labelledby");
      for (const marked of copy.querySelectorAll("[id]")) marked.removeAttribute("id");
      document.getElementById("zoom-title").textContent = figure.querySelector(".chart-title").textContent;
      stage.replaceChildren(copy);
      full = copy.getAttribute("viewBox").split(" ").map(Number);
      dialog.showModal();
      least = Math.min(stage.clientWidth / full[2], stage.clientHeight / full[3]);
      // A drawing wider than a phone is shown in part rather than smaller than before.
      const before = original.getBoundingClientRect().width / full[2];
      const cover = Math.max(stage.clientWidth / full[2], stage.clientHeight / full[3]);
      first = least >= before ? least : Math.max(before, Math.min(cover, 2 * before));
      reset();
      stage.focus();
    });
  }
  const actions = { in: () => zoom(0.7), out: () => zoom(1 / 0.7), reset, close: () => dialog.close() };
  for (const button of dialog.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", actions[button.dataset.zoom]);
  }
  const keys = {
    "+": actions.in, "=": actions.in, "-": actions.out, "0": reset,
    ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0),
    ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
  };
  stage.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const area = stage.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15,
      (event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height);
  }, { passive: false });
  let held = null;
  stage.addEventListener("pointerdown", (event) => {
    held = [event.clientX, event.clientY];
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!event.buttons || !held) return;
    const area = stage.getBoundingClientRect();
    move((held[0] - event.clientX) / area.width, (held[1] - event.clientY) / area.height);
    held = [event.clientX, event.clientY];
  });
})();
