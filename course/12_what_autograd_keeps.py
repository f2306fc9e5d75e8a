# %% tags=["setup"]
import gc
import itertools
import tempfile
import weakref
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torchvision
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from hookedu import LanguageToggle, check, guess, hint, progress, solution

LanguageToggle()

# %% [markdown]
# ## 12.1 反向传播要的东西 · What backward needs
#
# <div lang="zh">
#
# 训练时内存不够用，占地方的常常不是权重，而是中间结果：前向传播一路走，autograd 一路为反向传播**存下**要用的张量，一直留到反向传播用完为止。
#
# 这里也能挂钩子，而且一次管住所有运算。在 `with saved_tensors_hooks(pack, unpack):` 里面，每当 autograd 要存一个张量，就先调用 `pack`，留下的是 `pack` 返回的东西；等反向传播要用了，再调用 `unpack`，把它换回张量。
#
# 下面只有三步：`exp`、乘法、求和。**先猜**，再看每一步存下什么。
#
# </div>
# <div lang="en">
#
# When training runs out of memory, it is often not the weights that fill it but what lies between: as forward goes along, autograd **saves** the tensors that backward will need, and they stay until backward has used them.
#
# There are hooks for this as well, and one pair covers every operation. Inside `with saved_tensors_hooks(pack, unpack):`, whenever autograd is about to save a tensor, it calls `pack` first, and keeps whatever `pack` returns. When backward needs the tensor, it calls `unpack` to get it back.
#
# There are only three steps below: `exp`, a product and a sum. **Guess first**, and then see what each of them saves.
#
# </div>

# %%
guess("12.a")

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
# 一共三次，三次都是 `y`。`exp` 的导数就是它自己的输出，所以它存下 `y`；`y * y` 要对两个因子分别求导，对一个求导就要用另一个，于是又存了两次。`x` 和 `y * y` 的值，反向传播用不着，所以不存。（叶子 `x` 这个对象，图还是留着的，因为梯度要加到 `x.grad` 里。）
#
# 最后一行说，三次存的是同一块内存，所以没有多占。可见「存了几次」和「占了多少」是两回事：假如 `pack` 每次都返回一份拷贝，就真的成了三份。
#
# </div>
# <div lang="en">
#
# Three times, and each time it is `y`. The derivative of `exp` is its own output, so it saves `y`; the derivative of `y * y` by one factor needs the other factor, which makes two more. Backward has no use for the values of `x` and `y * y`, so neither is saved. (The graph does hold on to the leaf `x` itself, since its gradient goes into `x.grad`.)
#
# The last line says that all three share one piece of memory, so nothing extra is taken. How often something is saved and how much room it takes are two different questions: had `pack` returned a copy each time, there really would be three.
#
# </div>

# %% [markdown]
# ## 12.2 谁让它们活着 · What keeps them alive
#
# <div lang="zh">
#
# 5.4 节数过：留下一个 `output`，就留下了它身后整张图，足有 344 MB。当时我们是沿着图一步步走的；有了 `pack`，就可以直接看着这些张量：把每一个装进一个小对象 `Kept`，再让一个 `WeakSet` 记住这些小对象。`WeakSet` 用的是弱引用，自己不留任何东西，所以 autograd 一松手，对象就从集合里消失。
#
# 下面每次都先断开输出（`detach()`），再看还剩多少 MB。最后一次，`pack` 原样留下 `tensor`，没有先 `detach()`。**先猜。**
#
# </div>
# <div lang="en">
#
# Section 5.4 counted what one kept `output` costs: with it stays the whole graph behind it, 344 MB. There we walked the graph step by step. With `pack` we can watch the tensors themselves: we put each of them into a small object called `Kept`, and let a `WeakSet` remember these objects. It holds weak references, which keep nothing alive, so an object disappears from the set as soon as autograd lets go of it.
#
# Below, we detach the output with `detach()` each time, and then see how many MB are left. The last time, `pack` keeps `tensor` as it is, without `detach()`. **Guess first.**
#
# </div>

