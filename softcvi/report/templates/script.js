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

  // A chart enlarged: buttons, keys, wheel and drag move one view box.
  const dialog = document.getElementById("zoom");
  const stage = document.getElementById("zoom-stage");
  let box, full;
  const show = () => stage.firstElementChild.setAttribute("viewBox", box.join(" "));
  const zoom = (factor, fx = 0.5, fy = 0.5) => {
    const width = Math.min(full[2], Math.max(full[2] / 40, box[2] * factor));
    const height = width * full[3] / full[2];
    box = [box[0] + (box[2] - width) * fx, box[1] + (box[3] - height) * fy, width, height];
    move(0, 0);
  };
  const move = (dx, dy) => {
    const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
    box[0] = clamp(box[0] + dx * box[2], full[0], full[0] + full[2] - box[2]);
    box[1] = clamp(box[1] + dy * box[3], full[1], full[1] + full[3] - box[3]);
    show();
  };
  const reset = () => { box = [...full]; show(); };
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const copy = figure.querySelector(".drawing > svg").cloneNode(true);
      copy.removeAttribute("style");
      copy.removeAttribute("aria-labelledby");
      for (const marked of copy.querySelectorAll("[id]")) marked.removeAttribute("id");
      document.getElementById("zoom-title").textContent = figure.querySelector(".chart-title").textContent;
      stage.replaceChildren(copy);
      full = copy.getAttribute("viewBox").split(" ").map(Number);
      dialog.showModal();
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
  stage.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    const area = stage.getBoundingClientRect();
    move(-event.movementX / area.width, -event.movementY / area.height);
  });
})();
