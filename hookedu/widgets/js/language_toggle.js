// The language buttons. A press changes the language of this notebook, of the other open ones that show the buttons, and of
// the closed ones in the same folder. A cell that is ours has its source in every language in its metadata (see
// hookedu/cells.py); as soon as its source is none of these, it is the learner's, and nothing here touches it.

import { element } from "./elements.js";
import { widget } from "./shared.js";

/** @typedef {"zh" | "en" | "both"} Language */
/** @typedef {{languages?: Record<string, string[]>} | undefined} Ours what hookedu notes in a cell's metadata */
/** @typedef {{getSource(): string, setSource(text: string): void}} SharedCell */
/** @typedef {{sharedModel: SharedCell, getMetadata(key: string): Ours}} OpenCell */
/** @typedef {{source: string, metadata: {hookedu?: Ours}}} SavedCell */
/** @typedef {{path: string, type: string, writable: boolean, content: any}} File */
/** @typedef {{get(path: string): Promise<File>, save(path: string, file: object): Promise<File>}} Contents */
/** @typedef {{path: string, kernel: {connections?: number} | null}} Session */
/** @typedef {{refreshRunning(): Promise<void>, running(): Iterable<Session>}} Sessions */
/**
 * @typedef {object} Notebook the document of JupyterLab 4 and Notebook 7
 * @property {string} path
 * @property {{cells: Iterable<OpenCell>, readOnly: boolean}} model
 * @property {() => Promise<void>} save
 * @property {{sessionManager: Sessions}} sessionContext
 * @property {{contents: Contents}} [_manager]
 */

/** @type {Language[]} */
const LANGUAGES = ["zh", "en", "both"];

/** @param {import("./shared.js").View} view */
function build(view) {
  const notebook = notebookOf(view.model);
  const group = element("div", { class: "hookedu-language", role: "group" });
  const note = element("p", { hidden: true });
  view.label(group, "what", {}, "aria-label");
  view.label(note, "elsewhere");
  view.body.append(group, note);

  /** @param {Language} language */
  const change = async (language) => {
    view.set("language", language);
    const here = await notebook;
    note.hidden = here !== null;
    if (here) changeOpen(here, language);
  };

  const channel = new BroadcastChannel("hookedu-language");
  view.signal.addEventListener("abort", () => channel.close());
  view.on(channel, "message", (/** @type {MessageEvent<Language>} */ { data }) => {
    view.send("follow", { language: data });
    change(data);
  });
  for (const language of LANGUAGES) {
    const button = view.label(element("button", { type: "button" }), language);
    view.watch(["language"], () =>
      button.setAttribute("aria-pressed", String(view.get("language") === language)),
    );
    view.on(button, "click", async () => {
      view.send("choose", { language });
      channel.postMessage(language);
      await change(language);
      const here = await notebook;
      const holds = () => view.get("language") === language; // not once another was chosen, here or elsewhere
      if (here) later(() => alone(() => changeClosed(here, language, holds)));
    });
    group.append(button);
  }
  view.watch(["language"], async () => {
    // Elsewhere, a notebook or each of its outputs has a page of its own.
    const page = (await notebook) ? await inPage(view, ".jp-NotebookPanel") : document.documentElement;
    if (page) page.dataset.hookeduLanguage = view.get("language");
  });
}

/**
 * The notebook that shows this widget; null where a front end lets no widget reach it.
 *
 * @param {import("./shared.js").Model} model
 * @returns {Promise<Notebook | null>}
 */
async function notebookOf(model) {
  try {
    // anywidget hides the widget's own model. Through that, ipywidgets reaches its manager, which in JupyterLab 4 and
    // Notebook 7 has the document.
    const own = /** @type {any} */ (await model.widget_manager.get_model(model.get("own_id")));
    return own.widget_manager.context ?? null;
  } catch {
    return null;
  }
}

/**
 * The element around a view, once the view is in the page: it is drawn before that.
 *
 * @param {import("./shared.js").View} view
 * @param {string} selector
 * @returns {Promise<HTMLElement | null>}
 */
async function inPage(view, selector) {
  while (!view.root.isConnected && !view.signal.aborted) await new Promise(requestAnimationFrame);
  return view.root.closest(selector);
}

/**
 * The source of a cell in a language; null if there is nothing to change.
 *
 * @param {string} source
 * @param {Ours} ours
 * @param {Language} language
 */
function translated(source, ours, language) {
  const languages = ours?.languages;
  if (!languages?.[language]) return null;
  const texts = Object.values(languages).map((lines) => lines.join(""));
  const text = languages[language].join("");
  return texts.includes(source) && source !== text ? text : null;
}

/** Files are written one after the other: of two presses in a row, the second must win everywhere. */
let writing = Promise.resolve();

/** @param {() => Promise<void>} task */
function later(task) {
  writing = writing.then(task).catch((error) => console.warn("hookedu:", error));
}

/**
 * Run a task while no other page runs one. Browsers have locks only where they trust the connection: on this machine, and by
 * https.
 *
 * @param {() => Promise<void>} task
 */
function alone(task) {
  return navigator.locks ? navigator.locks.request("hookedu-language", task) : task();
}

/**
 * Change the cells of an open notebook at once, then save it: a choice must outlive a reload.
 *
 * @param {Notebook} notebook
 * @param {Language} language
 */
function changeOpen(notebook, language) {
  let changed = false;
  for (const cell of notebook.model.cells) {
    const text = translated(cell.sharedModel.getSource(), cell.getMetadata("hookedu"), language);
    if (text === null) continue;
    cell.sharedModel.setSource(text);
    changed = true;
  }
  if (changed && !notebook.model.readOnly) later(() => notebook.save());
}

/**
 * Change the lessons beside an open notebook. One that a page is connected to is open: its own buttons change it.
 *
 * @param {Notebook} notebook
 * @param {Language} language
 * @param {() => boolean} holds whether that is still the choice
 */
async function changeClosed(notebook, language, holds) {
  const sessions = notebook.sessionContext.sessionManager;
  const contents = notebook._manager?.contents;
  if (!contents) return;
  await sessions.refreshRunning();
  const used = [...sessions.running()].filter((session) => session.kernel?.connections);
  const open = new Set([notebook.path, ...used.map((session) => session.path)]);
  const folder = await contents.get(notebook.path.split("/").slice(0, -1).join("/"));
  for (const { path, type, writable } of /** @type {File[]} */ (folder.content)) {
    if (!holds()) return;
    if (type !== "notebook" || !writable || open.has(path)) continue;
    const { content } = await contents.get(path);
    let changed = false;
    for (const cell of /** @type {SavedCell[]} */ (content.cells)) {
      const text = translated(cell.source, cell.metadata.hookedu, language);
      if (text === null) continue;
      cell.source = text;
      changed = true;
    }
    if (changed) await contents.save(path, { type: "notebook", format: "json", content });
  }
}

export default widget(build);