# %% tags=["F13"]
torch.manual_seed(0)
resnet, images = torchvision.models.resnet50(), torch.randn(4, 3, 224, 224)


class Kept:  # a plain object, so that we can watch it go
    def __init__(self, tensor):
        self.tensor = tensor


def forward(change, restore=lambda tensor: tensor, model=resnet):
    """Run the model; return its output, and the change(tensor) that autograd keeps of each."""
    alive = weakref.WeakSet()

    def pack(tensor):
        kept = Kept(change(tensor))
        alive.add(kept)
        return kept

    with saved_tensors_hooks(pack, lambda kept: restore(kept.tensor)):
        return model(images), alive


# %%
guess("12.b")


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

for name, change in {
    "its half()": torch.Tensor.half,
    "the tensor itself": lambda tensor: tensor,
}.items():
    out, alive = forward(change)
    out = out.detach()
    gc.collect()
    held = megabytes(alive)
    print(f"detached, pack kept {name}: {held:.0f} MB")
for kept in list(alive):
    kept.tensor = None  # opens the ring, or this memory would never be let go

# %% [markdown] tags=["F13"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 没有走反向传播，又留着连着图的输出，整批存下的张量就都留着；`detach()` 之后，它们立刻就释放了。
#
# `pack` 收到的，可能正是某一步的输出，它自己就连着图。原样留下它，图就留住了它，它又留住了图，绕成一圈；只要不走反向传播，连 `gc.collect()` 也放不掉，因为这一圈有一段在 C++ 里。所以在 `pack` 里也要 `detach()`。拷贝用不着：`pack` 运行时不建图，`half()` 从 float32 新造的张量不连任何图。
#
# </div>
# <div lang="en">
#
# As long as you keep an output that is attached to its graph, everything that was saved for it stays, until backward has used it. After `detach()` all of it is let go at once.
#
# What `pack` is handed may be a step's own output, and that is attached to the graph. Keep it as it is, and the graph holds the tensor while the tensor holds the graph: a ring that, without a backward pass, not even `gc.collect()` can free, because part of it is in C++. So `detach()` belongs in `pack` as well. A copy needs none: no graph is built while `pack` runs, and what `half()` makes of a float32 is attached to nothing.
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
# 写 `half_saved(counts)`，返回一个上下文管理器。在它里面，float32（权重也一样）用 `half()` 存成 float16（太大的变成 `inf`），用的时候变回 float32；其他类型不改，但不能连着图。
#
# `counts` 传进来时是 `{"saved": 0, "kept": 0}`。每次交给 `pack` 的张量，不论什么类型，也不论来过没有，都把它的字节数（`tensor.nbytes`）加到 `saved`，把真正留下的那个的加到 `kept`。
#
# `pack` 可以返回任何东西，不一定是张量：`unpack` 会原样收到。autograd 不再要的，别处也不能留着。
#
# </div>
# <div lang="en">
#
# Write `half_saved(counts)`, which returns a context manager. Inside it, float32 (weights, too) is saved as float16 by `half()` (what is too large becomes `inf`) and turned back into float32 when it is used. Other types stay as they are, without their graph.
#
# `counts` comes in as `{"saved": 0, "kept": 0}`. Each time `pack` gets a tensor, of any type, whether it has come before or not, add its bytes (`tensor.nbytes`) to `saved`, and those of the one that is really kept to `kept`.
#
# `pack` may return anything, not only a tensor: `unpack` receives just that. Nothing else may keep what autograd no longer needs.
#
# </div>


