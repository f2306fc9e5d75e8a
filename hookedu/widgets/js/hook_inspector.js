// HookInspector: what the diagnosis found, the hooks of the model, and the chosen one, which can be taken off and put back.

import { choiceList } from "./choice_list.js";
import { copyButton, element } from "./elements.js";
import { widget } from "./shared.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./shared.js").Words} Words */
/** @typedef {[key: string, function: string, where: string, kind: string, owner: string, order: string]} Row */
/** @typedef {{severity: string, title: Words, says: Words, key: string}} Finding of which the key is that of its hook */

/** @type {Record<string, string>} */
const MARKS = { serious: "✖", warning: "▲", minor: "●" };

/** @param {View} view */
function build(view) {
  const list = choiceList(view, {
    kind: "hooks",
    columns: ["function", "where", "kind", "owner", "order"],
    cells: (/** @type {Row} */ [, ...cells]) => cells,
    searched: 4,
    choose: (key) => view.send("choose", { key }),
  });
  const remove = action(view, "remove");
  const undo = action(view, "undo");
  const again = action(view, "again");
  const status = view.label(element("div", { class: "hookedu-hooks-status", role: "status" }), "status");
  const about = view.label(element("div"), "about");
  const source = element("pre", { tabindex: 0, role: "region" });
  view.label(source, "source", {}, "aria-label");
  const code = element(
    "div",
    { class: "hookedu-code" },
    copyButton(view, () => source.textContent ?? ""),
    source,
  );
  const hook = element("div", { class: "hookedu-hooks-one" }, about, code);
  view.receive("hooks", ({ rows }) => {
    list.root.hidden = hook.hidden = rows.length === 0;
  });
  view.receive("hook", (content) => {
    source.textContent = content.source;
    able(remove, content.removable);
    able(undo, content.undoable);
  });
  view.body.append(
    findingList(view, list.go),
    element("div", { class: "hookedu-hooks" }, list.root, hook),
    element("div", { class: "hookedu-hooks-bar" }, remove, undo, again),
    status,
  );
}

/**
 * The verdict, and a line for each finding, which unfolds.
 *
 * @param {View} view
 * @param {(key: string) => void} go
 */
function findingList(view, go) {
  const list = element("ul");
  view.label(list, "list_of_findings", {}, "aria-label");
  const notes = element("div");
  /** @type {Map<string, HTMLElement>} the buttons that lead to hooks, by what their finding says */
  const ways = new Map();
  /** @type {Set<string>} */
  let keys = new Set();
  const check = () => {
    for (const way of ways.values()) able(way, keys.has(way.dataset.key ?? ""));
  };
  /** @param {Finding} finding @param {boolean} open */
  const item = ({ severity, title, says, key }, open) => {
    const mark = element("span", { "aria-hidden": "true" }, MARKS[severity]);
    const word = element(
      "span",
      { class: "hookedu-severity" },
      mark,
      " ",
      view.label(element("span"), severity),
    );
    const line = view.label(element("span", { class: "hookedu-finding-title" }), "line", { line: title });
    const way = view.label(element("button", { type: "button", "data-key": key }), "go");
    view.on(way, "click", () => able(way) && go(key));
    ways.set(says.en, way);
    const more = element("div", {}, view.label(element("p"), "line", { line: says }), way);
    const details = element("details", { open }, element("summary", {}, word, line), more);
    return element("li", { "data-severity": severity, "data-says": says.en }, details);
  };
  view.receive("findings", (/** @type {{found: Finding[], notes: Words[]}} */ content) => {
    const open = new Set(
      [...list.querySelectorAll("details[open]")].map((each) => each.closest("li")?.dataset.says),
    );
    ways.clear();
    list.replaceChildren(...content.found.map((each) => item(each, open.has(each.says.en))));
    list.hidden = content.found.length === 0;
    notes.replaceChildren(...content.notes.map((note) => view.label(element("p"), "line", { line: note })));
    check();
  });
  view.receive("hooks", (/** @type {{rows: Row[]}} */ { rows }) => {
    keys = new Set(rows.map(([key]) => key));
    check();
  });
  const verdict = view.label(element("div", { role: "status" }), "verdict");
  return element("div", { class: "hookedu-findings" }, verdict, list, notes);
}

// -- buttons --------------------------------------------------------------------------------------------------------

/**
 * A button that asks Python for something.
 *
 * @param {View} view
 * @param {string} key
 */
function action(view, key) {
  const button = view.label(element("button", { type: "button" }), key);
  view.label(button, `tip_${key}`, {}, "title");
  view.on(button, "click", () => able(button) && view.send(key));
  return button;
}

/**
 * Return whether a button does something, and set it. One that is `disabled` would lose the focus of the keyboard.
 *
 * @param {HTMLElement} button
 * @param {boolean} [on]
 */
function able(button, on) {
  if (on !== undefined) button.setAttribute("aria-disabled", String(!on));
  return button.getAttribute("aria-disabled") !== "true";
}

export default widget(build);
