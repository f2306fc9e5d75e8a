# %% tags=["setup"]
import gc
import logging
import weakref
from collections import Counter
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch._dynamo  # what torch.compile needs, and seconds to load: better here than in the middle of the lesson
import torch.distributed as dist
import torchvision
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from hookedu import LanguageToggle, check, hint, progress, solution
from hookedu.models.ranks import run_ranks

LanguageToggle()

# %% [markdown]
# ## 12.1 反向传播要的东西 · What backward needs
#
# <div lang="zh">
#
# 训练时的内存，大多不是权重，而是前向传播中为反向传播**存下**的张量。这里也能挂钩子：`saved_tensors_hooks(pack, unpack)` 里面，每存一个，
# autograd 就调用 `pack`，留下它返回的东西；反向传播要用时，调用 `unpack` 换回张量。
#
# **先猜一猜**：下面存几次，存的是谁？`x`、`y`，还是 `y * y`？
#
# </div>
# <div lang="en">
#
# Most memory in training is not weights but the tensors that forward **saves** for backward. There are hooks for this as well: inside
# `saved_tensors_hooks(pack, unpack)`, whenever a tensor is saved, autograd calls `pack` and keeps what it returns. When backward needs it,
# `unpack` turns that back into a tensor.
#
# **Guess first**: how many times is something saved below, and what? `x`, `y` or `y * y`?
#
# </div>


# %%
addresses = set()


def pack(tensor):
    print("  pack  ", tensor.tolist())
    addresses.add(tensor.data_ptr())  # where its memory begins
    return tensor.detach()  # copies nothing


def unpack(packed):
    print("  unpack", packed.tolist())
    return packed


x = torch.tensor([0.0, 1.0], requires_grad=True)
with saved_tensors_hooks(pack, unpack):
    print("y = x.exp()")
    y = x.exp()
    print("z = (y * y).sum()")
    z = (y * y).sum()
print("backward")
z.backward()
print("pieces of memory:", len(addresses))

# %% [markdown]
# <div lang="zh">
#
# 三次都是 `y`：`exp` 的导数就是它的输出；`y * y` 的两个因子各存一次。`x` 和 `y * y` 没有人要。
#
# 三次存的是同一块内存，不会多占。可是 `pack` 若每次都返回一份拷贝，就真的成了三份。
#
# </div>
# <div lang="en">
#
# All three times it is `y`: the derivative of `exp` is its own output, and each factor of `y * y` is saved. Nobody wants `x` or `y * y`.
#
# The three share one piece of memory. But where `pack` returns a copy each time, there really are three.
#
# </div>

# %% [markdown]
# ## 12.2 谁让它们活着 · What keeps them alive
#
# <div lang="zh">
#
# 5.4 节数过：留下一个 `output`，身后的图就占 344 MB。那时是沿着图走；现在让 `pack` 把每个张量装进一个 `Kept`，
# 再用 `WeakSet`（弱引用集合）看着它们：autograd 一松手，集合里就没有了。
#
# **先猜**：`out` 断开之后，还剩多少 MB？输出的最后一行里，`pack` 照原样留下 `tensor`，没有 `detach()`，结果还一样吗？
#
# </div>
# <div lang="en">
#
# Section 5.4 counted: keep one `output`, and the graph behind it holds 344 MB. There we walked the graph; here `pack` puts each tensor into a `Kept`, and a
# `WeakSet` (weak references) watches them: what autograd lets go of is gone from the set.
#
# **Guess**: once `out` is detached, how many MB are left? In the last line of output `pack` keeps `tensor` as it is, without `detach()`: the same?
#
# </div>


# %% tags=["F13"]
torch.manual_seed(0)
resnet, images = torchvision.models.resnet50(), torch.randn(4, 3, 224, 224)


class Kept:  # a plain object, so that we can watch it go
    def __init__(self, tensor):
        self.tensor = tensor


def forward(change, restore=lambda tensor: tensor, model=resnet):
    """Run the model; return its output, and what autograd keeps: change(tensor) for each tensor that it saves."""
    alive = weakref.WeakSet()

    def pack(tensor):
        kept = Kept(change(tensor))
        alive.add(kept)
        return kept

    with saved_tensors_hooks(pack, lambda kept: restore(kept.tensor)):
        return model(images), alive