# %% exercise="12.1"
def half_saved(counts):
    """返回上下文管理器：在里面，autograd 把 float32 存成 float16；字节数加到 counts 里。

    Return a context manager in which autograd saves float32 as float16; add bytes to counts.
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
# 回到 ResNet-50，这次真的减半。权重本来就在内存里，给它们留一份半精度的拷贝，只会多占地方，所以按 `data_ptr()` 把它们认出来，只 `detach()`。**先猜**，再看损失会不会变，第一层权重的梯度又差多少。
#
# </div>
# <div lang="en">
#
# Back to ResNet-50, which we now halve for real. Its weights are in memory anyway, and a copy of them in half precision would only take more room, so we recognise them by `data_ptr()` and just `detach()` them. **Guess first**, and then see whether the loss changes, and how far off the gradient of the first layer's weights is.
#
# </div>

# %%
guess("12.c")


# %%
def halve(tensor):
    untouched = tensor.data_ptr() in weights or tensor.dtype != torch.float32
    return tensor.detach() if untouched else tensor.half()


def widen(kept):  # this net has no float16 of its own: whatever is float16 was halved by us
    return kept.float() if kept.dtype == torch.float16 else kept


def step(change, restore):
    """MB held for backward, the loss, and the gradient of the first layer's weights."""
    out, alive = forward(change, restore)
    held, loss = megabytes(alive), (out**2).mean()
    return held, loss.item(), torch.autograd.grad(loss, resnet.conv1.weight)[0]


full_mb, loss, exact = step(torch.Tensor.detach, torch.Tensor.detach)
half_mb, half_loss, rounded = step(halve, widen)
print(f"held for backward: {full_mb:.0f} MB, then {half_mb:.0f} MB")
print("the same loss:", loss == half_loss)
print(f"gradient of conv1 off by {(rounded - exact).norm() / exact.norm():.1%}")

# %% [markdown]
# <div lang="zh">
#
# 没有省到一半。几乎每个 `ReLU` 的输出都至少存两次：它自己存一次，拿它当输入的层又各存一次。原来这几次共用一块内存，减半以后却各成了一份 float16 的拷贝。
#
# 损失分毫不差，因为前向传播用的还是原来的值；只有反向传播用的是舍入过的，误差只进了梯度。
#
# </div>
# <div lang="en">
#
# It saves less than half. The output of almost every `ReLU` is saved at least twice: once by itself, and once by each layer that has it as its input. All these used to share one piece of memory; after halving, each is a copy of its own in float16.
#
# The loss is the same to the last bit, because forward still worked with the original values. Only backward used the rounded ones, so the error is in the gradients alone.
#
# </div>

# %% [markdown]
# ## 12.4 存到别处 · Put it somewhere else
#
# <div lang="zh">
#
# 舍入不可接受的时候，可以把张量搬到宽敞的地方，用时再搬回来：显存不够就搬到内存，内存不够就搬到硬盘。一个值都不变，花的是时间。
#
# 下面的 `Shelf` 是一个架子，背后是一个文件夹：`put` 把张量写进文件，返回一把钥匙，`get` 凭钥匙取回，`drop` 把文件删掉。大的张量都上架，autograd 手里只有钥匙。**先猜**，再看梯度和原来的是不是完全相同。
#
# </div>
# <div lang="en">
#
# Where rounding is not acceptable, tensors can be moved to a place with more room and fetched when they are used: from the GPU to main memory, or from there to the disk. No value changes; the price is time.
#
# The `Shelf` below is a folder: `put` writes a tensor to a file and returns a key, `get` fetches it by that key, and `drop` deletes the file. Every large tensor goes on the shelf, and all that autograd holds is the key. **Guess first**, and then see whether the gradients are exactly the same.
#
# </div>


# %%
class Shelf:
    """Copies of tensors in the files of a folder, each under a key of its own."""

    def __init__(self):
        self.folder, self.keys = Path(tempfile.mkdtemp()), itertools.count()

    def put(self, tensor):
        key = self.folder / f"{next(self.keys)}.pt"
        torch.save(
            tensor.detach().clone(), key
        )  # a view alone would drag along all it is a view of
        return key

    def get(self, key):
        return torch.load(key)

    def drop(self, key):
        key.unlink()


# %%
guess("12.d")

# %%
shelf = Shelf()


def put(tensor):
    stays = tensor.nbytes < 100_000 or tensor.data_ptr() in weights
    return tensor.detach() if stays else shelf.put(tensor)


def get(packed):
    return packed if isinstance(packed, torch.Tensor) else shelf.get(packed)


with saved_tensors_hooks(put, get):
    loss = (resnet(images) ** 2).mean()
