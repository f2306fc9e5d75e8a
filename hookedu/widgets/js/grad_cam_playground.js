// GradCamPlayground: shapes to move, classes to explain, channels to switch off. Python runs the model for each of them.

import { codeBox, press, pressed, toggle } from "./controls.js";
import { element } from "./elements.js";
import { channelsOf } from "./play_channels.js";
import { read, stageOf } from "./play_stage.js";
import { widget } from "./shared.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./shared.js").Tensor} Tensor */
/**
 * @typedef {object} Content
 * @property {import("./play_stage.js").Shape[]} shapes
 * @property {boolean} full whether there is room for no more
 * @property {string[]} classes
 * @property {number} explained
 * @property {boolean} follows
 * @property {number} top
 * @property {[number, number]} extremes of all logits so far
 * @property {number} highest value of the heat map
 * @property {[number, number]} peak column and row of it
 * @property {string} layer
 * @property {number[]} off
 * @property {import("./drawing.js").Scale} scale
 * @property {boolean} uploaded
 * @property {Record<"zh" | "en", string>} code
 */
/** @typedef {Record<string, Tensor>} Tensors "picture" and "heated", "maps", "brings", "logits" and "before"; "verdicts" */

/** @param {View} view */
function build(view) {
  let count = -1; // of the shapes that are shown
  let top = -1;
  let asked = false; // whether the next answer is one to a choice, and not to a movement
  let [added, removing] = [false, false]; // by a key or button here, so that the focus has to follow
  const remove = view.label(element("button", { type: "button", disabled: true }), "remove");
  const stage = stageOf(view, {
    chosen: (index) => {
      remove.disabled = index === null;
    },
    removed: () => {
      asked = removing = true;
    },
  });
  const heat = toggle(view, "heat");
  press(heat, true);
  const code = codeBox(view);
  const note = element("div", { class: "hookedu-play-note", hidden: true });
  const bright = element("div", { class: "hookedu-play-faint" });
  const says = element("div", { class: "hookedu-play-says" });
  const adding = element("div", { class: "hookedu-play-tools", role: "group" });
  view.label(adding, "add", {}, "aria-label");
  const upload = uploadOf(view, stage.canvas, note);
  const drop = view.label(element("button", { type: "button", hidden: true }), "drop");
  const classes = classesOf(view);
  const channels = channelsOf(view);

  /** @param {string} kind @param {object} [content] */
  const ask = (kind, content) => {
    asked = true;
    view.send(kind, content);
  };
  classes.listen(ask);
  channels.listen(ask);
  view.on(remove, "click", stage.remove);
  view.on(drop, "click", () => ask("drop"));

  /** @type {[Content, Tensors]} */
  let last;
  const draw = () => {
    const [{ shapes, classes, explained, highest, peak }, { picture, heated }] = last;
    const hot = pressed(heat);
    stage.show(shapes, hot ? heated : picture);
    const [x, y] = peak;
    const key = !hot ? "plain" : highest > 0 ? "picture" : "cold";
    view.label(stage.canvas, key, { name: classes[explained], x, y }, "aria-label");
    view.label(bright, "brightest", { value: highest.toPrecision(2) });
    bright.hidden = !hot;
  };
  view.on(heat, "click", () => {
    press(heat, !pressed(heat));
    draw();
  });
  view.receive("shown", (/** @type {Content} */ content, tensors) => {
    last = [content, tensors];
    if (count < 0) {
      adding.append(view.label(element("span"), "add"));
      for (const name of content.classes) {
        const button = element("button", { type: "button" }, name);
        view.label(button, "add_shape", { name }, "aria-label");
        view.on(button, "click", () => {
          added = true;
          ask("add", { name });
        });
        adding.append(button);
      }
    }
    const before = count;
    count = content.shapes.length;
    draw();
    for (const button of adding.querySelectorAll("button")) button.disabled = content.full;
    // An answer to an earlier movement may come first.
    if (added && count > before) {
      added = false;
      stage.focus(count - 1);
    } else if (removing && count < before) {
      removing = false;
      if (count) stage.focus(count - 1);
      else adding.querySelector("button")?.focus();
    }
    drop.hidden = !content.uploaded;
    code.show(content.code);
    classes.show(content, tensors);
    channels.show(content, tensors);
    const key = content.off.length ? "top_off" : "top";
    const value = tensors.logits.values[content.top].toFixed(1);
    const said = { name: content.classes[content.top], value, n: content.off.length };
    view.label(says, key, said);
    if (asked || (top >= 0 && top !== content.top)) view.announce(key, said);
    asked = false;
    top = content.top;
  });

  view.receive("verdicts", channels.tell);

  const tools = element(
    "div",
    { class: "hookedu-play-tools" },
    remove,
    upload,
    drop,
    heat,
    code.button,
    bright,
  );
  const left = element("div", { class: "hookedu-play-left" }, adding, stage.root, tools, bright, note);
  const right = element("div", { class: "hookedu-play-right" }, classes.root, says, channels.root);
  view.body.append(element("div", { class: "hookedu-play" }, left, right), code.box);
}

