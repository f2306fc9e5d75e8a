// The drawing of HookTimeline: boxes that do not move, the hooks as marks on them, and what a hook sees on its way there.

import { svg } from "./elements.js";

/**
 * @typedef {object} Module a box of the drawing
 * @property {string} path
 * @property {string} name
 * @property {string} type
 * @property {number} parent -1 for the model itself
 * @property {boolean} open
 * @property {boolean} folds whether it can be opened or closed
 * @property {number} inside how many modules a closed box holds
 * @property {boolean} chain whether each box inside gets what the one before gives
 * @property {boolean} called
 * @property {boolean} unused whether nothing in it was called either
 */
/** @typedef {[box: number, kind: string, leaf: string]} Mark */
/** @typedef {{boxes: Module[], marks: Mark[]}} Model */
/** @typedef {{left: number, right: number, top: number, bottom: number, rows: string[]}} Frame */
/** @typedef {{x: number, y: number, from: [number, number], group: SVGGElement}} Spot */
/** @typedef {{kind: string, shape: string, numbers: string, forward: boolean}} Cargo */

const LETTER = 7.3; // pixels, the width of a letter
const SMALL = 6.7;
const GAP = 56; // between boxes of which one gets what the other gives
const APART = 80; // between others
const INSET = 52; // between a frame and what is in it
const TITLE = 24;
const UP = 24; // of a box above the edge on which values go forward
const ROW = 19; // of a parameter
const ROWS = 62; // where the first parameter stands
const BESIDE = 16; // from a box to a hook on a tensor
const STUB = 34; // the length of an edge that leads to no other box
const FOLDED = "."; // the row of what is inside a closed box; no parameter has this name
const SIDE = 46; // around everything
const LABEL = 58; // room for what travels, above and below

export class Drawing {
  /**
   * @param {Model} model
   * @param {string} parameters what stands for those of a closed box
   */
  constructor({ boxes, marks }, parameters) {
    this.boxes = boxes;
    this.marks = marks;
    this.parameters = parameters;
    /** @type {number[][]} */
    this.inside = boxes.map(() => []);
    boxes.forEach(({ parent }, number) => {
      if (parent >= 0) this.inside[parent].push(number);
    });
    /** @type {string[][]} */
    const rows = boxes.map(() => []);
    for (const [box, kind, leaf] of marks) {
      const row = rowOf(kind, leaf);
      if (row !== null && !rows[box].includes(row)) rows[box].push(row);
    }
    // All edges on which gradients go back are at one height, below the longest list of parameters.
    this.back = ROWS + ROW * Math.max(0, ...rows.map((row) => row.length)) - 6;
    /** @type {Frame[]} */
    this.frames = [];
    this.place(0, SIDE, rows);
    const whole = this.frames[0];
    const width = whole.right + SIDE;
    const top = whole.top - LABEL;
    this.width = width;
    this.ends = { top: whole.top, bottom: whole.bottom };
    const height = whole.bottom + LABEL - top;
    this.places = svg("g");
    this.folds = svg("g");
    this.cargo = svg("g", { class: "hookedu-model-cargo", "aria-hidden": "true" });
    // What leads from the cargo to its place passes below the names.
    this.leader = svg("path", { "aria-hidden": "true" });
    this.names = svg("g", { class: "hookedu-model-names" });
    this.root = svg("svg", { viewBox: `0 ${top} ${width} ${height}`, width, height, role: "group" });
    this.root.append(...this.boxes.map((_, number) => this.box(number)), ...this.edges());
    this.root.append(this.leader, this.names);
    /** @type {Spot[]} */
    this.spots = marks.map((mark) => this.mark(mark));
    this.root.append(this.folds, this.places, this.cargo);
  }

