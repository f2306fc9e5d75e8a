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
# 训练时内存不够用了，占地方的常常不是权重，而是中间结果：前向传播一边走，autograd 一边把反向传播将来要用的张量**存下**来，一直留到反向传播用完。
#
# 想省内存，可以管一管它存什么。这里也能挂钩子，而且一对钩子就管住 PyTorch 的所有运算。在 `with saved_tensors_hooks(pack, unpack):` 里面，autograd 每次要存一个张量，都先调用 `pack`，`pack` 返回什么，它就留下什么。等反向传播要用这个张量了，它再调用 `unpack`，把张量换回来。
#
# 这样的块可以一个套一个，这时 autograd 只问最里面的那一对。
#
# 我们先拿一个小计算来试，它只有三步：`exp`、乘法、求和。一共会存几次，存的是什么？**先猜**，再看每一步存下什么。
#
# </div>
# <div lang="en">
#
# When training runs out of memory, it is often not the weights that fill it but intermediate results. As forward goes
# through the model, autograd **saves** the tensors that backward will need, and they stay in memory until backward
# is done with them.
#
# So to save memory, you can decide for yourself what is kept. There are hooks for this as well, and one pair of them
# covers all operations of PyTorch. Inside `with saved_tensors_hooks(pack, unpack):`, whenever autograd is about to save
# a tensor, it calls `pack` first and keeps whatever `pack` returns. When backward needs the tensor, autograd calls
# `unpack` to get it back.
#
# You may put one such block inside another. Then autograd asks only the innermost pair.
#
# What does autograd find worth saving? Let us begin with a computation of only three steps: `exp`, a product and a sum.
# How many times will something be saved, and what will it be? **Guess first**, and then see what each step saves.
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
# autograd 存了三次，三次都是 `y`。为什么是它？`exp` 的导数就是 `exp` 自己的输出，所以这一步存下 `y`。`y * y` 有两个因子，对其中一个求导要用到另一个，于是又存了两次。
#
# `x` 和 `y * y` 的值，反向传播用不着，autograd 就不存。不过图还是留着叶子 `x` 这个对象，因为梯度要加到 `x.grad` 里。
#
# 再看最后一行：三次存的都是同一块内存，所以并没有多占地方。可见，存了几次和占了多少，是两个问题。假如 `pack` 每次都返回一份拷贝，除了 `y`，就会再占三份地方。
#
# </div>
# <div lang="en">
#
# Autograd saves something three times, and each time it is `y`. Why `y`? The derivative of `exp` is its own output, so
# this step saves `y`. The product `y * y` has two factors, and the derivative by one of them needs the other. That
# makes two more.
#
# Backward has no use for the values of `x` and `y * y`, so neither of them is saved. The graph does hold on to the leaf
# `x` itself, however, because its gradient goes into `x.grad`.
#
# The last line says that all three share one piece of memory, so they take no extra room. How often something is
# saved and how much memory it takes are two different questions. If `pack` had returned a copy each time, three more
# pieces would be needed beside that of `y`.
#
# </div>

# %% [markdown]
# ## 12.2 谁让它们活着 · What keeps them alive
#
# <div lang="zh">
#
# 还记得 5.4 节吗？你只留下一个 `output`，就把它身后的整张图都留下了，足有 344 MB。那时我们沿着图一步步走，才数出这个数。现在有了 `pack`，存下的每个张量都要经过我们的手，可以直接看它还在不在。
#
# 可是，怎样才能看着它，又不把它留住呢？我们把每个张量装进一个小对象 `Kept`，再让一个 `WeakSet` 记住这些小对象。`WeakSet` 用的是弱引用，弱引用留不住东西，所以 autograd 一松手，小对象就从集合里消失了。
#
# 现在我们运行模型，用 `detach()` 断开输出，看看还剩多少 MB。按理说，应该一点不剩。这样做三遍，每遍换一个 `pack`：第一个留下 `tensor.detach()`，第二个留下 `tensor.half()`，最后一个把 `tensor` 原样留下，没有断开。这有关系吗？**先猜。**
#
# </div>
# <div lang="en">
#
# Section 5.4 showed that if you keep a single `output`, you keep the whole graph behind it, 344 MB. There we walked
# through the graph step by step to find that out. With `pack`, every saved tensor passes through our hands, so we can
# watch whether it is still there.
#
# How can we watch it without keeping it? We put each tensor into a small object called `Kept`, and let a `WeakSet`
# remember these objects. A `WeakSet` holds weak references, which keep nothing alive. So an object disappears from it
# as soon as autograd lets go of it.
#
# Now we run the model, cut its output off with `detach()`, and see how many MB are left. By rights, nothing should be.
#
# We do this with three versions of `pack`. The first keeps `tensor.detach()`, the second keeps `tensor.half()`, and the
# last keeps `tensor` just as it is, without detaching it. Does that matter? **Guess first.**
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
    kept.tensor = None  # breaks the cycle, or this memory would never be freed

