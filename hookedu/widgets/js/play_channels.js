// GradCamPlayground: the channels of the layer as rows, each of them a switch with its feature map, its number, what it
// contributes as a bar, and what it would turn the verdict into by itself.

import { press, toggle } from "./controls.js";
import { pixels } from "./drawing.js";
import { element } from "./elements.js";
import { paint } from "./play_stage.js";

/** @typedef {import("./shared.js").View} View */
/** @typedef {import("./grad_cam_playground.js").Content} Content */
/** @typedef {import("./grad_cam_playground.js").Tensors} Tensors */
/** @typedef {{tile: HTMLElement, canvas: HTMLCanvasElement, bar: HTMLElement, value: HTMLElement, turns: HTMLElement}} Row */

const NAMED = 3; // channels at most in a sentence, which has room for two lines

/** @param {View} view */
export function channelsOf(view) {
  const title = element("div");
  const allOn = view.label(element("button", { type: "button", disabled: true }), "all_on");
  const sorts = { by_share: toggle(view, "by_share"), by_number: toggle(view, "by_number") };
  const sort = element("span", { class: "hookedu-play-sort", role: "group" }, ...Object.values(sorts));
  view.label(sort, "sort", {}, "aria-label");
  const tools = element(
    "div",
    { class: "hookedu-play-tools" },
    view.label(element("span"), "sort"),
    sort,
    allOn,
  );
  const turning = element("div", { class: "hookedu-play-turning" });
  const list = element("div", { class: "hookedu-play-channels", role: "group" });
  const legend = element("div", { class: "hookedu-play-faint" });
  const root = element("div", {}, title, turning, tools, list, legend);
  /** @type {Row[]} by the number of the channel */
  let rows = [];
  /** @type {(kind: string, content?: object) => void} */
  let ask = () => {};
  /** @type {ArrayLike<number>} */
  let shares = [];
  /** @type {ArrayLike<number>} a class, or -1 */
  let verdicts = [];
  /** @type {Content} */
  let content;
  /** @type {keyof typeof sorts} */
  let by = "by_share";
  let over = false; // whether the pointer is over the list

  /** Rows change their places, but not under the hand. */
  const arrange = () => {
    if (over || list.contains(document.activeElement)) return;
    const order = rows.map((_, n) => n);
    if (by === "by_share") order.sort((a, b) => shares[b] - shares[a]);
    const tiles = order.map((n) => rows[n].tile);
    if (tiles.every((tile, i) => list.children[i] === tile)) return;
    list.replaceChildren(...tiles);
    tiles.forEach((tile, i) => {
      tile.tabIndex = i ? -1 : 0; // Tab leads to the first
    });
  };
  for (const [name, button] of Object.entries(sorts)) {
    press(button, name === by);
    view.on(button, "click", () => {
      by = /** @type {keyof typeof sorts} */ (name);
      for (const [each, other] of Object.entries(sorts)) press(other, each === by);
      arrange();
      list.scrollTop = 0;
    });
  }
  view.on(allOn, "click", () => {
    ask("all_on");
    rows.find(({ tile }) => tile.tabIndex === 0)?.tile.focus(); // the button will be disabled
  });
  view.on(list, "pointerenter", () => {
    over = true;
  });
  view.on(list, "pointerleave", () => {
    over = false;
    arrange();
  });
  view.on(list, "focusout", (/** @type {FocusEvent} */ { relatedTarget }) => {
    if (!list.contains(/** @type {Node | null} */ (relatedTarget))) setTimeout(view.guard(arrange));
  });

  /** @param {number} n @returns {Row} */
  const made = (n) => {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const bar = element("span", { class: "hookedu-play-share" });
    const track = element("span", { class: "hookedu-play-shares" }, bar);
    const value = element("span", { class: "hookedu-play-value" });
    const turns = element("span", { class: "hookedu-play-turns" });
    const number = element("span", { class: "hookedu-play-number" }, String(n));
    const attributes = { type: "button", role: "switch", "aria-checked": "true" };
    const tile = element("button", attributes, canvas, number, track, value, turns);
    view.on(tile, "click", () =>
      ask("switch", { channel: n, on: tile.getAttribute("aria-checked") !== "true" }),
    );
    return { tile, canvas, bar, value, turns };
  };

  /** @param {number} n */
  const turned = (n) => (verdicts[n] >= 0 && verdicts[n] !== content.top ? content.classes[verdicts[n]] : "");

  const speak = () => {
    rows.forEach(({ tile, turns }, n) => {
      const to = turned(n);
      const off = content.off.includes(n);
      const key = `channel${off ? "_off" : ""}${to && "_turns"}`;
      const values = { n, name: content.classes[content.explained], value: shares[n].toFixed(2), to };
      view.label(tile, key, values, "aria-label");
      view.label(turns, off ? (to ? "is_off_turns" : "is_off") : to ? "turns" : "stays", { to });
    });
  };

  return {
    root,
    /** @param {typeof ask} asking */
    listen(asking) {
      ask = asking;
    },
    /** @param {Content} now @param {Tensors} tensors */
    show(now, { maps, brings }) {
      content = now;
      const { layer, off, scale, classes, explained } = now;
      const [count, height, width] = maps.shape;
      shares = brings.values;
      verdicts = [];
      turning.replaceChildren(); // Python tries the channels once the hand rests
      if (!rows.length) {
        rows = Array.from({ length: count }, (_, n) => made(n));
        list.append(...rows.map(({ tile }) => tile));
        view.rove(list);
      }
      view.label(title, "channels", { layer, n: count });
      view.label(list, "channels", { layer, n: count }, "aria-label");
      view.label(legend, "legend", { name: classes[explained] });
      const most = Math.max(...Array.from(shares, Math.abs), 1e-30);
      rows.forEach(({ tile, canvas, bar, value }, n) => {
        const map = maps.values.subarray(n * height * width, (n + 1) * height * width);
        paint(canvas, pixels(map, width, scale));
        tile.setAttribute("aria-checked", String(!off.includes(n)));
        const long = (50 * Math.abs(shares[n])) / most;
        bar.style.width = `${long}%`;
        bar.style.left = `${shares[n] < 0 ? 50 - long : 50}%`;
        bar.dataset.speaks = shares[n] < 0 ? "against" : "for";
        value.textContent = shares[n].toFixed(2);
      });
      allOn.disabled = off.length === 0;
      speak();
      arrange();
    },
    /** @param {{tried: number, mixed: boolean}} progress @param {Tensors} tensors */
    tell({ tried, mixed }, tensors) {
      verdicts = tensors.verdicts.values;
      speak();
      const which = rows.map((_, n) => n).filter(turned);
      which.sort((a, b) => shares[b] - shares[a]);
      const parts = which.slice(0, NAMED).map((n) => `${n} → ${turned(n)}`);
      if (which.length > NAMED) parts.push("…");
      /** @type {[string, import("./shared.js").Values][]} */
      const said = [];
      if (mixed) said.push(["mixed", {}]);
      else if (tried < rows.length) said.push(["trying", { tried, of: rows.length }]);
      if (which.length) said.push(["turn", { n: which.length, which: parts.join(", ") }]);
      else if (!mixed && tried === rows.length) said.push(["turn_none", {}]);
      turning.replaceChildren(
        ...said.flatMap(([key, values]) => [view.label(element("span"), key, values), " "]),
      );
    },
  };
}
