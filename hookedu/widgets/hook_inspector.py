"""HookInspector: list, inspect, diagnose and remove the hooks of a model."""

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

_LINES = 40  # lines shown of the source of a hook


class HookInspector(Panel):
    """Widget that lists the hooks of a model, diagnoses them and can remove them.

    For the selected hook it shows where it is registered, its kind, owner and source code; below that, what
    :func:`diagnose` finds. In a notebook the list is refreshed after every cell that runs. Hooks that belong
    to PyTorch, such as those of ``spectral_norm``, cannot be removed.

    With inputs, the model runs once when the widget is made, so that :func:`diagnose` can watch the hooks at work. It
    does not run again by itself: when the hooks have changed since, a note asks to press "Run again".

    An exception that the model raises is shown in the widget and kept in ``error``; it does not propagate.

    Parameters
    ----------
    model : torch.nn.Module
        The model to inspect.
    *inputs : object
        Positional arguments for a run of the model. The model gets copies.
    **kwargs : object
        Keyword arguments for a run of the model.

    Attributes
    ----------
    value : Hook or None
        The selected hook; None if the model has none.
    hooks : Hooks
        All hooks, as :func:`list_hooks` returns them.
    findings : Findings
        The result of :func:`diagnose`.
    error : Exception or None
        The exception that the widget shows.

    Raises
    ------
    TypeError
        If ``model`` is not an ``nn.Module``, or is a TorchScript module.
    ValueError
        If ``model`` is a ``DataParallel`` on several GPUs.

    Examples
    --------
    >>> from torch import nn
    >>> from hookedu import HookInspector
    >>> def print_shape(module, args, output):
    ...     print(tuple(output.shape))
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> handle = model[0].register_forward_hook(print_shape)
    >>> inspector = HookInspector(model)  # the last line of a cell shows it
    >>> inspector.value.kind, inspector.value.path, inspector.value.function
    ('forward', '0', 'print_shape')
    >>> handle.remove()
    >>> inspector.refresh()  # in a notebook this happens by itself
    >>> inspector.hooks
    no hooks
    >>> inspector.close()
    """

    def __init__(self, model: nn.Module, *inputs: Any, **kwargs: Any) -> None:
        inner = unwrap(model)  # first: it raises for anything that is not a model
        super().__init__()
        self._model: nn.Module | None = model  # None once closed, as are the next two
        self._inner: nn.Module | None = inner
        self._inputs, self._kwargs = inputs, kwargs
        self._due = True  # whether the next update must diagnose, too
        self._diagnosed: list[Any] | None = None  # the hooks that `diagnose` has seen, by their keys
        self._hooks, self._findings = Hooks(), Findings()
        self._removed: Hook | None = None  # removed last
        self._wanted: Hook | None = None  # to be removed at the next update
        self._drawn: int | None = None  # index of the hook that is described at the moment
        self._stale = True  # whether the next update must list the hooks again
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
        says, tip = (RUN, RUN_TIP) if self._runs else (REFRESH, REFRESH_TIP)
        self._refresh = label(w.Button(icon="refresh", layout=auto), description=says, tooltip=tip)
        self._about, self._report = w.HTML(), w.HTML()
        self._list.observe(self.changed, "value")
        self._remove.on_click(self._want_removal)
        self._refresh.on_click(self.run)
        buttons = w.HBox([self.stepper(self._list), self._remove, self._refresh]).add_class("hookedu-row")
        self._show(self._list, buttons, self._about, self._details, self._report)

    def _want_removal(self, _: Any) -> None:
        self._wanted = self.value
        self.changed()

    @property
    def _runs(self) -> bool:
        return bool(self._inputs or self._kwargs)

    def refresh(self, _: Any = None) -> None:
        """List the hooks of the model again, without running it."""
        self._stale = True
        self.changed()

    def run(self, _: Any = None) -> None:
        """List the hooks of the model and diagnose them again, which runs the model if there are inputs."""
        self._due = True
        self.refresh()

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
        due, self._due = self._due or (stale and not self._runs), False
        if due:
            assert self._model is not None  # a closed widget is not updated
            self._findings, self._diagnosed = Findings(), None
            self._findings = diagnose(self._model, *self._inputs, **self._kwargs)  # the model may raise
            self._diagnosed = self._keys()
            self._no_error()
        if stale and self._diagnosed is not None:
            self._report_findings()

    def _fill_list(self) -> None:
        assert self._inner is not None  # a closed widget is not updated
        chosen = self.value
        self._hooks = list_hooks(self._inner)
        keys = self._keys()
        keep = keys.index(_key(chosen)) if chosen is not None and _key(chosen) in keys else 0
        lines = aligned([(_where(h), h.kind, h.function, h.owner) for h in self._hooks])
        self.options(self._list, [(line, n) for n, line in enumerate(lines)], keep)
        self.label(self._list, description=HOOKS.format(n=len(keys)))

    def _report_findings(self) -> None:
        parts = [REMOVED.format(hook=self._removed.function)] if self._removed else []
        parts += self._verdict()
        parts += [CHANGED] if self._runs and self._diagnosed != self._keys() else []
        self.say(self._report, _lines(parts))

    def _verdict(self) -> list[Text]:
        """Return what was found, a line for each."""
        parts = [FINDINGS.format(n=len(self._findings)) if self._findings else WELL if self._hooks else NONE]
        parts += [Text(zh=f"• {f.says.zh}", en=f"• {f.says.en}") for f in self._findings]
        return parts + self._findings.notes

    def _still(self) -> Text:
        self.settle()
        return _lines(self._verdict())

    def _describe(self, hook: Hook | None) -> None:
        self._remove.disabled = hook is None or hook.owner == "torch"
        self._details.value = "" if hook is None else f"<pre tabindex=0>{escape(_source(hook))}</pre>"
        source = None if hook is None or hook.line is None else f"{self._file(hook.file)}:{hook.line}"
        self.say(
            self._about,
            hook
            and ABOUT.format(
                where=_where(hook),
                kind=hook.kind,
                function=hook.function,
                owner=hook.owner,
                source=source or "—",
                order=hook.index,
            ),
        )

    def _keys(self) -> list[Any]:
        return [_key(hook) for hook in self._hooks]

    def _file(self, name: str | None) -> str | None:
        """Return a file name for display: of a notebook cell `In[3]`, not the name that IPython invents."""
        compiler = getattr(self._shell, "compile", None)
        return ((compiler and compiler.format_code_name(name)) or ("", name))[1]

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def value(self) -> Hook | None:
        """The selected hook."""
        chosen = self._list.value
        return self._hooks[chosen] if chosen is not None and chosen < len(self._hooks) else None

    @property
    def hooks(self) -> Hooks:
        """All hooks of the model, of its parameters and of the process."""
        self.settle()
        return self._hooks

    @property
    def findings(self) -> Findings:
        """What `diagnose` has found."""
        self.settle()
        return self._findings

    def _release(self) -> None:
        if self._shell is not None:
            self._shell.events.unregister("post_run_cell", self.refresh)
        self._model = self._inner = self._removed = None
        self._inputs, self._kwargs = (), {}
        self._hooks, self._findings = Hooks(), Findings()


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()