# %% tags=["F13"]
def megabytes(alive):
    """MB in all that is still alive, except weights; memory that tensors share counts once."""
    storages = [kept.tensor.untyped_storage() for kept in alive]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    return sum(size for address, size in sizes.items() if address not in weights) / 1e6


weights = {p.data_ptr() for p in resnet.parameters()}
out, alive = forward(torch.Tensor.detach)
print(f"attached: {megabytes(alive):.0f} MB")
out = out.detach()
print(f"detached: {megabytes(alive):.0f} MB")

for name, change in {"its half()": torch.Tensor.half, "the tensor itself": lambda tensor: tensor}.items():
    out, alive = forward(change)
    out = out.detach()
    gc.collect()
    print(f"detached, pack kept {name}: {megabytes(alive):.0f} MB")
for kept in list(alive):
    kept.tensor = None  # opens the ring, or this memory would never be let go

# %% [markdown] tags=["F13"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 连着图的输出不放，整批存下的张量就不放；`detach()` 之后立刻释放。
#
# `pack` 收到的可能正是某一步的输出，它自己就连着图。照原样留下，图就绕成一圈，连 `gc.collect()` 也放不掉（有一段在 C++ 里）：在 `pack` 里也要 `detach()`
# （拷贝不用：`pack` 运行时不建图，`half()` 的结果不连图）。
#
# </div>
# <div lang="en">
#
# An output that holds its graph holds everything that was saved; after `detach()` it is let go at once.
#
# What `pack` is handed may be a step's own output, which holds the graph. Keep it as it is, and the graph becomes a ring that not even `gc.collect()` can free (part of it is in C++): use `detach()` in
# `pack`, too (a copy needs none: no graph is built inside `pack`, and what `half()` makes holds none).
#
# </div>
# </div>

# %% [markdown]
# ### 练习 12.1：用半精度保存 · Exercise 12.1: Save in half precision
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写 `half_saved(counts)`，返回一个上下文管理器：在它里面，float32（权重也一样）用 `half()` 存成 float16（太大的变成 `inf`），用时变回 float32；其他类型不改，但不能连着图。
# `counts` 传进来时是 `{"saved": 0, "kept": 0}`：每次交给 `pack` 的张量，不论类型，是否来过，都把字节数（`tensor.nbytes`）加到 `saved`，把留下的那个的加到 `kept`。
# `pack` 返回什么都行，不必是张量：`unpack` 会原样收到。
#
# </div>
# <div lang="en">
#
# Write `half_saved(counts)`, which returns a context manager: inside it, float32 (weights, too) is saved as float16 by `half()` (too large becomes `inf`) and turned back when used; other types stay as they are,
# without their graph. `counts` comes in as `{"saved": 0, "kept": 0}`: each time `pack` gets a tensor, of any type, new or not, add its bytes (`tensor.nbytes`) to `saved`, and those of the one kept to `kept`.
# What `pack` returns can be anything: `unpack` gets just that.
#
# </div>


# %% exercise="12.1"
def half_saved(counts):
    """返回上下文管理器：在里面，autograd 把 float32 存成 float16；字节数加到 counts["saved"] 和 counts["kept"]。

    Return a context manager in which autograd saves float32 as float16; add bytes to counts["saved"], counts["kept"].
    """

    ### BEGIN SOLUTION
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    def unpack(packed):
        small, dtype = packed
        return small.to(dtype)

    return saved_tensors_hooks(pack, unpack)
    ### END SOLUTION


# %% check="12.1"
check("12.1", half_saved)

# %% [markdown]
# ## 12.3 实例：省多少，差多少 · Worked example: what it saves, what it costs
#
# <div lang="zh">
#
# 同一个 ResNet-50，这次真的减半。权重本来就在内存里，减半反而多出一份，所以按 `data_ptr()` 认出来，只 `detach()`。
#
# **先猜**：内存正好省一半吗？损失变了吗？第一层权重的梯度差多少？
#
# </div>
# <div lang="en">
#
# The same ResNet-50, halved for real. Weights are in memory anyway, and halving would only add a copy, so we recognise them by `data_ptr()` and only `detach()` them.
#
# **Guess**: does it save exactly half of the memory? Does the loss change? How far off is the gradient of the first layer's weights?
#
# </div>


# %%
def halve(tensor):
    untouched = tensor.data_ptr() in weights or tensor.dtype != torch.float32
    return tensor.detach() if untouched else tensor.half()


