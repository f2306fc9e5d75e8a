// The charts of a training run: a strip of colours with a row per layer and a column per step, and the curve of the loss.

import { enlarge, fit, table } from "./drawing.js";
import { element } from "./elements.js";
import { FONT, outline, short, ticks } from "./marks.js";

/** @typedef {import("./marks.js").Inks} Inks */
/** @typedef {{row: number, column: number}} Place row -1 for the whole column */
/**
 * @typedef {object} Chart
 * @property {(canvas: HTMLCanvasElement, room: number, inks: Inks, place: Place | null) => void} draw
 * @property {(x: number, y: number) => Place | null} at where a point of the last drawing is
 */

const LEFT = 118; // pixels for the names of layers, which are the same in all charts
const [ROW, LEAST, MOST] = [15, 3, 420]; // pixels: of a row, at least, and of all rows together at most
const LABEL = 12; // pixels that a name needs
const CURVE = 90;
const BELOW = 18;
const RIGHT = 8;

/**
 * @param {ArrayLike<number>} shades row by row: up to `most` a colour of the scale, above it one of `colours`
 * @param {{layers: string[], map: import("./drawing.js").Scale["map"]}} strip
 * @param {{shades: number, colours: string[]}} content
 * @param {ArrayLike<number>} steps
 * @returns {Chart}
 */
export function strip(shades, { layers, map }, { shades: most, colours }, steps) {
  const [rows, columns] = [layers.length, steps.length];
  const tall = Math.max(Math.min(ROW, MOST / rows), LEAST);
  const image = coloured(shades, columns, most, colours, map);
  let wide = 1;
  return {
    draw(canvas, room, inks, place) {
      wide = (room - LEFT - RIGHT) / columns;
      const context = fit(canvas, room, rows * tall + BELOW + 2);
      enlarge(context, image, LEFT, 1, columns * wide, rows * tall);
      context.strokeStyle = inks.line;
      context.strokeRect(LEFT - 0.5, 0.5, columns * wide + 1, rows * tall + 1);
      context.font = FONT;
      context.textBaseline = "middle";
      context.textAlign = "right";
      const by = Math.ceil(LABEL / tall);
      layers.forEach((layer, i) => {
        const here = i === place?.row;
        if (!here && (i % by || (place && place.row >= 0 && Math.abs(i - place.row) < by && by > 1))) return;
        context.fillStyle = here ? inks.ink : inks.faint;
        context.fillText(clipped(context, layer), LEFT - 5, 1 + (i + 0.5) * tall);
      });
      labelled(context, steps, wide, rows * tall + 5, inks);
      if (!place) return;
      const [top, high] = place.row < 0 ? [0, rows] : [place.row, 1];
      context.fillStyle = inks.ink;
      context.fillRect(LEFT + (place.column + 0.5) * wide - 0.5, 1, 1, rows * tall);
      outline(context, [LEFT + place.column * wide, 1 + top * tall, Math.max(wide, 2), high * tall]);
    },
    at(x, y) {
      const place = { row: Math.floor((y - 1) / tall), column: Math.floor((x - LEFT) / wide) };
      const inside = place.row >= 0 && place.row < rows && place.column >= 0 && place.column < columns;
      return inside ? place : null;
    },
  };
}

/**
 * @param {ArrayLike<number>} losses nan where none was noted
 * @param {ArrayLike<number>} steps
 * @returns {Chart}
 */
export function curve(losses, steps) {
  const columns = steps.length;
  const finite = Array.from(losses).filter(Number.isFinite);
  const low = finite.reduce((a, b) => Math.min(a, b), finite[0] ?? 0);
  const high = finite.reduce((a, b) => Math.max(a, b), finite[0] ?? 1);
  let wide = 1;
  /** @param {number} i */
  const x = (i) => LEFT + (i + 0.5) * wide;
  /** @param {number} value */
  const y = (value) => 6 + ((high - value) / (high - low || 1)) * (CURVE - 10);
  return {
    draw(canvas, room, inks, place) {
      wide = (room - LEFT - RIGHT) / columns;
      const context = fit(canvas, room, CURVE + BELOW + 2);
      context.strokeStyle = inks.line;
      context.strokeRect(LEFT - 0.5, 0.5, columns * wide + 1, CURVE + 1);
      context.font = FONT;
      context.textAlign = "right";
      context.fillStyle = inks.faint;
      for (const value of new Set([high, low])) {
        context.textBaseline = value === high ? "top" : "bottom";
        context.fillText(short(value, 3), LEFT - 5, value === high ? 1 : CURVE);
      }
      labelled(context, steps, wide, CURVE + 5, inks);
      context.strokeStyle = inks.accent;
      context.lineWidth = 1.5;
      context.beginPath();
      let drawing = false;
      for (let i = 0; i < columns; i++) {
        const known = Number.isFinite(losses[i]);
        if (known && drawing) context.lineTo(x(i), y(losses[i]));
        else if (known) context.moveTo(x(i), y(losses[i]));
        drawing = known;
      }
      context.stroke();
      context.fillStyle = inks.accent;
      if (finite.length === 1)
        context.fillRect(x(Array.from(losses).findIndex(Number.isFinite)) - 2, y(low) - 2, 4, 4);
      if (!place) return;
      context.fillStyle = inks.ink;
      context.fillRect(x(place.column) - 0.5, 1, 1, CURVE);
      const value = losses[place.column];
      context.beginPath();
      if (Number.isFinite(value)) context.arc(x(place.column), y(value), 3.5, 0, 7);
      context.fill();
    },
    at(at, y) {
      const column = Math.floor((at - LEFT) / wide);
      return y > 0 && y <= CURVE && column >= 0 && column < columns ? { row: -1, column } : null;
    },
  };
}

/**
 * A bar with the colours of a scale, from its low end on the left.
 *
 * @param {import("./drawing.js").Scale["map"]} map
 */
export function bar(map) {
  const canvas = element("canvas", { width: 256, height: 1, "aria-hidden": "true" });
  const row = Uint8Array.from({ length: 256 }, (_, i) => i);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.putImageData(coloured(row, 256, 255, [], map), 0, 0);
  return canvas;
}

/**
 * @param {ArrayLike<number>} shades
 * @param {number} width of a row
 * @param {number} most
 * @param {string[]} others #rrggbb
 * @param {import("./drawing.js").Scale["map"]} map
 */
function coloured(shades, width, most, others, map) {
  const scale = table(map);
  const image = new ImageData(width, shades.length / width);
  for (let i = 0; i < shades.length; i++) {
    const other = others[shades[i] - most - 1];
    const at = 3 * Math.round((255 * shades[i]) / most);
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = other ? Number.parseInt(other.slice(1 + 2 * c, 3 + 2 * c), 16) : scale[at + c];
    }
    image.data[4 * i + 3] = 255;
  }
  return image;
}

/** @param {CanvasRenderingContext2D} context @param {string} name */
function clipped(context, name) {
  if (context.measureText(name).width <= LEFT - 8) return name;
  let from = 1; // the end of a path tells more than its beginning
  while (from < name.length && context.measureText(`…${name.slice(from)}`).width > LEFT - 8) from++;
  return `…${name.slice(from)}`;
}

/**
 * Write the numbers of the steps below a chart.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {ArrayLike<number>} steps
 * @param {number} wide
 * @param {number} y
 * @param {Inks} inks
 */
function labelled(context, steps, wide, y, inks) {
  context.fillStyle = inks.faint;
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const i of ticks(steps.length, Math.floor((steps.length * wide) / 45))) {
    context.fillText(String(steps[i]), LEFT + (i + 0.5) * wide, y);
  }
}
