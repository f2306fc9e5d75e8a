// What pictures of numbers have in common: numbers as words, ticks, frames, colour bars, steps with the arrow keys.

import { table } from "./drawing.js";
import { step } from "./elements.js";

/** @typedef {import("./drawing.js").Scale} Scale */
/** @typedef {{channel: number, row: number, column: number}} Spot of which row is -1 for a whole map */
/** @typedef {[x: number, y: number, width: number, height: number]} Box */
/** @typedef {{ink: string, faint: string, line: string, accent: string}} Inks */
/**
 * @typedef {object} Plan
 * @property {number} width
 * @property {number} height
 * @property {(context: CanvasRenderingContext2D, inks: Inks) => void} draw
 * @property {(x: number, y: number) => Spot | null} at
 * @property {(spot: Spot) => Box[]} boxes to outline
 * @property {(spot: Spot | null, key: string) => Spot | null} move with the arrow keys; null for other keys
 */

export const FONT = "11px system-ui, sans-serif";

/**
 * A number with few digits.
 *
 * @param {number} value
 * @param {number} [digits]
 */
export function short(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "Inf");
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  return size !== 0 && (size < 1e-4 || size >= 1e6)
    ? rounded.toExponential().replace("e+", "e")
    : String(rounded);
}

/**
 * Draw a frame that stands out from any colour.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {boolean} [dashed]
 */
export function outline(context, [x, y, width, height], dashed = false) {
  context.setLineDash(dashed ? [4, 3] : []);
  for (const [line, colour] of /** @type {const} */ ([
    [4, "#000"],
    [2, "#fff"],
  ])) {
    context.lineWidth = line;
    context.strokeStyle = colour;
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }
}

/**
 * Draw the colour bar of a scale, with as much room for its numbers as these need.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Scale} scale
 * @param {Box} box
 * @param {Inks} inks
 */
export function colourBar(context, scale, [x, y, width, height], inks) {
  const colours = table(scale.map);
  for (let i = 0; i < height; i++) {
    const at = 3 * Math.floor((255 * (height - 1 - i)) / Math.max(height - 1, 1));
    context.fillStyle = `rgb(${colours[at]} ${colours[at + 1]} ${colours[at + 2]})`;
    context.fillRect(x, y + i, width, 1.5);
  }
  context.fillStyle = inks.ink;
  context.font = FONT;
  context.textAlign = "left";
  const ticks = height > 45 ? [scale.low, (scale.low + scale.high) / 2, scale.high] : [scale.low, scale.high];
  ticks.forEach((tick, number) => {
    const at = y + height - (height * number) / (ticks.length - 1);
    context.textBaseline = number === 0 ? "bottom" : number === ticks.length - 1 ? "top" : "middle";
    context.fillText(short(tick, 3), x + width + 4, at);
  });
}

/** @param {Scale} scale */
export function barRoom({ low, high }) {
  const digits = Math.max(...[low, (low + high) / 2, high].map((tick) => short(tick, 3).length));
  return 24 + 7 * digits;
}

/**
 * As `step`, but left and right do not lead around the edge.
 *
 * @param {string} key
 * @param {number} at
 * @param {number} rows
 * @param {number} columns
 */
export function within(key, at, rows, columns) {
  const to = step(key, at, rows * columns, columns);
  const turned =
    to !== null && /Left|Right/.test(key) && Math.floor(to / columns) !== Math.floor(at / columns);
  return turned ? at : to;
}

/**
 * At most so many of n numbers, evenly spaced by 1, 2 or 5 times a power of ten.
 *
 * @param {number} n
 * @param {number} most
 */
export function ticks(n, most) {
  let by = 1;
  for (let i = 0; n / by > Math.max(most, 2); i++) by *= i % 3 === 1 ? 2.5 : 2;
  return Array.from({ length: Math.ceil(n / by) }, (_, i) => i * by);
}