def step(change):
    """MB held for backward, the loss, and the gradient of the first layer's weights."""
    # Whatever is float16 was halved by us: this net has none of its own
    out, alive = forward(change, lambda kept: kept.float() if kept.dtype == torch.float16 else kept)
    held, loss = megabytes(alive), (out**2).mean()
    return held, loss.item(), torch.autograd.grad(loss, resnet.conv1.weight)[0]


(single_mb, loss, exact), (half_mb, half_loss, rounded) = step(torch.Tensor.detach), step(halve)
print("the same loss:", loss == half_loss)
print(f"gradient of conv1 off by {(rounded - exact).norm() / exact.norm():.1%}")
# Section 12.4 says what this one is:
out, alive = forward(torch.Tensor.detach, model=partial(checkpoint, resnet, use_reentrant=False))
fig, ax = plt.subplots(figsize=(5, 1.5), subplot_kw={"xlim": (0, 420), "xlabel": "held for backward (MB)"})
bars = ax.barh(["checkpoint", "float16", "float32"], [megabytes(alive), half_mb, single_mb])
labels = ax.bar_label(bars, fmt="%.0f MB", padding=3)

# %% [markdown]
# <div lang="zh">
#
# 没有省到一半：`ReLU` 的输出存了两次（它自己一次，下一层一次），原来共用一块内存，现在是两份 float16。
# 损失分毫不差，只有梯度带着舍入误差。
#
# </div>
# <div lang="en">
#
# It saves less than half: what a `ReLU` puts out is saved twice, by itself and by the next layer. They used to share one piece of memory; now there are two of float16.
# The loss is the same to the last bit; only the gradient has the rounding error.
#
# </div>

# %% [markdown]
# ## 12.4 不存，重算 · Save nothing, compute again
#
# <div lang="zh">
#
# 图里 checkpoint 那一条只有 2 MB，这就是检查点（activation checkpointing）：`checkpoint(net, x, use_reentrant=False)`（新做法，要写明）只存输入，反向传播一开始，就重新运行前向传播，把要用的中间结果再算出来。大模型是分段的，每段一个 `checkpoint`。
#
# **先猜**：两层，每层一个前置钩子、一个前向钩子。反向传播期间（`|` 之后），哪些会再触发？每层各用一个 `checkpoint` 呢？
#
# </div>
# <div lang="en">
#
# The bar named checkpoint is only 2 MB. That is activation checkpointing: `checkpoint(net, x, use_reentrant=False)` (the newer of two ways, to be named) keeps the input only; as backward begins, it runs forward again to compute what backward needs. Large models are cut into blocks, each with a `checkpoint`.
#
# **Guess**: two layers, each with a pre-hook and a forward hook. Which of them fire again during backward, that is, after the `|`? And with a `checkpoint` for each layer?
#
# </div>


# %% tags=["F26"]
def say(text, *values):
    print(text, end=" ")


net, x = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), torch.ones(1, 2)
handles = []
for name, layer in net.named_children():
    handles.append(layer.register_forward_pre_hook(partial(say, f"pre{name}")))
    handles.append(layer.register_forward_hook(partial(say, f"fwd{name}")))

for blocks in [net], net:  # one checkpoint around both layers, then one for each
    y = x
    for block in blocks:
        y = checkpoint(block, y, use_reentrant=False)
    say("|")
    y.sum().backward()
    print()
for handle in handles:
    handle.remove()

# What is meant to happen once happens twice:
block = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
checkpoint(block, torch.tensor([[1.0, 2.0], [3.0, 5.0]]), use_reentrant=False).sum().backward()
print("one step, batches that BatchNorm counted:", block[0].num_batches_tracked.item())

