// Buttons that stay pressed, and the box in which a widget shows its program.

import { copyButton, element } from "./elements.js";

/** @typedef {import("./shared.js").View} View */

/** @param {View} view @param {string} key @param {string} [tip] */
export function toggle(view, key, tip) {
  const button = view.label(element("button", { type: "button", "aria-pressed": "false" }), key);
  return tip ? view.label(button, tip, {}, "title") : button;
}

/** @param {Element} button @param {boolean} on */
export function press(button, on) {
  button.setAttribute("aria-pressed", String(on));
}

/** @param {Element} button */
export function pressed(button) {
  return button.getAttribute("aria-pressed") === "true";
}

/**
 * A button that shows and hides a program, its box, and how to change the program.
 *
 * @param {View} view with the words "code"
 * @param {() => void} [turned]
 */
export function codeBox(view, turned = () => {}) {
  let sides = { zh: "", en: "" };
  const button = toggle(view, "code");
  const text = element("pre", { tabindex: 0 });
  const copy = copyButton(view, () => text.textContent ?? "");
  const box = element("div", { class: "hookedu-code", hidden: true }, copy, text);
  const render = () => {
    text.textContent = sides[view.get("language") === "zh" ? "zh" : "en"];
    box.hidden = !(pressed(button) && text.textContent);
  };
  view.watch(["language"], render);
  view.on(button, "click", () => {
    press(button, !pressed(button));
    turned();
    render();
  });
  return {
    button,
    box,
    /** @param {Record<string, any>} program with its comments in each language */
    show(program) {
      sides = { zh: program.zh, en: program.en };
      render();
    },
  };
}
