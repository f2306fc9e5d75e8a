"""The Recording that `record()` makes: a mapping from names to layers."""

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

    Attributes
    ----------
    activations : dict of str to object
        The activation of every layer that was called; for several calls, a tuple of them.
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
        if name not in self:
            known = closest(str(name), [*self._chosen, *self._aliases])
            raise LayerNotFound(NOT_RECORDED.format(name=name, known=known))
        return Layer(self, self._aliases.get(name, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._chosen or name in self._aliases)

    # Two recordings are never the same one, however equal their layers; as a mapping they would be compared by these.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def _ipython_key_completions_(self) -> list[str]:
        return [*self._chosen, *self._aliases]

    @property
    def activations(self) -> dict[str, Any]:
        """The activation of every layer that was called; for several calls, a tuple of them."""
        calls = {name: self[name].calls for name in self if self._calls_of(name)}
        return {
            name: all_[0].activation if len(all_) == 1 else tuple(call.activation for call in all_)
            for name, all_ in calls.items()
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
