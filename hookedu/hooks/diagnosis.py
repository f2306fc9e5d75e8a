"""diagnose(): faults of a model's hooks, found by inspecting them and by a watched run."""

import contextlib
import functools
import html
import inspect
import os
import pickle
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from torch import nn

from hookedu.hooks.faults import FAULTS
from hookedu.hooks.inspection import Hook, list_hooks
from hookedu.hooks.memory import graph_bytes
from hookedu.hooks.modules import modules_by_name, unwrap, why_never_called
from hookedu.hooks.reach import NOT_PUT_BACK, Reach, restored
from hookedu.hooks.tensors import storage_bytes
from hookedu.hooks.watching import OF_GRADIENTS, OF_TENSORS, Watch, as_code, kind_of
from hookedu.language import Text, counted, shown
from hookedu.tables import size_text


@dataclass(frozen=True)
class Finding:
    """One fault of a model's hooks.

    Attributes
    ----------
    id : str
        Kind of fault, as listed at :func:`diagnose`.
    says : Text
        The fault and its remedy in both languages.
    hook : Hook or None
        The hook at fault, the first one if several have the same fault.
    hooks : tuple of Hook
        All hooks with this fault that call the same function.
    severity : str
        "serious" where values or gradients are wrong, "warning" where a hook does not do its work or fills the memory,
        "minor" where it is a nuisance.
    title : Text
        The fault on one line.
    """

    id: str
    says: Text
    hook: Hook | None
    hooks: tuple[Hook, ...]
    severity: str
    title: Text


class Findings(list[Finding]):
    """The faults found, most serious first; prints as text.

    Attributes
    ----------
    notes : list of Text
        What could not be examined or put back.
    """

    def __init__(
        self, findings: list[Finding] | tuple[Finding, ...] = (), notes: list[Text] | None = None
    ) -> None:
        super().__init__(findings)
        self.notes = notes or []

    def __repr__(self) -> str:
        return "\n\n".join(map(str, [*([f.says for f in self] or [ALL_WELL]), *self.notes]))

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li title={html.escape(repr(finding.id))}>{finding.says.html()}</li>" for finding in self
        )
        notes = "".join(note.html() for note in self.notes)
        return shown((f"<ul>{items}</ul>" if self else ALL_WELL.html()) + notes)