files = list(shelf.folder.iterdir())
print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.0f} MB")
fetched = torch.autograd.grad(loss, resnet.conv1.weight)[0]
print("the same gradient, to the last bit:", torch.equal(fetched, exact))
left = list(shelf.folder.iterdir())
print("files left:", len(left))
for file in files:
    shelf.drop(file)

# %% [markdown]
# <div lang="zh">
#
# 梯度一位也不差。文件比 autograd 原来占的内存还多，原因和上一节一样：同一块内存存了两次，就写了两个文件。
#
# 反向传播结束以后，文件一个也没有少：autograd 放下的是钥匙，而 `Shelf` 不知道钥匙已经没有人要了。要让它知道，就让 autograd 拿着一个小对象，而不是光秃秃的钥匙；对象一消失，`weakref.finalize(ticket, shelf.drop, key)` 就会调用 `shelf.drop(key)`。
#
# </div>
# <div lang="en">
#
# The gradient is the same to the last bit. The files hold more than autograd used to, for the reason of the last section: memory that is saved twice is written to two files.
#
# And not one file is gone when backward is done. Autograd has let go of the keys, but the `Shelf` does not know that nobody wants them any more. It can be told: let autograd hold a small object instead of the bare key; as soon as that object is gone, `weakref.finalize(ticket, shelf.drop, key)` calls `shelf.drop(key)`.
#
# </div>

# %% [markdown]
# ### 练习 12.2：放上架子，再取回来 · Exercise 12.2: On the shelf and back
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 写 `put_away(shelf, at_least)`，返回一个上下文管理器。在它里面，autograd 要存的张量若有 `at_least` 个字节（`tensor.nbytes`）或更多，不论是什么，每次都用 `shelf.put(tensor)` 放上架子，每次要用时用 `shelf.get(key)` 取回，自己不留；更小的留在原处，不拷贝，但不能连着图。
#
# autograd 不再要一个张量，就马上 `shelf.drop(key)`，每把钥匙只有一次；还用得着的（例如 `backward(retain_graph=True)` 之后）不能删。钥匙可以是任何东西，包括张量。
#
# </div>
# <div lang="en">
#
# Write `put_away(shelf, at_least)`, which returns a context manager. Inside it, each time autograd saves a tensor of `at_least` bytes (`tensor.nbytes`) or more, whatever it is, `shelf.put(tensor)` puts it on the shelf, and `shelf.get(key)` fetches it each time it is used; you keep neither. Smaller ones stay where they are, without a copy and without their graph.
#
# As soon as autograd wants a tensor no more, call `shelf.drop(key)`, once for each key; what may still be used, as after `backward(retain_graph=True)`, must not be dropped. A key may be anything, even a tensor.
#
# </div>


# %% exercise="12.2"
def put_away(shelf, at_least):
    """返回上下文管理器：在里面，autograd 把大的张量放在 shelf 上，不再要了就拿走。

    Return a context manager in which autograd keeps large tensors on the shelf while it wants them.
    """

    ### BEGIN SOLUTION
    class Ticket:
        """What autograd holds instead of a tensor."""

        def __init__(self, key):
            self.key = key
            weakref.finalize(self, shelf.drop, key)

    def pack(tensor):
        return tensor.detach() if tensor.nbytes < at_least else Ticket(shelf.put(tensor))

    def unpack(packed):
        return shelf.get(packed.key) if isinstance(packed, Ticket) else packed

    return saved_tensors_hooks(pack, unpack)
    ### END SOLUTION


# %% check="12.2"
check("12.2", put_away)

