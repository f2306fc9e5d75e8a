// The picture of GradCamPlayground, with the shapes in it that the hand moves.

import { element } from "./elements.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./shared.js").Tensor} Tensor */
/** @typedef {[name: string, x: number, y: number]} Shape */

const FAR = 8; // pixels that Shift and an arrow key move

/**
 * @param {View} view
 * @param {{chosen: (index: number | null) => void, removed: () => void}} on
 */
export function stageOf(view, { chosen, removed }) {
  const canvas = element("canvas", { role: "img" });
  const places = element("div", { class: "hookedu-play-shapes", role: "application" });
  view.label(places, "stage", {}, "aria-label");
  const root = element("div", { class: "hookedu-play-stage" }, canvas, places);
  /** @type {HTMLButtonElement[]} */
  const buttons = [];
  /** @type {Shape[]} */
  let shapes = [];
  /** @type {Map<number, string>} what Python was told of a shape, and has not answered yet */
  const told = new Map();
  let [width, height] = [1, 1];
  /** @type {number | null} */
  let selected = null;

  /** @param {number | null} index */
  const select = (index) => {
    selected = index;
    for (const [i, button] of buttons.entries()) button.setAttribute("aria-pressed", String(i === index));
    chosen(index);
  };
  /** @param {number} index */
  const place = (index) => {
    const [name, x, y] = shapes[index];
    const button = buttons[index];
    button.style.left = `${(100 * (x + 0.5)) / width}%`;
    button.style.top = `${(100 * (y + 0.5)) / height}%`;
    view.label(button, "shape", { name, x, y }, "aria-label");
  };
  /** @param {number} index @param {number} column @param {number} row */
  const move = (index, column, row) => {
    const [name, fromX, fromY] = shapes[index];
    const x = Math.min(Math.max(Math.round(column), 0), width - 1);
    const y = Math.min(Math.max(Math.round(row), 0), height - 1);
    if (x === fromX && y === fromY) return;
    shapes[index] = [name, x, y];
    told.set(index, String(shapes[index]));
    place(index);
    view.send("move", { index, x, y });
  };
  const remove = () => {
    if (selected === null) return;
    const index = selected;
    told.clear();
    select(null);
    removed();
    view.send("remove", { index });
  };

  /** @param {number} index */
  const made = (index) => {
    const button = element("button", {
      type: "button",
      class: "hookedu-play-shape",
      "aria-pressed": "false",
    });
    /** @type {{x: number, y: number, shape: Shape} | null} where it was taken hold of */
    let hold = null;
    view.on(button, "focus", () => select(index));
    view.on(button, "pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      button.focus();
      button.setPointerCapture(event.pointerId);
      hold = { x: event.clientX, y: event.clientY, shape: shapes[index] };
    });
    view.on(button, "pointermove", (/** @type {PointerEvent} */ event) => {
      if (!hold) return;
      const dot = canvas.getBoundingClientRect().width / width;
      const [, x, y] = hold.shape;
      move(index, x + (event.clientX - hold.x) / dot, y + (event.clientY - hold.y) / dot);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      view.on(button, end, () => {
        hold = null;
      });
    }
    view.on(button, "keydown", (/** @type {KeyboardEvent} */ event) => {
      const steps = /** @type {Record<string, [number, number]>} */ ({
        ArrowLeft: [-1, 0],
        ArrowRight: [1, 0],
        ArrowUp: [0, -1],
        ArrowDown: [0, 1],
      });
      const [, x, y] = shapes[index];
      if (event.key in steps) {
        const [across, down] = steps[event.key].map((by) => by * (event.shiftKey ? FAR : 1));
        move(index, x + across, y + down);
      } else if (event.key === "Delete" || event.key === "Backspace") remove();
      else return;
      event.preventDefault();
    });
    return button;
  };

  return {
    root,
    canvas,
    remove,
    /** @param {number} index */
    focus: (index) => buttons[index]?.focus(),
    /**
     * Show what Python has computed; a shape that has been moved on since stays where the hand has it.
     *
     * @param {Shape[]} now
     * @param {Tensor} pixels
     */
    show(now, pixels) {
      [height, width] = pixels.shape;
      paint(canvas, rgb(pixels));
      while (buttons.length > now.length) buttons.pop()?.remove();
      while (buttons.length < now.length) buttons.push(made(buttons.length));
      places.append(...buttons.filter((button) => !button.isConnected));
      shapes = now.map((shape, index) => {
        if (told.get(index) === String(shape)) told.delete(index);
        return told.has(index) && shapes[index] ? shapes[index] : shape;
      });
      if (selected !== null && selected >= now.length) select(null);
      for (let index = 0; index < now.length; index++) place(index);
    },
  };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ImageData} image
 */
export function paint(canvas, image) {
  canvas.width = image.width;
  canvas.height = image.height;
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
}

/** @param {Tensor} pixels of height × width × 3 */
function rgb({ shape: [height, width], values }) {
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = values[3 * i + c];
    image.data[4 * i + 3] = 255;
  }
  return image;
}

/**
 * Read a picture file, cut and shrunk to a size: bytes of red, green, blue. Rejects what is no picture.
 *
 * @param {Blob} file
 * @param {number} width
 * @param {number} height
 */
export async function read(file, width, height) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.max(width / bitmap.width, height / bitmap.height);
  const [wide, tall] = [bitmap.width * scale, bitmap.height * scale];
  const canvas = new OffscreenCanvas(width, height);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = "#fff"; // behind what is transparent
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (width - wide) / 2, (height - tall) / 2, wide, tall);
  const { data } = context.getImageData(0, 0, width, height);
  return Uint8Array.from({ length: 3 * width * height }, (_, i) => data[4 * Math.floor(i / 3) + (i % 3)])
    .buffer;
}