  /**
   * Give a box and all that is in it their places, from left to right.
   *
   * @param {number} number
   * @param {number} left
   * @param {string[][]} rows
   * @returns {Frame}
   */
  place(number, left, rows) {
    const { name, type, open, inside, chain } = this.boxes[number];
    const own = rows[number].map((row) => this.rowName(number, row));
    const aside = own.length ? 52 + Math.max(...own.map((row) => row.length)) * SMALL : 0;
    const least = Math.max(name.length + 3, type.length) * LETTER + 22;
    const frame = { left, right: left + least, top: -UP, bottom: this.back + UP, rows: rows[number] };
    this.frames[number] = frame;
    if (!open) {
      frame.right = left + Math.max(least, aside, inside ? 90 : 78);
      return frame;
    }
    let at = left + INSET + (aside ? aside - 20 : 0);
    let end = at;
    for (const child of this.inside[number]) {
      const { right, top, bottom } = this.place(child, at, rows);
      frame.top = Math.min(frame.top, top - TITLE);
      frame.bottom = Math.max(frame.bottom, bottom + 10);
      end = right;
      at = end + (chain ? GAP : APART);
    }
    frame.right = Math.max(left + (name.length + type.length + 6) * LETTER, end + INSET);
    return frame;
  }

  /** @param {number} number @param {string} row */
  rowName(number, row) {
    return row === FOLDED ? `⊞ ${this.boxes[number].inside}` : row || this.parameters;
  }

