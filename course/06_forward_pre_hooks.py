# %% tags=["setup"]
from copy import deepcopy
from functools import partial

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.utils import parametrize, prune

from hookedu import LanguageToggle, check, guess, hint, progress, solution

LanguageToggle()

# %% [markdown]
# ## 6.1 一个坏批次 · One bad batch
#
# <div lang="zh">
#
# 数据里难免混进一个坏数，例如 `nan`。它只影响自己那一批，还是会影响到后面的每一批？如果是后一种，只扔掉一批的结果就不够了。我们用一个小网络试一试。
#
# 网络先在训练模式下收到一个坏批次，12 个数里有 1 个是 `nan`。然后我们切换到 `eval()`，送进一批好数据，网络给出 8 个数。这 8 个数里会有几个 `nan`？**先猜。**
#
# </div>
# <div lang="en">
#
# Sooner or later a bad number, such as a `nan`, gets into the data. Does this number spoil only its own batch, or also
# the batches that come after? In the second case, it would not be enough to throw away the result of one batch. We try
# it with a small network.
#
# The network is in training mode when it receives one bad batch: of its 12 numbers, 1 is `nan`. Then we switch to
# `eval()` and give the network good data, for which it returns 8 numbers. How many of these 8 will be `nan`? **Guess
# first.**
#
# </div>

# %%
guess("06.a")

# %%
torch.manual_seed(0)
net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
good = torch.randn(4, 3)
bad = good.clone()
bad[0, 0] = float("nan")

with torch.no_grad():
    net(bad)  # one bad batch; not a word
    net.eval()
    print(net(good))
    print("predicted class:", net(good).argmax(dim=1))
print("running_mean:", net[0].running_mean)
print("nan == nan:", bad[0, 0].item() == bad[0, 0].item())

# %% [markdown]
# <div lang="zh">
#
# 8 个数全是 `nan`，却没有报错，网络还照样给每一行「预测」出了类别。
#
# 好数据怎么也会这样？训练模式下，`BatchNorm1d` 会更新 `running_mean`。新的均值有一部分来自旧的，所以坏批次的 `nan` 一进去，就再也出不来。到了 `eval()`，每一批数据都要减去这个均值，于是有一列数全变成了 `nan`。后面的 `Linear` 把每一列都算进每一个输出，8 个数就全坏了。
#
# 再好的数据也救不回来了。所以，要在层运行**之前**就把坏输入拦住。
#
# </div>
# <div lang="en">
#
# All 8 numbers are `nan`. Still, there was no error, and the network even "predicts" a class for each row.
#
# How can good data end like this? In training mode, `BatchNorm1d` updates its `running_mean`, so the `nan` of the bad
# batch got into this mean. There it stays, because each new mean is computed partly from the old one. In `eval()`, this
# mean is subtracted from every batch, and so one column of numbers becomes `nan`. The `Linear` that follows uses every
# column for every output, and that spoils all 8 numbers.
#
# Even the best data that come later cannot repair this. So bad input must be stopped **before** the layer
# runs.
#
# </div>
#
# ## 6.2 赶在层运行之前 · Before the layer runs
#
# <div lang="zh">
#
# 要拦住坏输入，钩子就得赶在层的前面。第 05 课的 `register_forward_hook` 不行，它的钩子在 `forward` **之后**才运行。我们需要**前置钩子**，用 `register_forward_pre_hook` 来注册。它在 `forward` 之前运行，收到 `(module, args)`。
#
# 下面的卷积只有一个输入。`args` 就是这个张量吗，还是别的什么？**先猜。**
#
# </div>
# <div lang="en">
#
# To stop bad input, a hook has to run before the layer. The `register_forward_hook` of lesson 05 does not help, because
# its hooks run **after** `forward`. What we need is a **pre-hook**, registered with `register_forward_pre_hook`. It
# runs before `forward` and receives `(module, args)`.
#
# The convolution below has a single input. Is `args` the input tensor itself, or is it something else? **Guess first.**
#
# </div>

# %%
guess("06.b")

# %% tags=["E16"]
conv = nn.Conv2d(1, 2, kernel_size=3)
with torch.no_grad():
    conv.weight[0], conv.weight[1] = 1.0, 2.0
    conv.bias.zero_()
seen = []


def keep(module, args):
    seen.append(args)


handle = conv.register_forward_pre_hook(keep)
conv(torch.ones(1, 1, 4, 4))
handle.remove()

print(type(seen[0]).__name__, "of", len(seen[0]))
print(seen[0])

# %% [markdown]
# <div lang="zh">
#
# 和 5.1 节一样，`args` 是由位置参数组成的**元组**，因为层可能有好几个输入。所以哪怕只有一个输入，也要写 `args[0]` 才能取到它。
#
# 前置钩子收不到输出：它运行的时候 `forward` 还没有开始，输出还不存在。
#
# </div>
# <div lang="en">
#
# As in section 5.1, `args` is a **tuple** of the positional arguments, because a layer may have several inputs. So even
# if there is only one input, you have to write `args[0]` to get at it.
#
# A pre-hook receives no output. At the moment when it runs, `forward` has not started yet, so there is no output to
# receive.
#
# </div>
#
# ## 6.3 谁先，谁后 · Who comes first
#
# <div lang="zh">
#
# 现在我们在一层上挂三种钩子：前置钩子、前向钩子，还有反向钩子，它是第 07 课的内容。钩子看到什么，要看它运行之前已经发生了什么，所以得弄清次序。谁先注册，谁就先运行吗？
#
# 为了看清楚，我们在 `Linear(5, 3)` 上故意倒着来：先注册反向钩子，最后才注册前置钩子。看看三行按什么次序打印。
#
# </div>
# <div lang="en">
#
# Now we put three kinds of hooks on one layer: a pre-hook, a forward hook and a backward hook, which is the subject of
# lesson 07. What a hook sees depends on what has already happened when it runs, so we have to know the order. Does the
# hook that was registered first also run first?
#
# To find out, we register them on `Linear(5, 3)` in a strange order on purpose: the backward hook first and the
# pre-hook last. Watch in which order the three lines are printed.
#
# </div>


