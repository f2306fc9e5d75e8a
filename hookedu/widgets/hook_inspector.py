"""HookInspector: list, inspect, diagnose and remove the hooks of a model."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from hookedu.hooks.diagnosis import Findings, diagnose
from hookedu.hooks.inspection import Hook, Hooks, Removal, list_hooks, plain_function
from hookedu.hooks.modules import unwrap
from hookedu.language import Text, counted
from hookedu.widgets.live import LiveWidget, sides

NOTHING = Text(zh="", en="")
_LINES = 40  # lines shown of the source of a hook


class HookInspector(LiveWidget, module="hook_inspector"):
    """Widget that lists the hooks of a model, diagnoses them, takes them off and puts them back.

    What :func:`diagnose` finds stands on top, the most serious first; each finding unfolds to its remedy and leads to its
    hook. For the selected hook the widget shows where it is registered, its kind, owner and source code. A hook that was
    removed here can be put back where it was, as long as no other hook has come or gone there. In a notebook the list is
    refreshed after every cell that runs. Hooks that belong to PyTorch, such as those of ``spectral_norm``, cannot be
    removed.

    With inputs, the model runs once when the widget is made, so that :func:`diagnose` can watch the hooks at work. It
    does not run again by itself: when the hooks have changed since, a note beside the diagnosis asks to press "Run again".

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

    WORDS: ClassVar = {
        "verdict": NOTHING,
        "list_of_findings": Text(zh="诊断发现的问题", en="What the diagnosis found"),
        "serious": Text(zh="严重", en="Serious"),
        "warning": Text(zh="注意", en="Warning"),
        "minor": Text(zh="轻微", en="Minor"),
        "line": Text(zh="{line}", en="{line}"),
        "go": Text(zh="到这个钩子", en="Go to this hook"),
        "search": Text(zh="搜索钩子", en="Search hooks"),
        "example": Text(zh="函数、位置或种类", en="function, place or kind"),
        "hooks": Text(zh="现有钩子：{n} / {total}", en="Live hooks: {n} of {total}"),
        "function": Text(zh="函数", en="Function"),
        "where": Text(zh="位置", en="Where"),
        "kind": Text(zh="种类", en="Kind"),
        "owner": Text(zh="归属", en="Owner"),
        "order": Text(zh="序号", en="No."),
        "remove": Text(zh="移除这个钩子", en="Remove this hook"),
        "tip_remove": Text(zh="从模型上取下选中的钩子", en="Take the chosen hook off the model"),
        "undo": Text(zh="撤销", en="Undo"),
        "tip_undo": Text(
            zh="把上一个移除的钩子放回原处", en="Put the hook that was removed last back where it was"
        ),
        "again": Text(zh="刷新", en="Refresh"),
        "tip_again": Text(zh="重新查看模型上的钩子", en="Look at the model's hooks again"),
        "failed": Text(
            zh="运行模型来诊断时出现异常。修好模型或输入，再点“重新运行”；钩子照样可以移除。",
            en="The run for the diagnosis raised an exception. Mend the model or the input, and press “Run again”; "
            "hooks can be removed all the same.",
        ),
        "status": NOTHING,
        "about": NOTHING,
        "source": Text(zh="钩子的源代码", en="Source code of the hook"),
    }

    def __init__(self, model: nn.Module, *inputs: Any, **kwargs: Any) -> None:
        inner = unwrap(model)  # first: it raises for anything that is not a model
        self._model: nn.Module | None = model  # None once closed, as is the next
        self._inner: nn.Module | None = inner
        self._inputs, self._kwargs = inputs, kwargs
        self._runs = bool(inputs or kwargs)
        self._asked: list[tuple[str, str]] = []  # what the browser has asked for, not yet done
        self._due = True  # whether the next update must diagnose, too
        self._stale = True  # whether the next update must list the hooks again
        self._diagnosed: list[str] | None = None  # the hooks that `diagnose` has seen, by their keys
        self._hooks, self._findings = Hooks(), Findings()
        self._chosen = ""  # the key of the selected hook
        self._removals: list[Removal] = []  # what can be undone, the last one first to be
        self._said: Text | None = None  # what the last button did
        self._shell = _shell()
        super().__init__()
        if self._runs:
            self.say(again=RUN, tip_again=RUN_TIP)
        self._answer()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self.refresh)

    # -- what is asked for -----------------------------------------------------------------------------------

    def refresh(self, _: Any = None) -> None:
        """List the hooks of the model again, without running it."""
        self._stale = True
        self.changed()

    def run(self, _: Any = None) -> None:
        """List the hooks of the model and diagnose them again, which runs the model if there are inputs."""
        self._due, self._said = True, None
        self.refresh()

    def remove(self) -> None:
        """Take the selected hook off the model; hooks of PyTorch stay."""
        self._ask("remove")

    def undo(self) -> None:
        """Put the hook that was removed last back where it was, unless other hooks have come or gone there."""
        self._ask("undo")

    def _ask(self, kind: str, key: str = "") -> None:
        self._asked.append((kind, key))
        self.changed()

    def _heard(self, kind: str, message: Mapping[str, Any], buffers: list[Any]) -> None:
        match message:
            case {"kind": "again"}:
                self.run()
            case {"kind": "choose", "key": str(key)}:
                self._ask(kind, key)
            case {"kind": "remove" | "undo"}:
                self._ask(kind)

    # -- doing it --------------------------------------------------------------------------------------------

    def _update(self) -> None:
        asked, self._asked = self._asked, []
        for kind, key in asked:
            {"choose": self._choose, "remove": self._take_off, "undo": self._put_back}[kind](key)
        stale, self._stale = self._stale, False
        if stale:
            self._list()
        due, self._due = self._due or (stale and not self._runs), False
        try:
            if due:
                self._diagnose()
        finally:
            self._tell()

    def _diagnose(self) -> None:
        assert self._model is not None  # a closed widget is not updated
        self._findings, self._diagnosed = Findings(), None
        self._findings = diagnose(self._model, *self._inputs, **self._kwargs)  # the model may raise
        self._diagnosed = self._keys()
        self._no_error()

    def _choose(self, key: str) -> None:
        if key in self._keys():
            self._chosen = key

    def _take_off(self, _: str) -> None:
        hook = self._selected()
        if hook is None or hook.owner == "torch":
            return
        self._stale = True
        if not hook.registered:  # somebody else was quicker
            return
        at = self._keys().index(self._chosen)
        if hook.owner == "hookedu":
            hook.remove()
            self._said = REMOVED_OURS.format(hook=hook.function, where=_where(hook))
        else:
            self._removals.append(Removal(hook))
            self._said = REMOVED.format(hook=hook.function, where=_where(hook))
        remaining = [key for key in self._keys() if key != self._chosen]
        self._chosen = remaining[min(at, len(remaining) - 1)] if remaining else ""

    def _put_back(self, _: str) -> None:
        if not self._removals:
            return
        removal = self._removals.pop()
        hook, self._stale = removal.hook, True
        if removal.undo(self._inner):
            self._chosen, self._said = _key(hook), PUT_BACK.format(hook=hook.function, where=_where(hook))
        else:
            self._said = STAYS_OFF.format(hook=hook.function, where=_where(hook))

    def _list(self) -> None:
        assert self._inner is not None  # a closed widget is not updated
        self._hooks = list_hooks(self._inner)
        keys = self._keys()
        if self._chosen not in keys:
            self._chosen = keys[0] if keys else ""

    # -- to the browser --------------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Send what was found, the hooks, the selected one, and what was done."""
        hook = self._selected()
        changed = self._runs and self._diagnosed not in (None, self._keys())
        verdict = NOTHING if self._diagnosed is None else self._verdict()
        self.say(
            verdict=_joined([verdict, CHANGED], " · ") if changed else verdict,
            about=NOTHING if hook is None else self._about(hook),
            status=self._said or NOTHING,
        )
        rows = [(_key(h), h.function, _where(h), h.kind, h.owner, str(h.index)) for h in self._hooks]
        found = [
            {
                "severity": finding.severity,
                "title": sides(finding.title),
                "says": sides(finding.says),
                "key": _key(finding.hook) if finding.hook else "",
            }
            for finding in self._findings
        ]
        self._post_new("hooks", {"rows": rows, "value": self._chosen})
        self._post_new("findings", {"found": found, "notes": [sides(note) for note in self._findings.notes]})
        self._post_new(
            "hook",
            {
                "source": "" if hook is None else _source(hook),
                "removable": hook is not None and hook.owner != "torch",
                "undoable": bool(self._removals),
            },
        )

    def _post_new(self, kind: str, content: dict[str, Any]) -> None:
        """Post what is new: the widget looks after every cell that runs, and mostly finds what it found before."""
        if kind not in self._posted or self._posted[kind][0]["content"] != content:
            self.post(kind, content)

    def _verdict(self) -> Text:
        n = len(self._findings)
        return FINDINGS.format(n=n, findings=counted(n, "finding")) if n else WELL if self._hooks else NONE

    def _still(self) -> Text:
        self.settle()
        found = [Text(zh=f"• {f.says.zh}", en=f"• {f.says.en}") for f in self._findings]
        return _joined([self._verdict(), *found, *self._findings.notes], "  \n")

    def _about(self, hook: Hook) -> Text:
        source = None if hook.line is None else f"{self._file(hook.file)}:{hook.line}"
        return ABOUT.format(
            where=_where(hook),
            kind=hook.kind,
            function=hook.function,
            owner=hook.owner,
            source=source or "—",
            order=hook.index,
        )

    def _keys(self) -> list[str]:
        return [_key(hook) for hook in self._hooks]

    def _selected(self) -> Hook | None:
        return next((hook for hook in self._hooks if _key(hook) == self._chosen), None)

    def _file(self, name: str | None) -> str | None:
        """Return a file name for display: of a notebook cell `In[3]`, not the name that IPython invents."""
        compiler = getattr(self._shell, "compile", None)
        return ((compiler and compiler.format_code_name(name)) or ("", name))[1]

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def value(self) -> Hook | None:
        """The selected hook."""
        self.settle()
        return self._selected()

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
        self._model = self._inner = None
        self._inputs, self._kwargs = (), {}
        self._removals.clear()
        self._hooks, self._findings = Hooks(), Findings()


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()


