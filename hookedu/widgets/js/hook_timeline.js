// HookTimeline: a run of a model, event by event, on a drawing that stays where it is; and a question what fires next.

import { element } from "./elements.js";
import { Drawing } from "./model_drawing.js";
import { prediction } from "./prediction.js";
import { Run } from "./run_events.js";
import { widget } from "./shared.js";

/** @typedef {import("./shared.js").View} View */

const SPEEDS = [0.5, 1, 2, 5, 20, 100, 1000]; // events per second
const STEP = 450; // milliseconds of a step
const WAY = 0.65; // of the time of an event, in which what the hook sees is on its way

/** @param {View} view */
function build(view) {
  /** @type {Run | undefined} */
  let run;
  /** @type {import("./model_drawing.js").Model | undefined} */
  let model;
  /** @type {Drawing | undefined} */
  let drawing;
  let [at, playing, untold, quiet] = [0, false, false, false];
  let stop = () => {};
  const watching = () => view.get("mode") === "watch";

  // -- elements ---------------------------------------------------------------------------------------------------

  const modes = element("div", { class: "hookedu-run-bar", role: "group" });
  view.label(modes, "modes", {}, "aria-label");
  for (const mode of ["watch", "predict"]) {
    const button = view.label(element("button", { type: "button" }), mode);
    view.on(button, "click", () => view.set("mode", mode));
    view.watch(["mode"], () => button.setAttribute("aria-pressed", String(view.get("mode") === mode)));
    modes.append(button);
  }
  const again = view.label(element("button", { type: "button" }), "again");
  view.label(again, "tip_again", {}, "title");
  view.on(again, "click", () => view.send("again"));
  const scene = element("div", { class: "hookedu-run-scene" });
  const play = view.label(element("button", { type: "button", class: "hookedu-run-play" }), "play");
  const back = view.label(element("button", { type: "button" }), "back");
  const next = view.label(element("button", { type: "button" }), "next");
  const slider = element("input", { type: "range", min: 0, max: 0, step: 1, value: 0 });
  view.label(slider, "event", {}, "aria-label");
  const count = element("span", { class: "hookedu-run-count" });
  const speed = element("select", {}, ...SPEEDS.map((n) => element("option", { value: n })));
  SPEEDS.forEach((n, number) => {
    view.label(speed.options[number], "per_second", { n }, "label");
  });
  speed.value = "1";
  const speeds = element("label", {}, view.label(element("span"), "speed"), " ", speed);
  const player = element("div", { class: "hookedu-run-bar", role: "group" }, play, back, next, slider);
  player.append(count, speeds);
  view.label(player, "controls", {}, "aria-label");
  const about = element("div", { class: "hookedu-run-about" });
  const note = view.label(element("div", { class: "hookedu-run-note" }), "note");
  const own = view.label(element("div"), "own");
  const jump = view.label(element("span"), "jump");
  const legend = element(
    "div",
    { class: "hookedu-run-legend" },
    view.label(element("span"), "legend"),
    " ",
    jump,
  );
  const asked = prediction(view);
  const bar = element("div", { class: "hookedu-run-bar" }, modes, again);
  view.body.append(
    element("div", { class: "hookedu-run" }, bar, scene, player, asked, about, note, own, legend),
  );

  // -- showing one event --------------------------------------------------------------------------------------------

  /** Show an event, with what its hook sees so far on its way. @param {number} time from 0 to 1 */
  const show = (/** @type {number} */ number, time = 1) => {
    if (!run || !drawing) return;
    const mark = run.marks[number] ?? -1;
    if (number !== at || time === 1) {
      at = number;
      quiet = true;
      view.model.set("value", at);
      quiet = false;
      describe();
    }
    const arrived = time === 1;
    drawing.light(arrived ? mark : -1, (each) => (run?.first[each] ?? Infinity) < at + Number(arrived));
    if (mark < 0) return;
    const x = drawing.travel(mark, run.cargo(at), time);
    const { scrollLeft, clientWidth } = scene;
    if (x < scrollLeft + 40 || x > scrollLeft + clientWidth - 40) scene.scrollLeft = x - clientWidth / 2;
  };
  /** What stands below the drawing. */
  const describe = () => {
    if (!run) return;
    slider.value = String(at);
    slider.hidden = run.total === 0;
    player.hidden = !watching() || run.total === 0;
    back.disabled = at === 0;
    next.disabled = at >= run.total - 1;
    view.label(count, "count", { n: Math.min(at + 1, run.total), total: run.total });
    about.replaceChildren();
    if (run.total === 0) return;
    view.label(slider, "at", run.words(at), "aria-valuetext");
    run.describe(view, about, at);
  };
  /** Python hears where we are when the focus leaves, or when playing ends while it is elsewhere. */
  const tell = () => {
    if (untold) view.model.save_changes();
    untold = false;
  };
  const left = () => {
    if (!view.root.contains(document.activeElement)) tell();
  };
  view.on(view.root, "focusout", (/** @type {FocusEvent} */ event) => {
    if (!view.root.contains(/** @type {Node | null} */ (event.relatedTarget)) && !playing) tell();
  });

  // -- going through them -------------------------------------------------------------------------------------------

  const halt = () => {
    stop();
    stop = () => {};
    playing = false;
    view.label(play, "play");
  };
  /** @param {number} number @param {boolean} [moving] whether what the hook sees travels there */
  const go = (number, moving = false) => {
    halt();
    untold = true;
    const to = Math.min(Math.max(number, 0), (run?.total ?? 1) - 1);
    if (moving && !view.still) stop = view.animate(STEP, (time) => show(to, time));
    else show(to);
  };
  /** @param {number} number @param {boolean} [moving] */
  const step = (number, moving) => {
    go(number, moving);
    if (run && run.total > 0) view.announce("at", run.words(Math.min(Math.max(number, 0), run.total - 1)));
  };
  const start = () => {
    if (!run || run.total === 0) return;
    const last = run.total - 1;
    const from = at >= last ? 0 : at + 1;
    const pace = Number(speed.value) / 1000;
    playing = untold = true;
    view.label(play, "pause");
    stop();
    stop = view.frames((passed) => {
      const exact = from + passed * pace;
      const number = Math.min(Math.floor(exact), last);
      show(number, view.still ? 1 : Math.min((exact - number) / WAY, 1));
      if (exact < last + 1) return true;
      halt();
      left();
      return false;
    });
  };
  view.on(play, "click", () => {
    if (!playing) return start();
    halt();
    show(at);
    if (run) view.announce("at", run.words(at));
  });
  view.on(speed, "change", () => playing && start());
  view.on(back, "click", () => step(at - 1));
  view.on(next, "click", () => step(at + 1, true));
  view.on(slider, "input", () => go(Number(slider.value)));
  view.watch(["value"], () => {
    if (quiet || !run) return;
    const value = view.get("value");
    const moving = !watching() && value === at + 1;
    go(value, moving);
    untold = false; // it comes from Python, or from another place that shows the same widget
  });
  view.watch(["mode"], () => {
    halt();
    asked.hidden = watching();
    jump.hidden = !watching(); // where the answer would be given away, marks do nothing
    describe();
  });

  // -- what Python sends --------------------------------------------------------------------------------------------

  /** @param {Drawing} of @param {HTMLElement} around */
  const listen = (of, around) => {
    view.label(of.root, "drawing", {}, "aria-label");
    /** @param {SVGElement} target @param {() => void} action */
    const press = (target, action) => {
      view.on(target, "click", action);
      view.on(target, "keydown", (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        action();
      });
    };
    of.spots.forEach(({ group }, mark) => {
      const [box, kind, leaf] = of.marks[mark];
      const { path, name } = of.boxes[box];
      const where = `${path.slice(0, path.lastIndexOf(".") + 1)}${name}${leaf && `.${leaf}`}`;
      view.label(group, kind === "inside" ? "mark_inside" : "mark", { kind, where }, "aria-label");
      press(group, () => {
        if (watching() && run) step(run.next(mark, at));
      });
    });
    for (const fold of /** @type {Iterable<SVGElement>} */ (of.folds.children)) {
      const { path, name, open } = of.boxes[Number(fold.dataset.box)];
      view.label(fold, open ? "fold" : "unfold", { name }, "aria-label");
      press(fold, () => view.send("turn", { choice: path }));
    }
    for (const group of [of.places, of.folds]) {
      view.rove(/** @type {HTMLElement} */ (/** @type {unknown} */ (group)), { listener: around });
    }
  };
  view.receive("events", (content, { rows }) => {
    halt();
    run = new Run(content, rows.values);
    model = drawing = undefined; // they follow
    slider.max = String(Math.max(run.total - 1, 0));
    at = Math.min(view.get("value"), Math.max(run.total - 1, 0));
  });
  view.receive("model", (content, { marks }) => {
    halt();
    run?.mark(marks.values, content.marks.length);
    model = content;
    draw();
  });
  const draw = () => {
    if (!model) return;
    drawing = new Drawing(model, view.text("parameters"));
    const around = element("div", {}, drawing.root);
    listen(drawing, around);
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.closest(
      ".hookedu-model-fold",
    );
    const path = focused && scene.contains(focused) ? focused.getAttribute("data-path") : null;
    scene.replaceChildren(around);
    describe();
    show(at);
    if (path === null) return;
    for (const fold of drawing.folds.children) {
      if (fold.getAttribute("data-path") === path) /** @type {SVGElement} */ (fold).focus();
    }
  };
  view.watch(["language"], draw);
}

export default widget(build);