# %% tags=["E8"]
def on_backward(module, grad_input, grad_output):
    print("backward hook: gradient of the output", tuple(grad_output[0].shape))


def after(module, args, output):
    print("forward hook:  in", tuple(args[0].shape), "out", tuple(output.shape))


def before(module, args):
    print("pre-hook:      in", tuple(args[0].shape))


layer = nn.Linear(5, 3)
handles = [
    layer.register_full_backward_hook(on_backward),
    layer.register_forward_hook(after),
    layer.register_forward_pre_hook(before),
]
layer(torch.ones(6, 5, requires_grad=True)).sum().backward()
for handle in handles:
    handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 三行的次序和注册的次序正好相反，因为每种钩子都有自己的时刻。前置钩子在 `forward` 之前运行，前向钩子在它之后运行，反向钩子要等到反向传播。
#
# 注册的次序就没有用了吗？有用。假如你在这一层上再挂一个前置钩子，两个前置钩子就要分先后：在同一个模块上，同一种钩子先注册的先运行。6.6 节就会用到这一点。想让后注册的先运行，注册时可以写 `prepend=True`，8.3 节会讲。
#
# </div>
# <div lang="en">
#
# The lines come in the reverse of the order of registration, because each kind of hook has its own moment. The pre-hook
# runs before `forward`, the forward hook runs after it, and the backward hook has to wait for backward.
#
# Does the order of registration not matter, then? It matters when several hooks of one kind are on the same module. Of
# these, the hook that was registered first runs first, and section 6.6 will make use of this. If a later hook should
# run first, you can register it with `prepend=True`, as section 8.3 shows.
#
# </div>
#
# ## 6.4 门卫 · A guard
#
# <div lang="zh">
#
# 前置钩子守在层的门口，所以能当门卫。它一抛出异常，`forward` 就不会运行，坏输入也就进不了这一层。
#
# 下面的门卫最多允许 `100`。为了知道它守没守住，我们让层的 `forward` 每运行一次就打印一行。然后调用两次，第二次的输入里有一个 `255`。那一行会打印几次？**先猜。**
#
# </div>
# <div lang="en">
#
# A pre-hook stands at the door of a layer, so it can act as a guard. If the pre-hook raises an exception, `forward`
# does not run, and the bad input does not get into the layer.
#
# The guard below allows `100` at most. So that we see whether it does its job, the layer prints a line each time its
# `forward` runs. We call the layer twice, and the second input contains a `255`. How often will the line be printed?
# **Guess first.**
#
# </div>


# %%
guess("06.c")


# %%
class Loud(nn.Linear):
    def forward(self, input):
        runs.append(input)
        print("   forward runs")
        return super().forward(input)


def guard(module, args):
    largest = args[0].abs().max().item()
    if largest > 100:
        raise ValueError(f"{type(module).__name__}: found {largest:g}, at most 100 allowed")


layer, runs = Loud(2, 1), []
handle = layer.register_forward_pre_hook(guard)
print("small numbers")
layer(torch.tensor([[1.0, 2.0]]))
print("a pixel of 255")
try:
    layer(torch.tensor([[1.0, 255.0]]))
except ValueError as error:
    print("ValueError:", error)
handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 只打印一次。第二次调用时，门卫抛出了异常，所以 `forward` 没有运行，层里什么也没有改变。
#
# </div>
# <div lang="en">
#
# The line is printed once. In the second call, the guard raised its exception, so `forward` did not run and nothing in
# the layer changed.
#
# </div>
#
# ### 练习 06.1：拒绝 NaN · Exercise 06.1: Refuse NaN
#
# ●● · 7 min
#
# <div lang="zh">
#
# 6.1 节的网络缺一个门卫，现在由你来写。`refuse_nan(layer, name)` 在 `layer` 上装一个门卫，并返回它的句柄。只要有**任何一个**位置参数含 `nan`，门卫就在层运行之前抛出 `ValueError`。
#
# 位置参数有几个并不一定，可能一个也没有。它们都是实数张量，形状和 dtype 任意，也可能是空的。
#
# - 异常的信息里要有 `name` 和那个输入里 `nan` 的个数，这样一看就知道去哪里找。
# - `inf` 放行，因为掩码常用它。
# - 门卫不改动输入，干净的输入传进去，仍是原来的张量。
# - 每次调用都要检查，训练模式、`eval()`、`no_grad` 都一样。
# - 关键字参数不用管。
#
# 要找 `nan`，可以用 `torch.isnan(value)`，它对每个数给出一个回答。和 `nan` 比较是找不到的，因为 `nan == nan` 是 `False`。
#
# </div>
# <div lang="en">
#
# The network of section 6.1 lacked a guard that stops a `nan` at the door. Now you write it.
#
# Write `refuse_nan(layer, name)`, which puts a guard on `layer` and returns its handle. If **any** positional argument
# holds a `nan`, the guard raises a `ValueError` before the layer runs. There can be any number of positional arguments,
# perhaps none. All are tensors of real numbers, of any shape and dtype, perhaps empty.
#
# - The message contains `name` and how many `nan` that input holds, so that one knows where to look.
# - Every call is guarded, in training mode, `eval()` or `no_grad`, because bad input can come at any time.
# - `inf` passes, because masks use it.
# - The guard only looks, so inputs stay unchanged, and clean ones pass as the same tensors.
# - Keyword arguments do not matter here.
#
# To find `nan`, use `torch.isnan(value)`, which gives an answer for each number. Comparing with `nan` finds nothing,
# because `nan == nan` is `False`.
#
# </div>


# %% exercise="06.1"
def refuse_nan(layer, name):
    """输入里有 nan 就抛出 ValueError（写明 name 和个数），返回句柄。

    Raise a ValueError (with name and count) if an input holds nan; return the handle.
    """

    ### BEGIN SOLUTION
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan in an input of {value.numel()} numbers")

    return layer.register_forward_pre_hook(guard)
    ### END SOLUTION


# %% check="06.1"
check("06.1", refuse_nan)