# %% [markdown] tags=["F26"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 前向传播重新运行，钩子也跟着触发，但没有跑完：第 1 层开始了（`pre1`），它的输入一存好，反向传播要的就齐了，`fwd1` 不再触发（torch 2.15.0）。
# 每层一个 `checkpoint`，就一次只重算一层，从后往前；合用一个，就从头一口气重算。
# 在钩子里计数、累加或写日志，会多算；`BatchNorm` 也更新了 2 次。只想数重算，就在 `backward()` 之前清零。
#
# </div>
# <div lang="en">
#
# Forward ran again, hooks too, but not to its end: layer 1 has begun (`pre1`), its input is saved, no more is wanted, and `fwd1` never comes (torch 2.15.0).
# With a `checkpoint` each, layers are computed again one by one, from the last; with one for all, in one go from the first.
# A hook that counts, adds up or logs does so too often; `BatchNorm` was updated 2 times. To count recomputation only, reset the counts before `backward()`.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 12.2：数一数重算 · Exercise 12.2: Count recomputation
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `count_recomputed(model, x)`：用 `use_reentrant=False` 的检查点运行 `model` 一次，对输出之和做反向传播，梯度照常加到 `.grad` 上。
# 返回字典：每个直接子模块的名字 → 反向传播期间**开始**运行几次，没有就是 0。最后不留下钩子。
#
# </div>
# <div lang="en">
#
# Write `count_recomputed(model, x)`: run `model` once under checkpointing with `use_reentrant=False`, and call backward on the sum of its output, which adds to `.grad` as usual. Return a dictionary from each
# direct child's name to how many times it **started** during backward, 0 if never. Leave no hook behind.
#
# </div>


# %% exercise="12.2"
def count_recomputed(model, x):
    """返回字典：名字 → 反向传播期间开始运行的次数，例如 {"fc": 1, "flat": 0}。

    Return a dict from names to how often each started during backward, such as {"fc": 1, "flat": 0}.
    """
    ### BEGIN SOLUTION
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    handles = [child.register_forward_pre_hook(partial(note, name)) for name, child in model.named_children()]
    try:
        y = checkpoint(model, x, use_reentrant=False)
        counts.clear()
        y.sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return {name: counts[name] for name, _ in model.named_children()}
    ### END SOLUTION


# %% check="12.2"
check("12.2", count_recomputed)

# %% [markdown]
# ## 12.5 编译：三个意外 · Compiled: three surprises
#
# <div lang="zh">
#
# 8.9 节：编译并运行过的模型不理会新钩子；先挂再编译，或者用 `set_stance("force_eager")`。再往前走一步。
#
# **先猜**：`one` 编译过了；`two` 是同一个类的另一个模型，先挂钩子、后编译，钩子触发吗？挂在编译好的模型**自己**身上呢？
# 钩子里 `seen.append(...)`，调用 5 次，编译几次？
#
# </div>
# <div lang="en">
#
# Section 8.9: a model that was compiled and has run ignores new hooks; register before compiling, or use `set_stance("force_eager")`. Now one step further.
#
# **Guess**: `one` has been compiled. `two` is another model of the same class, with its hook registered before compiling: does it fire? Does a hook on the compiled model
# **itself**? And with `seen.append(...)` in a hook, how often do 5 calls compile?
#
# </div>

# %% tags=["F22"]
one, two = (nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(2))
seen, x = [], torch.ones(1, 2)


def keep(module, args, output):
    seen.append(output.detach())


compiled = torch.compile(one, backend="eager")
compiled(x)
with one[0].register_forward_hook(keep):
    compiled(x)
    print("registered after the first call, len(seen):", len(seen))
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    print("the same under force_eager, len(seen):     ", len(seen))
seen.clear()
with two[0].register_forward_hook(keep):
    output = torch.compile(two, backend="eager")(x)
    print("another model, registered before, len(seen):", len(seen))
    torch.compiler.reset()  # forget what was compiled
    torch.compile(two, backend="eager")(x)
print("the same after reset(), len(seen):          ", len(seen))
print("before reset(), was the output right?       ", torch.equal(output, two(x)))


# %% tags=["F22"]
seen, graphs = [], []
with compiled.register_forward_hook(keep):
    compiled(x)
print("on the compiled model itself, len(seen):", len(seen))


def backend(graph, inputs):  # gets what was compiled, returns what is to run
    graphs.append(graph)
    return graph.forward


for name, hook in {"seen.append": keep, "the same, disabled": torch.compiler.disable(keep)}.items():
    torch.compiler.reset()
    seen.clear(), graphs.clear()
    with one[0].register_forward_hook(hook):
        again = torch.compile(one, backend=backend)
        for _ in range(5):
            again(x)
    print(f"{name}: 5 calls, compiled {len(graphs)}x, fired {len(seen)}x")
torch.compiler.reset()

