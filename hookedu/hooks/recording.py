"""The Recording that `record()` makes: a mapping from names to layers.

The hooks do one thing: they append an `Event` to a list. Everything that can be read is found in that list, and this is
the idea in twenty lines, without the cases of CASES.md:

>>> from collections import defaultdict, namedtuple
>>> import torch
>>> from torch import nn
>>> Seen = namedtuple("Seen", "kind path call value")
>>> def record(model, names):
...     events, calls, handles = [], defaultdict(int), []
...     for name in names:
...         def after(module, args, output, name=name):
...             call, calls[name] = calls[name], calls[name] + 1
...             events.append(Seen("forward", name, call, output.detach().clone()))
...             output.register_hook(lambda grad: events.append(Seen("output_grad", name, call, grad.clone())))
...         handles.append(model.get_submodule(name).register_forward_hook(after))
...     return events, handles
>>> def read(events, path, kind="forward"):
...     return {event.call: event.value for event in events if (event.path, event.kind) == (path, kind)}
>>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
>>> events, handles = record(model, ["0"])
>>> model(torch.ones(1, 2)).sum().backward()
>>> read(events, "0")[0].shape, read(events, "0", "output_grad")[0].shape
(torch.Size([1, 2]), torch.Size([1, 2]))

In this file the log is a mapping; in reading.py are `Layer` and `Call`, which look their values up in it.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hookedu.hooks.log import Log
from hookedu.hooks.modules import LayerNotFound, closest
from hookedu.hooks.reading import Layer
from hookedu.hooks.tensors import storage_bytes, tensors_in
from hookedu.language import Text
from hookedu.tables import Table, size_text


class Recording(Log, Mapping[str, Layer]):
    """What `record` captured, by layer: `rec["layer1.0.conv1"].activation`.

    A recording is a mapping from the names of the chosen layers, in the model's order, to `Layer` objects.
    Another name of the same module works, too; any other name raises KeyError with the closest ones.

    A copy has the values and no hooks. `copy.deepcopy` leaves the model as it is, a file contains it; a plain dict is
    what `torch.save(rec.activations, "activations.pt")` saves.

    Attributes
    ----------
    activations : dict of str to object
        The activation of every layer that finished a call; for several calls, a tuple of them.
    events : list of Event
        The log, in the order in which the hooks fired.
    missed : dict of str to Text
        The chosen layers without a call, with the reason.
    nbytes : int
        Memory of all kept tensors, in bytes.
    failed_at : str or None
        Name of the module in which the forward pass raised inside the `with` block.
    closed : bool
        Whether `close` has been called: the tensors are released, and reading raises RuntimeError.
    """

    def __getitem__(self, name: str) -> Layer:
        if name in self:
            return Layer(self, self._aliases.get(name, name))
        known = closest(str(name), [*self._chosen, *self._aliases])
        message = NOT_RECORDED if isinstance(name, str) else NO_NAME
        raise LayerNotFound(message.format(name=name, got=type(name).__name__, known=known))

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._chosen or name in self._aliases)

    # Two recordings are never the same one, however equal their layers; as a mapping they would be compared by these.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy is made of (case 22): what was recorded, but nothing of the hooks that recorded it."""
        self._ready()
        names = ("_named", "_chosen", "_wants", "_keep", "_uncopied", "_traced", "failed_at", "closed")
        state = {name: vars(self)[name] for name in names} | {"_log": [*self.events]}
        return object.__new__, (Recording,), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_named"], state["_chosen"], state["_wants"], state["_keep"])
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Recording":
        make, (kind,), state = self.__reduce__()
        memo[id(self)] = twin = make(kind)
        # The modules of a model that is being copied itself are in `memo`; others stay the same ones.
        modules = {id(module): module for module in self._named.values()}
        twin.__setstate__(copy.deepcopy(state, modules | memo))
        return twin

    def _ipython_key_completions_(self) -> list[str]:
        return [*self._chosen, *self._aliases]

    @property
    def activations(self) -> dict[str, Any]:
        """The activation of every layer that finished a call; for several calls, a tuple of them."""
        calls = {name: self[name].calls for name in self if self._calls_of(name)}
        finished = {name: [call for call in all_ if call.finished] for name, all_ in calls.items()}
        return {
            name: all_[0].activation if len(all_) == 1 else tuple(call.activation for call in all_)
            for name, all_ in finished.items()
            if all_
        }

    @property
    def nbytes(self) -> int:
        """Memory of all kept tensors in bytes; shared storage (copy=False) counts once."""
        return storage_bytes(tensor for event in self.events for tensor in tensors_in(event.value))

    @property
    def missed(self) -> dict[str, Text]:
        """The chosen layers without a call, by name, with the reason in both languages."""
        return {name: self[name].why_missed() for name in self if not self._calls_of(name)}

    def summary(self) -> Table:
        """Return a table with one row per layer.

        The columns are name, type, number of calls, shape and dtype of the last output, memory of the kept
        tensors, and a note: other names, why the layer never ran, values changed in place since, values
        dropped.
        """
        rows = [self[name]._row() for name in self]
        return Table(
            ["layer", "type", "calls", "output", "dtype", "memory", "note"],
            rows,
            f"total {size_text(self.nbytes)}",
        )

    def __repr__(self) -> str:
        return "Recording (closed)" if self.closed else str(self.summary())

    def _repr_html_(self) -> str:
        return repr(self) if self.closed else self.summary()._repr_html_()


NOT_RECORDED = Text(
    zh="没有录制 {name!r}；录制了的里面最接近的有：{known}",
    en="{name!r} was not recorded; of what was, the closest are: {known}",
)
NO_NAME = Text(
    zh="录制按层的名字读取，例如 {known}，得到的是 `{got}`；要按位置取，用 `list(rec.values())[0]`",
    en="a layer of a recording is read by its name, such as {known}, got `{got}`; `list(rec.values())[0]` is the first",
)