# %% [markdown]
# ## 6.5 换掉输入 · Replacing the input
#
# <div lang="zh">
#
# 门卫只会拒绝，前置钩子却还能修补：它返回的东西会替换输入。如果它什么也不返回，输入就不变。
#
# PyTorch 会把返回的东西交给 `forward`，所以形式很要紧。修补好的输入，应当以什么形式返回？下面这一层把输入的数相加，所以 `[1, 2]` 得 `3`。我们试 4 个钩子。第一个什么也不返回。另外 3 个都把输入乘以 `10`，但一个返回元组，一个返回张量，一个返回列表。哪几个会得到 `30`？**先猜。**
#
# 之后再看第二个单元格里的那一层。它要两个输入，钩子却只返回一个张量，看看会怎样。
#
# </div>
# <div lang="en">
#
# A guard can only refuse bad input, but a pre-hook can also repair it: whatever it returns replaces the input. If it
# returns nothing, the input stays as it is.
#
# What the hook returns goes to `forward`, so the form matters. In which form should a hook return the repaired input?
# The layer below adds up the numbers of its input, so `[1, 2]` gives `3`. We try 4 hooks. The first returns nothing.
# The other 3 all multiply the input by `10`, but the first of them returns a tuple, the second a tensor and the third a
# list. Which of them will give `30`? **Guess first.**
#
# Then look at the layer in the second cell. It needs two inputs, but its hook returns only a single tensor. What will
# happen?
#
# </div>

# %%
guess("06.d")

# %% tags=["F30"]
adder = nn.Linear(2, 1, bias=False)
nn.init.ones_(adder.weight)
x = torch.tensor([[1.0, 2.0]])
returns = {
    "nothing": lambda module, args: None,
    "a tuple": lambda module, args: (10 * args[0],),
    "a tensor": lambda module, args: 10 * args[0],
    "a list": lambda module, args: [10 * args[0]],
}
results = {}
for form, hook in returns.items():
    with adder.register_forward_pre_hook(hook):
        try:
            results[form] = adder(x).item()
            print(f"{form:9}", results[form])
        except TypeError as error:
            print(f"{form:9} TypeError: {error}")

# %% tags=["F30"]
two = nn.Bilinear(2, 2, 1)
with two.register_forward_pre_hook(returns["a tensor"]):
    try:
        two(x, x)
    except TypeError as error:
        print("two inputs TypeError:", error)

# %% [markdown] tags=["F30"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 元组和张量得到 `30`。返回的值如果既不是元组也不是 `None`，PyTorch 就把它包成元组，所以单个张量也行。列表也会这样被包进元组，整个列表成了第一个参数。于是 `forward` 收到的是列表而不是张量，而它只会算张量，就抛出 `TypeError`。
#
# 只要钩子返回的不是 `None`，最后总有一个元组，不是钩子返回的，就是 PyTorch 包成的，它替换**全部**位置参数。如果层按位置收到两个输入，而钩子只返回一个张量，第二个输入就丢了。要只改第一个输入，就返回 `(new, *args[1:])`。
#
# </div>
# <div lang="en">
#
# The tuple and the tensor give `30`. If a returned value is neither `None` nor a tuple, PyTorch wraps it into a tuple,
# and that is why the single tensor worked. A list is wrapped like any other value, so the whole list becomes the first
# argument. Then `forward` receives a list instead of a tensor and raises a `TypeError`, because it can compute only
# with a tensor.
#
# Unless the hook returns `None`, there is a tuple in the end, either from the hook or made by PyTorch, and this tuple
# replaces **all** positional arguments. If a layer gets two inputs by position and the hook returns one tensor, the
# second input is lost. To change only the first input, return `(new, *args[1:])`.
#
# </div>
# </div>

# %% [markdown]
# ## 6.6 别人的张量 · Somebody else's tensor
#
# <div lang="zh">
#
# 钩子也可以就地修改输入，例如用 `mul_`。这样什么也不必返回，看起来更省事。可是这样安全吗？
#
# 我们把同一个 `x`，即 `[1, 2]`，送进去两次，钩子每次都把它就地乘以 `10`。之后，`x` 的第一个数是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# A hook can also change the input in place, for example with `mul_`. Then the hook need not return anything, which
# looks convenient. But is it safe?
#
# We send the same `x`, `[1, 2]`, through the layer twice, and each time the hook multiplies it by `10` in place. What
# is the first number of `x` afterwards? **Guess first.**
#
# </div>

# %%
guess("06.e")

# %%
x = torch.tensor([[1.0, 2.0]])


def in_place(module, args):
    args[0].mul_(10)


with adder.register_forward_pre_hook(in_place):
    print("in place:", adder(x).item(), "then", adder(x).item(), " x is now", x)

# %% [markdown]
# <div lang="zh">
#
# 第一次得 `30`，第二次却得 `300`，`x` 成了原来的 100 倍。原因是 `args[0]` 就是调用者自己的张量，钩子就地修改它，改的就是调用者的数据，所以第二次一开始，数就已经太大了。
#
# 让钩子返回新的张量，就没有这个问题，几个钩子也能一起用。可是，后面的钩子看到的是原来的输入，还是前面的钩子改过的？
#
# 下面 `x` 又是 `[1, 2]`，层上挂着 3 个钩子：第一个加 `1`，第二个只看，第三个乘以 `10`。中间那个看到的第一个数是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# The first call gives `30`, but the second gives `300`, and `x` is now 100 times what it was. The reason is that
# `args[0]` is the caller's own tensor: a hook that changes `args[0]` in place changes the caller's data. So the second
# call began with numbers that were already too large.
#
# A hook that returns a new tensor does no such harm, and several such hooks can work together. But does a later hook
# see the original input, or the input as an earlier hook has changed it? Below, `x` is `[1, 2]` again, and there are 3
# hooks. The first adds `1`, the second only looks, and the third multiplies by `10`. Which first number does the hook
# in the middle see? **Guess first.**
#
# </div>

# %%
guess("06.f")

