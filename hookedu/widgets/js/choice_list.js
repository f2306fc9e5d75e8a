// A list to choose from: columns, a search, and arrow keys.

import { element } from "./elements.js";

/** @typedef {import("./shared.js").View} View */

/**
 * The rows come with messages of a kind, as `{rows: R[], value: string}`; a row begins with its key, and the value is the
 * chosen key. Words with the name of the kind say how many rows are found, "search" and "example" stand at the search.
 *
 * @template {[key: string, ...rest: any[]]} R
 * @param {View} view
 * @param {object} list
 * @param {string} list.kind
 * @param {string[]} list.columns their words
 * @param {(row: R) => string[]} list.cells
 * @param {number} list.searched the number of columns, from the first, in which the search looks
 * @param {(key: string) => void} list.choose
 */
export function choiceList(view, { kind, columns, cells, searched, choose }) {
  const search = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  view.label(search, "example", {}, "placeholder");
  const head = element("div", { class: "hookedu-choices-head", "aria-hidden": "true" });
  for (const column of columns) head.append(view.label(element("span"), column));
  const list = element("div", { class: "hookedu-choices-rows", role: "listbox" });
  const count = element("div", { class: "hookedu-choices-count", role: "status" });
  const box = element("div", { class: "hookedu-choices-box" }, head, list);
  const root = element(
    "div",
    { class: "hookedu-choices" },
    element("label", {}, view.label(element("span"), "search"), " ", search),
    box,
    count,
  );
  /** @type {{item: HTMLElement, key: string, words: string}[]} */
  let rows = [];
  let listed = ""; // the rows as Python sent them
  let chosen = "";

  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter(({ words }) => wanted.every((word) => words.includes(word)));
    list.replaceChildren(...found.map(({ item }) => item));
    view.label(count, kind, { n: found.length, total: rows.length });
    view.label(list, kind, { n: found.length, total: rows.length }, "aria-label");
    reach();
    reveal();
  };
  const reach = () => {
    const shown = /** @type {HTMLElement[]} */ ([...list.children]);
    const item = rows.find(({ key }) => key === chosen)?.item;
    const first = item && shown.includes(item) ? item : shown[0];
    for (const each of shown) each.tabIndex = each === first ? 0 : -1;
  };
  /** @param {string} key */
  const mark = (key) => {
    chosen = key;
    for (const row of rows) row.item.setAttribute("aria-selected", String(row.key === key));
    reach();
    reveal();
  };
  const reveal = () => {
    const item = rows.find(({ key }) => key === chosen)?.item;
    if (!item?.isConnected) return;
    // Not scrollIntoView, which would scroll the notebook as well.
    if (item.offsetTop < list.scrollTop) list.scrollTop = item.offsetTop;
    const below = item.offsetTop + item.offsetHeight - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  };
  /** @param {string} key */
  const pick = (key) => {
    if (key === chosen) return;
    mark(key);
    choose(key);
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
    if (first) pick(first.dataset.key ?? "");
  });
  view.rove(list, { moved: (item) => pick(item.dataset.key ?? "") });
  view.on(list, "click", (/** @type {MouseEvent} */ event) => {
    const item = /** @type {HTMLElement} */ (event.target).closest("[role=option]");
    if (item instanceof HTMLElement) pick(item.dataset.key ?? "");
  });
  view.receive(kind, (/** @type {{rows: R[], value: string}} */ content) => {
    const came = JSON.stringify(content.rows);
    if (came === listed) {
      if (content.value !== chosen) mark(content.value);
      return; // a hundred rows take longer to lay out than the picture of the layer to draw
    }
    listed = came;
    const focused = list.contains(document.activeElement);
    rows = content.rows.map((row) => {
      const [key] = row;
      const texts = cells(row);
      const item = element("div", { role: "option", "data-key": key, title: texts[0] });
      for (const cell of texts) {
        // A long name or shape goes on in the next line after a dot or a ×.
        const parts = cell.split(/(?<=[.×])(?!$)/).flatMap((part) => [part, element("wbr")]);
        item.append(element("span", {}, ...parts), " ");
      }
      return { item, key, words: texts.slice(0, searched).join(" ").toLowerCase() };
    });
    filter();
    mark(content.value);
    if (focused) rows.find(({ key }) => key === chosen)?.item.focus();
  });
  /**
   * Choose a row from elsewhere, and lead the keyboard there.
   *
   * @param {string} key
   */
  const go = (key) => {
    search.value = "";
    filter();
    rows.find((row) => row.key === key)?.item.focus();
    pick(key);
  };
  return { root, go };
}