  /** @param {number} number */
  box(number) {
    const { name, type, open, folds, unused } = this.boxes[number];
    const { left, right, top, bottom, rows } = this.frames[number];
    const rect = svg("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: 6 });
    rect.setAttribute("class", `hookedu-model-frame${open ? " open" : ""}${unused ? " unused" : ""}`);
    const first = { class: "hookedu-model-name" };
    if (open) {
      this.names.append(svg("text", { x: left + 10, y: top + 16, ...first }, name));
      this.names.append(svg("text", { x: left + 16 + name.length * LETTER, y: top + 16 }, type));
    } else {
      this.names.append(svg("text", { x: left + 12, y: 24, ...first }, name));
      this.names.append(svg("text", { x: left + 12, y: 41 }, type));
    }
    rows.forEach((row, index) => {
      const y = ROWS + ROW * index + 4;
      this.names.append(
        svg("text", { x: left + 46, y, class: "hookedu-model-row" }, this.rowName(number, row)),
      );
    });
    if (folds) this.folds.append(this.fold(number));
    return rect;
  }

  /** What opens or closes a box. @param {number} number */
  fold(number) {
    const { path, open } = this.boxes[number];
    const { right, top } = this.frames[number];
    const [x, y] = [right - 21, top + 4];
    const sign = open ? `M${x + 4} ${y + 8}h8` : `M${x + 4} ${y + 8}h8M${x + 8} ${y + 4}v8`;
    const parts = [svg("rect", { x, y, width: 16, height: 16, rx: 3 }), svg("path", { d: sign })];
    return svg(
      "g",
      { class: "hookedu-model-fold", role: "button", tabindex: -1, "data-path": path, "data-box": number },
      ...parts,
    );
  }

  /** The edges between boxes: forward above, back below where there are gradients. */
  edges() {
    const kinds = new Set(this.marks.map(([box, kind]) => `${box} ${kind}`));
    /** @type {SVGElement[]} */
    const edges = [];
    /** @param {number} from @param {number} to @param {boolean} forward @param {number} head where its head is */
    const edge = (from, to, forward, head = (from + to) / 2) => {
      const y = forward ? 0 : this.back;
      const way = forward ? 4 : -4;
      const kind = forward ? "forward" : "backward";
      edges.push(
        svg("path", { d: `M${from} ${y}H${to}`, class: kind }),
        svg("path", {
          d: `M${head - way} ${y - 4}L${head + way} ${y}L${head - way} ${y + 4}z`,
          class: `head ${kind}`,
        }),
      );
    };
    this.boxes.forEach(({ parent, called }, number) => {
      if (!called) return;
      const { left, right } = this.frames[number];
      const around = this.frames[parent];
      const row = (this.inside[parent] ?? []).filter((each) => this.boxes[each].called);
      const at = row.indexOf(number);
      const [chain, last] = [this.boxes[parent]?.chain ?? false, at === row.length - 1];
      const before = chain ? (this.frames[row[at - 1]]?.right ?? around.left) : left - STUB;
      const after = chain ? (this.frames[row[at + 1]]?.left ?? around.right) : right + STUB;
      edge(before, left, true);
      if (last || !chain) edge(right, after, true);
      if (kinds.has(`${number} input_grad`)) edge(left, before, false, chain ? undefined : before + 4);
      if (kinds.has(`${number} output_grad`) && (last || !chain)) {
        edge(after, right, false, chain ? undefined : after - 4);
      }
    });
    for (const each of edges) each.classList.add("hookedu-model-edge");
    return edges;
  }

  /**
   * @param {Mark} mark
   * @returns {Spot}
   */
  mark([box, kind, leaf]) {
    const { left, right, rows } = this.frames[box];
    const half = Math.min((right - left) / 2, 60);
    const row = rows.indexOf(rowOf(kind, leaf) ?? "");
    const y = ROWS + ROW * row;
    /** @type {Record<string, [x: number, y: number, from: [number, number]]>} */
    const places = {
      forward_pre: [left, 0, [left - GAP, 0]],
      forward: [right, 0, [right - half, 0]],
      output_grad: [right + BESIDE, this.back, [right + GAP, this.back]],
      backward_pre: [right, this.back, [right + BESIDE, this.back]],
      param_grad: [left + 16, y, [left + 16, this.back]],
      post_accumulate: [left + 34, y, [left + 16, y]],
      backward: [left, this.back, [left + half, this.back]],
      input_grad: [left - BESIDE, this.back, [left, this.back]],
      inside: [left + 25, y, [left + 25, y]],
    };
    const [x, high, from] = places[kind];
    const shape =
      kind === "post_accumulate"
        ? svg("rect", { x: -5, y: -5, width: 10, height: 10 })
        : kind.endsWith("_grad")
          ? svg("path", { d: "M0 -7L7 0L0 7L-7 0z" })
          : svg("circle", { r: 6 });
    const way = kind.startsWith("forward") ? "forward" : kind === "inside" ? "inside" : "backward";
    const group = svg(
      "g",
      {
        class: `hookedu-model-mark ${way}`,
        role: "button",
        tabindex: -1,
        transform: `translate(${x} ${high})`,
      },
      svg("circle", { r: 12, class: "hookedu-model-touch" }),
      svg("circle", { r: 11, class: "hookedu-model-ring" }),
      shape,
    );
    group.dataset.kind = kind;
    group.dataset.path = this.boxes[box].path;
    this.places.append(group);
    return { x, y: high, from, group };
  }

  /**
   * Show which hooks have fired, and which fires now.
   *
   * @param {number} now its mark; -1 for none
   * @param {(mark: number) => boolean} fired
   */
  light(now, fired) {
    this.spots.forEach(({ group }, number) => {
      group.classList.toggle("fired", fired(number));
      group.classList.toggle("now", number === now);
    });
    if (now < 0) {
      this.cargo.replaceChildren();
      this.leader.removeAttribute("d");
    }
  }

  /**
   * Show what a hook sees on its way to the hook.
   *
   * @param {number} mark
   * @param {Cargo} cargo
   * @param {number} time from 0 to 1
   */
  travel(mark, { kind, shape, numbers, forward }, time) {
    const { x, y, from } = this.spots[mark];
    const at = [from[0] + (x - from[0]) * time, from[1] + (y - from[1]) * time];
    const lines = [kind, shape, numbers].filter(Boolean);
    const wide = Math.max(...lines.map((line) => line.length)) * LETTER + 16;
    const middle = Math.min(Math.max(at[0], wide / 2 + 2), this.width - wide / 2 - 2);
    const high = 15 * lines.length + 6;
    const top = forward ? this.ends.top - 6 - high : this.ends.bottom + 6;
    const end = forward ? top + high : top;
    const texts = lines.map((line, number) => {
      const style = number ? "" : "hookedu-model-name";
      return svg("text", { x: middle, y: top + 15 + 15 * number, class: style }, line);
    });
    const way = forward ? "forward" : "backward";
    this.leader.setAttribute("d", `M${middle} ${end}L${at[0]} ${at[1]}`);
    this.leader.setAttribute("class", `hookedu-model-leader ${way}`);
    this.cargo.setAttribute("class", `hookedu-model-cargo ${way}`);
    this.cargo.replaceChildren(
      svg("circle", { cx: at[0], cy: at[1], r: 4 }),
      svg("rect", { x: middle - wide / 2, y: top, width: wide, height: high, rx: 6 }),
      ...texts,
    );
    return at[0];
  }
}

/**
 * The row of a box in which a mark stands, null for those on its frame.
 *
 * @param {string} kind
 * @param {string} leaf
 */
function rowOf(kind, leaf) {
  if (kind === "inside") return FOLDED;
  return kind === "param_grad" || kind === "post_accumulate" ? leaf : null;
}