# %% [markdown] tags=["F13"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 只要你还留着一个连着图的输出，为它存下的张量就全都留着，直到反向传播用完。只留下 `detach()` 的结果，又没有别的东西拿着这张图，其余的就立刻全部释放。
#
# `pack` 收到的，可能正是存它的那一步自己的输出，例如 `exp` 的，而这个输出连着图。你要是原样留下它，那一步留着它，它又留着那一步，就成了循环引用，图里在它前面的一切也都跟着留下。只要不走反向传播，连 `gc.collect()` 也放不掉，因为这个圈有一段在 C++ 里。所以在 `pack` 里也要 `detach()`。
#
# `pack` 留下的若是拷贝，就用不着 `detach()`。`pack` 运行的时候，autograd 不建图，所以 `half()` 从 float32 造出来的新张量，哪张图也不连。
#
# </div>
# <div lang="en">
#
# It is tempting to keep an output, if only to look at it later. But as long as this output is attached to its graph,
# everything that was saved for it is kept as well, until backward is done with it. Keep what `detach()` makes of it
# instead, and all the rest is freed at once, unless something else holds the graph.
#
# The tensor that `pack` receives may be the output of the very step that saves it, as with `exp`, and such an output is attached to the graph. If you keep it as it is, the step holds the tensor and the tensor holds the step: a reference cycle, which also keeps everything before it in the graph. Without a backward pass, not even `gc.collect()` can free it, because part of it is in C++. So call `detach()` in `pack` as well.
#
# If `pack` keeps a copy, it does not need `detach()`. No graph is built while `pack` runs, so what `half()` makes of a float32 belongs to no graph.
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
# 反向传播用的数，常常不必那么精确。内存不够时，你可以存得粗一点：把 float32 存成 float16，只占一半地方，用的时候再变回来。
#
# 写 `half_saved(counts)`，它返回一个这样做的上下文管理器。在里面，autograd 要存的每个 float32 张量，权重也在内，都用 `half()` 存成 float16，要用时再变回 float32。数太大，就让它变成 `inf`。其他类型的张量，类型和数值都不改，但要从图上断开，不然又成了上面那种循环引用。
#
# 省了多少，要数一数字节才知道。`counts` 传进来时是 `{"saved": 0, "kept": 0}`。`pack` 每收到一个张量，就把它的字节数（`tensor.nbytes`）加到 `saved`，把真正留下的那个的字节数加到 `kept`。不管是什么类型，也不管以前来过没有，都这样加。
#
# `pack` 返回什么都行，不一定是张量，`unpack` 会原样收到。可是 autograd 不要了的东西，别处也不能留着，否则它的内存还是放不掉。
#
# </div>
# <div lang="en">
#
# Backward can often do with less precise numbers. So when memory is short, you can save tensors in half precision: a
# float16 takes half the room of a float32.
#
# Write `half_saved(counts)`, which returns a context manager that does so. Inside it, every float32 tensor that
# autograd saves, weights included, is turned into float16 by `half()`, and back into float32 when it is used. Let
# numbers too large for float16 become `inf`. A tensor of another type keeps type and numbers, but detach it, or it may
# form the cycle described above.
#
# To see how much this gains, keep an account: `counts` comes in as `{"saved": 0, "kept": 0}`, with one number for what
# autograd hands you and one for what you keep. Each time `pack` gets a tensor, of whatever type and even if it has come
# before, add its bytes (`tensor.nbytes`) to `saved`, and the bytes of the tensor that you keep to `kept`.
#
# `pack` may return anything, not only a tensor, and `unpack` receives exactly that. Nothing else may keep what autograd
# no longer needs, or its memory would stay taken.
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
# 半精度到底能省多少？我们回到 ResNet-50 上试一试。
#
# 权重要另外对待：它们本来就在内存里，再留一份半精度的拷贝，反而多占地方。所以我们按 `data_ptr()` 把权重认出来，对它们只用 `detach()`。
#
# 为反向传播留着的内存，会少多少？**先猜**，再看这样省要付什么代价：损失变不变，第一层权重的梯度又差多少。
#
# </div>
# <div lang="en">
#
# How much does half precision really save? Let us try it on ResNet-50.
#
# The weights need special care. They are in memory anyway, so a copy of them in half precision would only take more
# room. That is why we recognise them by `data_ptr()` and just `detach()` them.
#
# Each of the other float32 numbers takes half the bytes. By how much, then, will the memory held for backward shrink?
# **Guess first**, and then see what it costs: whether the loss changes, and how far off the gradient of the first
# layer's weights is.
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
# 半精度省下的还不到一半。差在哪里？差在共用。几乎每个 `ReLU` 的输出都至少存两次：`ReLU` 自己存一次，拿它当输入的每一层又存一次。原来这几次用的是同一块内存；减半以后，每次都另有一份 float16 拷贝，谁也不和谁共用了。
#
# 损失倒是一位不差，因为前向传播用的还是原来的值。只有反向传播用了舍入过的值，所以误差只进了梯度。
#
# </div>
# <div lang="en">
#
# Half precision saves less than half of the memory, and the reason is sharing. The output of almost every `ReLU` is
# saved at least twice: once by the `ReLU` itself, and once by each layer that has it as its input. These used to
# share one piece of memory, but after halving, each of them is a separate copy in float16.
#
# The loss is the same to the last bit, because forward still worked with the original values. Only backward used the
# rounded ones, so the error is in the gradients alone.
#
# </div>