# %%
x, seen = torch.tensor([[1.0, 2.0]]), []
handles = [
    adder.register_forward_pre_hook(lambda module, args: args[0] + 1),
    adder.register_forward_pre_hook(lambda module, args: seen.append(args[0])),
    adder.register_forward_pre_hook(lambda module, args: args[0] * 10),
]
print("returned:", adder(x).item(), "then", adder(x).item(), " x is still", x)
print("the hook in the middle saw", seen)
for handle in handles:
    handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 几个钩子像接力一样：每个钩子看到的，都是前面的钩子改过的输入。所以中间那个钩子看到的数已经加过 `1`，但还没有乘以 `10`。这一次谁也没有就地修改 `x`，它没有变，两次调用的结果也就一样。
#
# </div>
# <div lang="en">
#
# Several hooks form a chain, in which each hook sees the input as the hooks before it have changed it. So the hook in
# the middle sees numbers to which `1` has been added, but which have not yet been multiplied by `10`.
#
# This time `x` has not changed, because no hook changed it in place, and so both calls give the same result.
#
# </div>
#
# ### 练习 06.2：把输入归一化 · Exercise 06.2: Normalise the input
#
# ●● · 6 min
#
# <div lang="zh">
#
# 许多网络要求先把输入归一化，调用者却可能忘记。那就让层自己来做，谁来调用都不会忘。
#
# 写 `normalise(layer, mean, std)`，返回句柄。从此以后，层按位置收到的第一个输入（总有一个，是浮点张量）就变成 `(x - mean) / std`。
#
# - 每次调用都要这样，`eval()`、`no_grad` 里也一样。
# - 层也许还有别的输入，也许没有。它们可能按位置传，可能按关键字传，可能是 `None` 或数，你都要原样传下去。
# - 调用者可能还要用他的 `x`，所以 `x` 不能变。
# - 梯度照样要流过去，算出 `x` 的那些层才能学习。
#
# </div>
# <div lang="en">
#
# Many networks expect a normalised input, but callers may forget to normalise it. So let the layer do it for them.
#
# Write `normalise(layer, mean, std)`, which attaches a hook and returns its handle. From then on, the first input that
# the layer receives by position (there always is one, a tensor of floats) becomes `(x - mean) / std`.
#
# - This happens in every call, also in `eval()` or `no_grad`.
# - The caller's `x` does not change, because the caller may still need it.
# - The gradient still flows, so that whatever computed `x` can learn.
# - The layer may have other inputs or none. They may come by position or by keyword, and may be `None` or numbers. All
#   of them pass unchanged.
#
# </div>


# %% exercise="06.2"
def normalise(layer, mean, std):
    """让 layer 的第一个输入变成 (x - mean) / std，返回句柄。

    Make the first input of layer (x - mean) / std; return the handle.
    """

    ### BEGIN SOLUTION
    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)
    ### END SOLUTION


# %% check="06.2"
check("06.2", normalise)

# %% [markdown]
# ## 6.7 实例：哪一层在放大 · Worked example: which layer blows up
#
# <div lang="zh">
#
# 网络里的数变得太大时，我们想知道是哪一层造成的。下面的网络有 8 层，其中一层的权重是应有的 50 倍。网络里的数都分布在零的两边，标准差就说明它们有多大。我们给每一层挂一个前置钩子，记下输入的标准差，再画成柱子。柱子从哪一层起变高，坏的就是它**前面**的一层。
#
# 知道了哪里变大，就可以做一次急救：在第 4 层的入口再挂一个前置钩子，把输入缩回来。这样，这一层上就有了两个前置钩子：先注册的记下输入有多大，后注册的把输入缩小。
#
# 那么，第 4 层自己的柱子会因此变矮吗？先看代码，再猜。
#
# </div>
# <div lang="en">
#
# When the numbers in a network become too large, you want to know which layer is to blame. The network below has 8
# layers, and one of them has weights 50 times as large as they should be. The numbers in this network lie around zero,
# so their standard deviation tells how large they are. On every layer, a pre-hook notes the standard deviation of the
# input, and we draw these values as bars. If the bars jump up at some layer, the layer **before** it is at fault,
# because its output is the input that became too large.
#
# Once we know where the numbers grow, we can give first aid: one more pre-hook, on layer 4, scales the input back. So
# two pre-hooks are now on this layer: the one that was registered first notes how large the input is, and the one that
# was registered later scales the input down.
#
# Will the bar of layer 4 itself become lower, then? Look at the code, and then guess.
#
# </div>


# %%
def note(sizes, name, module, args):
    sizes[name] = args[0].std().item()


def input_sizes(first_aid):
    sizes, handles = {}, []
    for name, layer in net.named_children():
        handles.append(layer.register_forward_pre_hook(partial(note, sizes, name)))
    if first_aid:
        shrink = net[4].register_forward_pre_hook(lambda module, args: args[0] / args[0].std())
        handles.append(shrink)
    net(x)
    for handle in handles:
        handle.remove()
    return sizes


# %%
guess("06.g")

# %% picture="first_aid"
torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(32, 32, bias=False) for _ in range(8)))
for layer in net:
    nn.init.orthogonal_(layer.weight)  # keeps the size of its input
net[3].weight.data *= 50
x = torch.randn(16, 32)

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for label, first_aid, shift in (("as it is", False, -0.2), ("first aid on layer 4", True, 0.2)):
    sizes = input_sizes(first_aid)
    ax.bar([int(name) + shift for name in sizes], list(sizes.values()), width=0.4, label=label)
    times = [round(size / sizes["0"]) for size in sizes.values()]
    print("times layer 0:", times, "with first aid" if first_aid else "without")
ax.legend()
_ = ax.set(yscale="log", ylabel="std of the input", xlabel="layer")

