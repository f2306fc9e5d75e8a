// guess(): a question, a place for the guess, and afterwards the guess beside the truth.

import { element } from "./elements.js";
import { widget } from "./shared.js";

const SIGNS = { right: "✓", wrong: "≠" };

/** @param {import("./shared.js").View} view */
function build(view) {
  const question = view.label(element("div", { class: "hookedu-guess-question" }), "question");
  const place = view.get("kind") === "choice" ? choices(view) : line(view);
  const sign = element("span", { "aria-hidden": "true" });
  const words = element("span");
  const says = element("div", { class: "hookedu-guess-says" }, sign, words);
  const truth = element("div", { class: "hookedu-guess-truth", hidden: true });
  const status = element("div", { role: "status" }, says, truth);
  const card = element("div", { class: "hookedu-guess", role: "group" }, question, place, status);
  view.label(card, "label", {}, "aria-label");
  view.body.append(card);
  view.watch(["state"], () => {
    /** @type {"open" | "unread" | "noted" | "right" | "wrong"} */
    const state = view.get("state");
    card.dataset.state = state;
    view.label(words, state);
    if (state !== "right" && state !== "wrong") return;
    sign.textContent = `${SIGNS[state]} `;
    truth.replaceChildren(pair(view, "you_said", "yours"), pair(view, "it_is", "truth"));
    if (view.get("words").because) truth.append(view.label(element("div"), "because"));
    truth.hidden = false;
    for (const input of place.querySelectorAll("input")) input.disabled = true;
  });
}

/**
 * A line of text or a number, which counts once the reader leaves it or presses Enter.
 *
 * @param {import("./shared.js").View} view
 */
function line(view) {
  const kind = view.get("kind");
  const input = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  if (kind === "number") input.inputMode = "decimal";
  view.watch(["said"], () => {
    input.value = view.get("said");
  });
  view.on(input, "change", () => view.set("said", input.value));
  return element("label", {}, view.label(element("span"), kind), " ", input);
}

let groups = 0;

/** @param {import("./shared.js").View} view */
function choices(view) {
  const name = `hookedu-guess-${++groups}-${Math.random().toString(36).slice(2)}`;
  const group = element("div", { class: "hookedu-guess-choices", role: "radiogroup" });
  view.label(group, "label", {}, "aria-label");
  for (const id of view.get("choices")) {
    const input = element("input", { type: "radio", name, value: id });
    view.on(input, "change", () => view.set("said", id));
    view.watch(["said"], () => {
      input.checked = view.get("said") === id;
    });
    group.append(element("label", {}, input, " ", view.label(element("span"), `choice_${id}`)));
  }
  return group;
}

/**
 * @param {import("./shared.js").View} view
 * @param {string} name
 * @param {string} value
 */
function pair(view, name, value) {
  const shown = view.label(element("strong"), value);
  return element("div", { class: "hookedu-guess-pair" }, view.label(element("span"), name), shown);
}

export default widget(build);