# %% [markdown]
# ## 12.4 存到别处 · Put it somewhere else
#
# <div lang="zh">
#
# 有时候，你连一点舍入也不能接受。那就别改张量，把它搬到宽敞的地方去，用的时候再搬回来：显存不够就搬到内存，内存不够就搬到硬盘。这样一个值也不变，只是要花时间。
#
# 这里宽敞的地方是一个文件夹，由下面的架子 `Shelf` 来管。`put` 把张量写进文件，给你一把钥匙；`get` 凭钥匙取回张量；`drop` 把文件删掉。除了权重，大的张量都放上架子，autograd 手里只有钥匙。
#
# 等反向传播结束，文件夹里还剩几个文件？**先猜**，再看梯度和原来的是不是完全相同。
#
# </div>
# <div lang="en">
#
# Sometimes you cannot accept even a little rounding. Then do not change the tensors, but move them to a place with more
# room, and fetch them when they are used: from the GPU to main memory, or from there to the disk. No value changes this
# way; the price is time.
#
# Our place with more room is a folder. The `Shelf` below looks after it, much as a cloakroom looks after coats: `put`
# writes a tensor to a file and hands you a key, `get` fetches the tensor by that key, and `drop` deletes the file.
# Every large tensor except weights goes on the shelf, and autograd holds only the key.
#
# When backward is done, nobody needs these files any more. How many of them will be left in the folder? **Guess
# first**, and then see whether the gradients are exactly the same.
#
# </div>