# %% [markdown]
# <div lang="zh">
#
# 坏的是第 3 层，因为输入最先变大的是第 4 层，而这个输入就是第 3 层的输出。
#
# 可是急救就在第 4 层，那里的橙色柱子为什么还是高的？记录的钩子先注册，所以也先运行，看到的是急救之前的输入。第 4 层用的是缩小了的输入，所以从第 5 层起，输入就恢复正常了。
#
# </div>
# <div lang="en">
#
# Layer 3 is at fault, because layer 4 is the first layer whose input is too large, and this input is the output of
# layer 3.
#
# But why is the orange bar of layer 4 still high, despite the first aid? The hook that notes the size was registered
# first, so it also runs first and sees the input before the first aid. From layer 5 on, the input is back to normal,
# because layer 4 has computed with the smaller input.
#
# </div>
#
# ## 6.8 从侧门进来 · In by the side door
#
# <div lang="zh">
#
# 像 6.4 节那样的门卫，发现坏输入就抛出异常。可是输入有两条路可以进来：按位置，或者按关键字。两条路它都守住了吗？我们把同一个坏输入送两次，先按位置传，再按关键字传，写成 `layer(input=broken)`。两次里它会拦住几次？**先猜。**
#
# </div>
# <div lang="en">
#
# A guard such as that of section 6.4 raises an exception if it finds bad input. But callers can pass an input in two
# ways, by position and by keyword. Does the guard notice both? We send the same bad input twice, first by position and
# then by keyword, as `layer(input=broken)`. How many of the two calls will the guard stop? **Guess first.**
#
# </div>

# %%
guess("06.h")

# %% tags=["F10"]
layer = nn.Linear(2, 1)
broken = torch.tensor([[float("nan"), 1.0]])


def guard(module, args):
    print("   args:", args)
    if any(value.isnan().any() for value in args):
        raise ValueError("nan in the input")


calls = {
    "by position": lambda: layer(broken),
    "by keyword": lambda: layer(input=broken),
}
stopped = []
with layer.register_forward_pre_hook(guard):
    for way, call in calls.items():
        try:
            print(f"{way}: passed,", call().detach())
        except ValueError as error:
            stopped.append(way)
            print(f"{way}: stopped,", error)

# %% [markdown] tags=["F10"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 门卫只拦住一次。普通的前置钩子只收到位置参数。输入按关键字传来时，`args` 是空的 `()`，所以门卫什么也没看到。要让钩子看到全部参数，注册时写 `with_kwargs=True`。
#
# </div>
# <div lang="en">
#
# The guard stops only one of the two calls. A plain pre-hook receives positional arguments only. When the input comes
# by keyword, `args` is an empty `()`, and so the guard sees nothing. To let a hook see all arguments, register it
# with `with_kwargs=True`.
#
# </div>
# </div>

# %% [markdown]
# ## 6.9 看见全部 · Seeing everything
#
# <div lang="zh">
#
# 用 `with_kwargs=True` 注册的钩子收到 `(module, args, kwargs)`，调用时传来的参数，不论按位置还是按关键字，它都看得见。前向钩子也可以这样注册，它收到的是 `(module, args, kwargs, output)`。
#
# 我们把两种都挂到 `adder` 上，再按关键字传入 `x`，看看行不行。
#
# </div>
# <div lang="en">
#
# A hook registered with `with_kwargs=True` receives `(module, args, kwargs)`, so it sees every argument of the call,
# whether it comes by position or by keyword. A forward hook can be registered like this, too, and then receives
# `(module, args, kwargs, output)`.
#
# To see whether this works, we put one hook of each kind on `adder` and pass `x` by keyword.
#
# </div>

# %% tags=["F10"]
x = torch.tensor([[1.0, 2.0]])  # 1 row, so the output should be 1 x 1


def show(module, args, kwargs):
    print("   args:", args, " kwargs:", kwargs)


def show_after(module, args, kwargs, output):
    print("   after forward, kwargs:", kwargs)


before = adder.register_forward_pre_hook(show, with_kwargs=True)
with before, adder.register_forward_hook(show_after, with_kwargs=True):
    adder(input=x)

# %% [markdown]
# <div lang="zh">
#
# 两种钩子都看见了 `x`。前置钩子还能改参数，这时参数有两种，所以它返回一对 `(args, kwargs)`。
#
# 这一对很容易写错：第一项要的是整个元组 `args`，有人却写成了 `args[0]`。`x` 有 1 行 2 列，所以 `adder` 本来应当给出 `1×1`。写错以后，它会怎样？**先猜。**
#
# </div>
# <div lang="en">
#
# Both hooks have seen `x`. The pre-hook can also change the arguments. To do so, it returns them as a pair,
# `(args, kwargs)`, because there are now two kinds of arguments.
#
# This pair is easy to get wrong. Suppose somebody puts `args[0]` into it instead of `args`. `x` has 1 row and 2
# columns, so `adder` should give `1×1`. What will it do now? **Guess first.**
#
# </div>

# %%
guess("06.i")

# %% tags=["F10"]
returns = {
    "(args, kwargs)": lambda module, args, kwargs: (args, kwargs),
    "(args[0], kwargs)": lambda module, args, kwargs: (args[0], kwargs),
    "args": lambda module, args, kwargs: args,
}
shapes = {}
for form, hook in returns.items():
    with adder.register_forward_pre_hook(hook, with_kwargs=True):
        try:
            shapes[form] = tuple(adder(x).shape)
            print(f"{form:18}", shapes[form])
        except RuntimeError as error:
            print(f"{form:18} RuntimeError:", str(error).split(", but got")[0])

# %% [markdown]
# <div lang="zh">
#
# 返回 `(args[0], kwargs)` 时，输出少了一维，却没有报错。（只返回 `args` 倒会报错，因为 PyTorch 要的是一对，而它在这里只有一项。）
#
# 在 6.5 节里，PyTorch 会把单个张量包成元组，所以只返回一个张量也行。钩子返回一对时，PyTorch 却照原样拿来，调用 `forward(*args, **kwargs)`。`*` 把 `args` 拆成一个个参数，元组和张量都能拆，只是张量会拆成一行一行，一行算一个参数。
#
# 这里恰好只有一行，`forward` 收到的参数也就正好是一个。可是这个参数是一行数 `[1, 2]`，比 `x` 少了一维，输出也就少了一维。要是有两行，`forward` 会收到两个参数，那就报错了。
#
# </div>
# <div lang="en">
#
# With `(args[0], kwargs)`, the output has lost a dimension, but there was no error. (Returning just `args` does raise
# an error, because here it holds one item and so is not a pair.)
#
# In section 6.5, PyTorch wrapped a single tensor into a tuple, so that a hook could return just a tensor. But when a
# hook returns a pair, PyTorch takes both parts as they are and calls `forward(*args, **kwargs)`. The `*` takes `args`
# apart into single arguments. This works with a tensor as well as with a tuple, but a tensor falls into its rows, so
# each row becomes one argument.
#
# Here there happens to be just one row, so `forward` gets one argument, as it should. But this argument is the row
# `[1, 2]`, which has one dimension less than `x`, and so the output has one less as well. With two rows, `forward`
# would get two arguments and raise an error.
#
# </div>

