"""Exercise 12.1, `half_saved(counts)`: keep saved tensors in half precision, and count the bytes."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import torch
from torch._C import _autograd

from hookedu.exercises.exercise import Criterion, Exercise
from hookedu.exercises.lesson_12.shared import says
from hookedu.exercises.observation import show
from hookedu.exercises.tools import copies, same
from hookedu.hooks.tensors import parts
from hookedu.language import Text

_COLUMNS = 2  # of the table that a row is selected from
_BIG = 2051  # a row number that float16 would round to 2052


def _case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return (x, w, columns of the second product); float16 changes every value of x and w."""
    x, w = (
        torch.tensor([[rng.randint(1025, 2040) + 0.375 for _ in range(2)] for _ in range(2)]) for _ in "xw"
    )
    return x, w, rng.randint(3, 9)


def _run(x: torch.Tensor, w: torch.Tensor, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (loss, the table that one row was selected from).

    On the way, autograd saves tensors of float32 (twice), int64, bool and float64.
    """
    table = torch.zeros(_BIG + 2, _COLUMNS, requires_grad=True)
    row = table.index_select(0, torch.tensor([_BIG]))
    product = x @ w + torch.where(x > 0, row, 2 * row)
    return (product @ torch.ones(2, columns)).sum() + (x.double() ** 2).sum(), table


def _saved(case: tuple[torch.Tensor, torch.Tensor, int]) -> list[torch.Tensor]:
    """Return every tensor that autograd passes to `pack`, in order."""
    handed: list[torch.Tensor] = []
    x, w, columns = case
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: handed.append(tensor), lambda packed: packed
    ):
        _run(x.clone().requires_grad_(), w.clone().requires_grad_(), columns)
    return handed


def _halved(tensor: torch.Tensor) -> int:
    """Return the size of a tensor in bytes, with float32 kept as float16."""
    return tensor.nbytes // 2 if tensor.dtype == torch.float32 else tensor.nbytes


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors inside of what `pack` returned."""
    if isinstance(value, torch.Tensor):
        return [value]
    held = [item for _, item in parts(value)] or list(getattr(value, "__dict__", {}).values())
    return [tensor for item in held for tensor in _tensors(item)]


def _hooks_on() -> Any:
    """Return the pair (pack, unpack) that is in force, or None."""
    return _autograd._top_saved_tensors_default_hooks(False)


@contextlib.contextmanager
def _hooks_restored() -> Iterator[None]:
    """Remove, at the end, the hooks that were not in force at the start."""
    before = _hooks_on()
    try:
        yield
    finally:
        while (hooks := _hooks_on()) is not None and hooks != before:
            _autograd._pop_saved_tensors_default_hooks()


def _by_hand(half_saved: Any) -> dict[str, Any]:
    """Call the hooks of an answer on our own tensors; a value is None where it cannot be observed.

    packed: bytes that `pack` really keeps of a tensor of 400 bytes. attached: whether what it keeps of a float64
    output holds the graph. float16: the dtype in which a float16 tensor comes back.
    """
    output = torch.ones(2, dtype=torch.float64, requires_grad=True).exp()
    with _hooks_restored(), half_saved({"saved": 0, "kept": 0}):
        hooks = _hooks_on()
    if not hooks:
        return {"packed": None, "attached": False, "float16": None}
    pack, unpack = hooks
    with torch.no_grad():  # as autograd calls them
        storages = {t.untyped_storage().data_ptr(): t.nbytes for t in _tensors(pack(torch.rand(100)))}
        back = unpack(pack(torch.ones(2, dtype=torch.float16)))
        return {
            "packed": sum(storages.values()) or None,
            "attached": any(tensor.requires_grad for tensor in _tensors(pack(output))),
            "float16": str(getattr(back, "dtype", back)).removeprefix("torch."),
        }


def _probe(half_saved: Any, rng: random.Random) -> dict[str, Any]:
    x, w, columns = _case(rng)
    x, w = x.requires_grad_(), torch.nn.Parameter(w)  # autograd passes weights in a type of their own
    counts, before = {"saved": 0, "kept": 0}, _hooks_on()
    with _hooks_restored():
        with half_saved(counts):
            loss, table = _run(x, w, columns)
        stays_on = _hooks_on() != before
    loss.backward()
    assert table.grad is not None
    return {
        "x": copies(x.grad),
        "w": copies(w.grad),
        "rows": table.grad.abs().sum(dim=1).nonzero().flatten().tolist(),
        "counts": dict(counts),
        "stays_on": stays_on,
    } | _by_hand(half_saved)


def _gradients(
    case: tuple[torch.Tensor, torch.Tensor, int], kept: torch.dtype, all_half: bool = False
) -> dict[str, Any]:
    """Compute the gradients of x and w if float32 (`all_half`: any floating dtype) is kept as `kept`."""
    x, w, columns = case
    xs, ws = (t.to(kept).float() for t in (x, w))
    ones = torch.full((2, 2), float(columns))
    square = x.to(kept).double() if all_half else x.double()
    return {"x": (ones @ ws.T).float() + (2 * square).float(), "w": xs.T @ ones}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case = _case(rng)
    handed = _saved(case)
    counts = {"saved": sum(t.nbytes for t in handed), "kept": sum(map(_halved, handed))}
    right, exact = _gradients(case, torch.float16), _gradients(case, torch.float32)
    got = {name: saw[name] for name in ("x", "w")}
    mistake = None
    if same(got, exact):
        mistake = "unchanged"
    elif same(got, right | {"x": exact["x"]}):  # of the factors, only w was not rounded
        mistake = "weights_left_out"
    elif same(got, _gradients(case, torch.bfloat16)):
        mistake = "bfloat16"
    elif saw["rows"] != [_BIG] or same(got, _gradients(case, torch.float16, all_half=True)):
        mistake = "all_halved"
    given = Text(
        zh="`x` 和 `w` 是 float32；里面还存了 int64 的行号 {row}、bool 和 float64",
        en="`x` and `w` are float32; a row number {row} (int64), a bool and a float64 are saved as well",
    ).format(row=_BIG)
    return [
        Criterion(
            "gradients",
            same(got, right) and saw["rows"] == [_BIG],
            points=2,
            essential=True,
            given=given,
            expected=f"x.grad == {show(right['x'])}, w.grad == {show(right['w'])}, row {_BIG}",
            got=f"x.grad == {show(got['x'])}, w.grad == {show(got['w'])}, row {show(saw['rows'])}",
            mistake=mistake,
        ),
        Criterion(
            "packed",
            saw["packed"] in (None, 200),
            points=1,
            given="pack(torch.rand(100))",
            expected=Text(zh="留下 200 字节", en="200 bytes are kept"),
            got=Text(zh="留下 {n} 字节", en="{n} bytes are kept").format(n=saw["packed"]),
            mistake="keeps_both",
        ),
        Criterion(
            "counts",
            saw["counts"] == counts,
            points=2,
            given=given,
            expected=show(counts),
            got=show(saw["counts"]),
            mistake=_miscounted(saw["counts"], handed),
        ),
        Criterion(
            "ends",
            not saw["stays_on"],
            points=1,
            given="with half_saved(counts): ...",
            expected=Text(zh="`with` 之后，钩子不再起作用", en="after the `with`, the hooks are gone"),
            got=Text(zh="`with` 之后，钩子还在", en="after the `with`, the hooks are still there"),
            mistake="stays_on",
        ),
        Criterion(
            "float16",
            saw["float16"] in (None, "float16"),
            points=1,
            given="unpack(pack(torch.ones(2, dtype=torch.float16)))",
            expected="float16",
            got=show(saw["float16"]).strip("'"),
            mistake="grows",
        ),
        Criterion(
            "detached",
            not saw["attached"],
            points=1,
            given="pack(y)  # y = x.exp(), float64",
            expected="requires_grad == False",
            got="requires_grad == True",
            mistake="attached",
        ),
    ]


def _miscounted(got: Any, handed: list[torch.Tensor]) -> str | None:
    saved, kept = sum(t.nbytes for t in handed), sum(map(_halved, handed))
    floats = sum(t.nbytes for t in handed if t.dtype == torch.float32)
    likely = {
        "never_counts": (0, 0),
        "swapped": (kept, saved),
        "elements": (sum(t.numel() for t in handed),) * 2,
        "element_size": (sum(t.element_size() for t in handed), sum(_halved(t) // t.numel() for t in handed)),
        "last_only": (handed[-1].nbytes, _halved(handed[-1])),
        "tensors": (len(handed),) * 2,
        "same_twice": (kept, kept),
        "before_twice": (saved, saved),
        "others_left_out": (floats, floats // 2),
    }
    if not isinstance(got, dict) or got.keys() != {"saved", "kept"}:
        return "other_keys"
    pair = got["saved"], got["kept"]
    found = next((name for name, wrong in likely.items() if pair == wrong), None)
    return found or (
        "wrong_kept" if pair[0] == saved else "wrong_saved" if pair[1] == kept else "wrong_counts"
    )


HALF_SAVED = Exercise(
    id="12.1",
    title=Text(zh="用半精度保存", en="Save in half precision"),
    answer="half_saved",
    points=8,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`pack(tensor)` 返回的东西不一定是张量：连同原来的 `dtype` 一起返回一个元组，`unpack` 会原样收到它。",
            en="What `pack(tensor)` returns need not be a tensor: return a tuple that also holds the original `dtype`, and `unpack` gets "
            "just that.",
        ),
        Text(
            zh="`pack` 里：`small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()`，两个计数各加上 `tensor.nbytes` 和 `small.nbytes`。",
            en="In `pack`: `small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()`; add `tensor.nbytes` and `small.nbytes` "
            "to the two counts.",
        ),
        Text(
            zh="`pack` 返回 `small, tensor.dtype`，`unpack` 返回 `packed[0].to(packed[1])`，最后 `return saved_tensors_hooks(pack, unpack)`。",
            en="`pack` returns `small, tensor.dtype`, `unpack` returns `packed[0].to(packed[1])`; at the end `return saved_tensors_hooks(pack, "
            "unpack)`.",
        ),
    ),
    mistakes=(
        says(
            "unchanged",
            "梯度和没有钩子时一样，没有舍入：存下来的还是 float32。`pack` 要返回 `tensor.half()`。",
            "The gradients are as without hooks, with no rounding: what is kept is still float32. `pack` must return `tensor.half()`.",
            fails="gradients",
        ),
        says(
            "all_halved",
            "只有 float32 才能减半。行号 2051 用 float16 存会变成 2052，float64 也丢了精度：其他类型只 `detach()`。",
            "Only float32 may be halved. A row number 2051 becomes 2052 in float16, and a float64 loses its digits: only `detach()` other types.",
            fails="gradients",
        ),
        says(
            "bfloat16",
            "这些梯度来自 bfloat16，它的有效位数更少。这里要的是 float16：`tensor.half()`。",
            "These gradients come from bfloat16, which keeps fewer digits. Asked for here is float16: `tensor.half()`.",
            fails="gradients",
        ),
        says(
            "weights_left_out",
            "权重 `w` 没有舍入：这里权重也要存成 float16。",
            "The weights `w` were not rounded: here weights are saved as float16, too.",
            fails="gradients",
        ),
        says(
            "arguments",
            "参数的个数不对：`pack` 收到 1 个张量，`unpack` 收到 1 样东西，就是 `pack` 返回的。返回的若是元组，在 `unpack` 里面再拆开。",
            "The number of arguments is wrong: `pack` gets 1 tensor, `unpack` gets 1 thing, what `pack` returned. Where that is a tuple, take it "
            "apart inside of `unpack`.",
            raises=r"missing \d+ required positional argument|takes \d+ positional arguments? but 1 was given",
        ),
        says(
            "not_back",
            "`unpack` 交回来的类型不对。反向传播要的是原来的 `dtype`：在 `pack` 里把它和张量一起返回，在 `unpack` 里用 `.to(dtype)` 变回去。",
            "`unpack` gave back another type. Backward wants the original `dtype`: return it from `pack` along with the tensor, and convert with "
            "`.to(dtype)` in `unpack`.",
            raises=r"same dtype|tensors used as indices|[Ee]xpected (object of scalar type|dtype|index)|index.*(dtype|Int)|condition",
        ),
        says(
            "no_return",
            "`pack` 或 `unpack` 少了 `return`：autograd 存下的是 `None`，反向传播时就没有张量可用了。",
            "A `return` is missing in `pack` or `unpack`: autograd kept `None`, and backward finds no tensor.",
            raises=r"unpack_hook expected to be a Tensor but got result of type NoneType|'NoneType' object (is not subscriptable|has no attribute 'to')|cannot unpack non-iterable NoneType",
        ),
        says(
            "returns_nothing",
            "`half_saved` 没有返回能放进 `with` 的东西：`return torch.autograd.graph.saved_tensors_hooks(pack, unpack)`。",
            "`half_saved` returned nothing that works in a `with`: `return torch.autograd.graph.saved_tensors_hooks(pack, unpack)`.",
            raises=r"does not support the context manager protocol|^AttributeError: __(enter|exit)__",
        ),
        says(
            "keeps_both",
            "梯度是对的，内存却没有省：`pack` 返回的东西里还留着原来的张量，或者先减半又变回了 float32。",
            "The gradients are right, but no memory is saved: what `pack` returns still holds the original, or was turned back into float32 "
            "at once.",
            fails="packed",
        ),
        says(
            "never_counts",
            '`counts` 一直是 0：在 `pack` 里给 `counts["saved"]` 和 `counts["kept"]` 加上字节数。',
            '`counts` is still 0: add the bytes to `counts["saved"]` and `counts["kept"]` in `pack`.',
            fails="counts",
        ),
        says(
            "swapped",
            "两个数弄反了：`saved` 是交给 `pack` 的，`kept` 是真正留下的。",
            "The two are swapped: `saved` is what `pack` is handed, `kept` what it really keeps.",
            fails="counts",
        ),
        says(
            "elements",
            "你数的是元素个数。字节数是 `tensor.nbytes`，即元素个数乘以每个元素的字节数。",
            "You counted elements. Bytes are `tensor.nbytes`: elements times the size of one.",
            fails="counts",
        ),
        says(
            "tensors",
            "你数的是张量的个数。要加的是字节数：`tensor.nbytes`。",
            "You counted tensors. Add their bytes: `tensor.nbytes`.",
            fails="counts",
        ),
        says(
            "same_twice",
            "两处加的都是减半之后的字节数。`saved` 要加减半**之前**的。",
            "You added the bytes after halving to both. `saved` takes those **before** halving.",
            fails="counts",
        ),
        says(
            "element_size",
            "你加的是每个元素的字节数。一个张量的字节数是 `tensor.nbytes`，即它乘以元素个数。",
            "You added the bytes of one element each. Those of a tensor are `tensor.nbytes`: this times its number of elements.",
            fails="counts",
        ),
        says(
            "before_twice",
            "两处加的都是交给 `pack` 的字节数，看不出省了多少。`kept` 要加真正留下的那个张量的。",
            "You added the bytes that `pack` is handed to both, so nothing seems to be saved. `kept` takes those of the tensor that is really kept.",
            fails="counts",
        ),
        says(
            "others_left_out",
            "只数了减半的张量。其他类型也占内存：每个交给 `pack` 的张量都要数，`saved` 和 `kept` 两处都加。",
            "Only what was halved is counted. Other types take memory, too: count each tensor that `pack` is handed, in `saved` and in `kept`.",
            fails="counts",
        ),
        says(
            "wrong_kept",
            "`saved` 是对的，`kept` 不对：每来一个张量，不论什么类型，都加上（`+=`）留下的那个张量的 `nbytes`。",
            "`saved` is right, `kept` is not: for each tensor of any type, add (`+=`) the `nbytes` of the tensor that you keep.",
            fails="counts",
        ),
        says(
            "wrong_saved",
            "`kept` 是对的，`saved` 不对：每来一个张量，不论什么类型，都加上（`+=`）它交来时的 `nbytes`，在减半之前。",
            "`kept` is right, `saved` is not: for each tensor of any type, add (`+=`) its `nbytes` as it was handed over, before halving.",
            fails="counts",
        ),
        says(
            "wrong_counts",
            "两个数都不对。`pack` 每收到一个张量，不论什么类型，`saved` 加上它的 `nbytes`，`kept` 加上留下的那个的 `nbytes`，各加一次。",
            "Neither number is right. For each tensor that `pack` is handed, of any type, add its `nbytes` to `saved`, and the `nbytes` of the one you keep to `kept`, once each.",
            fails="counts",
        ),
        says(
            "last_only",
            "只剩下最后一个张量的字节数：要累加 `+=`，不是赋值 `=`。",
            "Only the last tensor is counted: add with `+=`, do not assign with `=`.",
            fails="counts",
        ),
        says(
            "other_keys",
            "`counts` 里应当恰好有 `saved` 和 `kept` 两个键。",
            "`counts` should have exactly the keys `saved` and `kept`.",
            fails="counts",
        ),
        says(
            "stays_on",
            "`with` 结束了，钩子还在起作用：后面每一次前向传播都会用半精度保存。返回 `saved_tensors_hooks(pack, unpack)` 本身，不要自己调用 `__enter__`。",
            "The `with` has ended and the hooks are still on: every later forward pass saves in half precision. Return "
            "`saved_tensors_hooks(pack, unpack)` itself, and do not call `__enter__` yourself.",
            fails="ends",
        ),
        says(
            "grows",
            "本来就是 float16 的，也变成了 float32（混合精度训练里就会出错）。光看留下的类型分不出来：让 `pack` 把原来的 `dtype` 一起返回。",
            "What was float16 to begin with came back as float32, which breaks training in mixed precision. The type that was kept cannot tell "
            "the two apart: let `pack` return the original `dtype` as well.",
            fails="float16",
        ),
        says(
            "attached",
            "其他类型照原样留下，它可能正是某一步的输出，连着图：绕成一圈，内存再也放不掉（12.2 节）。留下 `tensor.detach()`。",
            "Other types are kept as they are. Such a tensor may be a step's own output, which holds the graph: a ring, and its memory is never let "
            "go (section 12.2). Keep `tensor.detach()`.",
            fails="detached",
        ),
    ),
    insight=Text(
        zh="存下来的值舍入了，前向传播的结果却分毫不差：误差只进了梯度。",
        en="The saved values are rounded, the result of forward is not: the error goes into gradients only.",
    ),
)
