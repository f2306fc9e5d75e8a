"""timeline(): every hook event of one forward and backward pass, in the order in which PyTorch fires them.

The events are those of events.py; all eight kinds occur here. This is how to see those of one module by hand:

    def note(kind):
        return lambda *_: print(kind)

    module.register_forward_pre_hook(note("forward_pre"))
    module.register_forward_hook(note("forward"))
    module.register_full_backward_pre_hook(note("backward_pre"))
    module.register_full_backward_hook(note("backward"))
    module.weight.register_hook(note("param_grad"))
    module.weight.register_post_accumulate_grad_hook(note("post_accumulate"))
    x.register_hook(note("input_grad"))
    y = module(x)
    y.register_hook(note("output_grad"))
    y.sum().backward()

It prints them in the order forward_pre, forward; output_grad, backward_pre; param_grad, post_accumulate; backward,
input_grad. The rest of this file is what it takes for every module of any model, and to leave no trace.
"""

import contextlib
import itertools
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Any

import torch
from torch import nn
from torch.jit import ScriptModule
from torch.nn.parameter import is_lazy
from torch.utils.hooks import RemovableHandle

from hookedu.hooks.events import Event
from hookedu.hooks.modules import Choice, choose, survey, unwrap
from hookedu.hooks.reach import NOT_PUT_BACK, restored
from hookedu.hooks.state import call_model, deeper, run_uncompiled, single_number
from hookedu.hooks.tensors import described, fresh, map_tensors, real, shape_of, shape_text, tensors_in
from hookedu.language import Text
from hookedu.tables import Table

FORWARD = ("forward_pre", "forward")
BACKWARD = ("output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad")


class Timeline(list[Event]):
    """The events of one run, in order; prints as a table.

    Attributes
    ----------
    note : Text or None
        What had to be left out, or could not be put back, or None.
    """

    note: Text | None = None

    def table(self) -> Table:
        """Return one row per event: order, kind, module, call, parameter and shape."""
        rows = [
            [
                e.order,
                e.kind,
                e.path or "(model)",
                e.call,
                e.leaf if isinstance(e.leaf, str) else "",
                shape_text(e.shape),
            ]
            for e in self
        ]
        return Table(
            ["order", "event", "module", "call", "parameter", "shape"],
            rows,
            self.note.en if self.note else "",
        )

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def timeline(
    model: nn.Module,
    *inputs: Any,
    loss: Callable[[Any], torch.Tensor] | None = None,
    layers: Choice | Iterable[Choice] = nn.Module,
    values: bool = False,
    **kwargs: Any,
) -> Timeline:
    """Run a model forward and backward once and log every hook event.

    The model runs as ``model(*inputs, **kwargs)`` in its present training modes; compiled models run
    uncompiled. Afterwards its parameters, buffers, gradients, attributes and hooks and the RNGs of Python,
    NumPy and PyTorch are as they were, and so are the objects that it holds, such as a cache or an optimizer, and
    context variables; a lazy module is uninitialised again. If no output requires a gradient, there is no backward
    pass.

    Parameters
    ----------
    model : torch.nn.Module
        The model to run.
    *inputs : object
        Positional arguments of the model, tensors or nested structures of them. The model gets copies.
    loss : callable, optional
        Function from the model's output to a scalar tensor, whose gradient is computed. By default it is the
        sum of all elements of the output's tensors that require a gradient, of complex ones the sum of the
        absolute values.
    layers : str, type, torch.nn.Module or callable, or an iterable of these, default torch.nn.Module
        Which modules to watch, as for ``record``; by default all.
    values : bool, default False
        Keep a copy of what each hook saw in ``event.value``. By default only the shapes are kept.
    **kwargs : object
        Keyword arguments of the model.

    Returns
    -------
    Timeline
        A list of events that prints as a table. Each event has ``order``, ``kind``, ``path`` (the module's
        dotted name), ``call`` (zero-based call index of the module), ``shape``, ``value`` and ``leaf`` (the
        name of the parameter, or the index of a tensor in a nested value). ``plot_timeline`` draws it.

    Raises
    ------
    TypeError
        If the model is not a ``torch.nn.Module``, if it is TorchScript or a module is that ``layers`` names, or if
        ``layers`` contains an object of another type. Also if the model fails because several inputs came as one tuple or
        dict; the message says what to write.
    KeyError
        If ``layers`` names a module that the model does not have.
    ValueError
        If ``layers`` selects no module, or the model is a ``DataParallel`` on several GPUs.

    Notes
    -----
    What the model and ``loss`` raise is propagated.

    Files and iterators that the model holds stay where the run has left them, and ``note`` names them.

    A full backward hook turns the module's inputs and outputs into views, and PyTorch refuses to change these
    in place. A model that does so, or that raises another error, runs a second time without the events
    ``"backward_pre"`` and ``"backward"``. If it succeeds, ``note`` of the result says so.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import timeline
    >>> timeline(nn.Linear(3, 2, bias=False), torch.ones(4, 3, requires_grad=True))
    order  event            module   call  parameter  shape
    -----  ---------------  -------  ----  ---------  -----
        0  forward_pre      (model)     0             (4×3)
        1  forward          (model)     0             4×2
        2  output_grad      (model)     0             4×2
        3  backward_pre     (model)     0             (4×2)
        4  param_grad       (model)     0  weight     2×3
        5  post_accumulate  (model)     0  weight     2×3
        6  backward         (model)     0             (4×3)
        7  input_grad       (model)     0             4×3
    """
    inner = unwrap(model)
    check_loss(loss)
    named, compiled = survey(inner)
    chosen = {name: module for name, (module, _) in choose(named, layers).items()}
    scripted = [name for name, module in chosen.items() if isinstance(module, ScriptModule)]
    for name in scripted:
        del chosen[name]
    notes = [SCRIPTED.format(names=", ".join(scripted))] if scripted else []
    run = _Run(values, full_backward=True)
    try:
        copy_context().run(run.take, inner, chosen, compiled, loss, inputs, kwargs)
        run.events.note = _joined(notes + run.notes())
        return run.events
    except Exception as error:
        if any(isinstance(value, Iterator) for value in (*inputs, *kwargs.values())):
            error.add_note(str(USED_UP))  # a second run would get what is left
            raise
        reason = str(error)
    # Once more without the hooks that may have been refused. If they were not the reason, it raises again.
    run = _Run(values, full_backward=False)
    copy_context().run(run.take, inner, chosen, compiled, loss, inputs, kwargs)
    in_place = "is a view and is being modified inplace" in reason
    refused = REFUSED.format(error=textwrap.shorten(reason, 90, placeholder=" …"))
    run.events.note = _joined([IN_PLACE if in_place else refused, *notes, *run.notes()])
    return run.events