# %% [markdown]
# ### 练习 06.3：记录关键字参数 · Exercise 06.3: Log keyword arguments
#
# ●●● · 7 min
#
# <div lang="zh">
#
# 模型出错的时候，你常想知道某一层收到了哪些关键字参数。有一份记录，事后就能查。
#
# 写 `log_kwargs(layer, log)`，返回句柄。此后每调用一次这一层，列表 `log` 里就多一个新字典，装着那次调用的关键字参数。
#
# - 如果值是张量，只记它的形状（元组），这样省内存。别的值都照原样记，`None`、列表、NumPy 数组也一样。
# - 调用时没有关键字参数，就加一个 `{}`，这样每次调用都有一项。
# - 每次调用都要记：在 `eval()`、`no_grad` 里要记，参数和上次一样也要记，`forward` 抛出异常时更要记，因为这时你最需要这份记录。
# - 你只是观察，所以层的行为不变。
#
# </div>
# <div lang="en">
#
# When a model misbehaves, you often want to know which keyword arguments a certain layer received. If each call is
# written into a log, you can look that up afterwards.
#
# Write `log_kwargs(layer, log)`, which starts such a log and returns a handle. From then on, every call of the layer
# appends a new dictionary to the list `log`, with the keyword arguments of that call.
#
# - Every call counts: in `eval()`, under `no_grad`, with the same values again, and also if `forward` raises, which is
#   when you need the log most.
# - A call without keyword arguments appends `{}`, so that the log has an entry for each call.
# - For a tensor, log only its shape (a tuple), to save memory. Log any other value as it is, even if it is `None`, a
#   list or a NumPy array.
# - You only watch, so the layer behaves as before.
#
# </div>


