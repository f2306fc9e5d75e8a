"""Style sheet of widgets that are made of ipywidgets, in JupyterLab's own colours, which fit light and dark themes."""

CSS = """<style>
.hookedu-widget { padding: 4px 2px; gap: 4px; }
.hookedu-widget .widget-html-content { line-height: 1.5; color: var(--jp-ui-font-color1); }
.hookedu-widget img { max-width: 100%; height: auto; border-radius: 4px; }
.hookedu-widget :focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.hookedu-widget code { font-family: var(--jp-code-font-family); font-size: 12px; }
.hookedu-error { border: 1px solid var(--jp-error-color1); border-left-width: 6px; border-radius: 4px; padding: 6px 10px;
  color: var(--jp-content-font-color1); }
.hookedu-error pre { background: var(--jp-layout-color2); color: var(--jp-content-font-color1); padding: 8px 10px;
  border-radius: 4px; overflow: auto; max-height: 26em; margin: 4px 0; white-space: pre-wrap; }
</style>"""
