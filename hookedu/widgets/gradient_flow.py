"""GradientFlow: the graph of a computation, with hooks that are hung on by a click and run in the kernel."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import torch
import traitlets

from hookedu.hooks.state import single_number
from hookedu.hooks.tensors import shape_text, sizes
from hookedu.language import Text
from hookedu.plots.flows import dense
from hookedu.plots.structure import named_tensors_of
from hookedu.widgets.backward_runs import Graph, Pass
from hookedu.widgets.hook_kinds import KINDS, code
from hookedu.widgets.live import LiveWidget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LIST, _FIRST = 4, 2  # numbers of a short list, and those that stand for a larger tensor
_PRINTED = 2000  # characters


class GradientFlow(LiveWidget, module="gradient_flow"):
    """Widget that shows how values flow forward and gradients backward, and hangs hooks on the tensors that you click.

    It is the picture of ``plot_graph``, alive. For each choice of hooks it runs backward on your own graph: it registers
    the hooks, calls ``loss.backward(retain_graph=True)``, takes them off, and puts every ``.grad`` back as it was. Hooks
    of your own on these tensors run each time as well, before those that are chosen here; and for a hook that works in
    place there is a second pass with hooks that return new tensors, to find out which gradients were spoiled.

    Parameters
    ----------
    loss : torch.Tensor
        A single number, from which backward starts. Its graph must not have been freed.
    tensors : mapping of str to torch.Tensor
        The tensors to show, by name, of any shape. Those that are not part of the graph are left out. If ``loss`` is not
        among them, it is added under this name, or under ``loss_`` if another tensor has it. Of a large graph only the
        tensors nearest to ``loss`` are shown.

    Attributes
    ----------
    hooks : dict of str to str
        What hangs on which tensor: "print", "double", "halve", "zero", "double_in_place" or "zero_in_place". Set it to
        choose from Python; in a notebook ``settle()`` then waits for the result.
    gradients : dict of str to torch.Tensor
        The gradient that left each tensor in the last pass, in the order in which backward reached them.
    parts : dict of (str, str) to torch.Tensor
        What each path brought, by the tensor that got it and the tensor that it came from.
    spoiled : list of str
        The tensors that got a wrong gradient because a hook elsewhere changed it in place.

    Raises
    ------
    TypeError
        If ``loss`` is no tensor, or ``tensors`` no mapping from names to tensors.
    ValueError
        If ``loss`` is not a single real number, or has no ``grad_fn``.
    traitlets.TraitError
        If ``hooks`` names a tensor that is not shown, or an unknown kind of hook.

    Examples
    --------
    >>> import torch
    >>> from hookedu import GradientFlow
    >>> a, b = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    >>> flow = GradientFlow(a + b, {"a": a, "b": b})
    >>> flow.hooks = {"a": "double_in_place"}
    >>> flow.gradients
    {'loss': tensor(1.), 'a': tensor(2.), 'b': tensor(2.)}
    >>> flow.spoiled
    ['b']
    """

    WORDS: ClassVar = {
        "graph": Text(
            zh="计算图：选一个张量，给它挂钩子", en="Computation graph: choose a tensor to hang a hook on it"
        ),
        "bare": Text(zh="{name} = {value}，梯度 {grad}", en="{name} = {value}, gradient {grad}"),
        "with_hook": Text(
            zh="{name} = {value}，梯度 {grad}，钩子 {hook}",
            en="{name} = {value}, gradient {grad}, hook {hook}",
        ),
        "choose": Text(zh="点一个张量，给它挂一个钩子。", en="Click a tensor to hang a hook on it."),
        "hook_on": Text(zh="`{name}` 上的钩子", en="Hook on `{name}`"),
        "none": Text(zh="没有", en="none"),
        "all_off": Text(zh="全部取下", en="Take all off"),
        "controls": Text(zh="动画", en="animation"),
        "forward": Text(zh="前向传播", en="Forward"),
        "backward": Text(zh="反向传播", en="Backward"),
        "play": Text(zh="播放", en="Play"),
        "pause": Text(zh="暂停", en="Pause"),
        "step": Text(zh="走一步", en="Step"),
        "at_forward": Text(zh="前向传播：`{name}` 算出来了", en="Forward: `{name}` has been computed"),
        "at_backward": Text(zh="反向传播：`{name}` 收到了梯度", en="Backward: `{name}` has got its gradient"),
        "at_start": Text(zh="从叶子开始", en="Starting from the leaves"),
        "legend": Text(
            zh="灰色：前向传播。紫色：反向传播，数是这条路带来的梯度。双线框：叶子。",
            en="Grey: forward. Purple: backward, with the gradient that each path brings. Double frame: a leaf.",
        ),
        "code": Text(zh="代码", en="Code"),
        "printed": Text(zh="钩子打印的", en="Printed by hooks"),
        "failed": Text(
            zh="反向传播出现异常，所以没有梯度可看；一切都放回了原样。换一个钩子试试；如果图已经释放，就重新算一遍，再运行这个单元格。",
            en="Backward raised an exception, so there are no gradients to show; everything was put back. Choose another "
            "hook; if the graph has been freed, compute it anew and run this cell again.",
        ),
        **{kind: each.says for kind, each in KINDS.items()},
    }

    hooks = traitlets.Dict().tag(sync=True)

    def __init__(self, loss: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> None:
        tensors = named_tensors_of(single_number(loss, "`loss`"), "`loss`", tensors)
        if not any(tensor is loss for tensor in tensors.values()):
            name = "loss"
            while name in tensors:  # that of another one, such as a part of this loss
                name += "_"
            tensors[name] = loss
        self._named = tensors
        self._graph = Graph(loss, tensors)
        self._output = next(name for name, tensor in self._graph.tensors.items() if tensor is loss)
        self._last: Pass | None = None
        self._plain: Pass | None = None  # the last pass without hooks, to compare with
        self.spoiled: list[str] = []
        super().__init__()
        self.say(summary=NOTHING_CHOSEN)
        self.post("graph", self._picture())
        self.observe(self.changed, "hooks")
        self.changed()
        self.settle()  # now, as the rest of the cell may free the graph

    @property
    def gradients(self) -> dict[str, torch.Tensor]:
        return {} if self._last is None else dict(self._last.left)

    @property
    def parts(self) -> dict[tuple[str, str], torch.Tensor]:
        return {} if self._last is None else dict(self._last.parts)

    @traitlets.validate("hooks")
    def _known(self, proposal: dict) -> dict[str, str]:
        self._refuse_if_closed()
        for name, kind in proposal["value"].items():
            if name not in self._graph.tensors or not isinstance(kind, str) or kind not in KINDS:
                raise traitlets.TraitError(str(UNKNOWN.format(name=name, kind=kind, kinds=", ".join(KINDS))))
        return proposal["value"]

    # -- running ---------------------------------------------------------------------------------------------

    def _update(self) -> None:
        kinds = {name: KINDS[kind] for name, kind in self.hooks.items()}
        self._last, self.spoiled = None, []
        try:
            reference = None
            if any(kind.instead for kind in kinds.values()):
                reference = self._graph.run(
                    {name: kind.instead or kind.on(name) for name, kind in kinds.items()}
                )
            run = self._graph.run({name: kind.on(name) for name, kind in kinds.items()}, reference)
        except Exception:
            self._tell(Pass(), None)
            raise
        if reference is not None:
            self.spoiled = self._graph.spoiled(run, reference)
        if not kinds:
            self._plain = run
        self._last = run
        self._tell(run, reference)
        self._no_error()

    def _tell(self, run: Pass, reference: Pass | None) -> None:
        """Send the browser what a pass did, as texts that are short for any shape."""
        before = {} if self._plain is None else {n: says(g) for n, g in self._plain.left.items()}
        nodes, changed = {}, []
        for name, left in run.left.items():
            arrived, gone = says(run.arrived[name]), says(left)
            state = "same"
            if name in self.spoiled:
                assert reference is not None
                state = "spoiled"
                shown = f"{arrived} ≠ {says(reference.arrived[name])}"
            else:
                shown = gone if arrived == gone else f"{arrived} → {gone}"
                if before.get(name, gone) != gone:
                    state = "changed"
                    changed.append(f"`{name}` {before[name]} → {gone}")
            nodes[name] = {"grad": shown, "state": state}
        self.say(summary=self._summary(run, reference, changed))
        leaves = [name for name, tensor in self._graph.tensors.items() if tensor.is_leaf]
        self.post(
            "run",
            {
                "nodes": nodes,
                "parts": [says(run.parts[edge]) if edge in run.parts else "" for edge in self._graph.edges],
                "order": list(run.arrived),
                "code": code(self._output, leaves, dict(self.hooks)),
                "printed": run.printed[:_PRINTED],
            },
        )

    def _summary(self, run: Pass, reference: Pass | None, changed: list[str]) -> Text:
        lines = []
        for name in self.spoiled:
            assert reference is not None
            said = SPOILED_HOOKED if name in self.hooks else SPOILED
            got, right = says(run.arrived[name]), says(reference.arrived[name])
            lines.append(said.format(name=name, got=got, right=right))
        if reference is not None and not self.spoiled:
            lines.append(UNHARMED)
        if changed:
            lines.append(CHANGED.format(changes=", ".join(changed)))
        if run.left and not self.hooks:
            lines.append(NOTHING_CHOSEN)
        if self._graph.hooked:
            lines.append(YOUR_OWN.format(names=", ".join(f"`{name}`" for name in self._graph.hooked)))
        return Text(zh="".join(line.zh for line in lines), en=" ".join(line.en for line in lines))

    # -- drawing ---------------------------------------------------------------------------------------------

    def _picture(self) -> dict:
        graph = self._graph
        if graph.unshown:
            n, of = len(graph.tensors), len(graph.tensors) + graph.unshown
            self.say(part=PART.format(n=n, of=of))
        return {
            "nodes": [
                {
                    "name": name,
                    "value": says(graph.tensors[name]),
                    "by": _made_by(graph.tensors[name]),
                    "leaf": graph.tensors[name].is_leaf,
                    "column": column,
                    "row": row,
                }
                for name, (column, row) in sorted(graph.places.items(), key=lambda item: item[1])
            ],
            "edges": graph.edges,
            "marks": {kind: each.mark for kind, each in KINDS.items()},
        }

    def _still(self) -> "Figure | None":
        from hookedu.plots.graph import graph_figure  # not pyplot, which a notebook sets up on its first use

        if self._plain is None:
            return None
        return graph_figure(self._graph.output, self._named, self._plain.arrived)

    def _release(self) -> None:
        self._last = self._plain = None
        del self._graph, self._named


def says(tensor: torch.Tensor) -> str:
    """Return a tensor as a number or a short list; a larger one as its shape and its first numbers."""
    try:
        if (shown := dense(tensor)) is not None:
            tensor = shown
        if tensor.numel() == 1:
            return f"{tensor.item():.5g}"
        if tensor.dim() == 1 and 0 < tensor.numel() <= _LIST:
            return "[" + ", ".join(f"{value:.3g}" for value in tensor.tolist()) + "]"
        first = ", ".join(f"{value:.2g}" for value in tensor.flatten()[:_FIRST].tolist())
        return f"{shape_text(sizes(tensor))}: {first}, …"
    except Exception:  # no numbers that could be read, as on the meta device
        return shape_text(sizes(tensor))


def _made_by(tensor: torch.Tensor) -> str:
    if tensor.grad_fn is None:
        return ""
    return tensor.grad_fn.name().removesuffix("0").removesuffix("Backward").lower()


UNKNOWN = Text(
    zh="图里没有叫 {name!r} 的张量，或者没有叫 {kind!r} 的钩子；钩子有：{kinds}。",
    en="There is no tensor {name!r} in the graph, or no hook {kind!r}; the hooks are {kinds}.",
)
NOTHING_CHOSEN = Text(
    zh="现在没有钩子：这些就是 autograd 算出的梯度。",
    en="No hook hangs on anything: these are the gradients that autograd finds.",
)
SPOILED = Text(
    zh="⚠ `{name}` 收到的是 {got}，应当是 {right}：**你没有碰它，它的梯度却变了。**",
    en="⚠ `{name}` got {got} instead of {right}: **this gradient changed although you did not touch it.**",
)
SPOILED_HOOKED = Text(
    zh="⚠ `{name}` 收到的是 {got}，应当是 {right}：**它的钩子还没运行，梯度就变了。**",
    en="⚠ `{name}` got {got} instead of {right}: **this gradient changed before its own hook ran.**",
)
UNHARMED = Text(
    zh="就地修改了，这一次没有弄坏别人的梯度。",
    en="This was done in place, and this time nobody else's gradient was spoiled.",
)
CHANGED = Text(zh="与没有钩子时相比：{changes}。", en="Compared with no hook: {changes}.")
YOUR_OWN = Text(
    zh="{names} 上有你自己的钩子，每次也会运行。", en="Hooks of your own on {names} run each time as well."
)
PART = Text(
    zh="{of} 个张量中离 `loss` 最近的 {n} 个", en="The {n} of {of} tensors that are nearest to the loss"
)