# %%
class Shelf:
    """Copies of tensors in the files of a folder, each under a key of its own."""

    def __init__(self):
        self.folder, self.keys = Path(tempfile.mkdtemp()), itertools.count()

    def put(self, tensor):
        key = self.folder / f"{next(self.keys)}.pt"
        copy = tensor.detach().clone()  # a view alone would drag along all it is a view of
        torch.save(copy, key)
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
# 梯度一位也不差。可是文件占的地方，比 autograd 原来占的内存还多，原因和上一节一样：同一块内存存了两次，就写成了两个文件。
#
# 还有一件事没有做完：反向传播结束了，文件却一个也没有少。autograd 已经放下了钥匙，可是 `Shelf` 不知道，这些钥匙已经没有人要了。
#
# 怎样让它知道呢？别把光秃秃的钥匙交给 autograd，交给它一个小对象 `ticket`。autograd 一松手，这个对象就消失；它一消失，`weakref.finalize(ticket, shelf.drop, key)` 就替我们调用 `shelf.drop(key)`。
#
# </div>
# <div lang="en">
#
# The gradient is the same to the last bit. But the files take more room than autograd took in memory before. The reason
# is the same as in the last section: memory that is saved twice is written to two files.
#
# Something is still left to do, too. Backward is done, and yet not one file is gone. Autograd has let go of the keys,
# but the `Shelf` does not know that nobody wants them any more.
#
# How can the shelf find out? Do not hand the bare key to autograd, but a small object, the `ticket`. As soon as
# autograd lets go of the ticket, the ticket is gone, and `weakref.finalize(ticket, shelf.drop, key)` sees to it that
# `shelf.drop(key)` is called at that moment.
#
# </div>