# %% [markdown] tags=["F22"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 编译的是类的代码，同类的模型共用：先挂也可能不触发（torch 2.15.0），先 `reset()` 才稳妥。结果还是对的：每个模型用的是自己的权重。挂在编译好的模型自己身上的，照常触发。
# 钩子编进去之后，`seen` 每变长一次就要重新编译；`torch.compiler.disable(hook)` 让它留在外面。
#
# </div>
# <div lang="en">
#
# What is compiled is the code of the class, which its models share: a hook may not fire even though it was registered before (torch 2.15.0); `reset()` first to be safe. Results are right all the same: each model uses weights of its own. A hook on the compiled
# model itself fires as usual. Once a hook is compiled in, it is compiled anew whenever `seen` has grown; `torch.compiler.disable(hook)` keeps the hook out.
#
# </div>
# </div>

# %% [markdown]
# <div lang="zh">
#
# 上面只调用了 5 次。**先猜一猜**：调用 12 次，会编译 12 次吗？
#
# </div>
# <div lang="en">
#
# There were only 5 calls above. **Guess first**: do 12 calls compile 12 times?
#
# </div>

# %% tags=["F46"]
seen.clear(), graphs.clear()
torch._logging.set_logs(dynamo=logging.ERROR)  # leaves out a long warning that names the limit
with one[0].register_forward_hook(keep):
    again = torch.compile(one, backend=backend)
    for _ in range(12):
        again(x)
print(f"12 calls, compiled {len(graphs)}x, fired {len(seen)}x")
print("torch._dynamo.config.recompile_limit:", torch._dynamo.config.recompile_limit)
torch._logging.set_logs()
torch.compiler.reset()

# %% [markdown] tags=["F46"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 不会：编译到第 8 次就到了 `recompile_limit`，以后不再编译，这个函数照普通的 Python 运行，也就没有了编译的好处。PyTorch 只打印一次警告；钩子每次都触发，结果也对，只是慢。
#
# </div>
# <div lang="en">
#
# They do not: after compiling 8 times, `recompile_limit` is reached, and from then on the function runs as plain Python, without what compiling gains. PyTorch prints a single warning; the hook fires in every call and results are right, only slower.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 12.3：看进编译好的模型 · Exercise 12.3: Look into a compiled model
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `layer_output(compiled, name, x)`：`compiled` 编译过、运行过；返回名为 `name` 的层在输入 `x` 时的输出，不连计算图；它后面可能有就地的操作。
# 层用 `compiled.get_submodule(name)` 取。不要重新编译，不留下钩子，不改 `training`，调用者用 `set_stance` 设的也照旧，出了异常也一样；之后编译好的代码照常运行。
#
# </div>
# <div lang="en">
#
# Write `layer_output(compiled, name, x)`: `compiled` has been compiled and has run. Return what the layer `name` puts out for `x`, without its graph; what follows it may be in place.
# Get the layer with `compiled.get_submodule(name)`. Do not compile again, leave no hook behind, do not change `training` or what the caller chose by `set_stance`, even if the model raises; afterwards the compiled code runs as before.
#
# </div>


# %% exercise="12.3"
def layer_output(compiled, name, x):
    """返回编译过的模型里名为 name 的层的输出，例如 layer_output(compiled, "encoder.fc", x)。

    Return the output of the layer called name in a compiled model, such as layer_output(compiled, "encoder.fc", x).
    """
    ### BEGIN SOLUTION
    seen = {}

    def keep(module, args, output):
        seen["output"] = output.detach().clone()  # what comes after it may be in place

    layer = compiled.get_submodule(name)
    with layer.register_forward_hook(keep), torch.compiler.set_stance("force_eager"):
        compiled(x)
    return seen["output"]
    ### END SOLUTION


# %% check="12.3"
check("12.3", layer_output)

# %% [markdown]
# ## 12.6 两个进程 · Two processes
#
# <div lang="zh">
#
# 用 `DistributedDataParallel`（DDP），每个进程各建一份模型，开始时都收到进程 0 的权重；之后各算各的数据，反向传播时把梯度取平均。`run_ranks` 真的启动 2 个进程，
# 返回各自打印的内容；它们用 gloo（CPU 上的通信方式）通信。都要导入 torch，得等几秒。脚本从 `sys.argv` 拿到三样：自己的编号（rank，这里是 0 或 1）、进程数、碰头用的文件。
#
# **先猜**：进程 1 的输入是进程 0 的 10 倍。张量钩子看到的是自己的梯度，还是平均后的？post-accumulate 钩子呢？
#
# </div>
# <div lang="en">
#
# With `DistributedDataParallel` (DDP), each process builds a model of its own and receives the weights of rank 0 at the start; each has its own data, and backward averages gradients. `run_ranks` starts 2 real
# processes, which talk through gloo (for CPUs), and returns what they print; importing torch takes some seconds. `sys.argv` holds a number (the rank, 0 or 1 here), the number
# of processes and a file to meet at.
#
# **Guess**: rank 1's input is 10 times rank 0's. Does a tensor hook see its rank's gradient, or the average? And a post-accumulate hook?
#
# </div>