def _key(hook: Hook) -> tuple[Any, ...]:
    return hook.id, hook.kind, hook.path


def _lines(parts: list[Text]) -> Text:
    return Text(*("  \n".join(getattr(part, side) for part in parts) for side in ("zh", "en")))


def _where(hook: Hook) -> str:
    return "(process)" if hook.path is None else hook.path or "(model)"


def _source(hook: Hook) -> str:
    """Return the source of a hook's function, or its repr if Python cannot find the source."""
    function = plain_function(hook.callable)
    for candidate in (function, type(function)):
        try:
            lines = inspect.getsource(candidate).splitlines()
        except (OSError, TypeError):  # for example a built-in, or code that was typed at a prompt
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
RUN = Text(zh="重新运行", en="Run again")
RUN_TIP = Text(zh="再运行一次模型，重新诊断它的钩子", en="Run the model and diagnose its hooks again")
CHANGED = Text(
    zh="钩子在这次诊断之后有变化：请点“重新运行”。",
    en="The hooks have changed since this diagnosis: press “Run again”.",
)
REMOVED = Text(zh="已移除 `{hook}`。", en="`{hook}` has been removed.")
FINDINGS = Text(zh="**诊断：发现 {n} 个问题**", en="**Diagnosis: {n} found**")
WELL = Text(zh="**诊断：没有发现问题**", en="**Diagnosis: nothing is wrong**")
NONE = Text(zh="模型上没有钩子。", en="The model has no hook.")
ABOUT = Text(
    zh="`{function}` · {kind} 钩子，位于 `{where}`，序号 {order} · 归属 {owner} · 定义于 `{source}`",
    en="`{function}` · a {kind} hook on `{where}`, number {order} there · owner {owner} · defined at `{source}`",
)