# %% exercise="06.3"
def log_kwargs(layer, log):
    """每次调用往 log 里加一个字典：关键字参数的名字 → 值（张量记形状）。返回句柄。

    Add one dictionary per call to log: keyword -> value (of a tensor, its shape).
    Return the handle.
    """

    ### BEGIN SOLUTION
    def note(module, args, kwargs):
        log.append(
            {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        )

    return layer.register_forward_pre_hook(note, with_kwargs=True)
    ### END SOLUTION


# %% check="06.3"
check("06.3", log_kwargs)

# %% [markdown]
# ## 6.10 一次管住所有模块 · All modules at once
#
# <div lang="zh">
#
# 有时你想同时监视所有模块，例如还不知道坏数进了哪一个模块的时候。`register_module_forward_pre_hook` 注册的是**全局钩子**，它不属于哪一个模块：进程里不管调用哪个模块，它都会触发。不过在早已编译好的代码里，它可能不触发，8.9 节会讲到。
#
# 不相干的模型也会触发全局钩子，所以用完一定要取下，最好放进 `with`。
#
# 它返回单个张量时，PyTorch 也和前面一样，把张量包成元组。那么注册它的时候，也能写上 `with_kwargs=True`，让它看到关键字参数吗？
#
# </div>
# <div lang="en">
#
# Sometimes you want to watch all modules at once, for example because you do not know yet which of them receives a bad
# number. For that, `register_module_forward_pre_hook` registers a **global hook**. It belongs to no single module, and
# it fires whenever any module in this process is called. But code that was compiled earlier may run without it, as
# section 8.9 will show.
#
# Because a global hook also fires in models that have nothing to do with your question, always remove it when you are
# done, preferably with a `with` block.
#
# If a global hook returns a single tensor, PyTorch wraps this tensor into a tuple as before. Can we also register a
# global hook with `with_kwargs=True`, so that it sees keyword arguments?
#
# </div>

# %% tags=["E12"]
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def everywhere(module, args):
    print(f"   {type(module).__name__:10} positional arguments: {len(args)}")
    if isinstance(module, nn.ReLU):
        return torch.tensor([[-5.0, 5.0]])  # a single tensor


with register_module_forward_pre_hook(everywhere):
    print("output:", net(torch.ones(1, 2)))
    net[0](input=torch.ones(1, 2))
try:
    register_module_forward_pre_hook(everywhere, with_kwargs=True)
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 不能。在 torch 2.15.0 里，全局前置钩子没有 `with_kwargs` 这个选项，所以按关键字传的东西它看不见。用它当门卫，就会把这样的输入放进模块。上面第二次调用 `Linear` 时，输入是按关键字传的，钩子就看到 0 个位置参数。
#
# </div>
# <div lang="en">
#
# No. In torch 2.15.0 a global pre-hook cannot be registered with `with_kwargs`, so it does not see what is passed by
# keyword, and such input gets past a global guard into the module. When `Linear` was called for the second time above,
# its input came by keyword, and so the hook saw 0 positional arguments.
#
# </div>
#
# ## 6.11 权重也可以当场算 · Weights computed on the spot
#
# <div lang="zh">
#
# 假如你希望一层的权重永远不是负数，该怎么办？训练可能把权重推向任何方向。前置钩子管得了这件事：它收到的不只是输入，还有模块，所以每次运行之前，它都可以算出一个不为负的权重，放进模块里。
#
# 办法是不直接训练权重，改为训练另一个张量 `weight_raw`。每次运行之前，钩子算出 `weight_raw` 的 `exp()`，它不会是负数，再存成 `weight`，供 `forward` 使用。这样训练三步以后，模块的参数是哪些？**先猜。**
#
# </div>
# <div lang="en">
#
# Suppose you want a layer whose weights are never negative, although training may push a weight in any direction. A
# pre-hook can take care of this. Since it receives the module and not only the input, it can compute a weight that is
# not negative and put this weight into the module each time before the layer runs.
#
# Instead of the weight itself, we train another tensor, `weight_raw`. Before each run, the hook computes the `exp()` of
# `weight_raw`. The result is never negative, and the hook stores it as the `weight` that `forward` uses. After three
# steps of training, what are the parameters of the module? **Guess first.**
#
# </div>

# %%
guess("06.j")

# %%
torch.manual_seed(0)
layer = nn.Linear(2, 1, bias=False)
layer.weight_raw = layer.weight  # the Parameter gets a second name
del layer.weight  # and loses its first one


def rebuild(module, args):
    module.weight = module.weight_raw.exp()  # a plain tensor, with its graph


handle = layer.register_forward_pre_hook(rebuild)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
for _ in range(3):
    optimizer.zero_grad()
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    print("weight used:", layer.weight.detach(), " gradient:", layer.weight_raw.grad)
print("parameters:", [name for name, _ in layer.named_parameters()])

# %% [markdown]
# <div lang="zh">
#
# 参数只有 `weight_raw`。`weight` 不在其中，因为它只是钩子当场算出的普通张量。
#
# 那么 `weight_raw` 怎样得到梯度？反向传播先算出 `weight` 的梯度，再穿过 `exp()` 到达 `weight_raw`。在这个例子里，`weight` 的梯度是 1，因为每个权重都只乘了输入的 1；而 exp 的导数就是它自己，所以打印出来的梯度等于用过的权重。
#
# 如果取下钩子，就没有谁再来计算 `weight`。它会停在最后一次的值，不再跟着 `weight_raw` 变。
#
# </div>
# <div lang="en">
#
# The only parameter is `weight_raw`. `weight` is not among them, because it is just a plain tensor that the hook
# computed on the spot.
#
# How does `weight_raw` get its gradient, then? Backward first computes the gradient of `weight`, and from there it goes
# through `exp()` to `weight_raw`. In this example the gradient of `weight` is 1, because each weight is only multiplied
# by an input of 1. Since exp is its own derivative, the gradient that is printed equals the weight that was used.
#
# If you removed the hook, nothing would compute `weight` any more. It would keep its last value and no longer follow
# `weight_raw`.
#
# </div>

# %% [markdown]
# ### 练习 06.4：标准化权重 · Exercise 06.4: Standardise the weights
#
# ●●●● · 12 min
#
# <div lang="zh">
#
# 训练可能把权重越推越大。想让实际使用的权重不跟着变大，可以用同样的办法，只换一个公式，这就是权重标准化。它让每个输出通道的权重平均为 0，方差一般接近 1。这样，不管训练把原来的数推到多大，实际使用的权重总是差不多大。
#
# $\hat W=\dfrac{W-\mu}{\sqrt{\sigma^2+10^{-5}}}$
#
# 写 `standardise(conv)`，让 `conv` 用标准化过的权重，返回句柄。
#
# - **每个输出通道**都有自己的 $\mu$ 和 $\sigma^2$，所以只对维度 `(1, 2, 3)` 求，写上 `keepdim=True`，方差用 `correction=0`。
# - 要训练的改名叫 `weight_raw`，它就是原来当 `weight` 的那个 `Parameter`。如果它原来冻结着，现在也仍然冻结。偏置不变。
# - `weight` 从此只是算出来的普通张量，不进 `state_dict`。
# - 训练会改变 `weight_raw`，所以每次前向传播之前，都要从它当时的值重算 `weight`，在 `eval()`、`no_grad` 里也一样。
#
# </div>
# <div lang="en">
#
# Training may make the weights of a layer larger and larger. To keep the weights in use from growing with them, you can
# use the same trick with another formula. This is called weight standardisation. It shifts and scales the weights of
# each output channel until their mean is 0 and their variance, as a rule, close to 1. So however large training makes
# the original numbers, the weights in use keep about the same size.
#
# $\hat W=\dfrac{W-\mu}{\sqrt{\sigma^2+10^{-5}}}$
#
# Write `standardise(conv)`, which makes `conv` use standardised weights and returns a handle.
#
# - **Each output channel** has its own $\mu$ and $\sigma^2$. So take them over dims `(1, 2, 3)` only, with
#   `keepdim=True`, and the variance with `correction=0`.
# - `weight_raw` is the new name of the `Parameter` that `weight` was. It is what is trained, and if it was frozen
#   before, it is still frozen. The bias stays as it was.
# - `weight` is now a plain tensor that is only computed, so it is not in `state_dict`.
# - Training changes `weight_raw`, so `weight` is recomputed from its current value before every forward, also in
#   `eval()` or under `no_grad`.
#
# </div>


# %% exercise="06.4"
def standardise(conv):
    """每次前向传播之前，从 conv.weight_raw 算出标准化的 conv.weight；返回句柄。

    Before each forward, compute a standardised conv.weight from conv.weight_raw; return the handle.
    """
    ### BEGIN SOLUTION
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)
    ### END SOLUTION


# %% check="06.4"
check("06.4", standardise)

# %% [markdown]
# ## 6.12 现成的工具 · Ready-made tools
#
# <div lang="zh">
#
# PyTorch 自己也用前置钩子来算权重。它有一个剪枝工具叫 `prune`，能把层里的一部分权重变成零。办法是注册一个前置钩子，由钩子把 `weight_orig` 乘上由零和一组成的掩码，得到 `weight`。
#
# PyTorch 还有另一个工具 `parametrize`，也是用来算权重的，却不用钩子。既然钩子就够用，为什么还要有它？复制模块的时候就看得出差别，例如你想留下到目前为止最好的模型。我们用 `deepcopy` 复制两个运行过的模块：一个是 6.11 节的 `layer`，另一个用 `parametrize` 写成。哪一个复制得了？**先猜。**
#
# </div>
# <div lang="en">
#
# PyTorch itself also computes weights in a pre-hook. Its tool `prune` sets some of the weights of a layer to zero. For
# this, it registers a pre-hook that multiplies `weight_orig` by a mask of zeros and ones, and the result is `weight`.
#
# PyTorch has another tool that computes weights, `parametrize`, which works without a hook. Why would you want this
# tool, when a hook is enough? The difference shows when you copy a module, for example to keep the best model so far.
# We take two modules that have run, the `layer` of section 6.11 and a module made with `parametrize`, and copy each
# with `deepcopy`. Which of them can be copied? **Guess first.**
#
# </div>