def diagnose(model: nn.Module, *inputs: Any, **kwargs: Any) -> Findings:
    """Find faults of the hooks that are registered on a model, its parameters and globally.

    Without inputs, the hooks are only inspected. That finds, by the ids of the findings:

    - ``registered_twice``: the same function twice in one place;
    - ``holds_graph``: tensors attached to their autograd graph, in variables, containers and objects that the hook
      can reach;
    - ``global_leftover``: a global hook;
    - ``blocks_pickling``: a hook that cannot be pickled, and with it the model.

    With inputs the model runs as well, with every hook watched. That also finds

    - ``overwritten``: the hook keeps an output, an input or a gradient, which a later in-place operation changes;
    - ``holds_graph`` and ``grows``: the hook keeps tensors attached to their graph; more of them at every run;
    - ``cuts_graph``: no gradient passes what the hook returns;
    - ``returns_value``: the hook returns something of another structure or shape, or is a lambda that returns something;
    - ``edits_in_place``, ``edits_gradient``: the hook writes to the tensors or gradients that it was given;
    - ``zero_gradient``: the hook makes a gradient zero;
    - ``full_backward_inplace``: a full backward hook where an operation works in place, which PyTorch refuses;
    - ``never_fired``: the hook is not called;
    - ``after_compile``: compiled code does not call the hook.

    What is kept is found wherever the hook keeps it, be it in a list, an attribute, a class, a global, behind a helper
    function or as a NumPy array. Not found are changes of memory that PyTorch does not make (by NumPy, or by kernels
    that do not declare what they write to), numbers of Python that pile up, faults that show only with other inputs
    or modes, and hooks on tensors other than parameters. Hooks of PyTorch itself and of hookedu are not examined, and
    of hooks of other packages it is not reported that they do not fire, are global or cannot be pickled. Three runs are
    watched: a list that a hook cuts to more entries than that seems to grow, while a ``deque`` tells its bound.

    Parameters
    ----------
    model : torch.nn.Module
        The model whose hooks to examine.
    *inputs : object
        Positional arguments for a run of the model, tensors or nested structures of them. The model gets
        copies.
    **kwargs : object
        Keyword arguments for a run of the model.

    Returns
    -------
    Findings
        The faults, most serious first; an empty list if there are none. Prints as text.
        Each entry has ``id``, the kind of fault; ``severity``, "serious", "warning" or "minor"; ``title``, a ``Text`` of
        one line, and ``says``, one with fault and remedy; ``hook``, the hook at fault; and ``hooks``, all hooks that
        call the same function and have the same fault. ``notes`` lists what could not be examined or put back.

    Raises
    ------
    TypeError
        If the model is not a ``torch.nn.Module``, or is TorchScript.
    ValueError
        If the model is a ``DataParallel`` on several GPUs.

    Notes
    -----
    With inputs, the model runs forward once, two more times if a hook keeps something, compiled models once more;
    and backward as often if there are hooks for that. Each hook gets what it would get and returns what it would
    return; only if that makes the model raise, it runs again without. What it raises then is propagated.

    Afterwards everything is as it was: parameters, buffers, gradients, modes and hooks; tensors, arrays, containers,
    attributes and variables that the model or the hooks can reach; context variables; the RNGs of Python, NumPy and
    PyTorch. What has been printed or written to files stays. ``notes`` names files and iterators within reach, and an
    ``lru_cache`` that was in use and has got new entries.

    Examples
    --------
    A notebook cell that registers a hook has been run twice:

    >>> from torch import nn
    >>> from hookedu import diagnose
    >>> def report(module, args, output):
    ...     print(tuple(output.shape))
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> for _ in range(2):
    ...     handle = model[1].register_forward_hook(report)
    >>> fault = diagnose(model)[0]
    >>> fault.id
    'registered_twice'
    >>> print(fault.says.en)
    the same function `report:1` is registered 2 times as a forward hook on `1`: was a cell run again? ...
    """
    inner = unwrap(model)
    everyone = list_hooks(model)
    hooks = [hook for hook in everyone if hook.owner not in ("torch", "hookedu")]
    users = [hook for hook in hooks if hook.owner == "user"]
    ours = [hook for hook in everyone if hook.owner == "hookedu"]
    runs = bool(inputs or kwargs)
    # What the model itself can reach is not the hooks' doing. Variables that its classes use may be, hence these come last.
    roots = [*(hook.callable for hook in hooks), *map(type, inner.modules())]
    reach = Reach(inner, [inputs, kwargs], roots, copies=runs)
    found = [*_registered_twice(hooks), *_blocking_pickle(users)]
    found += [("global_leftover", hook, {}) for hook in users if hook.path is None]
    kept = {hook: reach.attached(n) for n, hook in enumerate(hooks)}
    graphs = {hook: {"tensors": tensors} for hook, tensors in kept.items() if tensors}
    watch = Watch(inner, hooks, ours)
    with contextlib.ExitStack() as stack:
        if runs:
            stack.enter_context(restored())
            stack.callback(reach.restore)
            stack.callback(watch.memory.before.restore)
            copy_context().run(watch.run, model, inner, inputs, kwargs)
            found += _by_running(watch, inner)
            graphs = {hook: seen for (id, hook), seen in watch.does.items() if id == "holds_graph"} | graphs
        found += [("holds_graph", hook, seen) for hook, seen in graphs.items()]
        findings = _grouped(found, watch.own)  # while the graphs are there
    notes = [NO_BACKWARD.format(error=watch.backward_error)] if watch.backward_error else []
    if runs and (types := reach.unrestorable | watch.memory.before.unrestorable):
        notes.append(NOT_PUT_BACK.format(types=", ".join(sorted(types))))
    return Findings(findings, notes)


# A fault of one hook: the id of the finding, the hook, and what the message says besides.
_Seen = tuple[str, Hook, dict[str, Any]]


def _grouped(seen: list[_Seen], own: set[int]) -> list[Finding]:
    """Return one finding for all hooks that call the same function and have the same fault, most serious first."""
    groups: dict[tuple, list[_Seen]] = {}
    for id, hook, values in seen:
        # The reason why a hook did not fire names its module.
        alike = sorted((k, str(v).replace(f"`{hook.path}`", "")) for k, v in values.items() if k != "tensors")
        key = (id, hook.kind, hook.function, hook.file, hook.line, *alike)
        groups.setdefault(key, []).append((id, hook, values))
    findings = [_finding([*group], own) for group in groups.values()]
    return sorted(findings, key=lambda finding: list(FAULTS).index(finding.id))


