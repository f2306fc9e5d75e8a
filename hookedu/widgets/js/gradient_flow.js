// GradientFlow: a graph whose numbers travel; a click on a tensor hangs a hook on it, and the kernel runs backward anew.

import { copyButton, element } from "./elements.js";
import { Drawing } from "./graph_drawing.js";
import { widget } from "./shared.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./graph_drawing.js").Graph} Graph */
/** @typedef {import("./graph_drawing.js").Step} Step */
/**
 * @typedef {object} Run
 * @property {Record<string, {grad: string, state: string}>} nodes
 * @property {string[]} parts
 * @property {string[]} order
 * @property {string} code
 * @property {string} printed
 */

const PACE = 800; // milliseconds for a step
const SHORT = 2600; // for all steps of backward after a hook was chosen

/** @param {View} view */
function build(view) {
  const scene = element("div", { class: "hookedu-flow-scene" });
  const summary = view.label(element("div", { class: "hookedu-flow-summary", role: "status" }), "summary");
  const printed = element("pre", { class: "hookedu-flow-printed" });
  const prints = element(
    "div",
    { class: "hookedu-flow-prints", hidden: true },
    view.label(element("div"), "printed"),
    printed,
  );
  const chooser = hooksOf(view);
  const player = playerOf(view);
  const note = element("div", { class: "hookedu-flow-legend" });
  const legend = element("div", { class: "hookedu-flow-legend" }, view.label(element("span"), "legend"));
  const program = programOf(view);
  const above = element("div", { class: "hookedu-flow-above" }, scene, program.root);
  const flow = element("div", { class: "hookedu-flow" }, chooser.root, note, above, player.root);
  flow.append(summary, prints, legend);
  view.body.append(flow);

  /** @type {Graph} */
  let drawn;
  /** @type {Drawing | undefined} */
  let drawing;
  view.receive("graph", (/** @type {Graph} */ received) => {
    drawn = received;
    drawing = undefined; // drawn with the first pass, which tells how much room the numbers need
    if (view.get("words").part) view.label(note, "part");
  });
  view.receive("run", (/** @type {Run} */ run) => {
    const first = !drawing;
    if (!drawing) {
      drawing = new Drawing(drawn, Math.max(0, ...run.parts.map((words) => words.length)) + 2, run.nodes);
      view.label(drawing.root, "graph", {}, "aria-label");
      const around = element("div", {}, drawing.root);
      scene.replaceChildren(around);
      chooser.listen(drawing, around);
    }
    const hooks = view.get("hooks");
    drawing.fill(run.nodes, run.parts, hooks);
    for (const { name, value } of drawn.nodes) {
      const said = { name, value, grad: run.nodes[name]?.grad || "–", hook: drawn.marks[hooks[name]] };
      view.label(drawing.part(name).group, hooks[name] ? "with_hook" : "bare", said, "aria-label");
    }
    program.show(run.code);
    prints.hidden = !run.printed;
    printed.textContent = run.printed;
    player.load(drawing, steps(drawn, run.order), run.parts, !first && run.order.length > 0);
  });
}

/**
 * The steps of a pass: each tensor is computed, and then each gets its gradient in the order that was observed.
 *
 * @param {Graph} graph
 * @param {string[]} order
 * @returns {Step[]}
 */
function steps({ nodes, edges }, order) {
  /** @param {number} end which end of an edge @param {string} name */
  const at = (end, name) => edges.flatMap((edge, number) => (edge[end] === name ? [number] : []));
  const computed = nodes.filter((node) => !node.leaf);
  return [
    ...computed.map(({ name }) => ({ phase: /** @type {const} */ ("forward"), name, along: at(1, name) })),
    ...order.map((name) => ({ phase: /** @type {const} */ ("backward"), name, along: at(0, name) })),
  ];
}

/**
 * What hangs on the tensor that was clicked.
 *
 * @param {View} view
 */
