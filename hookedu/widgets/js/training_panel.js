// TrainingPanel: a strip per statistic of a training run, a row per layer and a column per step, and the curve of the loss.

import { element } from "./elements.js";
import { short } from "./marks.js";
import { widget } from "./shared.js";
import { bar, curve, strip } from "./strips.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./shared.js").Tensor} Tensor */
/** @typedef {import("./strips.js").Chart} Chart */
/** @typedef {{name: string, layers: string[], map: "viridis" | "cividis" | "RdBu_r", ends: [number, number], log: boolean}} Strip */
/**
 * @typedef {object} Content
 * @property {Strip[]} strips
 * @property {string[]} layers
 * @property {number} shades the highest number of a colour of the scale; those above it are `colours`
 * @property {string[]} colours of no value, exactly 0, nan or inf
 * @property {number} every that many steps there is a column
 * @property {boolean} done whether the run has ended
 */
/** @typedef {{layer: string | null, column: number}} Spot that is pointed at; no layer on the curve of the loss */

const FEWEST = 60; // pixels: with less room nothing is drawn

/** @param {View} view */
function build(view) {
  /** @type {Content} */
  let content = { strips: [], layers: [], shades: 1, colours: [], every: 1, done: true };
  /** @type {Record<string, Tensor>} */
  let tensors = {};
  /** @type {Spot | null} */
  let spot = null;
  const says = view.label(element("div", { class: "hookedu-run-says" }), "summary");
  const charts = element("div", { class: "hookedu-run-charts" });
  const reading = view.label(element("div", { class: "hookedu-run-reading" }), "hint");
  const legend = element("div", { class: "hookedu-run-legend" });
  const table = element("div", { class: "hookedu-run-table", tabindex: 0, role: "region" });
  const head = element("summary");
  const details = element("details", {}, head, table);
  const rest = element("div", { hidden: true }, reading, legend, details);
  view.body.append(says, charts, rest);
  /** @type {Map<string, Figure>} */
  const figures = new Map();

  const steps = () => tensors.steps.values;
  /** @param {string} key @returns {import("./shared.js").Words} */
  const words = (key) => view.get("words")[key];
  /** @param {string} name @param {string} layer @param {number} column */
  const value = (name, layer, column) => {
    const { layers } = /** @type {Strip} */ (content.strips.find((each) => each.name === name));
    const at = layers.indexOf(layer) * steps().length + column;
    if (!layers.includes(layer)) return null;
    const none = tensors[`${name}_shades`].values[at] === content.shades + 1;
    return none ? words("none") : short(tensors[`${name}_values`].values[at], 3);
  };

  /** What is said of a place. @param {Spot} at @returns {[string, import("./shared.js").Values]} */
  const told = ({ layer, column }) => {
    /** @type {[string, string | import("./shared.js").Words | null][]} */
    const parts = content.strips.map(({ name }) => [
      name,
      layer === null ? null : value(name, layer, column),
    ]);
    if (tensors.losses) {
      const noted = tensors.noted.values[column];
      parts.unshift(["loss", noted ? short(tensors.losses.values[column], 3) : words("none")]);
    }
    /** @param {"zh" | "en"} side */
    const joined = (side) =>
      parts
        .filter(([, shown]) => shown !== null)
        .map(
          ([name, shown]) =>
            `${words(`short_${name}`)[side]} ${typeof shown === "object" ? shown?.[side] : shown}`,
        )
        .join(side === "zh" ? "，" : ", ");
    const values = { zh: joined("zh"), en: joined("en") };
    return [
      layer === null ? "reading_loss" : "reading",
      { step: steps()[column], layer: layer ?? "", values },
    ];
  };

  const fill = () => {
    const column = spot?.column ?? steps().length - 1;
    view.label(head, "table", { step: steps()[column] });
    view.label(table, "table", { step: steps()[column] }, "aria-label");
    if (!details.open) return;
    const names = content.strips.map(({ name }) =>
      view.label(element("th", { scope: "col" }), `short_${name}`),
    );
    const first = view.label(element("th", { scope: "col" }), "layer");
    /** @param {string} layer @param {string} name */
    const cell = (layer, name) => {
      const shown = value(name, layer, column) ?? "—";
      return typeof shown === "string" ? element("td", {}, shown) : view.label(element("td"), "none");
    };
    const rows = content.layers.map((layer) => {
      const cells = content.strips.map(({ name }) => cell(layer, name));
      return element("tr", {}, element("th", { scope: "row" }, layer), ...cells);
    });
    table.replaceChildren(element("table", {}, element("tr", {}, first, ...names), ...rows));
  };

  const draw = () => {
    const inks = { ink: "", faint: "", line: "", accent: "" };
    for (const name of /** @type {(keyof typeof inks)[]} */ (Object.keys(inks)))
      inks[name] = view.colour(`--${name}`);
    for (const figure of figures.values()) figure.draw(inks, spot);
  };

  /** @param {Spot | null} to @param {boolean} [aloud] */
  const point = (to, aloud = false) => {
    spot = to;
    const [key, values] = to ? told(to) : /** @type {[string, {}]} */ (["hint", {}]);
    view.label(reading, key, values);
    if (aloud) view.announce(key, values);
    fill();
    draw();
  };

  /** @param {string} name */
  const figureOf = (name) => {
    const found = figures.get(name);
    if (found) return found;
    const made = new Figure(view, name, () => ({ spot, columns: steps().length, point }));
    figures.set(name, made);
    return made;
  };

  view.receive("strips", (/** @type {Content} */ now, received) => {
    content = now;
    tensors = received;
    rest.hidden = !content.strips.length;
    const shown = [...(tensors.losses ? ["loss"] : []), ...content.strips.map(({ name }) => name)];
    for (const [name, figure] of figures) {
      if (shown.includes(name)) continue;
      figure.root.remove();
      figures.delete(name);
    }
    shown.forEach((name, i) => {
      const { root } = figureOf(name);
      if (charts.children[i] !== root) charts.insertBefore(root, charts.children[i] ?? null);
    });
    if (!content.strips.length) return;
    if (tensors.losses) figureOf("loss").show({ chart: curve(tensors.losses.values, steps()), layers: [] });
    for (const each of content.strips) {
      const shades = tensors[`${each.name}_shades`].values;
      figureOf(each.name).show({
        chart: strip(shades, each, content, steps()),
        layers: each.layers,
        scale: { map: each.map, low: each.ends[0], high: each.ends[1] },
        log: each.log,
      });
    }
    keyOf(view, legend, content);
    if (spot && (spot.column >= steps().length || (spot.layer && !content.layers.includes(spot.layer))))
      spot = null;
    point(spot);
    if (content.done) view.announce("summary");
  });
  view.on(details, "toggle", () => content.strips.length && fill());
  const sizes = new ResizeObserver(view.guard(() => draw()));
  sizes.observe(charts);
  view.signal.addEventListener("abort", () => sizes.disconnect());
  view.painted(draw);
}