# %%
start = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, n = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=sys.argv[3], rank=rank, world_size=n)
layer = torch.nn.Linear(2, 1, bias=False)
torch.nn.init.zeros_(layer.weight)
model = DistributedDataParallel(layer)
x = torch.tensor([[1.0, 2.0]]) * 10**rank
"""
script = """
def update(weight):
    print("  post-accumulate hook:", weight.grad.tolist())
    weight.data -= weight.grad  # a step of gradient descent, in the hook
layer.weight.register_hook(lambda grad: print("  tensor hook:         ", grad.tolist()))
layer.weight.register_post_accumulate_grad_hook(update)
model(x).sum().backward()
print("  weight.grad in the end:", layer.weight.grad.tolist())
print("  weight, which was 0:   ", layer.weight.tolist())
dist.destroy_process_group()
"""
for rank, printed in enumerate(run_ranks(start + script)):
    print(f"rank {rank}\n{printed}", end="")

# %% [markdown]
# <div lang="zh">
#
# 两种钩子看到的都是自己的：一边是 `[1, 2]`，一边是 `[10, 20]`。平均在它们之后，最后两边都是 `[5.5, 11]`。
# 所以在这两种钩子里裁剪，裁的是各自的梯度；在那里更新权重，两份模型从此不同：`-1` 和 `-10`。平均这一步另有钩子。
#
# </div>
# <div lang="en">
#
# Both hooks see the rank's own: `[1, 2]` in one, `[10, 20]` in the other. The average comes after them, and in the end it is `[5.5, 11]` in both.
# So what you clip in such a hook is each rank's own gradient, and an update of weights there makes two models out of the copies: `-1` here, `-10` there. Averaging has a hook of its own.
#
# </div>

# %% [markdown]
# ## 12.7 通信钩子 · A communication hook
#
# <div lang="zh">
#
# 它用 `model.register_comm_hook(group, hook)` 挂上。`group`（互相通信的进程）原样交给 `hook`，文档里叫 `state`。DDP 把梯度首尾相接放进桶里，`bucket.buffer()` 就是这个张量；
# `hook(group, bucket)` 返回一个 Future：现在还没有，将来装着平均值。
#
# `all_reduce` 把各进程的张量就地加起来；`async_op=True` 马上返回；`.then(...)` 说结果到了做什么，那时 `done.value()` 是只有一个张量的列表。
#
# **先猜**：`average` 发送几个字节？
#
# </div>
# <div lang="en">
#
# `model.register_comm_hook(group, hook)` registers it; `group`, the processes that talk, is handed to `hook` (the documentation says `state`). DDP puts gradients end to end into a bucket, the tensor `bucket.buffer()`;
# `hook(group, bucket)` returns a Future, which has no value yet and will hold the average.
#
# `all_reduce` adds up the ranks' tensors, in place; `async_op=True` returns at once; `.then(...)` says what to do when the result is there, `done.value()`, a list of one
# tensor.
#
# **Guess**: how many bytes does `average` send?
#
# </div>

# %%
script = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

def average(group, bucket):
    sent = bucket.buffer() / group.size()  # the number of processes
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    print("  average, sent:", sent.dtype, sent.nbytes, "bytes")
    return future.then(lambda done: done.value()[0])

model.register_comm_hook(dist.group.WORLD, average)  # WORLD: all processes
model(x).sum().backward()
print("  weight.grad:  ", layer.weight.grad.tolist())

layer.weight.grad = None
model = DistributedDataParallel(layer)  # the first one has its communication hook
model.register_comm_hook(dist.group.WORLD, fp16_compress_hook)
model(x).sum().backward()
print("  weight.grad:  ", layer.weight.grad.tolist(), "with PyTorch's own fp16_compress_hook")
dist.destroy_process_group()
"""
for rank, printed in enumerate(run_ranks(start + script)):
    print(f"rank {rank}\n{printed}", end="")

