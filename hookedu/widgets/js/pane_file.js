// The pictures of a LayerPicker, with their titles, as one file.

import { heading } from "./pane_words.js";

/** @typedef {import("./pane.js").Pane} Pane */

const EDGE = 8; // pixels, as the next two
const SIZE = 12;
const LEADING = 18;

/**
 * The pictures side by side, on the ground of the page.
 *
 * @param {Pane[]} panes
 */
export function picture(panes) {
  const ground = panes[0].view.colour("--paper");
  const ink = panes[0].view.colour("--ink");
  const titles = panes.map((pane) => lines(pane));
  const above = EDGE + LEADING * Math.max(...titles.map(({ length }) => length));
  const row = document.createElement("canvas");
  const widths = panes.map((pane) => pane.canvas.width + 2 * EDGE * density(pane));
  row.width = Math.round(widths.reduce((sum, width) => sum + width, 0));
  row.height = Math.round(
    Math.max(...panes.map((pane) => pane.canvas.height + (above + EDGE) * density(pane))),
  );
  const context = pen(row);
  context.fillStyle = ground;
  context.fillRect(0, 0, row.width, row.height);
  context.fillStyle = ink;
  let left = 0;
  panes.forEach((pane, i) => {
    const unit = density(pane);
    context.font = font(unit);
    titles[i].forEach((line, number) => {
      context.fillText(line, left + EDGE * unit, (SIZE + 4 + number * LEADING) * unit, pane.canvas.width);
    });
    context.drawImage(pane.canvas, left + EDGE * unit, above * unit);
    left += widths[i];
  });
  return row;
}

/**
 * What the file is called.
 *
 * @param {Pane[]} panes
 */
export function fileName(panes) {
  const names = panes.map(({ content: { layer, view }, one }) => {
    return `${layer || "model"}-${view}${one === null ? "" : `-${one}`}`;
  });
  return `${names.join("+")}.png`;
}

/**
 * The title of a picture in lines that are as wide as the picture; a part that is wider has a line for itself.
 *
 * @param {Pane} pane
 */
function lines(pane) {
  const context = pen(document.createElement("canvas"));
  context.font = font(density(pane));
  /** @type {string[]} */
  const found = [];
  for (const [key, values] of heading(pane)) {
    const part = pane.view.text(key, values);
    const longer = `${found.at(-1)} · ${part}`;
    if (found.length && context.measureText(longer).width <= pane.canvas.width)
      found[found.length - 1] = longer;
    else found.push(part);
  }
  return found;
}

/** Pixels of the canvas for a pixel of the page. @param {Pane} pane */
function density(pane) {
  return pane.canvas.width / Math.max(pane.plan?.width ?? 1, 1);
}

/** @param {number} unit */
function font(unit) {
  return `${SIZE * unit}px system-ui, sans-serif`;
}

/** @param {HTMLCanvasElement} canvas */
function pen(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}