def check_loss(loss: Any) -> None:
    """Refuse what is no function from the output of a model to its loss."""
    if loss is not None and not callable(loss):
        raise TypeError(str(NO_FUNCTION.format(got=described(loss))))


def _of_loss(loss: Callable[[Any], torch.Tensor], output: Any) -> torch.Tensor:
    total = single_number(loss(output), "`loss(output)`")
    if not total.requires_grad:
        raise ValueError(str(NO_WAY_BACK))
    return total


def _joined(notes: list[Text]) -> Text | None:
    """Return several notes as one, None for none."""
    if not notes:
        return None
    return Text(zh="；".join(note.zh for note in notes), en="; ".join(note.en for note in notes))


class _Run:
    """One run of a model with all hooks registered, which write `events`."""

    def __init__(self, values: bool, full_backward: bool) -> None:
        self.events = Timeline()
        self.values, self.full_backward = values, full_backward
        self.undo = contextlib.ExitStack()
        self.watched_parameters: set[int] = set()
        self.unrestorable: dict[str, Exception | None] = {}  # as of a `Snapshot`

    def take(
        self,
        model: nn.Module,
        chosen: dict[str, nn.Module],
        compiled: bool,
        loss: Callable[[Any], torch.Tensor] | None,
        inputs: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Run forward and backward, and restore the model."""
        with self.undo:
            self.unrestorable = self.undo.enter_context(restored(model, inputs, kwargs))
            inputs, kwargs = fresh((inputs, kwargs))  # a model may change its input in place
            self.undo.enter_context(deeper(chosen))
            if compiled:
                self.undo.callback(run_uncompiled(self))
            self.undo.enter_context(warnings.catch_warnings())
            # PyTorch warns where no input of a hooked module requires a gradient; here that is an ordinary case.
            warnings.filterwarnings("ignore", message="Full backward hook is firing when")
            self.undo.enter_context(torch.enable_grad())
            for path, module in chosen.items():
                self.watch_parameters(module, path)
                self.watch_calls(module, path)
            output = call_model(model, inputs, kwargs)
            heads = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
            if heads:
                totals = [_of_loss(loss, output)] if loss else [real(head).sum() for head in heads]
                torch.autograd.backward(totals)  # not of their sum: they may be on different devices

    def notes(self) -> list[Text]:
        """Return what has to be said of the run besides."""
        types = ", ".join(sorted(self.unrestorable))
        return [NOT_PUT_BACK.format(types=types)] if types else []

    def note(self, kind: str, path: str, call: int, value: Any, leaf: int | str = 0) -> None:
        """Log one event."""
        kept = None
        if self.values:
            kept = map_tensors(lambda tensor: tensor.detach().clone(), value, arrays=True)
        self.events.append(Event(len(self.events), kind, path, call, kept, shape_of(value), leaf))

    def watch_parameters(self, module: nn.Module, path: str) -> None:
        """Log the gradients of a module's own parameters, each under the first module that has it."""
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in self.watched_parameters or is_lazy(parameter) or not parameter.requires_grad:
                continue
            self.watched_parameters.add(id(parameter))

            def gradient(grad: torch.Tensor, name: str = name) -> None:
                self.note("param_grad", path, 0, grad, name)

            def accumulated(parameter: torch.Tensor, name: str = name) -> None:
                self.note("post_accumulate", path, 0, parameter.grad, name)

            self.undo.callback(parameter.register_hook(gradient).remove)
            self.undo.callback(parameter.register_post_accumulate_grad_hook(accumulated).remove)

    def watch_tensors(self, value: Any, kind: str, path: str, call: int) -> None:
        """Log the gradients of what goes into a call of a module, or comes out of it."""
        for leaf, tensor in enumerate(tensors_in(value)):
            if tensor.requires_grad and not isinstance(tensor, nn.Parameter):

                def gradient(grad: torch.Tensor, leaf: int = leaf) -> None:
                    self.note(kind, path, call, grad, leaf)

                handle = tensor.register_hook(gradient)
                if tensor.is_leaf:  # it may belong to the model; the hooks of others go with the graph
                    self.undo.callback(handle.remove)

    def watch_calls(self, module: nn.Module, path: str) -> None:
        """Log the events of one module.

        Tensor hooks go where a user would register them: on the arguments before the call and on the value that
        the caller gets, and so outside of the module's own backward hooks. A forward hook cannot reach that
        value. Replacing the call can, and `_compiled_call_impl` is the attribute that PyTorch itself has for
        that.
        """
        calls = itertools.count()
        running: list[int] = []  # indices of the calls in progress, innermost last: a module may call itself
        # Index of a call that did not come through `call`, as of a class with a __call__ of its own.
        direct: list[int] = []
        backward_handles: list[RemovableHandle] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            number = next(calls)
            running.append(number)
            if self.full_backward and not legacy:
                # Each call gets its own backward hooks, so that they know its index. `before` removes them again,
                # once PyTorch has collected them for this call.
                def backward_pre(module: nn.Module, grad: Any) -> None:
                    self.note("backward_pre", path, number, grad)

                def backward(module: nn.Module, grad: Any, _: Any) -> None:
                    self.note("backward", path, number, grad)

                backward_handles.append(module.register_full_backward_pre_hook(backward_pre))
                backward_handles.append(module.register_full_backward_hook(backward))
            try:
                self.watch_tensors((args, kwargs), "input_grad", path, number)
                output = module._call_impl(*args, **kwargs)
                self.watch_tensors(output, "output_grad", path, number)
                return output
            finally:
                running.pop()

        def before(called: nn.Module, args: Any, kwargs: Any) -> None:
            if called is not module:  # a deep copy that forward has made has copied the hooks, too
                return
            while backward_handles:
                backward_handles.pop().remove()
            if lazy:  # its own hook has made the parameters by now
                self.watch_parameters(module, path)
            direct[:] = [] if running else [next(calls)]
            self.note("forward_pre", path, (running or direct)[-1], (*args, kwargs) if kwargs else args)

        def after(called: nn.Module, args: Any, output: Any) -> None:
            if called is module:
                self.note("forward", path, (running or direct)[-1], output)

        lazy = any(map(is_lazy, module.parameters(recurse=False)))
        legacy = bool(module._backward_hooks) and module._is_full_backward_hook is False  # cannot be mixed
        # These are undone by `restored`, as are the attributes that PyTorch sets for them.
        module.register_forward_pre_hook(before, with_kwargs=True)
        module.register_forward_hook(after)
        object.__setattr__(module, "_compiled_call_impl", call)


NO_FUNCTION = Text(
    zh="`loss` 应当是一个函数，由模型的输出算出一个数，如 `lambda output: output.square().mean()`，得到的是 {got}。",
    en="`loss` is a function from the model's output to a single number, such as `lambda output: output.square().mean()`; got "
    "{got}.",
)
NO_WAY_BACK = Text(
    zh="`loss(output)` 不需要梯度，反向传播无处可走：`loss` 里不要用 `.detach()` 或 `torch.no_grad()`。",
    en="`loss(output)` requires no gradient, so backward has no way to go: use neither `.detach()` nor `torch.no_grad()` in "
    "`loss`.",
)
SCRIPTED = Text(
    zh="TorchScript 模块不运行钩子，这里没有它们的事件：{names}",
    en="TorchScript modules run no hooks, so these have no events here: {names}",
)
USED_UP = Text(
    zh="输入里有迭代器，用过就没有了，所以没有再运行一次：请传列表或元组",
    en="an input is an iterator, which this run has used up, so there was no second one: pass a list or a tuple",
)
IN_PLACE = Text(
    zh="模型里有就地操作，不能用完整反向钩子：这里没有 backward_pre 和 backward 事件",
    en="an op of this model works in place, where full backward hooks are refused: no backward_pre and backward here",
)
REFUSED = Text(
    zh="这个模型不能带着完整反向钩子运行（{error}）：这里没有 backward_pre 和 backward 事件",
    en="this model cannot run with full backward hooks ({error}): no backward_pre and backward here",
)
