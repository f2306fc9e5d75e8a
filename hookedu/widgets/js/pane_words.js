// What is said above and below a picture: keys of the words in Python, with their values.

import { short } from "./marks.js";
import { summary } from "./sums.js";

/** @typedef {import("./pane.js").Pane} Pane */
/** @typedef {import("./marks.js").Spot} Spot */
/** @typedef {[key: string, values: import("./shared.js").Values]} Said */

/**
 * The parts of the title.
 *
 * @param {Pane} pane
 * @returns {Said[]}
 */
export function heading(pane) {
  const { layer, view, call, calls, sample, samples, form, channels, depth, inputs, input, score } =
    pane.content;
  const name = layer || "(model)";
  /** @type {Said[]} */
  const parts = [["of_view", { view: pane.words(`view_${view}`), layer: name }]];
  if (score?.key) parts.push([score.key, score]);
  if (inputs?.length > 1 && view !== "weights") parts.push(["of_input", { name: input }]);
  if (calls > 1) parts.push(["of_call", { n: call, total: calls }]);
  if (samples > 1)
    parts.push([view === "weights" ? "of_in_channel" : "of_sample", { n: sample, total: samples }]);
  if (depth) parts.push(["of_depth", { n: depth[0], total: depth[1] }]);
  if (form === "maps" && pane.one !== null) parts.push(["of_channel", { n: pane.one }]);
  else if (form === "maps" && channels > 1) {
    const [first, end] = pane.range;
    parts.push(["of_page", { first, last: end - 1, total: channels }]);
  }
  if (form === "matrix" && pane.row !== null && pane.size[0] > 1) {
    const n = pane.row * pane.content.steps[0];
    parts.push(["of_row", { axis: pane.words(pane.content.axes[0]), n, total: pane.count }]);
  }
  if (form === "maps" && pane.perMap && pane.one === null && channels > 1) parts.push(["each_own", {}]);
  return parts;
}

/**
 * What can be done with the pointer.
 *
 * @param {Pane} pane
 * @returns {Said}
 */
export function hint(pane) {
  const { form } = pane.content;
  if (form === "maps" && pane.count > 1) return [pane.one === null ? "hint_maps" : "hint_one", {}];
  return [form === "matrix" && pane.row === null ? "hint_matrix" : "hint_bars", {}];
}

/**
 * What is said of a place.
 *
 * @param {Pane} pane
 * @param {Spot} spot
 * @returns {Said}
 */
export function reading(pane, { channel, row, column }) {
  const { form, axes, steps, step = 1, classes, first, low, high } = pane.content;
  if (form === "statistics") {
    const bin = (high - low) / pane.values.length;
    const [from, to] = [column, column + 1].map((n) => short(low + n * bin, 3));
    return ["at_bin", { low: from, high: to, n: pane.values[column] }];
  }
  const [rows, columns] = pane.size;
  if (form === "maps") {
    const begin = (channel - first) * rows * columns;
    if (row < 0) {
      const { min, max } = summary(pane.values.subarray(begin, begin + rows * columns));
      return ["at_tile", { channel, low: short(min ?? Number.NaN), high: short(max ?? Number.NaN) }];
    }
    const value = short(pane.values[begin + row * columns + column]);
    return ["at_map", { channel, row: row * step, column: column * step, value }];
  }
  const index = column * steps[1];
  const names = { rows: pane.words(axes[0]), columns: pane.words(axes[1]) };
  const at = { ...names, row: row * steps[0], column: classes ? `${index} (${classes[index]})` : index };
  if (pane.row !== null) return ["at_bar", { ...at, value: short(pane.shown[column]) }];
  return ["at_cell", { ...at, value: short(pane.values[row * columns + column]) }];
}