# %% [markdown]
# ### 练习 12.2：放上架子，再取回来 · Exercise 12.2: On the shelf and back
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 上面的架子只进不出，早晚会满。你来写一个有进有出的：`put_away(shelf, at_least)` 把大的张量放上架子，等 autograd 不再要了，又从架子上拿走。它返回一个上下文管理器，在里面要守这几条规矩：
#
# - autograd 每次要存一个张量，只要它有 `at_least` 个字节（`tensor.nbytes`）或更多，不论是什么张量，都用 `shelf.put(tensor)` 放上架子。
# - 这样的张量每次要用，就用 `shelf.get(key)` 取回。不论是放上去的还是取回来的，你自己都不能留着，否则它还在内存里，架子就白用了。
# - 更小的张量就留在原处。不要拷贝它，但也别让它连着图。
# - autograd 一旦不再要一个张量，就马上 `shelf.drop(key)`，每把钥匙只有一次。可是还用得着的不能拿走，例如 `backward(retain_graph=True)` 之后。
# - 钥匙可以是任何东西，连张量也可以，所以不要把它错当成留在原处的张量。
#
# </div>
# <div lang="en">
#
# The shelf above only ever fills up. Now write `put_away(shelf, at_least)`, which puts large tensors on the shelf and
# takes them off again when autograd no longer wants them. In each training step, the shelf then fills and empties
# again. The function returns a context manager, inside which these rules hold:
#
# - Each time autograd saves a tensor of `at_least` bytes (`tensor.nbytes`) or more, whatever tensor it is, put it on
#   the shelf with `shelf.put(tensor)`.
# - Each time such a tensor is used, fetch it with `shelf.get(key)`. Keep neither what you put away nor what you fetch:
#   it would stay in memory, and the shelf would save nothing.
# - Smaller tensors stay in memory, where they are. Do not copy them, but keep them without their graph.
# - As soon as autograd no longer wants a tensor, call `shelf.drop(key)`, once for each key. But do not drop what may
#   still be used: after `backward(retain_graph=True)`, it may be needed a second time.
# - A key may be anything, even a tensor, so do not mistake it for one that stayed in memory.
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
# 要省内存，还有第三条路：中间结果干脆不存，要用的时候再算一遍。这叫检查点（activation checkpointing）。
#
# `checkpoint(net, x, use_reentrant=False)` 只留下输入。反向传播走到这里，它就把前向传播再运行一遍，算出反向传播要用的东西。大模型通常切成几段，每段用一个 `checkpoint`。检查点有新旧两种做法，`use_reentrant=False` 选的是新的。
#
# 前向传播运行两遍，钩子也会触发两遍吗？我们拿两层来试，每层挂一个前置钩子和一个前向钩子。钩子一触发，就打印自己的名字；反向传播开始的时候，打印一个 `|`。
#
# 先让两层合用一个 `checkpoint`，这时 `|` 后面会打印什么？**先猜**，再看每层各用一个时又怎样。
#
# </div>
# <div lang="en">
#
# There is a third way to save memory: keep no intermediate results at all, and compute them again when they are needed.
# This is called activation checkpointing.
#
# `checkpoint(net, x, use_reentrant=False)` keeps only the input. When backward arrives, it runs forward once more and
# so computes what backward needs. Large models are usually cut into segments, with a `checkpoint` for each. (There is
# an older and a newer way of checkpointing, and `use_reentrant=False` chooses the newer one.)
#
# If forward runs twice, do hooks fire twice as well? To find out, we take two layers, each with a pre-hook and a
# forward hook. Every hook prints its name when it fires, and a `|` is printed where backward begins.
#
# At first, both layers share one `checkpoint`. What will come after the `|`? **Guess first**, and then see what changes
# when each layer has its own.
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
# 前向传播又运行了一遍，钩子也跟着触发，但不是每个都会。第 1 层开始了（`pre1`），它的输入和权重一存好，反向传播要的就齐了。重算到这里就停，轮不到 `fwd1` 再触发（torch 2.15.0）。
#
# 重算的次序，要看你怎样分检查点。每层各有一个 `checkpoint`，就一层一层地重算，从最后一层开始。两层合用一个，就从头一层起，一口气算下来。
#
# 所以，钩子若是用来计数、累加或写日志，就可能重复。连 `BatchNorm` 也把同一批数据数了 2 次。你要是只想数重算，就在 `backward()` 之前把计数清零。
#
# </div>
# <div lang="en">
#
# Forward ran once more, and hooks fired again, but not all of them. Layer 1 has begun (`pre1`), and as soon as its
# input and its weight are saved, backward has all it needs. Recomputation ends there, so `fwd1` does not fire (torch
# 2.15.0).
#
# The order depends on the checkpoints. If each layer has its own `checkpoint`, layers are computed again one by one,
# beginning with the last. If both share one, they are computed again in one go, beginning with the first.
#
# So a hook that counts, adds up or logs may do so too often, and even `BatchNorm` counted the same batch 2 times. To count recomputation alone, set your counts back to zero before `backward()`.
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
# 检查点省下了内存，花掉的是时间。花掉多少，要看哪些层又运行了一遍，而这正好可以用钩子来数。
#
# 写 `count_recomputed(model, x)`，数出模型的每个直接子模块重算了几次。先用 `use_reentrant=False` 的检查点运行 `model` 一次，再从输出之和开始反向传播，梯度照常加到 `.grad` 上。
#
# 返回一个字典，键是每个直接子模块的名字，值是它在反向传播期间**开始**运行了几次；一次也没有的，就是 0。为什么数开始，不数结束？因为重算停在哪一层，哪一层就没有运行完。返回时不要留下钩子；这里不会出异常。
#
# </div>
# <div lang="en">
#
# Checkpointing saves memory, and you pay for it with time. How much you pay depends on which layers run again, and that
# is something hooks can count.
#
# Write `count_recomputed(model, x)`, which counts how often each direct child of a model is computed again. Run `model`
# once under checkpointing with `use_reentrant=False`, and then call backward on the sum of its output, which adds
# gradients to `.grad` as usual.
#
# Return a dictionary in which you can look up each direct child by its name. The value is how many times that child
# **started** during backward, and 0 if it never did. Why count starts, and not ends? Because a layer in which
# recomputation stops does not finish.
#
# Leave no hook behind when you return. (You need not prepare for an exception, as nothing here raises one.)
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
# 用检查点时，模型该切成几段？我们先算一算。设它有 `16` 块，切成 `k` 段。每段都要留下自己的输入，一共就是 `k` 个张量。反向传播一次只重算一段，这时又有 `16 / k` 个中间结果同时活着。
#
# 所以两头都不好：`k` 太小，一段就太长；`k` 太大，留下的输入就太多。加起来，预计的峰值约为 `k + 16 / k` 个张量。
#
# 预计得准不准，要量了才知道。显卡有 `torch.cuda.max_memory_allocated()`，在 CPU 上，我们只好自己来数。`TorchDispatchMode` 看得见每一个运算。下面的 `Ledger` 就靠它，用弱引用记住每个结果占的内存（storage），把还活着的加起来，留下最大的那个和。
#
# 量到的峰值，会和预计的一样吗？**先猜**，再看切成几段最省。
#
# </div>
# <div lang="en">
#
# Into how many segments should you cut a model? Before we try it out, let us work it out. Suppose the model has `16`
# blocks, and you cut it into `k` segments. Each segment keeps its input, which makes `k` tensors in all. During
# backward, one segment at a time is computed again, and then its `16 / k` results are alive at once.
#
# So both ends are bad. With a small `k` each segment is long, and with a large `k` many inputs are kept. Added up, the
# forecast for the peak is about `k + 16 / k` tensors.
#
# A forecast should be checked by a measurement. GPUs have `torch.cuda.max_memory_allocated()`, but on a CPU we have to
# count ourselves. `TorchDispatchMode` helps us here, because it sees every single operation. With its help, the
# `Ledger` below remembers the memory (storage) of each result by a weak reference, adds up what is alive, and keeps the
# maximum.
#
# Will the measured peak be what was forecast? **Guess first**, and then see how many segments need the least memory.
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
counts, peaks = [1, 2, 4, 8, 16], []
for k in counts:
    with Ledger() as ledger:
        y = x = torch.randn(4096, 32, requires_grad=True)  # made here, so that it counts too
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
# 切成 4 段最省，曲线的形状也和预计的一样。不过，量到的峰值每次都高出大约 2 个张量。一个是模型的输出，变量 `y` 一直拿着它；另一个是反向传播正在用的梯度或临时结果。它们也要占地方，公式里却没有。
#
# 两头为什么都不省呢？只切 1 段等于没切：反向传播一开始，就得把 16 块全部重算出来，同时留着。切成 16 段，留下的输入又和本来要存的中间结果一样多了。
#
# </div>
# <div lang="en">
#
# Look at the dots in the picture. They follow the dashed curve, high at both ends, and with 4 segments the peak is
# lowest. Yet each of them floats above the curve, by about 2 tensors. Why? One of the two is the output of the model,
# which `y` holds all the while. The other is a gradient or a temporary result that backward has in hand. They need room
# as well, but they are not in our formula.
#
# And why do both ends gain nothing? With only 1 segment you have not cut at all: backward begins by computing all 16
# blocks again, and holds them all at once. With 16 segments, you keep as many inputs as there would have been
# intermediate results.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 假如让一个大网络一次看 256 张图，autograd 要存下多少？你不用真的运行一次前向传播，就算得出来，哪怕没有一台机器装得下。
#
# 办法是 `torch.device("meta")`。在这个设备上，张量只有形状和类型，没有值，也不占内存，运算一瞬间就完成。autograd 却照样建图，所以每存一个张量，也照样调用 `pack`。
#
# 不过有一处要小心：存下的张量里，有几个可能共用一块内存，这块内存只能算一次。所以我们先要知道，谁和谁共用。
#
# 下面的 `b` 是 `a` 的视图，在真的设备上，两个会用同一块内存。在 meta 设备上，它们都没有内存，那还看得出它俩是一家吗？**先猜**：`data_ptr()` 看得出来吗？
#
# </div>
# <div lang="en">
#
# How much would autograd save if a large network got 256 pictures at once? You can find out without a real forward
# pass, and even if no machine has room for one.
#
# The way to do it is `torch.device("meta")`. There, tensors have a shape and a type but no values. They take no memory,
# and operations are done in no time. Yet autograd builds its graph as usual, and so it also calls `pack` for every
# tensor that it saves.
#
# One thing needs care. Several of the saved tensors may share the same memory, which must be counted only once. So we
# have to know which of them do.
#
# Below, `b` is a view of `a`, so on a real device the two would use the same memory. On the meta device neither has
# any. Can we still tell that they belong together? **Guess first**: does `data_ptr()` tell?
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
# 看不出来：这三个张量的 `data_ptr()` 都是 0。靠得住的是 `untyped_storage()`。不论你问的是一个张量，还是它的哪个视图，得到的都是同一个对象。这个对象可以放进集合，也可以用 `is` 比较。
#
# 它还知道整块内存的大小，就是它的 `nbytes()`。这和张量自己的大小是两回事：`b` 只有 40000 个字节，可是谁留住 `b`，谁就留住了整块的 2000000 个字节。
#
# </div>
# <div lang="en">
#
# No, `data_ptr()` does not tell: here it is 0 for all three tensors. You can rely on `untyped_storage()` instead,
# because a tensor and all its views return the very same object. You can put this object into a set, or compare it by
# `is`.
#
# The storage also knows how large it is as a whole: ask its `nbytes()`. This need not be the size of the tensor.
# Although `b` has just 40000 bytes, whoever keeps `b` keeps all 2000000 of the storage.
#
# </div>