# %% [markdown]
# ### 练习 12.4：只传一半的字节 · Exercise 12.4: Half the bytes
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# `average` 传了 8 个字节；PyTorch 自带的 `fp16_compress_hook` 只传一半，这里的平均恰好一样（一般会有舍入误差）。自己写一个：`half_hook(group, bucket)` 像 `average` 那样
# 返回平均梯度的 Future，只是用 float16 发送，结果再变回 float32；`inf` 和 `nan` 照样传过去。上一次还没传完，钩子可能又被调用。
# 当心：float16 最大是 65504，大的梯度、几个进程的和都可能超出，平均却装得下。检查时不启动进程。
#
# </div>
# <div lang="en">
#
# `average` sent 8 bytes; PyTorch's own `fp16_compress_hook` sends half of that, and the average is the same here (in general it is rounded). Write one yourself: like `average`, `half_hook(group, bucket)`
# returns a Future of the averaged gradients, but it sends float16, and turns the result back into float32; `inf` and `nan` stay. The next call may come before a communication ends.
# Mind that float16 ends at 65504: large gradients and sums may exceed it, averages fit. The check starts no processes.
#
# </div>


# %% exercise="12.4"
def half_hook(group, bucket):
    """用 float16 发送，返回装着平均梯度（float32）的 Future。

    Send float16; return a Future that holds the averaged gradients (float32).
    """
    ### BEGIN SOLUTION
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())
    ### END SOLUTION


# %% check="12.4"
check("12.4", half_hook)

# %% [markdown]
# ## 12.8 小结 · Recap
#
# <div lang="zh">
#
# 1. `saved_tensors_hooks` 管 autograd 存什么；`pack` 里也要 `detach()`。
# 2. 检查点会重新运行前向传播，到要用的都有了为止：钩子会多触发。
# 3. 编译好的代码不理会新钩子；要看里面，用 `set_stance("force_eager")`。
# 4. DDP 里，参数的钩子看到的是自己的梯度，平均在后。
# 5. 通信钩子返回 Future：先除再求和，结果到了才读。
#
# </div>
# <div lang="en">
#
# 1. `saved_tensors_hooks` decide what autograd saves; `detach()` belongs in `pack`, too.
# 2. Checkpointing runs forward again, until all that is needed is there: hooks fire more often.
# 3. Compiled code ignores new hooks; to look inside, use `set_stance("force_eager")`.
# 4. Under DDP, hooks on a parameter see their own gradient; the average comes later.
# 5. A communication hook returns a Future: divide before the sum, and read only what has arrived.
#
# </div>

# %% [markdown]
# ## 12.9 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么不能让 <code>pack</code> 原样返回输出？</summary>输出连着计算图，计算图又留着输出，成了循环引用；光靠引用计数，谁也放不掉。</details>
# <details><summary>2. 用了检查点，<code>fwd1</code> 为什么只触发一次？</summary>重算在最后一个要存的张量存好时就停，这一层没有运行完。</details>
# <details><summary>3. 编译好的模型里，怎样临时看一层的输出？</summary>挂上钩子，在 <code>set_stance("force_eager")</code> 里运行，再取下。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why must <code>pack</code> not return an output as it is?</summary>The output holds the computation graph, and that holds the output: a reference cycle, which reference counts alone never free.</details>
# <details><summary>2. Under checkpointing, why does <code>fwd1</code> fire only once?</summary>Recomputation stops when the last tensor to be saved is there, before that layer is done.</details>
# <details><summary>3. How do you look at a layer of a compiled model for a moment?</summary>Register a hook, run inside <code>set_stance("force_eager")</code>, and take the hook off.</details>
# </div>

# %% [markdown]
# ## 12.10 真实世界里 · In the wild
#
# <div lang="zh">
#
# `torch.autograd.graph.save_on_cpu` 用同样的钩子把存下的张量搬到 CPU；大模型的训练用检查点换内存；
# 带宽不够的集群用 `powerSGD_hook`。搜索这几个名字。课程到这里就结束了，下面是你的进度。
#
# </div>
# <div lang="en">
#
# `torch.autograd.graph.save_on_cpu` moves saved tensors to the CPU with just these hooks; large models are trained with checkpointing to save memory; clusters with slow networks use
# `powerSGD_hook`. Search for these names. The course ends here; below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