# %% [markdown]
# ## 12.5 不存，重算 · Save nothing, compute again
#
# <div lang="zh">
#
# 还有一条路：根本不存，用时再算一遍。这叫检查点（activation checkpointing）。`checkpoint(net, x, use_reentrant=False)` 只留下输入；反向传播走到这里，就重新运行一次前向传播，把要用的中间结果再算出来。它有新旧两种做法，`use_reentrant=False` 选的是新的。大模型通常是分段的，每段一个 `checkpoint`。
#
# 下面有两层，每层一个前置钩子、一个前向钩子，反向传播从 `|` 开始。先是两层合用一个 `checkpoint`。**先猜**，再看每层各用一个时又怎样。
#
# </div>
# <div lang="en">
#
# There is yet another way: save nothing, and compute it again. It is called activation checkpointing. `checkpoint(net, x, use_reentrant=False)` keeps the input only; when backward arrives, it runs forward once more to compute what backward needs. There are two ways to do that, and `use_reentrant=False` chooses the newer one. Large models are cut into blocks, with a `checkpoint` for each.
#
# Below are two layers, each with a pre-hook and a forward hook; backward begins at the `|`. First there is one `checkpoint` around both layers. **Guess first**, and then see what happens with one for each.
#
# </div>

# %%
guess("12.e")


# %% tags=["F26"]
def say(text, *values):
    print(text, end=" ")
    fired.append(text)


net, x = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), torch.ones(1, 2)
handles, fired = [], []
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
# Something that is meant to happen once:
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
# 前向传播又运行了一遍，钩子也跟着触发，但不是每个都会：第 1 层开始了（`pre1`），它的输入和权重一存好，反向传播要的就齐了，重算到此为止，`fwd1` 不再触发（torch 2.15.0）。每层一个 `checkpoint`，就每次只重算一层，从后往前；合用一个，就从头一口气算下来。
#
# 所以在钩子里计数、累加或写日志，都会多算；连 `BatchNorm` 也把同一批数据算了 2 次。如果只想数重算，就在 `backward()` 之前把计数清零。
#
# </div>
# <div lang="en">
#
# Forward ran once more, and hooks fired again, but not all of them: layer 1 has begun (`pre1`), and as soon as its input and its weight are saved, backward has all it needs. Recomputation ends there, and `fwd1` does not fire (torch 2.15.0). With a `checkpoint` for each, layers are computed again one by one, beginning with the last; with one for both, all in one go from the first.
#
# So a hook that counts, adds up or logs does so too often, and even `BatchNorm` counted the same batch 2 times. To count recomputation alone, set your counts back to zero before `backward()`.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 12.3：数一数重算 · Exercise 12.3: Count recomputation
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `count_recomputed(model, x)`：用 `use_reentrant=False` 的检查点运行 `model` 一次，对输出之和做反向传播，梯度照常加到 `.grad` 上。
#
# 返回字典：每个直接子模块的名字 → 它在反向传播期间**开始**运行了几次，没有就是 0。最后不留下钩子。
#
# </div>
# <div lang="en">
#
# Write `count_recomputed(model, x)`: run `model` once under checkpointing with `use_reentrant=False`, and call backward on the sum of its output, which adds to `.grad` as usual.
#
# Return a dictionary from each direct child's name to how many times it **started** during backward, 0 if never. Leave no hook behind.
#
# </div>


# %% exercise="12.3"
def count_recomputed(model, x):
    """返回字典：名字 → 反向传播期间开始运行的次数，例如 {"fc": 1, "flat": 0}。

    Return a dict from names to how often each started in backward, such as {"fc": 1, "flat": 0}.
    """
    ### BEGIN SOLUTION
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    handles = [
        child.register_forward_pre_hook(partial(note, name))
        for name, child in model.named_children()
    ]
    try:
        y = checkpoint(model, x, use_reentrant=False)
        counts.clear()
        y.sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return {name: counts[name] for name, _ in model.named_children()}
    ### END SOLUTION


# %% check="12.3"
check("12.3", count_recomputed)

