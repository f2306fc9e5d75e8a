// What all widgets share: language, errors, numbers from Python, drawing, keyboard, disposal.
//
// A widget's module imports from here, from elements.js and from drawing.js; hookedu/widgets/modules.py joins them into the one
// module that anywidget loads, so that nothing is fetched. It understands `import { … } from "./…"` and exported functions,
// classes and constants, nothing else.

import { element, inline, step } from "./elements.js";
import { decode } from "./messages.js";

/** @typedef {import("@anywidget/types").AnyModel<any>} Model */
/** @typedef {Float32Array | Int32Array | Uint8Array} Numbers */
/** @typedef {{shape: number[], values: Numbers}} Tensor */
/** @typedef {{zh: string, en: string}} Words */
/** @typedef {Record<string, string | number | Words | undefined>} Values of the fields `{name}` in words */
/** @typedef {{says: string, error: string, trace: string}} Failure */

/**
 * Make a widget of the function that builds it. The function runs once for each place in which the widget is shown.
 *
 * @param {(view: View) => void} build
 */
export function widget(build) {
  return {
    /** @param {{model: Model, el: HTMLElement}} place */
    render({ model, el }) {
      const view = new View(model);
      el.append(view.root);
      view.guard(build)(view);
      view.send("ready"); // Python answers with all that it has posted so far
      return () => view.dispose();
    },
  };
}