# %% [markdown]
# ### 练习 12.4：装得下吗？ · Exercise 12.4: Will it fit?
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 真跑一个大模型之前，你总想先知道装不装得下。写 `forecast(build, shape)`，它不占那么多内存，就说得出一次前向传播以后，autograd 会留下多少字节。`build()` 造出模型，`shape` 是输入的形状（float32，不要梯度）。
#
# 先在 meta 设备上造模型和输入，各造一次，再在 `saved_tensors_hooks` 里运行一次模型。模型的 `forward` 不会像 `torch.zeros` 那样凭空造张量，也不会丢掉算出的结果。运行放在 `torch.device` 里面或后面都行。
#
# 返回存下的内存（storage）一共多少字节：
#
# - 共用的内存只算一次，而且算整块，因为留住一部分，就留住了整块。
# - 模型的参数和缓冲区本来就在，不算。输入若被存下，就要算。
# - 不要改模型的模式，因为换一种模式，存下的也可能不同。
# - 最后不留下图，默认设备也还是原来那个，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Before you run a large model, you want to know whether it fits. Write `forecast(build, shape)`, which tells how many
# bytes autograd will keep after one forward pass, without taking up that memory. `build()` makes the model, and `shape`
# is the shape of its input (float32, no gradient).
#
# Make the model and its input on the meta device, once each, and run the model once inside `saved_tensors_hooks`. The
# run may stand inside `torch.device` or after it. You are spared two difficulties: the model's `forward` creates no
# tensors from nothing, as `torch.zeros` does, and it discards no result.
#
# Then return how many bytes of memory (storage) were saved in all:
#
# - Count shared memory once, and as a whole, because whoever keeps a part of it keeps all of it.
# - Do not count the model's parameters and buffers, since they are there anyway. Count the input where it is saved.
# - Leave the model's mode as it is, because another mode may save other things.
# - Afterwards, even after an exception, no graph is left, and the default device is the old one.
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
# 现在来考一考你的 `forecast`。先拿它和 12.2 节量到的比一比，用同样的 ResNet-50、同样的 4 张图。再问它一个你不敢真跑的：ResNet-152，256 张图。
#
# </div>
# <div lang="en">
#
# Now put your `forecast` to the test. Set it beside what section 12.2 measured, with the same ResNet-50 and the same
# 4 pictures. Then ask it about a model that you would not dare to run: ResNet-152 with 256 pictures.
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
# 如果你写对了，预计的和量到的就一样，都是 344 MB。再看 ResNet-152：光是中间结果，就要 45 GB。只花了一秒上下，你就知道这里该用检查点。
#
# 不过，不是每个网络都对得这样准。`nn.LSTM` 和 `scaled_dot_product_attention` 到了真的设备上，可能换一种实现，存下的东西也就不同。
#
# </div>
# <div lang="en">
#
# Once your function is right, forecast and measurement agree at 344 MB. ResNet-152, however, would need 45 GB for its
# intermediate results alone. So a forecast of about a second has told you to use checkpointing here.
#
# Do not expect every net to agree so well. On a real device, `nn.LSTM` and `scaled_dot_product_attention` may run
# another implementation than on the meta device, and it saves other things.
#
# </div>