# %% [markdown]
# ## 12.6 峰值：先预计，再测量 · The peak: forecast, then measured
#
# <div lang="zh">
#
# 检查点该切成几段？设有 `16` 块，切成 `k` 段。每段要留下输入，共 `k` 个；反向传播时一次只重算一段，又有 `16 / k` 个中间结果同时活着。两头都不好：`k` 太小，重算的一段太长；`k` 太大，留下的输入太多。预计峰值约为 `k + 16 / k` 个张量。
#
# 预计完了就来量。显卡有 `torch.cuda.max_memory_allocated()`，CPU 没有，我们自己数：`TorchDispatchMode` 看得见每一个运算，下面的 `Ledger` 用弱引用记住每个结果占的内存（storage），随时相加，取最大值。**先猜**，再看切成几段最省。
#
# </div>
# <div lang="en">
#
# Into how many segments should one cut? Take `16` blocks in `k` segments. Each segment keeps its input, `k` in all; and backward computes one segment again at a time, with `16 / k` results alive at once. Both ends are bad: with a small `k` one segment is long, with a large `k` many inputs are kept. The forecast for the peak is about `k + 16 / k` tensors.
#
# A forecast wants measuring. GPUs have `torch.cuda.max_memory_allocated()`; on a CPU we count ourselves. `TorchDispatchMode` sees every single operation, and the `Ledger` below remembers the memory (storage) of each result by a weak reference, adds up what is alive, and keeps the maximum. **Guess first**, and then see how many segments need least.
#
# </div>


# %%
class Ledger(TorchDispatchMode):
    """After `with Ledger() as ledger:`, ledger.peak is the most bytes that results took at once."""

    def __init__(self):
        super().__init__()
        self.alive, self.peak = weakref.WeakSet(), 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        results = operation(*args, **(kwargs or {}))
        self.alive.update(
            t.untyped_storage() for t in tree_leaves(results) if isinstance(t, torch.Tensor)
        )
        self.peak = max(self.peak, sum(storage.nbytes() for storage in self.alive))
        return results


# %%
guess("12.f")

