// The drawing of GradientFlow: boxes that do not move, arrows there and back, and numbers that travel along them.

import { svg } from "./elements.js";

/** @typedef {{name: string, value: string, by: string, leaf: boolean, column: number, row: number}} Node */
/** @typedef {{nodes: Node[], edges: [string, string][], marks: Record<string, string>}} Graph */
/** @typedef {{phase: "forward" | "backward", name: string, along: number[]}} Step */
/** @typedef {{x: number, y: number, width: number}} Box */
/** @typedef {Record<string, {grad: string, state: string}>} Grads */
/** @typedef {SVGGraphicsElement} Part */

const LETTER = 7.3; // pixels, the width of a letter
const SMALL = 6.7; // of one in an arrow's number
const HEIGHT = 44; // of a box
const ROW = 118; // from one row to the next
const SIDE = 26; // beside the boxes, at least
const AIR = 8; // around a gradient's text
const LINE = 20; // letters: a longer one with two numbers takes two lines
const BETWEEN = 15; // these lines
const APART = 8; // by which the ends of the arrows there and back leave the middle of a box
const MARK = 8; // from the right end of a box to the middle of the mark of its hook
const SLIM = 12; // by which arrows leave the straight line
const WIDE = 84; // where a box stands in their way

let drawings = 0;

export class Drawing {
  /**
   * @param {Graph} graph
   * @param {number} longest the most letters that a number on an arrow will have
   * @param {Grads} grads of a pass, which tell how much room gradients need
   */
  constructor(graph, longest, grads) {
    this.graph = graph;
    const { boxes: placed, right } = arranged(graph, longest, grads);
    this.boxes = placed;
    this.bends = graph.edges.map(([from, to]) => this.bend(from, to));
    const most = Math.max(SLIM, ...this.bends);
    const boxes = [...this.boxes.values()];
    const [top, bottom] = [Math.min(...boxes.map((b) => b.y)), Math.max(...boxes.map((b) => b.y))];
    const around = Math.max(HEIGHT / 2 + 28, most + 16);
    const height = bottom - top + around + Math.max(around, HEIGHT / 2 + 28 + BETWEEN);
    /** @type {Part[]} */
    this.forward = [];
    /** @type {Part[]} */
    this.backward = [];
    /** @type {Part[]} */
    this.numbers = [];
    /** @type {Map<string, Record<"group" | "value" | "grad" | "mark", Part>>} */
    this.nodes = new Map();
    this.travellers = svg("g", { class: "hookedu-flow-travellers" });
    this.places = svg("g");
    this.number = ++drawings;
    const view = `0 ${top - around} ${right} ${height}`;
    this.root = svg("svg", { viewBox: view, width: right, height, role: "group" }, this.heads());
    this.root.append(
      ...graph.edges.flatMap((edge, at) => this.arrows(edge, this.bends[at])),
      ...this.numbers,
    );
    for (const node of graph.nodes) this.places.append(this.place(node));
    this.root.append(this.places, this.travellers);
  }

  /** The heads of arrows, by an id that no other drawing in the page has. */
  heads() {
    const heads = ["forward", "backward"].map((way) =>
      svg(
        "marker",
        {
          id: `hookedu-${way}-${this.number}`,
          viewBox: "0 0 10 10",
          refX: 9,
          refY: 5,
          markerWidth: 7,
          markerHeight: 7,
          orient: "auto",
        },
        svg("path", { d: "M0 1L9 5L0 9z", class: `hookedu-flow-head ${way}` }),
      ),
    );
    return svg("defs", {}, ...heads);
  }

  /**
   * By how much the arrows between two boxes leave the straight line: more if another box stands in the way.
   *
   * @param {string} from
   * @param {string} to
   */
  bend(from, to) {
    const [start, end] = [this.box(from), this.box(to)];
    const blocked = [...this.boxes.entries()].some(([name, { x, y, width }]) => {
      if (name === from || name === to || x <= start.x || x >= end.x) return false;
      const line = start.y + ((end.y - start.y) * (x - start.x)) / (end.x - start.x);
      return Math.abs(line - y) < HEIGHT && width > 0;
    });
    return blocked ? WIDE : SLIM;
  }

  /** @param {string} name */
  box(name) {
    return /** @type {Box} */ (this.boxes.get(name));
  }