/**
 * A button that sends Python a picture of the learner's.
 *
 * @param {View} view
 * @param {HTMLCanvasElement} canvas which has the size of the pictures
 * @param {HTMLElement} note
 */
function uploadOf(view, canvas, note) {
  const file = element("input", { type: "file", accept: "image/*", hidden: true });
  const button = view.label(element("button", { type: "button" }), "upload");
  view.on(button, "click", () => file.click());
  view.on(file, "change", async () => {
    const [chosen] = file.files ?? [];
    file.value = ""; // so that the same file can be chosen again
    if (!chosen) return;
    note.hidden = true;
    try {
      view.send("upload", {}, [await read(chosen, canvas.width, canvas.height)]);
    } catch {
      note.hidden = false;
      view.label(note, "no_picture");
      view.announce("no_picture");
    }
  });
  return element("span", {}, button, file);
}

/**
 * The logits as bars, each of them a button that lets its class be explained.
 *
 * @param {View} view
 */
function classesOf(view) {
  const title = view.label(element("div"), "classes");
  const rows = element("div", { class: "hookedu-play-classes", role: "group" });
  view.label(rows, "classes", {}, "aria-label");
  const follow = toggle(view, "follow");
  const usually = element("span", { class: "hookedu-play-faint", hidden: true });
  const root = element("div", {}, title, rows, follow, " ", view.label(usually, "usual"));
  /** @type {{button: HTMLElement, bar: HTMLElement, mark: HTMLElement, value: HTMLElement}[]} */
  let parts = [];
  /** @type {(kind: string, content?: object) => void} */
  let ask = () => {};
  let now = "";
  view.on(follow, "click", () => ask("explain", { name: pressed(follow) ? now : null }));

  /** @param {string} name */
  const row = (name) => {
    const [bar, mark, value] = ["bar", "mark", "value"].map((kind) =>
      element("span", { class: `hookedu-play-${kind}` }),
    );
    const track = element("span", { class: "hookedu-play-track" }, bar, mark);
    const button = element("button", { type: "button" }, element("span", {}, name), track, value);
    view.on(button, "click", () => ask("explain", { name }));
    return { button, bar, mark, value };
  };
  return {
    root,
    /** @param {typeof ask} asking */
    listen(asking) {
      ask = asking;
    },
    /** @param {Content} content @param {Tensors} tensors */
    show({ classes, explained, follows, extremes: [low, high], off }, { logits, before }) {
      if (!parts.length) {
        parts = classes.map(row);
        rows.append(...parts.map(({ button }) => button));
        view.rove(rows);
      }
      now = classes[explained];
      press(follow, follows);
      usually.hidden = !off.length;
      /** @param {number} value */
      const at = (value) => (100 * ((value || 0) - low)) / (high - low || 1);
      parts.forEach(({ button, bar, mark, value }, i) => {
        const [logit, usual] = [logits.values[i], before.values[i]];
        press(button, i === explained);
        bar.style.left = `${Math.min(at(0), at(logit))}%`;
        bar.style.width = `${Math.abs(at(logit) - at(0))}%`;
        mark.hidden = !off.length;
        mark.style.left = `${at(usual)}%`;
        value.textContent = logit.toFixed(1);
        const said = { name: classes[i], value: logit.toFixed(1), before: usual.toFixed(1) };
        view.label(button, off.length ? "class_before" : "class", said, "aria-label");
      });
    },
  };
}

export default widget(build);
