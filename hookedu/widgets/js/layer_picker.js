// LayerPicker: the layers at the left, what the chosen one computes at the right, the input and pinned pictures beside it.

import { choiceList } from "./choice_list.js";
import { codeBox, press, pressed, toggle } from "./controls.js";
import { save } from "./drawing.js";
import { element } from "./elements.js";
import { InputPane } from "./input_pane.js";
import { Pane } from "./pane.js";
import { fileName, picture } from "./pane_file.js";
import { widget } from "./shared.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {[name: string, type: string, shape: string, calls: number]} Row of which calls are -1 before a run */

const VIEWS = ["maps", "gradients", "statistics", "weights"];
const PINS = 3;

/** @param {View} view */
function build(view) {
  // Page, channel and scale are drawn here at once. Python hears of them with the next choice, or when the focus leaves.
  let untold = false;
  const tell = () => {
    if (untold) view.model.save_changes();
    untold = false;
  };
  /** @param {Record<string, any>} traits */
  const choose = (traits) => {
    for (const [name, value] of Object.entries(traits)) view.model.set(name, value);
    untold = true;
    tell();
  };
  /** @param {string} kind @param {object} [content] */
  const send = (kind, content) => {
    tell();
    view.send(kind, content);
  };
  view.on(view.root, "focusout", (/** @type {FocusEvent} */ event) => {
    if (!view.root.contains(/** @type {Node | null} */ (event.relatedTarget))) tell();
  });

  /** @type {Pane[]} */
  let pins = [];
  const input = new InputPane(view);
  /** @param {Pane} pane @param {import("./marks.js").Spot | null} spot */
  const hovered = (pane, spot) => {
    if (pane.content.form !== "maps") return;
    const { field, step = 1, size } = pane.content;
    input.mark(field, size, spot && spot.row >= 0 ? [spot.row * step, spot.column * step] : null);
    for (const other of [main, ...pins]) if (other !== pane) other.follow(spot, pane.size);
  };
  let quiet = false;
  const changed = () => {
    quiet = true;
    view.model.set("page", main.page);
    view.model.set("channel", main.content.form === "maps" ? main.one : null);
    quiet = false;
    untold = true;
    turned();
    if (!main.held || pressed(code.button)) tell();
  };
  const main = new Pane(view, { changed, hovered });
  const stage = element("div", { class: "hookedu-stage" }, main.root);

  // -- what is chosen -----------------------------------------------------------------------------------------------

  const views = element("div", { class: "hookedu-views", role: "group" });
  view.label(views, "views", {}, "aria-label");
  for (const name of VIEWS) {
    const button = toggle(view, `view_${name}`, `tip_${name}`);
    view.on(button, "click", () => choose({ view: name }));
    view.watch(["view"], () => press(button, view.get("view") === name));
    views.append(button);
  }
  view.rove(views);
  const again = view.label(element("button", { type: "button" }), "again");
  view.label(again, "tip_again", {}, "title");
  view.on(again, "click", () => send("again"));
  const code = codeBox(view, tell);
  view.receive("code", code.show);
  const pin = view.label(element("button", { type: "button" }), "pin");
  view.label(pin, "tip_pin", {}, "title");
  const keep = view.label(element("button", { type: "button" }), "save");
  view.on(keep, "click", () => {
    const all = [main, ...pins]; // what is compared on the page belongs into one file
    save(picture(all), fileName(all));
  });

  const source = select(view, "input", (index) => choose({ input: main.content.inputs[index] }));
  const part = select(view, "part", (index) => choose({ part: index }));
  const call = number(view, "call", (index) => choose({ call: index }));
  const sample = number(view, "sample", (index) => choose({ sample: index }));
  const page = number(view, "page", (index) => main.turnTo(index));
  const perMap = element("input", { type: "checkbox" });
  const scale = element("label", { hidden: true }, perMap, " ", view.label(element("span"), "per_map"));
  view.on(perMap, "change", () => {
    view.model.set("per_map", perMap.checked);
    untold = true;
  });
  const turned = () => {
    page.show(main.page, main.content.pages ?? 1);
  };
  view.watch(["per_map"], () => {
    perMap.checked = view.get("per_map");
    for (const pane of [main, ...pins]) {
      pane.perMap = perMap.checked;
      pane.render();
    }
  });
  view.watch(["page", "channel"], () => {
    if (quiet) return;
    main.place(view.get("page"), view.get("channel"));
    turned();
  });

  // -- pictures -----------------------------------------------------------------------------------------------------

  view.receive("input", (content, { pixels }) => {
    input.show(content, pixels);
    input.draw();
  });
  view.receive("picture", (content, { values, counts }) => {
    main.one = view.get("channel");
    main.page = view.get("page");
    if (content.form === "matrix" && content.bars && content.size[0] > 1) main.one = 0;
    main.show(content, (values ?? counts)?.values ?? new Float32Array());
    view.label(sample.words, content.view === "weights" ? "in_channel" : "sample");
    source.show(content.inputs.indexOf(content.input), content.inputs);
    part.show(
      content.part,
      content.parts.map((/** @type {string} */ path) => `output${path}`),
    );
    call.show(content.call, content.calls);
    sample.show(content.sample, content.samples);
    scale.hidden = content.form !== "maps" || content.channels < 2;
    pin.disabled = keep.disabled = content.form === "none";
    input.root.hidden = !input.image || content.view === "weights" || content.form === "none";
    input.mark(null, [1, 1], null);
    turned();
  });
  view.on(pin, "click", () => {
    const pane = new Pane(view, { hovered });
    pane.perMap = main.perMap;
    pane.pinned = true;
    const name = main.content.layer || "(model)";
    const off = element("button", { type: "button", class: "hookedu-unpin" }, "×");
    view.label(off, "unpin", { layer: name }, "aria-label");
    view.label(off, "unpin", { layer: name }, "title");
    pane.head.append(off);
    const unpin = (/** @type {Pane} */ gone) => {
      gone.remove();
      pins = pins.filter((each) => each !== gone);
      stage.classList.toggle("hookedu-pinned", pins.length > 0);
    };
    view.on(off, "click", () => {
      unpin(pane);
      pin.focus();
    });
    if (pins.length === PINS) unpin(pins[0]);
    pins.push(pane);
    stage.classList.add("hookedu-pinned");
    stage.append(pane.root);
    pane.one = main.one;
    pane.page = main.page;
    pane.show(main.content, main.values);
    view.announce("pinned", { layer: name });
  });
  view.painted(() => {
    for (const pane of [main, ...pins]) pane.draw();
    input.draw();
  });
  view.watch(["words", "language"], () => {
    for (const pane of [main, ...pins]) pane.render();
  });

  const bar = element("div", { class: "hookedu-bar" }, views, again, code.button, pin, keep);
  const choices = element(
    "div",
    { class: "hookedu-bar" },
    ...[source, part, call, sample, page].map(({ root }) => root),
    scale,
  );
  const right = element("div", { class: "hookedu-right" }, bar, choices, code.box, stage);
  const layers = choiceList(view, {
    kind: "layers",
    columns: ["name", "type", "shape", "calls"],
    cells: (/** @type {Row} */ [name, type, shape, calls]) => [
      name || "(model)",
      type,
      shape,
      calls < 0 ? "" : `×${calls}`,
    ],
    searched: 2,
    choose: (name) => send("layer", { name }),
  });
  const left = element("div", { class: "hookedu-left" }, layers.root, input.root);
  view.body.append(element("div", { class: "hookedu-picker" }, left, right));
}

