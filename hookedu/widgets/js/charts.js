// A vector as bars, and a histogram.

import { step } from "./elements.js";
import { FONT, short, ticks } from "./marks.js";

/** @typedef {import("./marks.js").Spot} Spot */
/** @typedef {import("./marks.js").Box} Box */
/** @typedef {import("./marks.js").Plan} Plan */

/**
 * Numbers as bars from zero; those in `top` stand out, and have their index beside them where no axis tells it.
 *
 * @param {{values: ArrayLike<number>, step: number, top: number[], name: string, classes: string[] | null}} bars
 * @param {number} room
 * @returns {Plan}
 */
export function bars({ values, step: by, top, name, classes }, room) {
  const n = values.length;
  const [height, above, below] = [150, 16, 34];
  const finite = Array.prototype.filter.call(values, Number.isFinite);
  const high = finite.reduce((a, b) => Math.max(a, b), 0);
  const low = finite.reduce((a, b) => Math.min(a, b), 0);
  const left = 10 + 7 * Math.max(short(low, 3).length, short(high, 3).length);
  const wide = Math.min((room - left - 2) / n, 60);
  const unit = (height - (low < 0 ? 16 : 0)) / (high - low || 1);
  /** @param {number} value */
  const y = (value) => above + (high - value) * unit;
  /** @param {number} i @returns {Box} */
  const box = (i) => {
    const value = Number.isFinite(values[i]) ? values[i] : 0;
    return [
      left + i * wide,
      Math.min(y(value), y(0)),
      Math.max(wide - (wide > 4 ? 2 : 0), 0.7),
      Math.abs(y(value) - y(0)),
    ];
  };
  return {
    width: room,
    height: above + height + below,
    draw(context, inks) {
      context.fillStyle = inks.faint;
      for (let i = 0; i < n; i++) context.fillRect(...box(i));
      context.fillStyle = inks.accent;
      for (const i of top) {
        const [x, top_, width, tall] = box(i);
        context.fillRect(x - (width < 3 ? 1 : 0), top_, Math.max(width, 3), tall);
      }
      context.fillStyle = inks.ink;
      context.font = FONT;
      context.textAlign = "center";
      context.textBaseline = "bottom";
      let last = -Infinity; // no label on top of another
      for (const i of [...top].sort((a, b) => a - b)) {
        const x = left + (i + 0.5) * wide;
        if (wide < 26 && x - last > 8 * String(i * by).length) {
          const [, highest, , tall] = box(i);
          context.textBaseline = values[i] < 0 ? "top" : "bottom";
          context.fillText(String(i * by), x, values[i] < 0 ? highest + tall + 2 : highest - 1);
          last = x;
        }
      }
      context.fillRect(left, y(0), n * wide, 1);
      context.fillStyle = inks.faint;
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (const value of high - low ? [low, 0, high].filter((v, i) => i === 1 || v !== 0) : [0]) {
        context.fillText(short(value, 3), left - 4, y(value));
      }
      context.textAlign = "center";
      context.textBaseline = "top";
      const named = classes?.every((each) => context.measureText(each).width < wide - 4);
      for (const i of ticks(n, wide < 26 ? Math.floor((n * wide) / 40) : n)) {
        context.fillText(
          named && classes ? classes[i] : String(i * by),
          left + (i + 0.5) * wide,
          above + height + 4,
        );
      }
      context.fillText(name, left + (n * wide) / 2, above + height + 19);
    },
    at(x) {
      const column = Math.floor((x - left) / wide);
      return column >= 0 && column < n ? { channel: 0, row: 0, column } : null;
    },
    boxes: ({ column }) => [[left + column * wide, above, Math.max(wide, 2), height]],
    move(spot, key) {
      const to = step(key, spot?.column ?? 0, n);
      return to === null ? null : { channel: 0, row: 0, column: spot ? to : 0 };
    },
  };
}

/**
 * How often values occur, on a logarithmic scale, with zeros by themselves and a dashed line at the mean.
 *
 * @param {{counts: ArrayLike<number>, zeros: number, low: number, high: number, mean: number | null}} found
 * @param {number} room
 * @returns {Plan}
 */
export function histogram({ counts, zeros, low, high, mean }, room) {
  const [height, above, below, left] = [200, 8, 22, 52];
  const n = counts.length;
  const width = room - left - 12;
  const most = Math.max(zeros, ...Array.from(counts), 1);
  const from = Math.min(low, 0);
  const to = Math.max(high, 0);
  /** @param {number} value */
  const x = (value) => left + ((value - from) / (to - from)) * width;
  /** @param {number} count */
  const tall = (count) => (count ? (height * (Math.log10(count) + 0.15)) / (Math.log10(most) + 0.15) : 0);
  const bin = (high - low) / n;
  /** @param {number} i @returns {Box} */
  const box = (i) => [
    x(low + i * bin),
    above + height - tall(counts[i]),
    Math.max(x(bin) - x(0) - 1, 1),
    tall(counts[i]),
  ];
  return {
    width: room,
    height: above + height + below,
    draw(context, inks) {
      context.font = FONT;
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (let count = 1; count <= most; count *= 10) {
        const y = above + height - tall(count);
        context.fillStyle = inks.line;
        context.fillRect(left, y, width, 1);
        context.fillStyle = inks.faint;
        context.fillText(count < 1e4 ? String(count) : count.toExponential().replace("e+", "e"), left - 5, y);
      }
      context.fillStyle = inks.accent;
      for (let i = 0; i < n; i++) context.fillRect(...box(i));
      context.fillStyle = context.strokeStyle = inks.ink;
      context.fillRect(left, above + height, width, 1);
      if (zeros) {
        context.fillRect(x(0) - 1.5, above + height - tall(zeros), 3, tall(zeros));
        context.beginPath();
        context.arc(x(0), above + height - tall(zeros), 4, 0, 7);
        context.fill();
      }
      if (mean !== null) {
        context.setLineDash([5, 4]);
        context.lineWidth = 1.5;
        context.beginPath();
        context.moveTo(x(mean), above);
        context.lineTo(x(mean), above + height);
        context.stroke();
        context.setLineDash([]);
      }
      context.textBaseline = "top";
      for (const value of new Set([from, 0, to])) {
        context.textAlign = value === from ? "left" : value === to ? "right" : "center";
        const edge = Math.min(x(value) - left, left + width - x(value));
        if (value === from || value === to || edge > 60)
          context.fillText(short(value, 3), x(value), above + height + 5);
      }
    },
    at(at) {
      const column = Math.floor((from + ((at - left) / width) * (to - from) - low) / bin);
      return column >= 0 && column < n ? { channel: 0, row: 0, column } : null;
    },
    boxes: ({ column }) => [[box(column)[0], above, box(column)[2], height]],
    move(spot, key) {
      const column = step(key, spot?.column ?? 0, n);
      return column === null ? null : { channel: 0, row: 0, column: spot ? column : 0 };
    },
  };
}