/** One place in which a widget is shown: its elements, its connection to Python, and all that must end with it. */
export class View {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.ending = new AbortController();
    /** @type {WeakMap<Element, Map<string, () => void>>} what fills an element (key "") and its attributes */
    this.labels = new WeakMap();
    this.root = element("div", { class: "hookedu-live" });
    this.body = element("div");
    this.failure = element("div", { class: "hookedu-failure", role: "alert", hidden: true });
    this.live = element("div", { class: "hookedu-unseen", "aria-live": "polite" });
    this.ended = this.label(
      element("div", { class: "hookedu-ended", role: "status", hidden: true }),
      "ended",
    );
    this.root.append(this.ended, this.body, this.failure, this.live);
    this.watch(["words", "language"], () => this.speak());
    this.watch(["failure"], () => this.fail(this.get("failure")));
    this.noteEnd();
    this.keepKeys();
  }

  /** Aborted when this view ends; give it to whatever takes one. */
  get signal() {
    return this.ending.signal;
  }

  /** Whether the reader wants no animation. */
  get still() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  dispose() {
    this.ending.abort();
    this.root.remove();
  }

  // -- errors -----------------------------------------------------------------------------------------------------

  /**
   * Return this function so that an exception is shown in the widget, which goes on.
   *
   * @template {any[]} A
   * @param {(...args: A) => void} action
   * @returns {(...args: A) => void}
   */
  guard(action) {
    let failed = false;
    return (...args) => {
      if (this.signal.aborted) return;
      try {
        action(...args);
        if (failed) this.fail(this.get("failure"));
        failed = false;
      } catch (thrown) {
        failed = true;
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        this.fail({ says: "failed_here", error: String(error), trace: error.stack ?? "" });
      }
    };
  }

  /** Say so when the kernel no longer knows this widget, as after a restart, until something comes from Python. */
  noteEnd() {
    const end = this.guard(() => this.ended.removeAttribute("hidden"));
    const alive = this.guard(() => this.ended.setAttribute("hidden", ""));
    this.model.on("comm_live_update", end); // of ipywidgets, which tells nobody but its own views
    this.model.on("msg:custom", alive);
    this.signal.addEventListener("abort", () => {
      this.model.off("comm_live_update", end);
      this.model.off("msg:custom", alive);
    });
  }

  /** @param {Failure | Record<string, never>} failure {} for none */
  fail(failure) {
    this.failure.hidden = !failure.says;
    this.failure.replaceChildren();
    if (!failure.says) return;
    const trace = element("pre", { tabindex: 0 }, failure.trace);
    this.failure.append(
      this.label(element("div"), failure.says),
      element("pre", {}, failure.error),
      element("details", {}, this.label(element("summary"), "traceback"), trace),
    );
  }

  // -- Python -----------------------------------------------------------------------------------------------------

  /** @param {string} trait */
  get(trait) {
    return this.model.get(trait);
  }

  /**
   * Set a trait, here and in Python.
   *
   * @param {string} trait
   * @param {any} value
   */
  set(trait, value) {
    this.model.set(trait, value);
    this.model.save_changes();
  }

  /**
   * Run this now and whenever one of the traits changes.
   *
   * @param {string[]} traits
   * @param {() => void} action
   */
  watch(traits, action) {
    const guarded = this.guard(action);
    for (const trait of traits) this.model.on(`change:${trait}`, guarded);
    this.signal.addEventListener("abort", () => {
      for (const trait of traits) this.model.off(`change:${trait}`, guarded);
    });
    guarded();
  }

  /**
   * Send a message to Python, where `_heard` gets it.
   *
   * @param {string} kind
   * @param {object} [content]
   * @param {ArrayBuffer[]} [buffers]
   */
  send(kind, content = {}, buffers = []) {
    this.model.send({ ...content, kind }, undefined, buffers);
  }

  /**
   * Run this for the messages of a kind that Python posts, with the tensors that came along.
   *
   * @param {string} kind
   * @param {(content: any, tensors: Record<string, Tensor>) => void} action
   */
  receive(kind, action) {
    const guarded = this.guard(action);
    /** @param {any} message @param {DataView[]} buffers */
    const heard = (message, buffers) => {
      if (message.kind === kind) guarded(message.content, decode(message.tensors, buffers));
    };
    this.model.on("msg:custom", heard);
    this.signal.addEventListener("abort", () => this.model.off("msg:custom", heard));
  }

  // -- language ---------------------------------------------------------------------------------------------------

  /**
   * Fill an element, or one of its attributes, with words, now and whenever they or the language change.
   *
   * @template {Element} E
   * @param {E} node
   * @param {string} key of `WORDS` in Python
   * @param {Values} [values]
   * @param {string} [attribute] such as "aria-label"
   * @returns {E}
   */
  label(node, key, values, attribute = "") {
    const fill = () => {
      if (attribute) node.setAttribute(attribute, this.text(key, values));
      else node.replaceChildren(...this.spoken(key, values));
    };
    const fills = this.labels.get(node) ?? new Map();
    this.labels.set(node, fills.set(attribute, fill));
    fill();
    return node;
  }

  /**
   * The words of a key as plain text, for what cannot follow the language by itself, such as a canvas.
   *
   * @param {string} key
   * @param {Values} [values]
   */
  text(key, values) {
    const plain = this.sides(key, values).map(([, words]) => words.replace(/[`*]/g, ""));
    return [...new Set(plain)].join(" · ");
  }

  /**
   * Say something to those who use a screen reader.
   *
   * @param {string} key
   * @param {Values} [values]
   */
  announce(key, values) {
    this.live.replaceChildren(...this.spoken(key, values));
  }

  /**
   * @param {string} key
   * @param {Values} [values]
   * @returns {[string, string][]} language and words, for each language that is shown
   */
  sides(key, values = {}) {
    /** @type {Words | undefined} */
    const words = this.get("words")[key];
    if (!words) throw new Error(`no words for "${key}"`);
    /** @param {"zh" | "en"} side @returns {[string, string]} */
    const filled = (side) => {
      const fill = (/** @type {string} */ field, /** @type {string} */ name) => {
        const value = values[name] ?? field;
        return String(typeof value === "object" ? value[side] : value);
      };
      return [side, words[side].replace(/\{(\w+)\}/g, fill)];
    };
    const chosen = this.get("language");
    const sides = [filled("zh"), filled("en")];
    return sides.filter(([language]) => chosen === "both" || chosen === language);
  }

  /**
   * @param {string} key
   * @param {Values} [values]
   * @returns {Node[]}
   */
  spoken(key, values) {
    const sides = this.sides(key, values);
    if (sides.length === 2 && sides[0][1] === sides[1][1]) return inline(sides[0][1]);
    return sides.flatMap(([lang, words], number) => [
      ...(number ? [element("span", { class: "hookedu-dot" }, " · ")] : []),
      element("span", { lang }, ...inline(words)),
    ]);
  }

  speak() {
    for (const node of [this.root, ...this.root.querySelectorAll("*")]) {
      for (const fill of this.labels.get(node)?.values() ?? []) fill();
    }
  }

  // -- events -----------------------------------------------------------------------------------------------------

  /**
   * Listen until the view ends.
   *
   * @template {Event} E
   * @param {EventTarget} target
   * @param {string} type
   * @param {(event: E) => void} action
   */
  on(target, type, action) {
    const listener = /** @type {EventListener} */ (/** @type {unknown} */ (this.guard(action)));
    target.addEventListener(type, listener, { signal: this.signal });
  }

  /** Keep keys from JupyterLab, which would take arrows and letters as commands; those with Ctrl or Cmd it gets. */
  keepKeys() {
    const attribute = "data-lm-suppress-shortcuts";
    /** @param {KeyboardEvent} event */
    const first = (event) => {
      // JupyterLab listens on the document while the event goes down, so the window is the place to be earlier. The
      // attribute is on the very target, because some shortcuts apply to whatever has the focus.
      if (event.target instanceof Element && this.root.contains(event.target)) {
        event.target.toggleAttribute(attribute, !(event.ctrlKey || event.metaKey));
      }
    };
    window.addEventListener("keydown", first, { capture: true, signal: this.signal });
    /** @param {KeyboardEvent} event */
    const last = (event) => event.ctrlKey || event.metaKey || event.stopPropagation();
    this.root.addEventListener("keydown", last, { signal: this.signal });
  }

  /**
   * Let arrow keys, Home and End move among the children of a group, of which Tab reaches one.
   *
   * The items of an SVG group say so to `listener`, an HTML element around it: Chromium lets Tab reach any element of an SVG
   * that listens to the focus.
   *
   * @param {HTMLElement} group
   * @param {{columns?: () => number, moved?: (item: HTMLElement, index: number) => void, listener?: HTMLElement}} [options]
   */
  rove(group, { columns = () => 1, moved = () => {}, listener = group } = {}) {
    const items = () => /** @type {HTMLElement[]} */ ([...group.children]);
    /** @param {HTMLElement} chosen */
    const reach = (chosen) => {
      for (const item of items()) item.tabIndex = item === chosen ? 0 : -1;
    };
    const [first] = items();
    if (first && !items().some((item) => item.tabIndex === 0)) reach(first);
    this.on(listener, "focusin", (/** @type {FocusEvent} */ event) => {
      const item = items().find((each) => each.contains(/** @type {Node} */ (event.target)));
      if (item) reach(item);
    });
    this.on(group, "keydown", (/** @type {KeyboardEvent} */ event) => {
      const at = items().indexOf(/** @type {HTMLElement} */ (document.activeElement));
      const to = step(event.key, at, items().length, columns());
      if (at < 0 || to === null) return;
      event.preventDefault();
      items()[to].focus();
      moved(items()[to], to);
    });
  }

  /**
   * Call this in each frame with the milliseconds that have passed, as long as it returns true.
   *
   * @param {(passed: number) => boolean} draw
   * @returns {() => void} stops it
   */
  frames(draw) {
    let frame = 0;
    const began = performance.now();
    // Guarded, it does nothing once the view has ended.
    const next = this.guard(() => {
      if (draw(performance.now() - began)) frame = requestAnimationFrame(next);
    });
    next();
    return () => cancelAnimationFrame(frame);
  }

  /**
   * Call this with the time that has passed, from 0 to 1, in each frame; only with 1 if the reader wants no animation.
   *
   * @param {number} milliseconds
   * @param {(time: number) => void} draw
   * @returns {() => void} stops it
   */
  animate(milliseconds, draw) {
    return this.frames((passed) => {
      const time = this.still ? 1 : Math.min(passed / milliseconds, 1);
      draw(time);
      return time < 1;
    });
  }

  /**
   * Run this now and whenever the theme or the density of the screen changes: a canvas must be drawn anew.
   *
   * JupyterLab names the new theme and hides the whole page until the next frame, so that nothing has a width before.
   *
   * @param {() => void} draw
   */
  painted(draw) {
    const guarded = this.guard(draw);
    const themes = new MutationObserver(() => requestAnimationFrame(guarded));
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "class"] });
    this.signal.addEventListener("abort", () => themes.disconnect());
    const queries = [
      "(forced-colors: active)",
      "(prefers-color-scheme: dark)",
      `(resolution: ${devicePixelRatio}dppx)`,
    ];
    for (const query of queries) this.on(matchMedia(query), "change", guarded);
    guarded();
  }

  /**
   * The value of a custom property such as "--ink" (see shared.css), for a canvas.
   *
   * @param {string} property
   */
  colour(property) {
    const probe = element("span", { style: `color: var(${property})` });
    this.root.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  }
}
