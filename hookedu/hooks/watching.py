"""Run a model with its hooks watched: which fire, what they return, change and keep. For `diagnose`."""

import contextlib
import functools
import gc
import io
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from hookedu.hooks.inspection import Hook
from hookedu.hooks.memory import Memory, Place, References, place_of, places_of, with_inside
from hookedu.hooks.modules import is_compiled, modules_by_name
from hookedu.hooks.state import call_model
from hookedu.hooks.tensors import fresh, map_tensors, sizes, tensors_in

OF_TENSORS = ("param_grad", "post_accumulate")
OF_GRADIENTS = ("backward", "legacy_backward", "backward_pre", *OF_TENSORS)
_WATCHED = ("forward_pre", "forward", *OF_GRADIENTS)
# A hook of kind post_accumulate cannot return a gradient, and may change `.grad`.
_CHANGE_GRADIENTS = OF_GRADIENTS[:-1]
_FULL_BACKWARD = ("backward", "backward_pre")
# Part of PyTorch's error for an in-place operation on the view that such a hook makes of an output, or on a part of it.
_IN_PLACE_ON_A_VIEW = "is a view and is being modified inplace"
# Where a hook keeps something: it might keep its first and its last value, and still not more and more.
_RUNS = 3


def kind_of(hook: Hook) -> str:
    """Return the kind of a hook, be it global or not."""
    return hook.kind.removeprefix("global ")


@dataclass(frozen=True)
class _Kept:
    """Memory to which a hook has taken a reference, or which it has made."""

    hook: Hook
    place: Place
    memory: StorageWeakRef
    since: int  # number of writes before
    run: int
    given: bool  # whether it was handed to the hook: an output, an input or a gradient


def as_code(error: Exception) -> str:
    """Return an exception as a message quotes it, in backticks, so that nothing in it is read as Markdown.

    The address of an object is left out: it differs from run to run and means nothing to a reader.
    """
    says = re.sub(r" at 0x[0-9a-f]+", "", str(error)).replace("`", "'")
    return f"{type(error).__name__}: {says}"


