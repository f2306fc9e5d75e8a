"""HookInspector: every live hook of a model, where it comes from, what is wrong with it, and a way to take it off."""

import inspect
from html import escape
from typing import Any

import ipywidgets
from torch import nn

from hookedu.hooks.diagnosis import Findings, diagnose
from hookedu.hooks.inspection import Hook, Hooks, list_hooks, plain_function
from hookedu.hooks.modules import unwrap
from hookedu.language import Text
from hookedu.widgets.panel import Panel, aligned
from hookedu.widgets.runs import arguments

_LINES = 40  # of a hook's source


class HookInspector(Panel):
    """A live table of a model's hooks: it is brought up to date after every cell that runs.

    model: any nn.Module. x: an input, as for LayerPicker; with it `diagnose` also watches one run of the model.

    value: the chosen Hook or None. hooks: all of them. findings: what `diagnose` found. error: the exception that is
    shown, or None. close() ends it.
    """

    def __init__(self, model: nn.Module, x: Any = None) -> None:
        inner = unwrap(model)  # raises for what is no model, before anything is made
        super().__init__()
        self._model, self._inner, self._x = model, inner, x
        self._hooks, self._findings, self._removed = Hooks(), Findings(), None
        self._wanted: Hook | None = None
        self._drawn: int | None = None
        self._stale = True
        self._shell = _shell()
        self._make_controls()
        self._answer()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self.refresh)

    def _make_controls(self) -> None:
        w, label, auto = ipywidgets, self.label, {"width": "auto"}
        self._list = w.Select(rows=8, layout=auto, style={"description_width": "initial"})
        self._list.add_class("hookedu-list")
        self._details = w.HTML().add_class("hookedu-code")
        self._remove = label(
            w.Button(icon="trash", layout=auto),
            description=REMOVE,
            tooltip=REMOVE_TIP,
        )
        self._refresh = label(w.Button(icon="refresh", layout=auto), description=REFRESH, tooltip=REFRESH_TIP)
        self._about, self._report = w.HTML(), w.HTML()
        self._list.observe(self.changed, "value")
        self._remove.on_click(self._want_removal)
        self._refresh.on_click(self.refresh)
        buttons = w.HBox([self.stepper(self._list), self._remove, self._refresh]).add_class("hookedu-row")
        self._show(self._list, buttons, self._about, self._details, self._report)

    def _want_removal(self, _: Any) -> None:
        self._wanted = self.value
        self.changed()

    def refresh(self, _: Any = None) -> None:
        """Look at the model again."""
        self._stale = True
        self.changed()

    def _update(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted.owner != "torch":
            wanted.remove()
            self._removed, self._stale = wanted, True
        stale, self._stale = self._stale, False
        if stale:
            self._fill_list()
        if stale or self._drawn != self._list.value:
            self._drawn = self._list.value
            self._describe(self.value)
        if stale:
            self._diagnose()  # last: it may run the model, which may raise
            self._no_error()

    def _fill_list(self) -> None:
        chosen = self.value
        self._hooks = list_hooks(self._inner)
        keys = [_key(hook) for hook in self._hooks]
        keep = keys.index(_key(chosen)) if chosen is not None and _key(chosen) in keys else 0
        lines = aligned([(_where(h), h.kind, h.function, h.owner) for h in self._hooks])
        self.options(self._list, [(line, n) for n, line in enumerate(lines)], keep)
        self.label(self._list, description=HOOKS.format(n=len(keys)))

    def _diagnose(self) -> None:
        args, kwargs = ((), {}) if self._x is None else arguments(self._inner, self._x)
        self._findings = diagnose(self._model, *args, **kwargs)
        parts = [REMOVED.format(hook=self._removed.function)] if self._removed else []
        parts.append(
            FINDINGS.format(n=len(self._findings)) if self._findings else WELL if self._hooks else NONE
        )
        parts += [Text(zh=f"• {f.says.zh}", en=f"• {f.says.en}") for f in self._findings]
        self.say(self._report, Text(*("  \n".join(getattr(p, side) for p in parts) for side in ("zh", "en"))))

    def _describe(self, hook: Hook | None) -> None:
        self._remove.disabled = hook is None or hook.owner == "torch"
        self._details.value = "" if hook is None else f"<pre tabindex=0>{escape(_source(hook))}</pre>"
        source = None if hook is None or hook.line is None else f"{self._file(hook.file)}:{hook.line}"
        self.say(
            self._about,
            hook
            and ABOUT.format(
                **{"where": _where(hook), "kind": hook.kind, "function": hook.function, "owner": hook.owner},
                **{"source": source or "—", "order": hook.index},
            ),
        )

    def _file(self, name: str | None) -> str | None:
        """Of a notebook's cell what stands beside it: `In[3]`, not the file that IPython made up for it."""
        compiler = getattr(self._shell, "compile", None)
        return ((compiler and compiler.format_code_name(name)) or ("", name))[1]

    # -- for code ----------------------------------------------------------------------------------------------

    @property
    def value(self) -> Hook | None:
        chosen = self._list.value
        return self._hooks[chosen] if chosen is not None and chosen < len(self._hooks) else None

    @property
    def hooks(self) -> Hooks:
        self.settle()
        return self._hooks

    @property
    def findings(self) -> Findings:
        self.settle()
        return self._findings

    def _release(self) -> None:
        if self._shell is not None:
            self._shell.events.unregister("post_run_cell", self.refresh)
        self._model = self._inner = self._x = self._removed = None
        self._hooks, self._findings = Hooks(), Findings()


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()


def _key(hook: Hook) -> tuple[Any, ...]:
    return hook.id, hook.kind, hook.path


def _where(hook: Hook) -> str:
    return "(process)" if hook.path is None else hook.path or "(model)"


def _source(hook: Hook) -> str:
    """The code of a hook's function, as far as Python still has it."""
    function = plain_function(hook.callable)
    for candidate in (function, type(function)):
        try:
            lines = inspect.getsource(candidate).splitlines()
        except (OSError, TypeError):  # such as a builtin, or code that was typed without a file
            continue
        return "\n".join(lines[:_LINES] + (["…"] if len(lines) > _LINES else []))
    return repr(hook.callable)


HOOKS = Text(
    zh="现有钩子：{n} 个（位置、种类、函数、归属）", en="Live hooks: {n} (where, kind, function, owner)"
)
REMOVE = Text(zh="移除这个钩子", en="Remove this hook")
REMOVE_TIP = Text(zh="从模型上取下选中的钩子", en="Take the chosen hook off the model")
REFRESH = Text(zh="刷新", en="Refresh")
REFRESH_TIP = Text(zh="重新查看模型上的钩子", en="Look at the model's hooks again")
REMOVED = Text(zh="已移除 `{hook}`。", en="`{hook}` has been removed.")
FINDINGS = Text(zh="**诊断：发现 {n} 个问题**", en="**Diagnosis: {n} found**")
WELL = Text(zh="**诊断：没有发现问题**", en="**Diagnosis: nothing is wrong**")
NONE = Text(zh="模型上没有钩子。", en="The model has no hook.")
ABOUT = Text(
    zh="`{function}` · {kind} 钩子，位于 `{where}`，序号 {order} · 归属 {owner} · 定义于 `{source}`",
    en="`{function}` · a {kind} hook on `{where}`, number {order} there · owner {owner} · defined at `{source}`",
)
