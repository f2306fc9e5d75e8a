// Elements of the page, made in one expression each, and the keys that lead from one to another.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean>} [attributes] true sets an empty one, false none
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} node
 * @param {Record<string, string | number | boolean>} attributes
 * @param {(Node | string)[]} children
 */
function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/**
 * Return words as nodes: `code` in backticks, **strong** in asterisks.
 *
 * @param {string} words
 * @returns {Node[]}
 */
export function inline(words) {
  return words.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) return element("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return element("strong", {}, part.slice(2, -2));
    return document.createTextNode(part);
  });
}

/**
 * Where a key leads from a place among `count` in rows of `columns`; null for any other key.
 *
 * @param {string} key
 * @param {number} at
 * @param {number} count
 * @param {number} [columns]
 */
export function step(key, at, count, columns = 1) {
  const steps = /** @type {Record<string, number>} */ ({
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    ArrowUp: at - columns,
    ArrowDown: at + columns,
    Home: 0,
    End: count - 1,
  });
  const to = steps[key];
  if (to === undefined || count === 0) return null;
  return to < 0 || to >= count ? at : to;
}

/**
 * Put text on the clipboard; return whether that worked.
 *
 * @param {string} text
 */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text); // absent where a page comes without HTTPS from another machine
    return true;
  } catch {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const area = element("textarea", { class: "hookedu-unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus();
    return done;
  }
}

/**
 * A button that copies a text to the clipboard, and says for a while whether that worked.
 *
 * @param {import("./shared.js").View} view
 * @param {() => string} text
 */
export function copyButton(view, text) {
  const button = view.label(element("button", { type: "button" }), "copy");
  view.on(button, "click", async () => {
    const said = (await copy(text())) ? "copied" : "not_copied";
    view.label(button, said);
    view.announce(said);
    setTimeout(() => view.label(button, "copy"), 3000);
  });
  return button;
}