  /**
   * @param {[string, string]} edge
   * @param {number} bend
   */
  arrows([from, to], bend) {
    const [source, target] = [this.box(from), this.box(to)];
    const [left, right] = [source.x + source.width / 2 + 3, target.x - target.width / 2 - 3];
    const middle = (left + right) / 2;
    const height = (source.y + target.y) / 2;
    /** @param {number} sign up for forward, down for backward @param {"forward" | "backward"} way */
    const path = (sign, way) => {
      const start = `${left} ${source.y + sign * APART}`;
      const end = `${right} ${target.y + sign * APART}`;
      const by = `Q${middle} ${height + sign * (APART + 2 * bend - SLIM)}`;
      const d = way === "forward" ? `M${start}${by} ${end}` : `M${end}${by} ${start}`;
      const head = `url(#hookedu-${way}-${this.number})`;
      return svg("path", { d, class: `hookedu-flow-arrow ${way}`, "marker-end": head });
    };
    const [there, back] = [path(-1, "forward"), path(1, "backward")];
    this.forward.push(there);
    this.backward.push(back);
    this.numbers.push(pill("hookedu-flow-number"));
    return [there, back];
  }

  /** @param {Node} node */
  place({ name, value, by, leaf }) {
    const { x, y, width } = this.box(name);
    const [left, top] = [x - width / 2, y - HEIGHT / 2];
    /** @param {number} more */
    const frame = (more) =>
      svg("rect", {
        x: left - more,
        y: top - more,
        width: width + 2 * more,
        height: HEIGHT + 2 * more,
        rx: 6 + more,
        class: "hookedu-flow-frame",
      });
    const shown = svg("text", { x, y: y + 14, class: "hookedu-flow-value" }, value);
    const grad = svg("text", { x, y: y + HEIGHT / 2 + 19, class: "hookedu-flow-grad" });
    const mark = pill("hookedu-flow-mark");
    const frames = leaf ? [frame(4), frame(0)] : [frame(0)];
    const title = svg("text", { x, y: y - 5, class: "hookedu-flow-name" }, name);
    const made = svg("text", { x, y: top - 9, class: "hookedu-flow-by" }, by);
    const group = svg("g", { class: "hookedu-flow-node", role: "button", tabindex: -1 }, ...frames);
    group.append(title, shown, made, grad, mark);
    this.nodes.set(name, { group, value: shown, grad, mark });
    return group;
  }

  /**
   * Show what a pass did: the gradients, what the paths brought, the hooks that hang on.
   *
   * @param {Grads} nodes
   * @param {string[]} parts one for each edge, "" if unknown
   * @param {Record<string, string>} hooks
   */
  fill(nodes, parts, hooks) {
    for (const [name, { group, grad, mark }] of this.nodes) {
      const { x, y, width } = this.box(name);
      const { grad: words, state } = nodes[name] ?? { grad: "", state: "none" };
      group.dataset.state = state;
      const text = words && `${state === "spoiled" ? "⚠ " : ""}grad ${words}`;
      const lines = text.length > LINE ? text.split(/(?=[→≠])/) : [text];
      grad.replaceChildren(...lines.map((line, at) => svg("tspan", { x, dy: at && BETWEEN }, line)));
      write(mark, hooks[name] ? this.graph.marks[hooks[name]] : "", x + width / 2 + MARK, y - HEIGHT / 2 - 4);
    }
    parts.forEach((words, at) => {
      const path = /** @type {SVGPathElement} */ (/** @type {unknown} */ (this.backward[at]));
      const { x, y } = path.getPointAtLength(path.getTotalLength() * 0.56);
      write(this.numbers[at], words, x, y);
    });
  }

  /**
   * Show the drawing as it is once the first `at` steps are done.
   *
   * @param {Step[]} steps
   * @param {number} at
   */
  show(steps, at) {
    this.travellers.replaceChildren();
    /** @param {"forward" | "backward"} phase */
    const done = (phase) => new Set(steps.slice(0, at).flatMap((s) => (s.phase === phase ? [s.name] : [])));
    const [computed, reached] = [done("forward"), done("backward")];
    for (const node of this.graph.nodes) {
      const { value, grad } = this.part(node.name);
      value.toggleAttribute("hidden", !node.leaf && !computed.has(node.name));
      grad.toggleAttribute("hidden", !reached.has(node.name));
    }
    this.graph.edges.forEach(([from], at) => {
      this.backward[at].toggleAttribute("hidden", !reached.has(from));
      this.numbers[at].toggleAttribute("hidden", !reached.has(from));
    });
  }

