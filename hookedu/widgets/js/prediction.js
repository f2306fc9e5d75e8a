// What HookTimeline asks in "Predict": choices, and beside the question, once it is answered, whether that was right.

import { element } from "./elements.js";

/** @typedef {import("./shared.js").View} View */
/**
 * @typedef {object} Question
 * @property {number} right
 * @property {number} asked
 * @property {number} [number] of the event that is asked for, from 1; none after the last
 * @property {number} [total]
 * @property {string[]} [answers]
 * @property {number} [chosen] once it is answered
 * @property {number} [correct]
 * @property {number} [fires] of which event the chosen answer is the hook, from 1
 * @property {string} [why] key of the words that say why another one fired; "" for none
 */

/**
 * The question and its answers; Python decides which is right, and what is asked next.
 *
 * @param {View} view
 */
export function prediction(view) {
  const words = element("div");
  const choices = element("div", { class: "hookedu-run-answers", role: "group" });
  view.label(choices, "answers", {}, "aria-label");
  const verdict = element("div", { class: "hookedu-run-verdict" });
  const reason = element("div", { hidden: true });
  const score = element("div");
  const status = element("div", { role: "status" }, verdict, reason, score);
  const next = view.label(element("button", { type: "button", hidden: true }), "next_question");
  view.on(next, "click", () => view.send("next"));
  const root = element("div", { class: "hookedu-run-question", hidden: true }, words, choices, status, next);
  view.receive("question", (/** @type {Question} */ question) => {
    const { answers = [], chosen, correct, number = 0, total, right, asked, fires = 0, why = "" } = question;
    const focused = root.contains(document.activeElement);
    const answered = chosen !== undefined;
    words.hidden = !number;
    if (number) view.label(words, "question", { n: number, total });
    choices.replaceChildren(
      ...answers.map((answer, index) => {
        const sign = !answered ? "" : index === correct ? "✓ " : index === chosen ? "✗ " : "";
        const button = element("button", { type: "button", disabled: answered }, `${sign}${answer}`);
        if (answered && index === correct) button.classList.add("right");
        if (answered && index === chosen) button.setAttribute("aria-pressed", "true");
        view.on(button, "click", () => view.send("answer", { choice: index }));
        return button;
      }),
    );
    verdict.hidden = !answered && number > 0;
    verdict.dataset.state = answered && chosen !== correct ? "wrong" : "right";
    if (answered) {
      const said = { answer: answers[correct ?? 0], guess: answers[chosen], fires };
      const wrong = fires > number ? "wrong_later" : "wrong_before";
      view.label(verdict, chosen === correct ? "right" : wrong, said);
    } else if (!number) view.label(verdict, "the_end");
    reason.hidden = !answered || chosen === correct || !why;
    if (!reason.hidden) {
      const kind = answers[chosen ?? 0].split(" ")[0]; // an answer begins with the kind of its event
      view.label(reason, why, { moment: view.get("words")[`says_${kind}`] });
    }
    view.label(score, "score", { right, asked });
    score.hidden = asked === 0;
    next.hidden = !answered;
    if (!focused) return;
    const first = /** @type {HTMLElement | null} */ (choices.firstElementChild);
    if (answered) next.focus();
    else first?.focus();
  });
  return root;
}