# %% [markdown]
# ## 12.7 小结 · Recap
#
# <div lang="zh">
#
# 1. autograd 为反向传播存下张量；存成什么，由你用 `saved_tensors_hooks` 决定。
# 2. 你留着一个连着图的输出，就留着为它存下的一切，直到反向传播用完。`pack` 里也要 `detach()`，因为它收到的可能就是这样的输出。
# 3. 半精度可以省内存，误差只进梯度。把张量搬到别处，一位也不差，花的是时间。
# 4. 检查点（`use_reentrant=False`）让前向传播再运行一遍，直到反向传播要用的都有了，所以钩子会多触发。
# 5. 存下的几个张量可能共用一个 storage，所以每个 storage 只算一次。在 meta 设备上，你可以先预计。
#
# </div>
# <div lang="en">
#
# 1. Autograd saves tensors for backward, and with `saved_tensors_hooks` you decide what it keeps in their place.
# 2. If you keep an output attached to its graph, you keep everything that was saved for it until backward is done with it. Call `detach()` in `pack` as well, because what it receives may be such an output.
# 3. Half precision can save memory, and its error is in the gradients only. Moving tensors elsewhere loses no bit, but takes time.
# 4. Checkpointing (`use_reentrant=False`) runs forward again until all that backward needs is there. That is why hooks fire more often.
# 5. Several saved tensors may share one storage, so count each storage once. On the meta device you can make a forecast.
#
# </div>

