// The language buttons. A press changes the language of this notebook, of the other ones that are open and show the
// buttons, and of those in the same folder that are closed. A cell that is ours has its source in every language in its
// metadata (hookedu/cells.py); as soon as its source is none of these, it is the learner's and nothing here touches it.

const LANGUAGES = ["zh", "en", "both"];
const NAMES = { zh: "中文", en: "English" };
const BOTH = { zh: "双语", en: "Both", both: "双语 · Both" };
const WHAT = { zh: "语言", en: "Language", both: "语言 · Language" };

/** The cell's source in that language, or null if there is nothing to change. */
function translated(source, metadata, language) {
  const languages = metadata?.languages;
  if (!languages?.[language]) return null;
  const texts = Object.fromEntries(Object.entries(languages).map(([name, lines]) => [name, lines.join("")]));
  return Object.values(texts).includes(source) && source !== texts[language] ? texts[language] : null;
}

/** The document of the notebook that shows this widget; null where a front end has none to offer. */
async function documentOf(model) {
  try {
    // anywidget hides the widget's own model, through which ipywidgets reaches its manager; JupyterLab 4 and Notebook 7
    // give that manager the document.
    const own = await model.widget_manager.get_model(model.get("_own_id"));
    return own.widget_manager.context ?? null;
  } catch {
    return null;
  }
}

/** Files are written one after the other: of two presses in a row, the second must win everywhere. */
let writing = Promise.resolve();
function later(task) {
  writing = writing.then(task).catch((error) => console.warn("hookedu:", error));
}

/** Change the cells of an open notebook at once, then save it: the choice must outlive a reload. */
function changeOpen(document, language) {
  let changed = false;
  for (const cell of document.model.cells) {
    const text = translated(cell.sharedModel.getSource(), cell.getMetadata("hookedu"), language);
    if (text === null) continue;
    cell.sharedModel.setSource(text);
    changed = true;
  }
  if (changed && !document.model.readOnly) later(() => document.save());
}

/** Change the lessons beside an open notebook. One that a page is connected to is open: its own buttons change it. */
async function changeClosed(document, language) {
  const contents = document._manager?.contents;
  const sessions = document.sessionContext?.sessionManager;
  if (!contents || !sessions) return;
  await sessions.refreshRunning();
  const used = [...sessions.running()].filter((session) => session.kernel?.connections > 0);
  const open = new Set([document.path, ...used.map((session) => session.path)]);
  const folder = await contents.get(document.path.split("/").slice(0, -1).join("/"));
  for (const { path, type, writable } of folder.content) {
    if (type !== "notebook" || !writable || open.has(path)) continue;
    const { content } = await contents.get(path);
    let changed = false;
    for (const cell of content.cells) {
      const text = translated(cell.source, cell.metadata?.hookedu, language);
      if (text === null) continue;
      cell.source = text;
      changed = true;
    }
    if (changed) await contents.save(path, { type: "notebook", format: "json", content });
  }
}

async function render({ model, el }) {
  const document = await documentOf(model);
  const channel = new BroadcastChannel("hookedu-language");
  const group = Object.assign(window.document.createElement("div"), { className: "hookedu-language" });
  group.setAttribute("role", "group");
  const buttons = LANGUAGES.map((language) => {
    const button = Object.assign(window.document.createElement("button"), { type: "button" });
    button.addEventListener("click", () => {
      model.send({ chosen: language });
      channel.postMessage(language);
      change(language);
      if (document) later(() => changeClosed(document, language));
    });
    group.append(button);
    return button;
  });
  const note = window.document.createElement("p");
  el.append(group);

  const change = (language) => {
    model.set("language", language);
    model.save_changes();
    if (document) changeOpen(document, language);
    else group.append(note);
  };
  const paint = () => {
    const language = model.get("language");
    // In other front ends a notebook, or this output, has a page of its own.
    const shown = el.closest(".jp-NotebookPanel") ?? window.document.documentElement;
    shown.dataset.hookeduLanguage = language;
    group.setAttribute("aria-label", WHAT[language]);
    buttons.forEach((button, place) => {
      button.textContent = NAMES[LANGUAGES[place]] ?? BOTH[language];
      button.setAttribute("aria-pressed", String(LANGUAGES[place] === language));
    });
    const said = model.get("_elsewhere");
    note.textContent = [said.zh, said.en].filter((_, place) => [LANGUAGES[place], "both"].includes(language)).join(" ");
  };
  model.on("change:language", paint);
  channel.addEventListener("message", ({ data }) => change(data));
  // The element is not in the page yet when it is drawn.
  requestAnimationFrame(paint);
  paint();
  return () => {
    channel.close();
    model.off("change:language", paint);
  };
}

export default { render };
