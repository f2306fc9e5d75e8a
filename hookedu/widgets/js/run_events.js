// The events of a run as Python sends them, once: a row of numbers for each, and every repeated text only once.

import { element } from "./elements.js";

/** @typedef {import("./shared.js").View} View */
/**
 * @typedef {object} Texts that the rows refer to by number
 * @property {number} total
 * @property {{name: string, registration: string, signature: string}[]} kinds
 * @property {boolean[]} forward which of the kinds belong to the forward pass
 * @property {[path: string, type: string][]} paths
 * @property {string[]} leaves
 * @property {[whole: string, short: string][]} shapes
 * @property {([whole: string, short: string] | null)[]} values
 */

const COLUMNS = 6; // of a row: kind, path, call, leaf, shape, value

export class Run {
  /** @param {Texts} texts @param {ArrayLike<number>} rows */
  constructor(texts, rows) {
    this.texts = texts;
    this.rows = rows;
    this.total = texts.total;
    /** @type {ArrayLike<number>} the mark of each event */
    this.marks = [];
    /** @type {number[]} the first event of each mark */
    this.first = [];
  }

  /** @param {ArrayLike<number>} marks of the events @param {number} count how many there are */
  mark(marks, count) {
    this.marks = marks;
    this.first = Array(count).fill(Infinity);
    for (let number = marks.length - 1; number >= 0; number--) this.first[marks[number]] = number;
  }

  /**
   * The next event of a mark after this one, or its first.
   *
   * @param {number} mark
   * @param {number} at
   */
  next(mark, at) {
    for (let number = at + 1; number < this.total; number++) if (this.marks[number] === mark) return number;
    return this.first[mark];
  }

  /** @param {number} number */
  event(number) {
    const [kind, path, call, leaf, shape, value] = Array.from(
      { length: COLUMNS },
      (_, i) => this.rows[number * COLUMNS + i],
    );
    const [name, type] = this.texts.paths[path];
    return {
      ...this.texts.kinds[kind],
      forward: this.texts.forward[kind],
      kind: this.texts.kinds[kind].name,
      path: name || "(model)",
      type,
      call,
      leaf: this.texts.leaves[leaf],
      shape: this.texts.shapes[shape],
      value: this.texts.values[value],
    };
  }

  /** What travels to the hook of an event. @param {number} number */
  cargo(number) {
    const { kind, forward, shape, value, path, leaf } = this.event(number);
    const where = `${kind} · ${path}${leaf && `.${leaf}`}`;
    return { kind: where, shape: shape[1], numbers: value?.[1] ?? "", forward };
  }

  /** The fields of `at`. @param {number} number */
  words(number) {
    const { kind, path, leaf, shape } = this.event(number);
    return { n: number + 1, total: this.total, kind, where: `${path}${leaf && `.${leaf}`}`, shape: shape[1] };
  }

  /**
   * Everything about an event, line by line.
   *
   * @param {View} view
   * @param {HTMLElement} about
   * @param {number} number
   */
  describe(view, about, number) {
    const event = this.event(number);
    const code = (/** @type {string} */ text) => element("code", {}, text);
    const phase = event.forward ? "forward" : "backward";
    const call = view.label(element("span"), "call", { call: event.call });
    const leaf = event.leaf ? [" · ", code(event.leaf)] : [];
    const values = event.value ? code(event.value[0]) : view.label(element("span"), "too_large");
    about.append(
      element(
        "div",
        { class: `hookedu-run-kind ${phase}` },
        element("strong", {}, event.kind),
        " · ",
        view.label(element("span"), `phase_${phase}`),
      ),
      view.label(element("div"), `says_${event.kind}`),
    );
    /** @type {[string, (Node | string)[]][]} */
    const lines = [
      ["module", [code(event.path), ` (${event.type}) · `, call, ...leaf]],
      ["registration", [code(event.registration)]],
      ["signature", [code(event.signature)]],
      ["shape", [event.shape[0]]],
      ["values", [values]],
    ];
    const list = element("dl");
    for (const [key, shown] of lines) {
      list.append(view.label(element("dt"), key), element("dd", {}, ...shown));
    }
    about.append(list);
  }
}
