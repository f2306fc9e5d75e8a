"""timeline(): every hook event of one forward and backward pass, in the order in which PyTorch fires them.

The events are those of events.py; all eight kinds occur here. One step of one module gives, in this order:

    forward_pre, forward                         the forward pass
    output_grad, backward_pre                    gradient of the output: tensor hook, then module hook
    param_grad, post_accumulate                  gradient of each parameter, then its accumulated .grad
    backward, input_grad                         gradient of the input: module hook, then tensor hook
"""

import contextlib
import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookedu.hooks.events import Event
from hookedu.hooks.modules import Choice, choose, modules_by_name, unwrap
from hookedu.hooks.state import restored
from hookedu.hooks.tensors import fresh, map_tensors, shape_of, shape_text, tensors_in
from hookedu.language import Text
from hookedu.tables import Table

FORWARD = ("forward_pre", "forward")
BACKWARD = ("output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad")


class Timeline(list[Event]):
    """The events of one run, in order; prints as a table.

    Attributes
    ----------
    note : Text or None
        What had to be left out, or None.
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
    uncompiled. Afterwards its buffers and gradients and the RNGs of Python and PyTorch are as they were. If
    no output requires a gradient, there is no backward pass.

    Parameters
    ----------
    model : torch.nn.Module
        The model to run.
    *inputs : object
        Positional arguments of the model, tensors or nested structures of them. The model gets copies.
    loss : callable, optional
        Function from the model's output to a scalar tensor, whose gradient is computed. By default it is the
        sum of all elements of the output's tensors that require a gradient.
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
        If the model is not a ``torch.nn.Module``, if it or a watched module is TorchScript, or if ``layers``
        contains an object of another type.
    KeyError
        If ``layers`` names a module that the model does not have.
    ValueError
        If ``layers`` selects no module, or the model is a ``DataParallel`` on several GPUs.

    Notes
    -----
    What the model and ``loss`` raise is propagated.

    A full backward hook turns the module's inputs and outputs into views, and PyTorch refuses to change these
    in place. A model that does so runs a second time without the events ``"backward_pre"`` and
    ``"backward"``, and ``note`` of the result says so.

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
    """Run once with all hooks registered, append to `events`, and restore the model."""
    inputs, kwargs = fresh((inputs, kwargs))  # a model may change its input in place
    note = functools.partial(_note, events, values)
    with contextlib.ExitStack() as stack:
        stack.enter_context(restored(model))
        stack.enter_context(_deeper(max(path.count(".") for path in chosen) + 2))
        stack.enter_context(warnings.catch_warnings())
        # PyTorch warns where no input of a hooked module requires a gradient; here that is an ordinary case.
        warnings.filterwarnings("ignore", message="Full backward hook is firing when")
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
            total = loss(output) if loss else functools.reduce(torch.add, [head.sum() for head in heads])
            total.backward()


@contextlib.contextmanager
def _deeper(levels: int) -> Iterator[None]:
    """Leave room for the frames that watching adds to each level of nested modules."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 8 * levels)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _note(
    events: Timeline, values: bool, kind: str, path: str, call: int, value: Any, leaf: int | str = 0
) -> None:
    kept = map_tensors(lambda tensor: tensor.detach().clone(), value) if values else None
    events.append(Event(len(events), kind, path, call, kept, shape_of(value), leaf))


def _noting(
    note: Callable[..., None], kind: str, path: str, call: int, leaf: int | str
) -> Callable[[torch.Tensor], None]:
    """Return a tensor hook that logs its gradient and returns None."""
    return lambda grad: note(kind, path, call, grad, leaf)


@contextlib.contextmanager
def _watched(module: nn.Module, path: str, note: Callable[..., None], full_backward: bool) -> Iterator[None]:
    """Log the events of one module within a context.

    Tensor hooks go where a user would register them: on the arguments before the call and on the value that
    the caller gets, and so outside of the module's own backward hooks. A forward hook cannot reach that
    value. Replacing the call can, and `_compiled_call_impl` is the attribute that PyTorch itself has for
    that.
    """
    calls = 0
    running: list[int] = []  # indices of the calls in progress, innermost last: a module may call itself
    backward_handles: list[RemovableHandle] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        number, calls = calls, calls + 1
        running.append(number)
        if full_backward and not legacy:
            # Each call gets its own backward hooks, so that they know its index. `before` removes them again,
            # once PyTorch has collected them for this call.
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
                tensor.register_hook(_noting(note, kind, path, number, leaf))  # freed with this run's graph

    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        while backward_handles:
            backward_handles.pop().remove()
        note("forward_pre", path, running[-1], (*args, kwargs) if kwargs else args)

    def after(module: nn.Module, args: Any, output: Any) -> None:
        note("forward", path, running[-1], output)

    legacy = bool(module._backward_hooks) and module._is_full_backward_hook is False  # cannot be mixed
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