# %%
pruned = prune.random_unstructured(nn.Linear(4, 1, bias=False), "weight", amount=0.5)
print("prune:", [name for name, _ in pruned.named_parameters()], "and a pre-hook")
print("masked:", torch.equal(pruned.weight, pruned.weight_orig * pruned.weight_mask))
_ = prune.remove(pruned, "weight")  # takes the hook off and keeps the masked weight


# %%
guess("06.k")


# %% tags=["F37"]
class Exp(nn.Module):
    def forward(self, raw):
        return raw.exp()


positive = nn.Linear(2, 1, bias=False)
parametrize.register_parametrization(positive, "weight", Exp())
copied = []
for title, module in (("pre-hook:", layer), ("parametrize:", positive)):
    module(torch.ones(1, 2))
    print(title, "weight left in the module:", "weight" in vars(module))
    try:
        print(title, "copied,", torch.equal(deepcopy(module).weight, module.weight))
        copied.append(module)
    except RuntimeError as error:
        print(title, "RuntimeError:", str(error).split(" at the moment")[0])
handle.remove()

# %% [markdown] tags=["F37"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 用前置钩子的那个模块复制不了。前置钩子把算好的 `weight` 留在模块里，那是一个带计算图的张量，而 `deepcopy` 只能复制叶子。
#
# 如果最近一次运行时模块是冻结的，或者没有开梯度，`weight` 就不带计算图，模块也就复制得了。
#
# 要让权重由别的张量算出来，请用 `torch.nn.utils.parametrize`。它在读取 `weight` 的时候才计算，不把结果留在模块里。
#
# </div>
# <div lang="en">
#
# The module with the pre-hook cannot be copied. Its hook stores the computed `weight` in the module, as a tensor with
# its graph, but the only tensors that `deepcopy` can copy are leaves.
#
# If the module was frozen in its last run, or if gradients were off then, `weight` has no graph, and the copy succeeds.
#
# To compute a weight from other tensors, use `torch.nn.utils.parametrize` instead. It computes `weight` whenever
# `weight` is read and does not leave the result in the module.
#
# </div>
# </div>

# %% [markdown]
# ## 6.13 小结 · Recap
#
# <div lang="zh">
#
# 1. 前置钩子在 `forward` 之前运行。它收到 `(module, args)`，`args` 是元组。
# 2. 要拒绝坏输入，就抛出异常：`forward` 不会运行，层里什么都不会弄脏。
# 3. 返回的东西替换全部位置参数；单个值会被包成元组。
# 4. 不要就地修改输入，因为那是调用者的张量。
# 5. 要看到关键字参数，注册时写 `with_kwargs=True`。这样的钩子要改输入，就返回 `(args, kwargs)`。
#
# </div>
# <div lang="en">
#
# 1. A pre-hook runs before `forward`. It receives `(module, args)`, where `args` is a tuple.
# 2. To refuse bad input, raise an exception: then `forward` does not run, and nothing in the layer is spoilt.
# 3. What a pre-hook returns replaces all positional arguments. A single value is wrapped into a tuple.
# 4. Do not change the input in place, because the tensor belongs to the caller.
# 5. To see keyword arguments, register the hook with `with_kwargs=True`. To change the input, such a hook returns `(args, kwargs)`.
#
# </div>

# %% [markdown]
# ## 6.14 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么查 <code>nan</code> 要用前置钩子，而不用 <code>register_forward_hook</code>？</summary><code>register_forward_hook</code> 的钩子运行时，层已经用过坏输入；如果是训练模式下的 BatchNorm，它的统计已经脏了。</details>
# <details><summary>2. 层有两个输入，只想改第一个，返回什么？</summary><code>(new, *args[1:])</code></details>
# <details><summary>3. 钩子看到的 <code>args</code> 是 <code>()</code>，为什么？</summary>输入是按关键字传的；注册时写 <code>with_kwargs=True</code>。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why look for <code>nan</code> in a pre-hook and not with <code>register_forward_hook</code>?</summary>When a hook of <code>register_forward_hook</code> runs, the layer has already used the bad input. If the layer is BatchNorm in training mode, its statistics are spoilt by then.</details>
# <details><summary>2. A layer has two inputs and you change only the first. What do you return?</summary><code>(new, *args[1:])</code></details>
# <details><summary>3. A hook sees <code>()</code> for <code>args</code>. Why?</summary>The input came by keyword. To see it, register the hook with <code>with_kwargs=True</code>.</details>
# </div>

# %% [markdown]
# ## 6.15 真实世界里 · In the wild
#
# <div lang="zh">
#
# 练习 06.4 里，训练的是一个张量，层用的权重由前置钩子从它算出来。这种写法，PyTorch 自己也在用。6.12 节的 `torch.nn.utils.prune` 剪枝时，把可训练的张量改名叫 `weight_orig`，再注册一个前置钩子。每次前向传播之前，钩子把 `weight_orig` 乘上掩码，得到 `weight`。所以训练改变了 `weight_orig` 以后，剪掉的权重每次运行仍然是零。
#
# 充当钩子的是一个 `BasePruningMethod` 对象。打开这个类的源代码，你会认出自己写过的东西。
#
# 下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# In exercise 06.4, one tensor was trained, and a pre-hook computed from it the weight that the layer uses. PyTorch
# itself uses this pattern. When the `torch.nn.utils.prune` of section 6.12 prunes a layer, it renames the tensor that
# is trained to `weight_orig` and registers a pre-hook. Before each forward, this hook multiplies `weight_orig` by the
# mask to make `weight`. So the pruned weights are zero in every run, also after training has changed `weight_orig`.
#
# The hook is a `BasePruningMethod` object. If you open the source of this class, you will recognise what you have
# written. Below you see your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
