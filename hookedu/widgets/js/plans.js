// How feature maps and matrices lie on a canvas: where each number is drawn, and which one is under a point.

import { pixels, sheet } from "./drawing.js";
import { step } from "./elements.js";
import { barRoom, colourBar, FONT, ticks, within } from "./marks.js";

/** @typedef {import("./drawing.js").Scale} Scale */
/** @typedef {import("./marks.js").Spot} Spot */
/** @typedef {import("./marks.js").Box} Box */
/** @typedef {import("./marks.js").Plan} Plan */
/**
 * @typedef {object} Maps
 * @property {import("./shared.js").Numbers} values of these maps, one after the other
 * @property {number} first channel
 * @property {number} count
 * @property {number[]} size rows and columns as they are held
 * @property {number} step between those that are held
 * @property {Scale[]} scales one for all, or one for each
 */

const LABEL = 14; // pixels above a tile
const GAP = 4;

/**
 * Maps as tiles in rows, or one map as large as there is room.
 *
 * @param {Maps} maps
 * @param {number} room
 * @returns {Plan}
 */
export function mosaic(maps, room) {
  const { values, first, count, scales } = maps;
  const [rows, columns] = maps.size;
  const one = count === 1;
  const bar = scales.length === 1;
  const free = room - (bar ? barRoom(scales[0]) : 0);
  const shape = Math.min(Math.max(rows / columns, 0.1), 8);
  const across = count <= 4 ? count : Math.min(count, Math.max(1, Math.round(Math.sqrt(count * shape))));
  const down = Math.ceil(count / across);
  const label = one ? 0 : LABEL;
  let wide = Math.floor((free - GAP * (across - 1)) / across);
  if (one) wide = Math.min(wide, Math.floor(420 / shape));
  wide = Math.max(Math.min(wide, count <= 4 ? 420 : 160), 4);
  const tall = Math.max(Math.round(wide * shape), 4);
  const height = down * (tall + label + GAP) - GAP;
  const width = across * (wide + GAP) - GAP;

  // All maps below one another are one picture, from which the tiles are cut.
  const size = rows * columns;
  const picture = new ImageData(columns, rows * count);
  if (bar) picture.data.set(pixels(values, columns, scales[0]).data);
  else {
    for (let i = 0; i < count; i++) {
      const map = values.subarray(i * size, (i + 1) * size);
      picture.data.set(pixels(map, columns, scales[i]).data, 4 * i * size);
    }
  }
  const all = sheet(picture);

  /** @param {number} index @returns {Box} */
  const tile = (index) => [
    (index % across) * (wide + GAP),
    Math.floor(index / across) * (tall + label + GAP) + label,
    wide,
    tall,
  ];
  return {
    width: room,
    height,
    draw(context, inks) {
      context.font = FONT;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      context.imageSmoothingEnabled = wide < columns;
      for (let i = 0; i < count; i++) {
        const [x, y] = tile(i);
        context.drawImage(all, 0, i * rows, columns, rows, x, y, wide, tall);
        context.fillStyle = inks.faint;
        if (!one) context.fillText(String(first + i), x, y - 3, wide + GAP); // the title says of what
      }
      if (bar) colourBar(context, scales[0], [width + 8, label, 12, Math.min(height - label, 300)], inks);
    },
    at(x, y) {
      const i = Math.floor(y / (tall + label + GAP)) * across + Math.floor(x / (wide + GAP));
      if (x < 0 || y < 0 || x >= width || i >= count) return null;
      const [left, top] = tile(i);
      const row = Math.floor(((y - top) / tall) * rows);
      const column = Math.floor(((x - left) / wide) * columns);
      const inside = row >= 0 && row < rows && column < columns;
      return { channel: first + i, row: inside ? row : -1, column: inside ? column : -1 };
    },
    boxes({ channel, row, column }) {
      if (channel < first || channel >= first + count) return [];
      const [x, y] = tile(channel - first);
      const [dy, dx] = [tall / rows, wide / columns];
      /** @type {Box[]} */
      const found = one ? [] : [[x, y, wide, tall]];
      if (row >= 0) found.push([x + column * dx, y + row * dy, Math.max(dx, 2), Math.max(dy, 2)]);
      return found;
    },
    move(spot, key) {
      if (one) {
        const from = (spot?.row ?? 0) * columns + (spot?.column ?? 0);
        const begun = spot !== null && spot.row >= 0;
        const to = begun
          ? within(key, from, rows, columns)
          : step(key, 0, rows * columns, columns) === null
            ? null
            : 0;
        return to === null ? null : { channel: first, row: Math.floor(to / columns), column: to % columns };
      }
      const begun = spot !== null && spot.channel >= first && spot.channel < first + count;
      const to = step(key, begun ? spot.channel - first : 0, count, across);
      return to === null ? null : { channel: first + (begun ? to : 0), row: -1, column: -1 };
    },
  };
}

/**
 * A matrix, such as positions × features.
 *
 * @param {{values: ArrayLike<number>, size: number[], steps: number[], scale: Scale, names: string[]}} matrix
 * @param {number} room
 * @returns {Plan}
 */
export function matrix({ values, size, steps, scale, names }, room) {
  const [rows, columns] = size;
  const left = 26 + 7 * String((rows - 1) * steps[0]).length;
  const width = Math.max(room - left - barRoom(scale), 40);
  const height = Math.min(Math.max(rows * 22, 44), 400);
  const skip = Math.ceil(columns / 8192); // a canvas has a largest width
  const some =
    skip === 1 ? values : Array.prototype.filter.call(values, (_, i) => (i % columns) % skip === 0);
  const image = sheet(pixels(some, Math.ceil(columns / skip), scale));
  const [dy, dx] = [height / rows, width / columns];
  return {
    width: room,
    height: height + 32,
    draw(context, inks) {
      context.imageSmoothingEnabled = dx < 1 || dy < 1;
      context.drawImage(image, left, 0, width, height);
      context.font = FONT;
      context.fillStyle = inks.faint;
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (const row of ticks(rows, Math.floor(height / 18))) {
        context.fillText(String(row * steps[0]), left - 4, (row + 0.5) * dy);
      }
      context.textAlign = "center";
      context.textBaseline = "top";
      for (const column of ticks(columns, Math.floor(width / 40))) {
        context.fillText(String(column * steps[1]), left + (column + 0.5) * dx, height + 3);
      }
      context.fillText(names[1], left + width / 2, height + 18);
      context.save();
      context.rotate(-Math.PI / 2);
      context.fillText(names[0], -height / 2, 0);
      context.restore();
      colourBar(context, scale, [left + width + 8, 0, 12, height], inks);
    },
    at(x, y) {
      const [row, column] = [Math.floor(y / dy), Math.floor((x - left) / dx)];
      const inside = row >= 0 && row < rows && column >= 0 && column < columns;
      return inside ? { channel: 0, row, column } : null;
    },
    boxes: ({ row, column }) => [[left + column * dx, row * dy, Math.max(dx, 2), Math.max(dy, 2)]],
    move(spot, key) {
      const to = within(key, spot ? spot.row * columns + spot.column : 0, rows, columns);
      if (to === null) return null;
      return spot
        ? { channel: 0, row: Math.floor(to / columns), column: to % columns }
        : { channel: 0, row: 0, column: 0 };
    },
  };
}