  /**
   * Move the numbers of one step along its arrows.
   *
   * @param {Step} step
   * @param {string[]} parts
   * @param {number} time from 0 to 1
   */
  travel({ phase, along }, parts, time) {
    const paths = phase === "forward" ? this.forward : this.backward;
    if (this.travellers.childElementCount !== along.length) {
      this.travellers.replaceChildren(...along.map(() => pill(`hookedu-flow-traveller ${phase}`)));
    }
    along.forEach((edge, number) => {
      const path = /** @type {SVGPathElement} */ (/** @type {unknown} */ (paths[edge]));
      if (phase === "backward") path.removeAttribute("hidden");
      const { x, y } = path.getPointAtLength(path.getTotalLength() * time);
      const [from] = this.graph.edges[edge];
      const words = phase === "forward" ? (this.part(from).value.textContent ?? "") : parts[edge];
      write(/** @type {Part} */ (this.travellers.children[number]), words || "●", x, y);
    });
  }

  /** @param {string} name */
  part(name) {
    return /** @type {Record<"group" | "value" | "grad" | "mark", Part>} */ (this.nodes.get(name));
  }
}

/**
 * Where each box stands and how wide it is, and where the drawing ends on the right.
 *
 * Boxes never move, so there is room for the gradient's text with any hooks from the beginning.
 *
 * @param {Graph} graph
 * @param {number} longest
 * @param {Grads} grads
 * @returns {{boxes: Map<string, Box>, right: number}}
 */
function arranged({ nodes, marks }, longest, grads) {
  const gap = Math.max(96, longest * SMALL + 64);
  /** @param {Node} node */
  const width = ({ name, value }) => Math.max(72, Math.max(name.length, value.length) * LETTER + 22);
  const columns = Array.from({ length: Math.max(...nodes.map((node) => node.column)) + 1 }, (_, column) =>
    nodes.filter((node) => node.column === column),
  );
  const sizes = columns.map((column) => ({
    box: Math.max(...column.map(width)) / 2,
    text: Math.max(...column.map(({ name }) => room(grads[name]?.grad ?? ""))) / 2 + AIR,
  }));
  const mark = Math.max(0, ...Object.values(marks).map((words) => pillWidth(words) / 2 + MARK));
  const [first, last] = [sizes[0], sizes[sizes.length - 1]];
  let middle = Math.max(first.box + SIDE, first.text);
  const middles = sizes.map(({ box, text }, at) => {
    const before = sizes[at - 1];
    if (before) middle += Math.max(before.box + gap + box, before.text + text);
    return middle;
  });
  const right = middle + Math.max(last.box + Math.max(SIDE, mark + 2), last.text);
  const boxes = nodes.map((node) => {
    const box = { x: middles[node.column], y: node.row * ROW, width: width(node) };
    return /** @type {const} */ ([node.name, box]);
  });
  return { boxes: new Map(boxes), right };
}

/**
 * How wide the text of a gradient may become, in one line or two: "⚠ grad " and numbers three letters longer than now.
 *
 * @param {string} grad
 */
function room(grad) {
  const most = Math.max(...grad.split(/ → | ≠ /).map((words) => words.length));
  return most && Math.max(LINE, most + 3 + 7) * LETTER;
}

/**
 * A text on a ground of its own, which `write` fills.
 *
 * @param {string} kind
 */
function pill(kind) {
  return svg("g", { class: `hookedu-flow-pill ${kind}`, "aria-hidden": "true" }, svg("rect"), svg("text"));
}

/**
 * @param {Part} group
 * @param {string} words none hide it
 * @param {number} x
 * @param {number} y
 */
function write(group, words, x, y) {
  const [ground, text] = group.children;
  const width = pillWidth(words);
  group.setAttribute("transform", `translate(${x} ${y})`);
  group.style.display = words ? "" : "none";
  const sizes = { x: -width / 2, y: -9, width, height: 18, rx: 9 };
  for (const [name, value] of Object.entries(sizes)) ground.setAttribute(name, String(value));
  text.textContent = words;
  text.setAttribute("y", "4");
}

/** @param {string} words */
function pillWidth(words) {
  return words.length * SMALL + 10;
}