function hooksOf(view) {
  const title = view.label(element("span", { class: "hookedu-flow-title" }), "choose");
  const group = element("div", { class: "hookedu-flow-kinds", role: "group", hidden: true });
  const off = view.label(element("button", { hidden: true }), "all_off");
  const root = element("div", { class: "hookedu-flow-hooks" }, title, group, off);
  let chosen = "";
  const choices = ["none", "print", "double", "halve", "zero", "double_in_place", "zero_in_place"];
  const buttons = choices.map((kind) => {
    const button = view.label(element("button", { "data-kind": kind }), kind);
    view.on(button, "click", () => {
      const { [chosen]: _, ...others } = view.get("hooks");
      view.set("hooks", kind === "none" ? others : { ...others, [chosen]: kind });
    });
    return button;
  });
  group.append(...buttons);
  view.rove(group);
  view.on(off, "click", () => {
    view.set("hooks", {});
    buttons.find((button) => button.tabIndex === 0)?.focus(); // the button that had the focus is gone
  });
  const mark = () => {
    const hooks = view.get("hooks");
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.kind === (hooks[chosen] ?? "none")));
    }
    off.hidden = Object.keys(hooks).length === 0;
  };
  view.watch(["hooks"], mark);

  /** @param {Drawing} drawing @param {HTMLElement} around */
  const listen = (drawing, around) => {
    /** @param {string} name */
    const choose = (name) => {
      chosen = name;
      view.label(title, "hook_on", { name });
      view.label(group, "hook_on", { name }, "aria-label");
      group.hidden = false;
      for (const [each, { group }] of drawing.nodes)
        group.setAttribute("aria-pressed", String(each === name));
      mark();
    };
    for (const [name, { group }] of drawing.nodes) {
      group.setAttribute("aria-pressed", "false");
      view.on(group, "click", () => choose(name));
      view.on(group, "keydown", (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(name);
        buttons.find((button) => button.ariaPressed === "true")?.focus();
      });
    }
    view.on(root, "keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") drawing.nodes.get(chosen)?.group.focus();
    });
    view.rove(/** @type {HTMLElement} */ (/** @type {unknown} */ (drawing.places)), { listener: around });
  };
  return { root, listen };
}

/**
 * Buttons that let the numbers travel.
 *
 * @param {View} view
 */
function playerOf(view) {
  /** @param {string} key */
  const button = (key) => view.label(element("button"), key);
  const [forward, backward, pause, step] = ["forward", "backward", "pause", "step"].map(button);
  const where = element("span", { class: "hookedu-flow-where" });
  const root = element("div", { class: "hookedu-flow-player", role: "group" });
  root.append(forward, backward, pause, step, where);
  view.label(root, "controls", {}, "aria-label");
  /** @type {Drawing} */
  let drawing;
  /** @type {Step[]} */
  let steps = [];
  /** @type {string[]} */
  let parts = [];
  let [at, until, pace] = [0, 0, PACE];
  let playing = false;
  let stop = () => {};

  const show = () => {
    drawing.show(steps, at);
    view.label(pause, playing ? "pause" : "play");
    where.hidden = at === steps.length && !playing;
    if (at === 0) view.label(where, "at_start");
    else view.label(where, `at_${steps[at - 1].phase}`, { name: steps[at - 1].name });
  };
  /** Move on by one step, and further while it plays. */
  const next = () => {
    const here = steps[at];
    stop = view.animate(pace, (time) => {
      drawing.travel(here, parts, time);
      if (time < 1) return;
      at += 1;
      playing = playing && at < until;
      show();
      if (playing) next();
    });
  };
  /** @param {number} from @param {number} to @param {number} [milliseconds] for each step */
  const play = (from, to, milliseconds = PACE) => {
    stop();
    [at, until, pace, playing] = [from, to, milliseconds, from < to];
    show();
    if (playing) next();
  };
  const turn = () => steps.filter(({ phase }) => phase === "forward").length; // where backward begins

  view.on(forward, "click", () => play(0, turn()));
  view.on(backward, "click", () => play(turn(), steps.length));
  view.on(pause, "click", () => {
    if (!playing) return play(at === steps.length ? 0 : at, steps.length);
    stop();
    playing = false;
    show();
  });
  view.on(step, "click", () => {
    if (playing) stop();
    if (at === steps.length) {
      play(0, 0);
      view.announce("at_start");
      return;
    }
    const { phase, name } = steps[at];
    play(at, at + 1);
    view.announce(`at_${phase}`, { name });
  });

  /**
   * @param {Drawing} of
   * @param {Step[]} its
   * @param {string[]} brought
   * @param {boolean} moving whether backward plays now
   */
  const load = (of, its, brought, moving) => {
    [drawing, steps, parts] = [of, its, brought];
    const from = moving && !view.still ? turn() : its.length;
    play(from, its.length, Math.min(PACE, SHORT / Math.max(1, its.length - turn())));
  };
  return { root, load };
}

/**
 * The program that does the same, and a button that copies it.
 *
 * @param {View} view
 */
function programOf(view) {
  const text = element("code");
  const button = copyButton(view, () => text.textContent ?? "");
  const title = element(
    "div",
    { class: "hookedu-flow-title" },
    view.label(element("span"), "code"),
    " ",
    button,
  );
  const shown = element("pre", { class: "hookedu-flow-code", tabindex: 0, role: "region" }, text);
  view.label(shown, "code", {}, "aria-label");
  const root = element("div", { class: "hookedu-flow-program" }, title, shown);
  /** @param {string} code */
  const show = (code) => {
    text.textContent = code;
  };
  return { root, show };
}

export default widget(build);