def _key(hook: Hook) -> str:
    return f"{hook.id} {hook.kind} {hook.path}"


def _joined(parts: list[Text], between: str = " ") -> Text:
    return Text(*(between.join(getattr(part, side) for part in parts) for side in ("zh", "en")))


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


RUN = Text(zh="重新运行", en="Run again")
RUN_TIP = Text(zh="再运行一次模型，重新诊断它的钩子", en="Run the model and diagnose its hooks again")
CHANGED = Text(
    zh="此后钩子有变化：请点“重新运行”",
    en="The hooks have changed since: press “Run again”",
)
REMOVED = Text(zh="已移除 `{where}` 上的 `{hook}`。", en="`{hook}` on `{where}` has been removed.")
REMOVED_OURS = Text(
    zh="已移除 `{where}` 上的 `{hook}`；hookedu 自己的钩子不能放回，要用就再调用一次（如 `record`）。",
    en="`{hook}` on `{where}` has been removed. Hooks of hookedu's own are not put back: call what made it again, such as "
    "`record`.",
)
PUT_BACK = Text(
    zh="`{hook}` 放回了 `{where}`，位置和原来一样。", en="`{hook}` is back on `{where}`, where it was."
)
STAYS_OFF = Text(
    zh="没有放回 `{hook}`：移除以后，`{where}` 上的钩子又有变化，说不准它该排在哪里。要用就重新注册。",
    en="`{hook}` was not put back: hooks on `{where}` have come or gone since, and its place among them is not known. "
    "Register it again if you need it.",
)
FINDINGS = Text(zh="**诊断：发现 {n} 个问题**", en="**Diagnosis: {findings}**")
WELL = Text(zh="**诊断：没有发现问题**", en="**Diagnosis: nothing is wrong**")
NONE = Text(zh="模型上没有钩子。", en="The model has no hook.")
ABOUT = Text(
    zh="`{function}` · {kind} 钩子，位于 `{where}`，序号 {order}（按触发次序） · 归属 {owner} · 定义于 `{source}`",
    en="`{function}` · a {kind} hook on `{where}`, number {order} there in the order of firing · owner {owner} · defined at `{source}`",
)
