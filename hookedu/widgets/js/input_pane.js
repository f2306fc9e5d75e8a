// The input beside a picture, with the part of it that a position was computed from.

import { fit, sheet } from "./drawing.js";
import { element } from "./elements.js";
import { outline } from "./marks.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {{start: number[], size: number[], stride: number[]}} Field */
/** @typedef {{shape: string, size: number[], channels: number}} Content */

const WIDEST = 170; // pixels

export class InputPane {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.title = element("div", { class: "hookedu-pane-title" });
    this.canvas = element("canvas", { role: "img" });
    this.says = element("div", { class: "hookedu-pane-says" });
    this.root = element("div", { class: "hookedu-input", hidden: true }, this.title, this.canvas, this.says);
    /** @type {OffscreenCanvas | null} */
    this.image = null;
    /** @type {Content} */
    this.content = { shape: "", size: [1, 1], channels: 0 };
    /** @type {{field: Field | null, place: number[]} | null} rows and columns of the map, and where in it */
    this.place = null;
  }

  /**
   * @param {Content} content
   * @param {import("./shared.js").Tensor | undefined} pixels
   */
  show(content, pixels) {
    this.content = content;
    this.image = null;
    this.place = null;
    if (pixels) {
      const [height, width] = pixels.shape;
      const image = new ImageData(width, height);
      for (let i = 0; i < width * height; i++) {
        image.data.set(pixels.values.subarray(3 * i, 3 * i + 3), 4 * i);
        image.data[4 * i + 3] = 255;
      }
      this.image = sheet(image);
      const words = [this.view.label(element("span"), "picture_in", { shape: content.shape })];
      if (content.channels !== 1 && content.channels !== 3) {
        words.push(this.view.label(element("span"), "mean_of", { n: content.channels }));
      }
      this.title.replaceChildren(...words);
      this.view.label(this.canvas, "picture_in", { shape: content.shape }, "aria-label");
    }
    this.draw();
  }

  /**
   * Mark what a position of a map was computed from.
   *
   * @param {Field | null} field
   * @param {number[]} size of the map
   * @param {number[] | null} at row and column, null for nowhere
   */
  mark(field, size, at) {
    if (!this.image) return; // the input is no picture, so it has no size either
    const stretch = this.content.size.map((whole, axis) => whole / size[axis]);
    if (!at) this.place = null;
    else if (field) {
      const begin = field.start.map((start, axis) => start + at[axis] * field.stride[axis]);
      this.place = { field, place: [...begin, ...field.size] };
    } else {
      this.place = { field, place: [...at.map((index, axis) => index * stretch[axis]), ...stretch] };
    }
    this.draw();
  }

  draw() {
    const { image, place } = this;
    if (!image || this.root.hidden) return;
    const [height, width] = this.content.size;
    const scale = Math.min(WIDEST / width, WIDEST / height);
    const context = fit(this.canvas, width * scale, height * scale);
    context.imageSmoothingEnabled = scale < 1;
    context.drawImage(image, 0, 0, width * scale, height * scale);
    if (!place) {
      this.says.replaceChildren();
      return;
    }
    const [top, left, tall, wide] = place.place;
    const box = [
      Math.max(left, 0),
      Math.max(top, 0),
      Math.min(left + wide, width),
      Math.min(top + tall, height),
    ];
    const [x, y, right, below] = box.map((edge) => edge * scale);
    const some = right > x && below > y;
    if (some) outline(context, [x, y, right - x, below - y], !place.field);
    const whole = tall >= height && wide >= width && right - x >= width * scale - 1;
    const seen = whole && below - y >= height * scale - 1 ? "field_whole" : some ? "field" : "field_padding";
    const key = place.field ? seen : "field_unknown";
    const stride = place.field?.stride ?? [0, 0];
    const values = {
      height: tall,
      width: wide,
      stride: stride[0] === stride[1] ? stride[0] : stride.join("×"),
      left: box[0],
      top: box[1],
      right: box[2] - 1,
      bottom: box[3] - 1,
    };
    this.says.replaceChildren(this.view.label(element("span"), key, values));
  }
}