# %% [markdown]
# ## 12.8 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么不能让 <code>pack</code> 原样返回这一步自己的输出？</summary>输出连着计算图，计算图又留着输出，这是循环引用：不走反向传播，连 <code>gc.collect()</code> 也放不掉。</details>
# <details><summary>2. 用了检查点，<code>fwd1</code> 为什么只触发一次？</summary>最后一个要存的张量一存好，重算就停了，那时这一层还没有运行完。</details>
# <details><summary>3. 把存下的张量的 <code>nbytes</code> 都加起来，为什么可能多算？</summary>同一块内存常常存好几次，例如 ReLU 的输出；要按 storage 数，每块一次。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why must <code>pack</code> not return a step's own output as it is?</summary>The output holds the computation graph, and the graph holds the output: a reference cycle, which without a backward pass not even <code>gc.collect()</code> can free.</details>
# <details><summary>2. Under checkpointing, why does <code>fwd1</code> fire only once?</summary>Recomputation stops as soon as the last tensor to be saved is there, and by then that layer has not finished.</details>
# <details><summary>3. Why can the sum of <code>nbytes</code> over all saved tensors be too large?</summary>The same memory is often saved several times, as the output of a ReLU is; so count storages, each of them once.</details>
# </div>

# %% [markdown]
# ## 12.9 真实世界里 · In the wild
#
# <div lang="zh">
#
# 想把存下的张量搬到别处，PyTorch 自己就有现成的：`torch.autograd.graph.save_on_cpu` 用的就是这对钩子，把张量从显卡搬到内存。
#
# 训练大模型的库，几乎都可以打开检查点，拿时间换内存。你要是想自己选哪些运算重算，`torch.utils.checkpoint` 还有 selective checkpointing。
#
# 下面是你的进度。下一课讲编译，以及几个进程一起训练。
#
# </div>
# <div lang="en">
#
# PyTorch itself can put saved tensors somewhere else for you: `torch.autograd.graph.save_on_cpu` uses this very pair of
# hooks to move them from the GPU to main memory.
#
# Nearly every library that trains large models offers checkpointing, to trade time for memory. If you want to choose
# yourself what is computed again, `torch.utils.checkpoint` also has selective checkpointing.
#
# Below you see your progress. The next lesson is about compiling, and about several processes that train together.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