class Watch:
    """Wrappers around the hooks of a model. They call each hook and note what it does."""

    def __init__(self, model: nn.Module, hooks: list[Hook], silenced: list[Hook]) -> None:
        self.silenced = silenced  # these see nothing of the runs
        self.hooks = [hook for hook in hooks if kind_of(hook) in _WATCHED]
        # What was seen: (id of a finding, hook) -> the other fields of the message.
        self.does: dict[tuple[str, Hook], dict[str, Any]] = {}
        self.fired: set[Hook] = set()
        self.muted: set[Hook] = set()  # without these the model had to run, because it raised
        self.skipped_by_compiled_code: set[Hook] = set()
        self.ran_backward, self.backward_error = False, ""
        self.memory = Memory()
        parameters_and_buffers = places_of([*model.parameters()], [*model.buffers()])
        self.own = {place.storage for place in parameters_and_buffers}  # nobody "keeps" these
        self._kept: list[_Kept] = []
        self._guarded: list[tuple[Hook, Place, int]] = []
        self._run = 0
        self._watching = True

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, model: nn.Module, inner: nn.Module, inputs: tuple, kwargs: dict) -> None:
        """Run the model, forward and, if there are hooks for it, backward; what the forward pass raises is propagated.

        Where a hook keeps something, two more runs show whether it keeps more and more. Of all that is changed, only
        the tables of the hooks are put back.
        """
        given = inputs, kwargs
        with self._in_place_of_hooks() as stack:
            in_compiled_code = None
            if is_compiled(model):
                self._watching = False
                inputs, kwargs = fresh(given)
                call_model(model, inputs, kwargs)
                in_compiled_code, self.fired, self._watching = self.fired, set(), True
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            self._first_run(model, inner, given, stack)
            if in_compiled_code is not None:
                self.skipped_by_compiled_code = self.fired - in_compiled_code
            self._later_runs(model, given)
        with torch._C.DisableTorchFunctionSubclass():
            self._judge_kept()

    @contextlib.contextmanager
    def _in_place_of_hooks(self) -> Iterator[contextlib.ExitStack]:
        """Replace each hook by its wrapper within a context."""
        both = [*self.hooks, *self.silenced]
        tables = {id(table): (table, dict(table)) for hook in both for table in hook._tables}
        try:
            for hook in self.silenced:
                hook._tables[0][hook.id] = _nothing
            for hook in self.hooks:
                hook._tables[0][hook.id] = functools.partial(self._call, hook)
            with contextlib.ExitStack() as stack:
                yield stack
        finally:
            for table, before in tables.values():
                table.clear()
                table.update(before)

    def _first_run(self, model: nn.Module, inner: nn.Module, given: Any, stack: contextlib.ExitStack) -> None:
        first_error = None
        while True:
            try:
                output = self._forward(model, given)
                break
            except Exception as error:  # perhaps the fault of a hook, which then can be named
                first_error = first_error or error
                blamed = self._blamed_for(error)
                if not blamed:
                    raise first_error from None
                for hook in blamed:
                    self._mute(hook, inner, stack)
                self._kept.clear()
        self._judge_full_backward()
        if any(kind_of(hook) in OF_GRADIENTS for hook in self.hooks):
            try:
                self.ran_backward = self._backward(output)
            except Exception as error:  # a call of the model alone would not raise it
                self.backward_error = as_code(error).partition("\n")[0]

    def _backward(self, output: Any) -> bool:
        """Run backward; return False where nothing requires a gradient."""
        heads = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        if heads:
            with self.memory:
                # The graph is retained because one that the user needs may hang on it.
                torch.autograd.backward(heads, [_weights(head) for head in heads], retain_graph=True)
        return bool(heads)

    def _forward(self, model: nn.Module, given: Any) -> Any:
        inputs, kwargs = fresh(given)
        self.memory.new.update(place.storage for place in places_of(*tensors_in((inputs, kwargs))))
        with self.memory:
            return call_model(model, inputs, kwargs)

    def _later_runs(self, model: nn.Module, given: Any) -> None:
        """Run again as long as some hook may keep more and more; backward only for a hook that gets gradients."""
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            while self._run + 1 < _RUNS:
                held = self._held(1)
                if not held or (self._run and not any(map(self._grows, held.values()))):
                    break
                self._run += 1
                output = self._forward(model, given)
                if any(kind_of(hook) in OF_GRADIENTS for hook in held):
                    self._backward(output)

    def _blamed_for(self, error: Exception) -> list[Hook]:
        """Return hooks whose work may have made the model raise, but for those that are muted already."""
        if _IN_PLACE_ON_A_VIEW in str(error):  # perhaps an in-place operation behind a full backward hook
            blamed = [hook for hook in self.hooks if kind_of(hook) in _FULL_BACKWARD]
        else:
            blamed = [hook for hook in self.hooks if ("returns_value", hook) in self.does]
        return [hook for hook in blamed if hook not in self.muted]

    def _mute(self, hook: Hook, inner: nn.Module, stack: contextlib.ExitStack) -> None:
        """Let the model run as if the hook returned nothing or, if it is a full backward hook, were not there."""
        self.muted.add(hook)
        if kind_of(hook) not in _FULL_BACKWARD:
            return
        hook._tables[0].pop(hook.id, None)
        if hook.path is not None:
            module = modules_by_name(inner)[hook.path]
            guard = functools.partial(self._guard, hook)
            stack.enter_context(module.register_forward_pre_hook(guard, with_kwargs=True))
            stack.enter_context(module.register_forward_hook(guard))

    def _guard(self, hook: Hook, module: nn.Module, *values: Any) -> None:
        """Note the inputs or the output of a module, which a full backward hook would turn into views."""
        places = places_of(*(tensor for tensor in tensors_in(values) if tensor.requires_grad))
        self._guarded += [(hook, place, self.memory.writes) for place in places]

    def _judge_full_backward(self) -> None:
        removed = [hook for hook in self.hooks if hook in self.muted and kind_of(hook) in _FULL_BACKWARD]
        guilty = {hook for hook, place, since in self._guarded if self.memory.written(place, since)}
        for hook in removed:
            if hook.path is None or hook in guilty or not guilty:
                self.does["full_backward_inplace", hook] = {}

    # -- one call of a hook --------------------------------------------------------------------------------------

    def _call(self, hook: Hook, *args: Any) -> Any:
        self.fired.add(hook)
        if not self._watching:
            return hook.callable(*args)
        kind = kind_of(hook)
        given = args if kind in OF_TENSORS else args[1:]  # the first one is the module
        # What the hook can replace: the output, the arguments, or the gradients.
        value = given[-1] if kind == "forward" else given if kind == "forward_pre" else given[0]
        attached, some = _requires_grad(value), kind in _CHANGE_GRADIENTS and _is_some(value)
        before, since = References(given), self.memory.writes
        outside, self.memory.made = self.memory.made, {}
        try:
            returned = [hook.callable(*args)]
        finally:
            made, self.memory.made = self.memory.made, outside
        held = before.more(returned)
        result = returned.pop()
        places = [place for place in places_of(*before.tensors) if place.storage not in self.own]
        edits = any(self.memory.written(place, since) for place in places)
        known = self.own | {place.storage for place in places_of(*before.tensors, *tensors_in(result))}
        keeps = [(place, memory, True) for place, memory in held.items() if place in places]
        keeps += [(place, memory, False) for place, memory in made.items() if place.storage not in known]
        self._kept += [
            _Kept(hook, place, memory, self.memory.writes, self._run, given)
            for place, memory, given in keeps
            if not memory.expired()
        ]
        after = value if result is None else result
        if kind in ("forward", "forward_pre"):
            cuts = attached and not _requires_grad(after)
            if result is not None and _is_accident(hook, kind, value, result, cuts):
                self.does["returns_value", hook] = {"type": type(result).__name__}
            elif cuts:
                self.does["cuts_graph", hook] = {}
            if edits:
                self.does["edits_in_place", hook] = {}
        elif kind in _CHANGE_GRADIENTS:
            if edits:
                self.does["edits_gradient", hook] = {}
            if some and (result is not None or edits) and _is_some(after) is False:
                self.does["zero_gradient", hook] = {}
        return None if hook in self.muted else result

    # -- what was kept -------------------------------------------------------------------------------------------

    def _held(self, generation: int) -> dict[Hook, list[_Kept]]:
        """Return what is still alive after a collection of garbage, by the hook."""
        held: dict[Hook, list[_Kept]] = {}
        if any(not one.memory.expired() for one in self._kept):
            gc.collect(generation)
        for one in self._kept:
            if not one.memory.expired():
                held.setdefault(one.hook, []).append(one)
        return held

    def _judge_kept(self) -> None:
        held = self._held(2)
        alive = _tensors_on({one.place.storage for its in held.values() for one in its})
        for hook, its in held.items():
            # Memory may also be alive because a graph that somebody else keeps has saved it.
            its = [one for one in its if one.place.storage in alive]
            last = [one.place.storage for one in its if one.run == its[-1].run]
            tensors = [tensor for storage in dict.fromkeys(last) for tensor in alive[storage]]
            if any(one.given and self.memory.written(one.place, one.since) for one in its):
                self.does["overwritten", hook] = {}
            if attached := [tensor for tensor in tensors if tensor.grad_fn is not None]:
                self.does["holds_graph", hook] = {"tensors": attached}
            if self._grows(its) and not _in_bounded_queues().issuperset(map(id, tensors)):
                self.does["grows", hook] = {"tensors": tensors}

    def _grows(self, kept: list[_Kept]) -> bool:
        """Check whether a hook still holds something of each run so far that was not there before that run."""
        runs: dict[int, int] = {}  # storage -> the first run after which it was held
        for one in kept:
            if one.place.storage in self.memory.new:
                runs.setdefault(one.place.storage, one.run)
        return len({*runs.values()}) == self._run + 1 > 1