// -- controls -------------------------------------------------------------------------------------------------------

/**
 * A number from 0, hidden where there is only one.
 *
 * @param {View} view
 * @param {string} key
 * @param {(index: number) => void} chosen
 */
function number(view, key, chosen) {
  const field = element("input", { type: "number", min: 0, step: 1 });
  const words = view.label(element("span"), key);
  const root = element("label", { hidden: true }, words, " ", field);
  view.on(field, "change", () => {
    const index = Math.min(Math.max(Math.round(Number(field.value)) || 0, 0), Number(field.max));
    field.value = String(index);
    chosen(index);
  });
  return {
    root,
    words,
    /** @param {number} index @param {number} n */
    show(index, n) {
      field.max = String(n - 1);
      field.value = String(index);
      root.hidden = n < 2;
    },
  };
}

/**
 * A choice among names, hidden where there is only one.
 *
 * @param {View} view
 * @param {string} key
 * @param {(index: number) => void} chosen
 */
function select(view, key, chosen) {
  const field = element("select");
  const root = element("label", { hidden: true }, view.label(element("span"), key), " ", field);
  view.on(field, "change", () => chosen(field.selectedIndex));
  return {
    root,
    /** @param {number} index @param {string[]} names */
    show(index, names) {
      if (names.join("\n") !== [...field.options].map((option) => option.text).join("\n")) {
        field.replaceChildren(...names.map((name) => element("option", {}, name)));
      }
      field.selectedIndex = index;
      root.hidden = names.length < 2;
    },
  };
}

export default widget(build);