def _finding(group: list[_Seen], own: set[int]) -> Finding:
    id, hook, values = group[0]
    hooks = tuple(dict.fromkeys(hook for _, hook, _ in group))
    paths = dict.fromkeys(hook.path for hook in hooks)  # of two hooks on one layer, the layer once
    places = ["`(process)`" if path is None else f"`{path or '(model)'}`" for path in paths]
    where = ", ".join(places[:_PLACES]) + (f", … (+{len(places) - _PLACES})" if len(places) > _PLACES else "")
    source = f"{hook.function}:{hook.line}" if hook.line else hook.function
    tensors = [tensor for _, _, more in group for tensor in more.get("tensors", ())]
    size = graph_bytes(tensors, own) if id == "holds_graph" else storage_bytes(iter(tensors))
    count = Text(zh=str(len(tensors)), en=counted(len(tensors), "tensor"))
    values = values | {
        "hook": source,
        "kind": hook.kind,
        "where": where,
        "count": count,
        "size": size_text(size),
    }
    fault = FAULTS[id]
    return Finding(id, fault.says.format(**values), hook, hooks, fault.severity, fault.title.format(**values))


# -- by inspection ---------------------------------------------------------------------------------------------


def _registered_twice(hooks: list[Hook]) -> Iterator[_Seen]:
    groups: dict[tuple, list[Hook]] = {}
    for hook in hooks:
        groups.setdefault((hook.kind, hook.path, _identity(hook.callable)), []).append(hook)
    for first, *others in groups.values():
        if others:
            yield "registered_twice", first, {"n": 1 + len(others)}


def _identity(value: Any, depth: int = 5) -> Any:
    """Return a key that is the same for callables that do the same: one function, or one that a cell defined twice."""
    if isinstance(value, str | int | float | bool):
        return type(value), value
    if depth == 0:
        return id(value)
    if isinstance(value, tuple):
        return tuple(_identity(item, depth - 1) for item in value)
    if isinstance(value, functools.partial):
        inside = value.func, value.args, tuple(sorted(value.keywords.items()))
        return functools.partial, _identity(inside, depth)
    if inspect.ismethod(value):  # that of the class and that of `super()` have one name
        return id(value.__self__), _identity(value.__func__, depth - 1)
    if inspect.isbuiltin(value):
        return id(value.__self__), value.__name__
    if inspect.isfunction(value):
        captured = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                captured.append(cell.cell_contents)
        return value.__code__, _identity(tuple(captured), depth)
    return id(value)  # containers count as different even if equal


def _blocking_pickle(hooks: list[Hook]) -> Iterator[_Seen]:
    with open(os.devnull, "wb") as nowhere:
        pickler = pickle.Pickler(nowhere)  # one for all: what several hooks share is pickled once
        for hook in hooks:
            if hook.path is None or hook.kind in OF_TENSORS:
                continue  # not pickled with the model
            try:
                pickler.dump(hook.callable)
            except (
                Exception
            ) as error:  # pickling runs arbitrary code, and any error would stop torch.save, too
                pickler = pickle.Pickler(nowhere)  # the other one takes for done what it has begun
                yield "blocks_pickling", hook, {"error": as_code(error)}


# -- by running ------------------------------------------------------------------------------------------------


def _by_running(watch: Watch, inner: nn.Module) -> Iterator[_Seen]:
    named = modules_by_name(inner)
    for (id, hook), seen in watch.does.items():
        if id != "holds_graph":
            yield id, hook, seen
    for hook in watch.hooks:
        of_gradient = kind_of(hook) in OF_GRADIENTS
        silent = hook.owner == "user" and hook not in watch.fired and hook not in watch.muted
        if silent and (watch.ran_backward or not of_gradient):
            module = None if of_gradient or hook.path is None else named.get(hook.path)
            reason = GRADIENT_NEVER_CAME if of_gradient else WITHOUT_MODULES
            if module is not None:
                reason = why_never_called(named, module, hook.path or "(model)")
            yield "never_fired", hook, {"reason": reason}
        if hook in watch.skipped_by_compiled_code and not of_gradient:
            yield "after_compile", hook, {}


_PLACES = 4  # named in one message

ALL_WELL = Text(zh="没有发现钩子的问题", en="no fault found with the hooks")
GRADIENT_NEVER_CAME = Text(
    zh="反向传播没有经过这里",
    en="No gradient came by in the backward pass",
)
WITHOUT_MODULES = Text(zh="没有模块被调用", en="No module was called")
NO_BACKWARD = Text(
    zh="反向传播出错，没能观察梯度的钩子：`{error}`",
    en="The backward pass raised, so the hooks of gradients could not be watched: `{error}`",
)