def _nothing(*args: Any) -> None:
    """Be a hook that does nothing."""


def _weights(head: torch.Tensor) -> torch.Tensor:
    """Return a gradient to start with; that of a sum would be zero behind a softmax or a normalisation."""
    try:
        return torch.rand_like(head.detach()) + 0.5
    except Exception:  # some formats know no random numbers
        return torch.ones_like(head)


def _requires_grad(value: Any) -> bool:
    return any(tensor.requires_grad for tensor in tensors_in(value))


def _is_some(gradient: Any) -> bool | None:
    """Check whether a gradient is not all zero; None if there is none, or it cannot be read."""
    try:
        return max((bool(tensor.any()) for tensor in tensors_in(gradient)), default=None)
    except Exception:  # such as a sparse one, or one without numbers on the device "meta"
        return None


def _is_accident(hook: Hook, kind: str, value: Any, result: Any, cuts: bool) -> bool:
    """Check whether a hook probably returned a value by accident.

    It has another structure than what it replaces then, or comes from a lambda, which always returns something.
    """
    if kind == "forward":
        other = _form(result) != _form(value)
    else:
        value = value[0]
        other = bool([*tensors_in(value)]) and not [*tensors_in(result)]
    is_lambda = getattr(hook.callable, "__name__", "") == "<lambda>"
    return other or (is_lambda and not cuts and result is not value)


def _form(value: Any) -> Any:
    """Return the type and structure of a value, with shape and dtype of its tensors."""
    return type(value), map_tensors(lambda tensor: (sizes(tensor), tensor.dtype), value)


def _tensors_on(storages: set[int]) -> dict[int, list[torch.Tensor]]:
    """Return the tensors that the garbage collector tracks, by storage."""
    found: dict[int, list[torch.Tensor]] = {}
    for item in gc.get_objects() if storages else ():
        if issubclass(type(item), torch.Tensor) and (place := place_of(item)) and place.storage in storages:
            found.setdefault(place.storage, []).append(item)
    return found


def _in_bounded_queues() -> set[int]:
    """Return the ids of tensors in a deque with a maximum length."""
    queues = [item for item in gc.get_objects() if type(item) is deque and item.maxlen]
    return {id(thing) for queue in queues for thing in with_inside([*queue])}
