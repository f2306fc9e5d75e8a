"""Style sheet of the widgets, in JupyterLab's own colours, so that it fits light and dark themes."""

CSS = """<style>
.hookedu-widget { padding: 4px 2px; gap: 4px; }
.hookedu-widget .widget-html-content { line-height: 1.5; color: var(--jp-ui-font-color1); }
.hookedu-widget select, .hookedu-widget .hookedu-code pre { font-family: var(--jp-code-font-family); font-size: 12px; }
.hookedu-widget select option:checked { font-weight: bold; }
.hookedu-widget img { max-width: 100%; height: auto; border-radius: 4px; }
.hookedu-widget :focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.hookedu-row { flex-flow: row wrap; gap: 2px 12px; align-items: center; }
.hookedu-channels.widget-toggle-buttons { flex-wrap: wrap; }
.hookedu-channels button { padding: 0 4px; margin: 1px; line-height: 22px; height: 24px; }
.hookedu-widget button.mod-active { font-weight: bold; text-decoration: underline; }
.hookedu-code pre, .hookedu-error pre { background: var(--jp-layout-color2); color: var(--jp-content-font-color1);
  padding: 8px 10px; border-radius: 4px; overflow: auto; max-height: 26em; margin: 4px 0; white-space: pre; }
.hookedu-error { border: 1px solid var(--jp-error-color1); border-left-width: 6px; border-radius: 4px; padding: 6px 10px;
  color: var(--jp-content-font-color1); }
.hookedu-error pre { white-space: pre-wrap; }
.hookedu-widget code { font-family: var(--jp-code-font-family); font-size: 12px; }
</style>"""
