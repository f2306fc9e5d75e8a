"""timeline(): every hook event of one forward and backward pass, in the order in which PyTorch fires them.

The events are those of events.py; here all eight kinds occur. One step of one module gives, in this order:

    forward_pre, forward                         on the way up
    output_grad, backward_pre                    the gradient of the output: on the tensor, then for the module
    param_grad, post_accumulate                  each parameter's gradient, then its .grad has been set
    backward, input_grad                         the gradient of the input: for the module, then on the tensor
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookedu.hooks.events import Event
from hookedu.hooks.modules import choose, modules_by_name, unwrap
from hookedu.hooks.state import restored
from hookedu.hooks.tensors import fresh, map_tensors, shape_of, shape_text, tensors_in
from hookedu.language import Text
from hookedu.tables import Table

FORWARD = ("forward_pre", "forward")
BACKWARD = ("output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad")


class Timeline(list[Event]):
    """The events of one run, first to last. note: what had to be left out, or None."""

    note: Text | None = None

    def table(self) -> Table:
        """One row an event: order, kind, module, call, parameter, shape."""
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
    layers: Any = nn.Module,
    values: bool = False,
    **kwargs: Any,
) -> Timeline:
    """Run `model(*inputs, **kwargs)` forward and backward, and note every hook event.

    loss: from the model's output to a scalar; by default the sum of all its floating-point tensors. layers: which
    modules to watch, as for `record`; all by default. values: keep copies of the tensors, not only their shapes.
    The model's modes are used as they are; buffers, gradients and RNGs are put back, and compiled models run
    uncompiled. Where nothing requires a gradient there is no backward half. Errors of the model are raised.

    A full backward hook turns outputs into views, which an in-place op then refuses (F17). On such a model the
    events "backward_pre" and "backward" are left out, and `note` says so.
    """
    inner = unwrap(model)
    chosen = {name: module for name, (module, _) in choose(modules_by_name(inner), layers).items()}
    events = Timeline()
    try:
        _run(inner, chosen, events, values, True, loss, inputs, kwargs)
        return events
    except RuntimeError as error:
        if "is a view and is being modified inplace" not in str(error):
            raise
    events = Timeline()
    events.note = WITHOUT_MODULE_BACKWARD
    _run(inner, chosen, events, values, False, loss, inputs, kwargs)
    return events


def _run(
    model: nn.Module,
    chosen: dict[str, nn.Module],
    events: Timeline,
    values: bool,
    full_backward: bool,
    loss: Callable[[Any], torch.Tensor] | None,
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """One run with all hooks on, into `events`; afterwards the model is as it was."""
    inputs, kwargs = fresh((inputs, kwargs))  # a model may change its input in place
    note = functools.partial(_note, events, values)
    with contextlib.ExitStack() as stack:
        stack.enter_context(restored(model))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Full backward hook is firing when")  # F18, wanted here
        stack.enter_context(torch.enable_grad())
        watched_parameters: set[int] = set()
        for path, module in chosen.items():
            stack.enter_context(_watched(module, path, note, full_backward))
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.requires_grad and id(parameter) not in watched_parameters:
                    watched_parameters.add(id(parameter))
                    stack.enter_context(parameter.register_hook(_noting(note, "param_grad", path, 0, name)))
                    done = parameter.register_post_accumulate_grad_hook(
                        lambda p, path=path, name=name: note("post_accumulate", path, 0, p.grad, name)
                    )
                    stack.enter_context(done)
        output = model(*inputs, **kwargs)
        heads = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        if heads:
            (loss(output) if loss else sum(head.sum() for head in heads)).backward()


def _note(
    events: Timeline, values: bool, kind: str, path: str, call: int, value: Any, leaf: int | str = 0
) -> None:
    kept = map_tensors(lambda tensor: tensor.detach().clone(), value) if values else None
    events.append(Event(len(events), kind, path, call, kept, shape_of(value), leaf))


def _noting(
    note: Callable[..., None], kind: str, path: str, call: int, leaf: int | str
) -> Callable[[torch.Tensor], None]:
    """A tensor hook that notes its gradient and returns None."""
    return lambda grad: note(kind, path, call, grad, leaf)


@contextlib.contextmanager
def _watched(module: nn.Module, path: str, note: Callable[..., None], full_backward: bool) -> Iterator[None]:
    """Watch the calls of one module.

    Tensor hooks go where a user would put them: on the arguments before the call and on what the caller gets, and
    so outside of the module's own backward hooks. A forward hook cannot reach that value; stepping in for the call
    can, and `_compiled_call_impl` is the place that PyTorch itself has for that.
    """
    calls = 0
    running: list[int] = []  # calls that have begun, the innermost last: a module may call itself
    backward_handles: list[RemovableHandle] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        number, calls = calls, calls + 1
        running.append(number)
        if full_backward and not legacy:
            # Each call gets backward hooks of its own, so that they know its number; `before` takes them off again,
            # when PyTorch has noted them for this call.
            backward_handles.append(
                module.register_full_backward_pre_hook(
                    lambda m, grad: note("backward_pre", path, number, grad)
                )
            )
            backward_handles.append(
                module.register_full_backward_hook(lambda m, grad, _: note("backward", path, number, grad))
            )
        try:
            _hook_tensors((args, kwargs), "input_grad", number)
            output = module._call_impl(*args, **kwargs)
            _hook_tensors(output, "output_grad", number)
            return output
        finally:
            running.pop()

    def _hook_tensors(value: Any, kind: str, number: int) -> None:
        for leaf, tensor in enumerate(tensors_in(value)):
            if tensor.requires_grad and not isinstance(tensor, nn.Parameter):
                tensor.register_hook(_noting(note, kind, path, number, leaf))  # on this run's own graph only

    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        while backward_handles:
            backward_handles.pop().remove()
        note("forward_pre", path, running[-1], (*args, kwargs) if kwargs else args)

    def after(module: nn.Module, args: Any, output: Any) -> None:
        note("forward", path, running[-1], output)

    legacy = bool(module._backward_hooks) and module._is_full_backward_hook is False  # kinds that do not mix
    kind_before, compiled_call = module._is_full_backward_hook, module._compiled_call_impl
    handles = [
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after),
    ]
    object.__setattr__(module, "_compiled_call_impl", call)
    try:
        yield
    finally:
        for handle in handles + backward_handles:
            handle.remove()
        del module._compiled_call_impl
        if compiled_call is not None:
            object.__setattr__(module, "_compiled_call_impl", compiled_call)
        module._is_full_backward_hook = kind_before


WITHOUT_MODULE_BACKWARD = Text(
    zh="模型里有就地操作，不能用完整反向钩子：这里没有 backward_pre 和 backward 事件",
    en="an op of this model works in place, where full backward hooks are refused: no backward_pre and backward here",
)
