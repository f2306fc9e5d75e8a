// The list of layers: name, type, shape and calls in columns, a search, and arrow keys.

import { element } from "./elements.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {[name: string, type: string, shape: string, calls: number]} Row of which calls are -1 before a run */

const COLUMNS = ["name", "type", "shape", "calls"];

/**
 * @param {View} view
 * @param {(name: string) => void} choose
 */
export function layerList(view, choose) {
  const search = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  view.label(search, "example", {}, "placeholder");
  const head = element("div", { class: "hookedu-layers-head", "aria-hidden": "true" });
  for (const column of COLUMNS) head.append(view.label(element("span"), column));
  const list = element("div", { class: "hookedu-layers-rows", role: "listbox" });
  const count = element("div", { class: "hookedu-layers-count", role: "status" });
  const box = element("div", { class: "hookedu-layers-box" }, head, list);
  const root = element(
    "div",
    { class: "hookedu-layers" },
    element("label", {}, view.label(element("span"), "search"), " ", search),
    box,
    count,
  );
  /** @type {{item: HTMLElement, name: string, words: string}[]} */
  let rows = [];
  let chosen = "";

  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter(({ words }) => wanted.every((word) => words.includes(word)));
    list.replaceChildren(...found.map(({ item }) => item));
    view.label(count, "layers", { n: found.length, total: rows.length });
    view.label(list, "layers", { n: found.length, total: rows.length }, "aria-label");
    reach();
  };
  const reach = () => {
    const shown = /** @type {HTMLElement[]} */ ([...list.children]);
    const item = rows.find(({ name }) => name === chosen)?.item;
    const first = item && shown.includes(item) ? item : shown[0];
    for (const each of shown) each.tabIndex = each === first ? 0 : -1;
  };
  /** @param {string} name */
  const mark = (name) => {
    chosen = name;
    for (const row of rows) row.item.setAttribute("aria-selected", String(row.name === name));
    reach();
    reveal();
  };
  const reveal = () => {
    const item = rows.find(({ name }) => name === chosen)?.item;
    if (!item?.isConnected) return;
    // Not scrollIntoView, which would scroll the notebook as well.
    if (item.offsetTop < list.scrollTop) list.scrollTop = item.offsetTop;
    const below = item.offsetTop + item.offsetHeight - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  };
  /** @param {string} name */
  const pick = (name) => {
    if (name === chosen) return;
    mark(name);
    choose(name);
  };

  const sizes = new ResizeObserver(view.guard(reveal));
  sizes.observe(list);
  view.signal.addEventListener("abort", () => sizes.disconnect());
  view.on(search, "input", filter);
  view.on(search, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    const first = /** @type {HTMLElement | null} */ (list.firstElementChild);
    first?.focus();
    if (first) pick(first.dataset.name ?? "");
  });
  view.rove(list, { moved: (item) => pick(item.dataset.name ?? "") });
  view.on(list, "click", (/** @type {MouseEvent} */ event) => {
    const item = /** @type {HTMLElement} */ (event.target).closest("[role=option]");
    if (item instanceof HTMLElement) pick(item.dataset.name ?? "");
  });
  view.receive("layers", (/** @type {{rows: Row[], value: string}} */ content) => {
    const focused = list.contains(document.activeElement);
    rows = content.rows.map(([name, type, shape, calls]) => {
      const item = element("div", { role: "option", "data-name": name, title: name });
      for (const cell of [name || "(model)", type, shape, calls < 0 ? "" : `×${calls}`]) {
        // A long name or shape goes on in the next line after a dot or a ×.
        const parts = cell.split(/(?<=[.×])(?!$)/).flatMap((part) => [part, element("wbr")]);
        item.append(element("span", {}, ...parts), " ");
      }
      return { item, name, words: `${name} ${type}`.toLowerCase() };
    });
    filter();
    mark(content.value);
    if (focused) rows.find(({ name }) => name === chosen)?.item.focus();
  });
  return root;
}