# %% picture="segments"
torch.manual_seed(0)
blocks = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(16)))
x = torch.randn(4096, 32, requires_grad=True)
counts, peaks = [1, 2, 4, 8, 16], []
for k in counts:
    with Ledger() as ledger:
        y = x
        for segment in range(0, 16, 16 // k):
            y = checkpoint(blocks[segment : segment + 16 // k], y, use_reentrant=False)
        y.sum().backward()
    peaks.append(ledger.peak / x.nbytes)  # in tensors of the size of x
print("forecast peaks:", [k + 16 // k for k in counts])
print("measured peaks:", [round(peak, 1) for peak in peaks])
fig, ax = plt.subplots(figsize=(4, 2.4))
ax.plot(counts, [k + 16 / k for k in counts], "--", label="forecast: k + 16 / k")
ax.plot(counts, peaks, "o", label="measured")
ax.set(xlabel="segments k", ylabel="peak (tensors)", ylim=0, xticks=counts)
_ = ax.legend()

# %% [markdown]
# <div lang="zh">
#
# 4 段最省，曲线的形状和预计的一样。量到的每次都多出大约 1 到 2 个张量：那是反向传播正在算的梯度和临时结果，公式里没有它们。只切 1 段等于没切，反向传播一开始就得把 16 块全部重算出来，同时留着；切成 16 段，留下的输入又和中间结果一样多了。
#
# </div>
# <div lang="en">
#
# 4 segments need least, and the curve has the shape of the forecast. What was measured is always about 1 to 2 tensors more: the gradients and temporary results that backward is working on, which are not in the formula. 1 segment is as good as none, because backward begins by computing all 16 blocks again and holds them all at once; with 16, as many inputs are kept as there would have been results.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 还有一种预计，连一次真正的前向传播也不用：在 `torch.device("meta")` 上，张量只有形状和类型，没有值，也不占内存，运算一瞬间就完成。可是 autograd 照样建图，照样调用 `pack`。
#
# 下面的 `b` 是 `a` 的视图，两个都一个字节也没有。怎么知道它们用的是同一块内存？**先猜。**
#
# </div>
# <div lang="en">
#
# And there is a forecast that needs no real forward pass at all. On `torch.device("meta")`, tensors have a shape and a type but no values; they take no memory, and operations are done in no time. Yet autograd builds its graph as ever, and calls `pack`.
#
# Below, `b` is a view of `a`, and neither has a single byte. How can we tell that they use the same memory? **Guess first.**
#
# </div>

# %%
guess("12.g")

# %%
with torch.device("meta"):
    big = torchvision.models.resnet152()
    out = big(torch.empty(256, 3, 224, 224))
    a, other = torch.empty(1000, 500), torch.empty(7)
b = a.t()[:10]
print("out:", tuple(out.shape), out.device)
print("data_ptr():", a.data_ptr(), b.data_ptr(), other.data_ptr())
print("b has the storage of a:", b.untyped_storage() is a.untyped_storage())
print("b.nbytes:", b.nbytes, "| its storage:", b.untyped_storage().nbytes())

# %% [markdown]
# <div lang="zh">
#
# `data_ptr()` 全是 0，认不出谁是谁。可靠的是 `untyped_storage()`：一个张量和它的各个视图，得到的是同一个对象，可以放进集合，也可以用 `is` 比较。它的 `nbytes()` 是整块的大小：`b` 虽然只有 40000 个字节，留住它，就留住了整块的 2000000 个。
#
# </div>
# <div lang="en">
#
# `data_ptr()` is 0 for all, and tells nobody apart. What does tell them apart is `untyped_storage()`: a tensor and all its views return the very same object, which can go into a set and be compared by `is`. Its `nbytes()` is the size of the whole: `b` has just 40000 bytes, but whoever keeps it keeps all 2000000 of the storage.
#
# </div>

# %% [markdown]
# ### 练习 12.4：装得下吗？ · Exercise 12.4: Will it fit?
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 写 `forecast(build, shape)`：不占内存，预计一次前向传播会让 autograd 留下多少字节。`build()` 造出模型，`shape` 是输入的形状（float32，不要梯度）。
#
# 在 meta 设备上造模型和输入，各造一次，在 `saved_tensors_hooks` 里运行一次。返回存下的内存（storage）总共多少字节：共用的只算一次，整块计算；模型的参数和缓冲区本来就在，不算；输入若被存下，也算。模型的模式不要改；最后不留下图，默认设备也和原来一样，出了异常也是。
#
# </div>
# <div lang="en">
#
# Write `forecast(build, shape)`, which tells how many bytes autograd will keep after one forward pass, without taking up memory. `build()` makes the model, and `shape` is the shape of its input (float32, no gradient).
#
# On the meta device, make the model and its input, once each, and run it once inside `saved_tensors_hooks`. Return how many bytes of memory (storage) were saved in all: shared memory counts once, and as a whole; the model's parameters and buffers, which are there anyway, do not count; the input counts where it is saved. Leave the model's mode as it is. Afterwards no graph is left, and the default device is the old one, even after an exception.
#
# </div>


# %% exercise="12.4"
def forecast(build, shape):
    """返回 autograd 在一次前向传播之后留下的字节数，参数和缓冲区不算。

    Return the bytes that autograd keeps after a forward pass, without parameters and buffers.
    """
    ### BEGIN SOLUTION
    with torch.device("meta"):
        model, x = build(), torch.empty(shape)
    own = {tensor.untyped_storage() for tensor in [*model.parameters(), *model.buffers()]}
    saved = set()

    def pack(tensor):
        saved.add(tensor.untyped_storage())
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda packed: packed):
        model(x)
    return sum(storage.nbytes() for storage in saved - own)
    ### END SOLUTION


# %% check="12.4"
check("12.4", forecast)

# %% [markdown]
# <div lang="zh">
#
# 拿你的 `forecast` 和 12.2 节量出来的比一比：同样的 ResNet-50，同样 4 张图。再问一个不敢真跑的：256 张图的 ResNet-152。
#
# </div>
# <div lang="en">
#
# Set your `forecast` beside what section 12.2 measured: the same ResNet-50, the same 4 pictures. Then ask it about one that you would not dare to run: ResNet-152 with 256 pictures.
#
# </div>

# %%
print(f"measured: {full_mb:.0f} MB")
with suppress(NotImplementedError):  # until you have written it
    for build, pictures in [(torchvision.models.resnet50, 4), (torchvision.models.resnet152, 256)]:
        size = forecast(build, (pictures, 3, 224, 224))
        print(f"{build.__name__}, {pictures} pictures:", size and f"{size / 1e6:.0f} MB")

# %% [markdown]
# <div lang="zh">
#
# 写对了的话，预计的和量到的一样，都是 344 MB；而 ResNet-152 光是中间结果就要 45 GB。从不到一秒的预计就知道，这一步该用检查点。不过，不是所有的网络都对得这样准：`nn.LSTM` 和 `scaled_dot_product_attention` 在真的设备上可能用另一种实现，存下的东西也就不同。
#
# </div>
# <div lang="en">
#
# Once it is written, forecast and measurement agree at 344 MB; and ResNet-152 wants 45 GB for what lies between alone. A forecast of less than a second has told you to use checkpointing here. Not every net agrees so well, though: on a real device, `nn.LSTM` and `scaled_dot_product_attention` may run another implementation than on meta, and it saves other things.
#
# </div>

# %% [markdown]
# ## 12.7 小结 · Recap
#
# <div lang="zh">
#
# 1. autograd 为反向传播存下张量；`saved_tensors_hooks` 决定存成什么。
# 2. 留着连着图的输出，反向传播以前就留着一切；`pack` 里也要 `detach()`。
# 3. 半精度省内存，误差只进梯度；搬到别处不差一位，花的是时间。
# 4. 检查点会重新运行前向传播，到要用的都有了为止，钩子会多触发。
# 5. 内存按 storage 算：共用的只算一次；在 meta 设备上可以先预计。
#
# </div>
# <div lang="en">
#
# 1. Autograd saves tensors for backward; `saved_tensors_hooks` decide what it keeps of them.
# 2. An output that you keep attached keeps everything until backward has run; `detach()` belongs in `pack`, too.
# 3. Half precision saves memory, and its error is in gradients only; moving tensors away loses no bit, but takes time.
# 4. Checkpointing runs forward again until all that is needed is there, so hooks fire more often.
# 5. Memory is counted by storage, and shared storage once; the meta device gives a forecast.
#
# </div>

# %% [markdown]
# ## 12.8 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么不能让 <code>pack</code> 原样返回一步的输出？</summary>输出连着计算图，计算图又留着输出，成了一圈：不走反向传播，就谁也放不掉。</details>
# <details><summary>2. 用了检查点，<code>fwd1</code> 为什么只触发一次？</summary>重算在最后一个要存的张量存好时就停了，这一层没有运行完。</details>
# <details><summary>3. 为什么把存下的张量的 <code>nbytes</code> 加起来，会多算？</summary>同一块内存常常存好几次，例如 ReLU 的输出；要按 storage 数，每块一次。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why must <code>pack</code> not return a step's output as it is?</summary>The output holds the computation graph and that holds the output: a ring, which without a backward pass nobody can free.</details>
# <details><summary>2. Under checkpointing, why does <code>fwd1</code> fire only once?</summary>Recomputation stops when the last tensor to be saved is there, before that layer is done.</details>
# <details><summary>3. Why is the sum of <code>nbytes</code> over all saved tensors too large?</summary>The same memory is often saved several times, as a ReLU's output is; count storages, each of them once.</details>
# </div>

# %% [markdown]
# ## 12.9 真实世界里 · In the wild
#
# <div lang="zh">
#
# `torch.autograd.graph.save_on_cpu` 用的就是这对钩子，把存下的张量从显卡搬到内存；训练大模型的库几乎都用检查点换内存，`torch.utils.checkpoint` 还有 selective checkpointing，让你选哪些运算重算。搜索这几个名字。下面是你的进度；下一课讲编译，以及几个进程一起训练。
#
# </div>
# <div lang="en">
#
# `torch.autograd.graph.save_on_cpu` is this very pair of hooks, and moves saved tensors from the GPU to main memory. Nearly every library that trains large models trades time for memory by checkpointing, and `torch.utils.checkpoint` has selective checkpointing, which lets you choose what is computed again. Search for these names. Below is your progress; the next lesson is about compiling, and about several processes that train together.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
