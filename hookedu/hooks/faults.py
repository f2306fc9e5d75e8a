"""The faults that diagnose() finds: how serious each is, and what is said of it."""

from dataclasses import dataclass

from hookedu.language import Text

SERIOUS, WARNING, MINOR = "serious", "warning", "minor"


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes
    ----------
    severity : str
        "serious" where values or gradients are wrong, "warning" where a hook does not do its work or fills the memory,
        "minor" where it is a nuisance.
    title : Text
        The fault on one line.
    says : Text
        The fault and its remedy.
    """

    severity: str
    title: Text
    says: Text


# Most serious first.
FAULTS = {
    "overwritten": Fault(
        SERIOUS,
        Text(zh="`{hook}`（{where}）保留的张量被改掉了", en="what `{hook}` ({where}) keeps is overwritten"),
        Text(
            zh="`{hook}`（{where}）保留的张量后来被就地操作改掉了：请保留副本 `.detach().clone()`",
            en="a later in-place op changed what `{hook}` ({where}) keeps: keep a copy, `.detach().clone()`",
        ),
    ),
    "full_backward_inplace": Fault(
        SERIOUS,
        Text(
            zh="`{hook}`（{where}）遇上就地操作，PyTorch 拒绝运行",
            en="`{hook}` ({where}) meets an op in place, and PyTorch refuses to run",
        ),
        Text(
            zh="`{hook}`（{where}，{kind}）所在之处有就地操作，PyTorch 因此拒绝运行：请关掉就地操作（例如 `inplace=False`），"
            "或改用前向钩子里的 `output.register_hook`",
            en="an op works in place where `{hook}` ({where}, {kind}) is, and PyTorch refuses to run: turn that off "
            "(such as `inplace=False`), or call `output.register_hook` in a forward hook instead",
        ),
    ),
    "zero_gradient": Fault(
        SERIOUS,
        Text(zh="`{hook}`（{where}）把梯度变成了零", en="`{hook}` ({where}) makes the gradient zero"),
        Text(
            zh="`{hook}`（{where}，{kind}）把梯度变成了零，之前的部分学不到东西；若并非有意，请返回 `None` 或修改后的梯度",
            en="`{hook}` ({where}, {kind}) makes the gradient zero, so nothing before it learns; if unmeant, return `None` or "
            "the changed gradient",
        ),
    ),
    "cuts_graph": Fault(
        SERIOUS,
        Text(zh="`{hook}`（{where}）切断了计算图", en="`{hook}` ({where}) cuts the graph"),
        Text(
            zh="`{hook}`（{where}，{kind}）切断了计算图：梯度传不到它之前的部分；若并非有意，请不要返回 `detach()` 过的张量",
            en="`{hook}` ({where}, {kind}) cuts the graph: no gradient reaches what comes before it; if unmeant, do not "
            "return a detached tensor",
        ),
    ),
    "edits_gradient": Fault(
        SERIOUS,
        Text(zh="`{hook}`（{where}）就地修改了梯度", en="`{hook}` ({where}) changes the gradient in place"),
        Text(
            zh="`{hook}`（{where}，{kind}）就地修改了梯度，而这块内存可能还有别处在用：请返回一个新张量",
            en="`{hook}` ({where}, {kind}) changes the gradient in place, and others may use the same memory: return a new "
            "tensor",
        ),
    ),
    "returns_value": Fault(
        SERIOUS,
        Text(
            zh="`{hook}`（{where}）的返回值替换了模块的值",
            en="what `{hook}` ({where}) returns replaces the module's value",
        ),
        Text(
            zh="`{hook}`（{where}，{kind}）返回了一个 `{type}`，它替换了模块的值；若并非有意，就不要返回任何东西",
            en="`{hook}` ({where}, {kind}) returns a `{type}`, which replaces the module's value; if unmeant, return nothing",
        ),
    ),
    "edits_in_place": Fault(
        SERIOUS,
        Text(
            zh="`{hook}`（{where}）就地修改了传给它的张量",
            en="`{hook}` ({where}) changes in place what it is given",
        ),
        Text(
            zh="`{hook}`（{where}，{kind}）就地修改了传给它的张量；若并非有意，请先 `clone()`",
            en="`{hook}` ({where}, {kind}) changes in place the tensors that it is given; if unmeant, `clone()` them first",
        ),
    ),
    "after_compile": Fault(
        WARNING,
        Text(
            zh="编译后的代码不会调用 `{hook}`（{where}）", en="compiled code never calls `{hook}` ({where})"
        ),
        Text(
            zh="`{hook}`（{where}）是编译之后才注册的，编译后的代码不会调用它：请在第一次调用之前注册，"
            '或在 `torch.compiler.set_stance("force_eager")` 下运行',
            en="`{hook}` ({where}) was registered after compilation and compiled code never calls it: register before the "
            'first call, or run under `torch.compiler.set_stance("force_eager")`',
        ),
    ),
    "never_fired": Fault(
        WARNING,
        Text(zh="`{hook}`（{where}）没有触发", en="`{hook}` ({where}) did not fire"),
        Text(
            zh="`{hook}`（{where}，{kind}）在这次运行中没有触发。{reason}",
            en="`{hook}` ({where}, {kind}) did not fire in this run. {reason}",
        ),
    ),
    "registered_twice": Fault(
        WARNING,
        Text(zh="`{hook}`（{where}）注册了 {n} 次", en="`{hook}` ({where}) is registered {n} times"),
        Text(
            zh="同一个函数 `{hook}` 在 {where} 上作为 {kind} 钩子注册了 {n} 次：单元格运行了多次？请先用句柄的 `remove()` 取下旧的",
            en="the same function `{hook}` is registered {n} times as a {kind} hook on {where}: was a cell run again? "
            "Take the old one off with its handle's `remove()`",
        ),
    ),
    "holds_graph": Fault(
        WARNING,
        Text(zh="`{hook}`（{where}）保留了计算图", en="`{hook}` ({where}) keeps the graph"),
        Text(
            zh="`{hook}`（{where}）保留了 {count} 个仍连着计算图的张量，为反向传播占着 {size}：请保留 `.detach()` 之后的张量",
            en="`{hook}` ({where}) keeps {count} attached to the graph, which holds {size} for backward: keep what "
            "`.detach()` returns",
        ),
    ),
    "grows": Fault(
        WARNING,
        Text(zh="`{hook}`（{where}）保留的张量越来越多", en="`{hook}` ({where}) keeps more with every run"),
        Text(
            zh="`{hook}`（{where}）每运行一次就多保留 {count} 个张量（{size}），查看的几次里一个也没有放手：请在两次运行之间清空，或只保留最后一个",
            en="`{hook}` ({where}) keeps {count} more ({size}) with every run, and let none go in those watched: empty "
            "the container between runs, or keep the last only",
        ),
    ),
    "global_leftover": Fault(
        MINOR,
        Text(zh="`{hook}` 是全局钩子", en="`{hook}` is a global hook"),
        Text(
            zh="`{hook}` 是一个全局钩子（{kind}），对每个模型都会触发；若不再需要，请用句柄取下",
            en="`{hook}` is a global hook ({kind}) and fires for every model; take it off by its handle if it is not needed",
        ),
    ),
    "blocks_pickling": Fault(
        MINOR,
        Text(zh="`{hook}`（{where}）无法被 pickle", en="`{hook}` ({where}) cannot be pickled"),
        Text(
            zh="`{hook}`（{where}）无法被 pickle，`torch.save(model)` 会失败（`{error}`）：请保存 `model.state_dict()`",
            en="`{hook}` ({where}) cannot be pickled, so `torch.save(model)` fails (`{error}`): save `model.state_dict()`",
        ),
    ),
}
