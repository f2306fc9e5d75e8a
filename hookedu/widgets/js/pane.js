// One picture of a layer with its title, its numbers, and what the pointer and the keys do on it.

import { bars, histogram } from "./charts.js";
import { fit } from "./drawing.js";
import { element } from "./elements.js";
import { outline, short } from "./marks.js";
import { heading, hint, reading } from "./pane_words.js";
import { matrix, mosaic } from "./plans.js";
import { colourScale, summary, topOf } from "./sums.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./shared.js").Numbers} Numbers */
/** @typedef {import("./marks.js").Spot} Spot */
/** @typedef {Record<string, any>} Content what Python says of the numbers: see layer_numbers.py */

const TOP = 5;
let made = 0;

export class Pane {
  /**
   * @param {View} view
   * @param {{changed?: () => void, hovered?: (pane: Pane, spot: Spot | null) => void}} [on]
   */
  constructor(view, { changed = () => {}, hovered = () => {} } = {}) {
    this.view = view;
    this.changed = changed;
    this.hovered = hovered;
    /** @type {Content} */
    this.content = { form: "none" };
    /** @type {Numbers} */
    this.values = new Float32Array();
    this.page = 0;
    /** @type {number | null} the channel that is enlarged, or the row of a matrix that is shown as bars */
    this.one = null;
    this.perMap = false;
    this.pinned = false;
    /** @type {Spot | null} */
    this.spot = null;
    /** @type {import("./marks.js").Plan | null} */
    this.plan = null;
    const id = `hookedu-pane-${++made}-${Math.random().toString(36).slice(2)}`;
    this.title = element("div", { class: "hookedu-pane-title", id });
    this.back = view.label(element("button", { type: "button", hidden: true }), "all");
    this.head = element("div", { class: "hookedu-pane-head" }, this.title, this.back);
    this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-labelledby": id });
    view.label(this.canvas, "keys", {}, "aria-description");
    this.over = element("canvas", { class: "hookedu-pane-over", "aria-hidden": "true" });
    this.stage = element("div", { class: "hookedu-pane-stage" }, this.canvas, this.over);
    this.why = element("div", { class: "hookedu-pane-why" });
    this.says = element("div", { class: "hookedu-pane-says" });
    this.top = element("div", { class: "hookedu-pane-top", hidden: true });
    this.sums = element("div", { class: "hookedu-pane-sums" });
    this.root = element(
      "div",
      { class: "hookedu-pane" },
      this.head,
      this.says,
      this.stage,
      this.why,
      this.top,
      this.sums,
    );
    view.on(this.back, "click", () => this.enlarge(null));
    view.on(this.canvas, "pointermove", (/** @type {PointerEvent} */ event) => this.hover(this.under(event)));
    view.on(this.canvas, "pointerleave", () => this.hover(null));
    view.on(this.canvas, "click", (/** @type {MouseEvent} */ event) => this.enter(this.under(event)));
    view.on(this.canvas, "keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
    view.on(this.canvas, "blur", () => this.hover(null));
    this.sizes = new ResizeObserver(view.guard(() => this.draw()));
    this.sizes.observe(this.root);
    view.signal.addEventListener("abort", () => this.sizes.disconnect());
  }

  /**
   * @param {Content} content
   * @param {Numbers} values
   */
  show(content, values) {
    this.content = content;
    this.values = values;
    this.spot = null;
    this.render();
  }

  /** How many channels or rows there are to enlarge. */
  get count() {
    const { form, channels, size } = this.content;
    return form === "maps" ? channels : form === "matrix" ? size[0] : 0;
  }

  /** Rows and columns of a map or matrix, as they are held. */
  get size() {
    const { step = 1, size, steps = [step, step] } = this.content;
    return [Math.ceil(size[0] / steps[0]), Math.ceil(size[1] / steps[1])];
  }

  /** First and last channel of what is held of this page. */
  get range() {
    const { first, channels, tiles } = this.content;
    const held = first + this.values.length / (this.size[0] * this.size[1]);
    if (this.one !== null) return [this.one, this.one + 1];
    return [this.page * tiles, Math.min((this.page + 1) * tiles, channels, held)];
  }

  /** Whether the numbers of this page are here. */
  get held() {
    if (this.content.form !== "maps") return true;
    const [from, to] = this.range;
    return (
      from >= this.content.first &&
      (to - this.content.first) * this.size[0] * this.size[1] <= this.values.length &&
      to > from
    );
  }

  /**
   * The numbers that are shown, without a copy.
   *
   * @returns {Numbers}
   */
  get shown() {
    const { form, first } = this.content;
    const [rows, columns] = form === "none" || form === "statistics" ? [0, 0] : this.size;
    if (form === "maps") {
      const [from, to] = this.range;
      return this.values.subarray((from - first) * rows * columns, (to - first) * rows * columns);
    }
    return this.row === null
      ? this.values
      : this.values.subarray(this.row * columns, (this.row + 1) * columns);
  }

  /** The row of a matrix that is shown as bars. */
  get row() {
    const { form, bars: asBars } = this.content;
    if (form !== "matrix") return null;
    if (this.one !== null) return Math.min(this.one, this.size[0] - 1);
    return asBars && this.size[0] === 1 ? 0 : null;
  }

  /**
   * Enlarge a channel or a row; null for all again.
   *
   * @param {number | null} one
   */
  enlarge(one) {
    const to = one === null ? null : Math.min(Math.max(one, 0), this.count - 1);
    if (to === this.one) return;
    this.one = to;
    if (to !== null && this.content.form === "maps") this.page = Math.floor(to / this.content.tiles);
    this.spot = null;
    this.changed();
    this.render();
  }

  /**
   * Show a page of channels, or a channel of it, as Python says.
   *
   * @param {number} page
   * @param {number | null} channel
   */
  place(page, channel) {
    if (this.content.form !== "maps" || (page === this.page && channel === this.one)) return;
    this.page = page;
    this.one = channel;
    this.spot = null;
    this.render();
  }

  /** @param {number} by */
  turn(by) {
    if (this.one !== null) this.enlarge(this.one + by);
    else this.turnTo(this.page + by);
  }

  /** @param {number} page */
  turnTo(page) {
    const { form, channels, tiles } = this.content;
    const to = Math.min(Math.max(page, 0), Math.ceil(channels / tiles) - 1);
    if (form !== "maps" || (to === this.page && this.one === null)) return;
    this.page = to;
    this.one = null;
    this.spot = null;
    this.changed();
    this.render();
  }

  /** Take the picture off the page. */
  remove() {
    this.sizes.disconnect();
    this.root.remove();
  }

  // -- words ------------------------------------------------------------------------------------------------------

  /** @param {string} key */
  words(key) {
    return this.view.get("words")[key];
  }

  /** @param {HTMLElement} place @param {[string, import("./shared.js").Values][]} parts */
  say(place, parts) {
    place.replaceChildren(...parts.map(([key, values]) => this.view.label(element("span"), key, values)));
  }

  /** Show everything anew. */
  render() {
    const { form } = this.content;
    const empty = form === "none" || !this.held;
    const title = this.content.layer === undefined ? [] : heading(this);
    if (this.pinned) title.push(["is_pinned", {}]); // not in the heading, which goes into the file as well
    this.say(this.title, title);
    this.stage.hidden = this.says.hidden = this.sums.hidden = empty;
    this.why.hidden = form !== "none";
    if (form === "none") this.view.label(this.why, "why");
    this.back.hidden = this.one === null || this.count < 2;
    this.top.hidden = true;
    if (empty) {
      this.plan = null;
      return;
    }
    const { mean, std, min, max, zeros, nan, inf } = this.content.stats ?? summary(this.shown);
    const [a, b, c, d] = [mean, std, min, max].map((value) => short(value ?? Number.NaN));
    /** @type {[string, import("./shared.js").Values][]} */
    const sums = [["numbers", { mean: a, std: b, min: c, max: d, zeros: `${(100 * zeros).toFixed(1)}%` }]];
    if (nan || inf) sums.push(["odd", { nan, inf }]);
    if (form === "statistics")
      sums.push(["histogram", { rest: this.content.rest, zeros: this.content.zeros }]);
    if (min !== null && min === max) sums.push(["constant", { value: short(min) }]);
    const [down, across] = this.content.steps ?? [this.content.step ?? 1, this.content.step ?? 1];
    if (down > 1 || across > 1) sums.push(["thinned", { rows: down, columns: across }]);
    if (form === "maps" && this.values.length < this.size[0] * this.size[1] * this.content.channels) {
      sums.push(["by_page", {}]);
    }
    this.say(this.sums, sums);
    if (form === "matrix" && this.row !== null) this.name(topOf(this.shown, TOP, this.content.signed));
    this.draw();
    this.hover(null);
  }

  /** @param {number[]} top indices of the values to name */
  name(top) {
    const { classes, steps, signed, axes } = this.content;
    const shown = this.shown;
    const most = Math.max(...top.map((i) => Math.abs(shown[i])), 1e-30);
    const list = element("ol", {});
    for (const i of top) {
      const bar = element("span", { class: "hookedu-pane-bar", "aria-hidden": "true" });
      bar.style.width = `${(100 * Math.max(signed ? Math.abs(shown[i]) : shown[i], 0)) / most}px`;
      const index = i * steps[1];
      const name = element("b", {});
      if (classes) name.append(`${classes[index]} (${index})`);
      else this.view.label(name, "named", { axis: this.words(axes[1]), n: index });
      list.append(element("li", {}, name, bar, element("span", {}, short(shown[i]))));
    }
    const says = this.view.label(element("div"), signed ? "top_signed" : "top", { n: top.length });
    this.top.replaceChildren(says, list);
    this.top.hidden = top.length === 0;
  }

  // -- the picture ------------------------------------------------------------------------------------------------

  /** @param {number} room */
  layOut(room) {
    const { form, scale, axes, steps, step = 1, classes } = this.content;
    const shown = this.shown;
    if (form === "statistics")
      return histogram(/** @type {any} */ ({ ...this.content, counts: this.values }), room);
    if (form === "matrix" && this.row === null) {
      const names = axes.map((/** @type {string} */ axis) => this.view.text(axis));
      return matrix({ values: shown, size: this.size, steps, scale, names }, room);
    }
    if (form === "matrix") {
      const top = topOf(shown, TOP, this.content.signed);
      return bars({ values: shown, step: steps[1], top, name: this.view.text(axes[1]), classes }, room);
    }
    const [first, end] = this.range;
    const count = end - first;
    const each = shown.length / count;
    const own = (/** @type {number} */ i) => colourScale(shown.subarray(i * each, (i + 1) * each), scale.map);
    const scales = this.perMap ? Array.from({ length: count }, (_, i) => own(i)) : [scale];
    return mosaic({ values: shown, first, count, size: this.size, step, scales }, room);
  }

  draw() {
    const room = Math.min(this.root.clientWidth, 620);
    if (room < 60 || this.stage.hidden) return;
    this.plan = this.layOut(room);
    const context = fit(this.canvas, this.plan.width, this.plan.height);
    const [ink, faint, line, accent] = ["--ink", "--faint", "--line", "--accent"].map((name) =>
      this.view.colour(name),
    );
    this.plan.draw(context, { ink, faint, line, accent });
    fit(this.over, this.plan.width, this.plan.height);
    if (this.spot) this.mark(this.spot);
  }

  /** @param {Spot | null} spot */
  mark(spot) {
    const context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    context.clearRect(0, 0, this.over.width, this.over.height);
    if (spot && this.plan) for (const box of this.plan.boxes(spot)) outline(context, box);
  }

  /**
   * Mark the place of another pane's spot, and say its value.
   *
   * @param {Spot | null} spot
   * @param {number[]} size of the other's maps
   */
  follow(spot, size) {
    if (!this.plan || this.content.form !== "maps") return;
    /** @type {Spot | null} */
    let there = null;
    if (spot && spot.row >= 0) {
      const [row, column] = this.size.map((n, axis) =>
        Math.floor((([spot.row, spot.column][axis] + 0.5) * n) / size[axis]),
      );
      there = { channel: this.one ?? spot.channel, row, column };
      if (this.plan.boxes(there).length === 0) there = null; // it has no such channel, or on another page
    }
    this.mark(there);
    this.view.label(this.says, ...(there ? reading(this, there) : hint(this)));
  }

  // -- the hand ---------------------------------------------------------------------------------------------------

  /** @param {MouseEvent} event */
  under({ offsetX, offsetY }) {
    return this.plan?.at(offsetX, offsetY) ?? null;
  }

  /**
   * Point at a place: say its value, and mark it.
   *
   * @param {Spot | null} spot
   * @param {boolean} [aloud]
   */
  hover(spot, aloud = false) {
    const same =
      this.spot &&
      spot &&
      ["channel", "row", "column"].every(
        (key) => this.spot?.[/** @type {"row"} */ (key)] === spot[/** @type {"row"} */ (key)],
      );
    if (same && !aloud) return;
    this.spot = spot;
    this.mark(spot);
    const [key, values] = spot ? reading(this, spot) : hint(this);
    this.view.label(this.says, key, values);
    if (aloud) this.view.announce(key, values);
    this.hovered(this, spot);
  }

  /** @param {Spot | null} spot */
  enter(spot) {
    const { form } = this.content;
    if (form === "maps" && this.one === null) spot && this.count > 1 && this.enlarge(spot.channel);
    else if (form === "matrix" && this.row === null) spot && this.enlarge(spot.row);
    else if (this.one !== null && this.count > 1) this.enlarge(null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const before = this.one;
    if (event.key === "Enter" || event.key === " ")
      this.enter(this.spot ?? this.plan?.move(null, "Home") ?? null);
    else if (event.key === "Escape" && this.one !== null) this.enlarge(null);
    else if (event.key === "PageDown") this.turn(1);
    else if (event.key === "PageUp") this.turn(-1);
    else {
      const to = this.plan?.move(this.spot, event.key) ?? null;
      if (to === null) return;
      this.hover(to, true);
    }
    event.preventDefault();
    if (this.one !== before) this.view.announce("of_channel", { n: this.one ?? "" });
  }
}