/** One chart with its title, and what the pointer and the keys do on it. */
class Figure {
  /**
   * @param {View} view
   * @param {string} name of the statistic
   * @param {() => {spot: Spot | null, columns: number, point: (to: Spot | null, aloud?: boolean) => void}} now
   */
  constructor(view, name, now) {
    this.view = view;
    this.name = name;
    this.now = now;
    /** @type {string[]} */
    this.layers = [];
    /** @type {Chart | null} */
    this.chart = null;
    this.canvas = element("canvas", { tabindex: 0, role: "application" });
    view.label(this.canvas, "keys", {}, "aria-description");
    this.scale = element("span", { class: "hookedu-run-scale" });
    const head = element("div", { class: "hookedu-run-head" }, view.label(element("span"), name), this.scale);
    this.root = element("div", { class: "hookedu-run-chart" }, head, this.canvas);
    view.on(this.canvas, "pointermove", (/** @type {PointerEvent} */ { offsetX, offsetY }) => {
      const at = this.chart?.at(offsetX, offsetY);
      const { spot, point } = this.now();
      const to = at ? { layer: this.layers[at.row] ?? null, column: at.column } : null;
      if (to?.layer !== spot?.layer || to?.column !== spot?.column) point(to);
    });
    for (const event of ["pointerleave", "blur"]) view.on(this.canvas, event, () => this.now().point(null));
    view.on(this.canvas, "keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** @param {{chart: Chart, layers: string[], scale?: import("./drawing.js").Scale, log?: boolean}} shown */
  show({ chart, layers, scale, log }) {
    this.chart = chart;
    this.layers = layers;
    const { columns } = this.now();
    const title = this.view.get("words")[this.name];
    if (layers.length)
      this.view.label(this.canvas, "chart", { title, rows: layers.length, columns }, "aria-label");
    else this.view.label(this.canvas, "curve", { columns }, "aria-label");
    if (!scale) return;
    const kind = log ? [this.view.label(element("span"), "log")] : [];
    this.scale.replaceChildren(short(scale.low, 2), bar(scale.map), short(scale.high, 2), ...kind);
  }

  /** @param {import("./marks.js").Inks} inks @param {Spot | null} spot */
  draw(inks, spot) {
    const room = this.root.clientWidth;
    if (!this.chart || room < FEWEST) return;
    const row = spot?.layer ? this.layers.indexOf(spot.layer) : -1;
    this.chart.draw(this.canvas, room, inks, spot && { row, column: spot.column });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { spot, columns, point } = this.now();
    const row = Math.max(spot?.layer ? this.layers.indexOf(spot.layer) : 0, 0);
    const column = spot?.column ?? columns - 1;
    const by = event.shiftKey ? 10 : 1;
    /** @type {Record<string, [number, number]>} */
    const places = {
      ArrowLeft: [row, column - by],
      ArrowRight: [row, column + by],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, columns - 1],
    };
    if (event.key === "Escape") point(null);
    if (!places[event.key]) return;
    event.preventDefault();
    const [down, across] = spot ? places[event.key] : [row, event.key === "Home" ? 0 : column]; // the first key only arrives
    const layer = this.layers[Math.min(Math.max(down, 0), this.layers.length - 1)] ?? null;
    point({ layer, column: Math.min(Math.max(across, 0), columns - 1) }, true);
  }
}

/**
 * What the colours off the scale mean, and how many steps a column stands for.
 *
 * @param {View} view
 * @param {HTMLElement} legend
 * @param {Content} content
 */
function keyOf(view, legend, { colours, every }) {
  const keys = ["is_none", "is_zero", "is_odd"].map((key, i) => {
    const swatch = element("span", { class: "hookedu-run-swatch", "aria-hidden": "true" });
    swatch.style.background = colours[i];
    return element("span", {}, swatch, view.label(element("span"), key));
  });
  const thinned = every > 1 ? [view.label(element("span"), "thinned", { n: every })] : [];
  legend.replaceChildren(...keys, ...thinned);
}

export default widget(build);
