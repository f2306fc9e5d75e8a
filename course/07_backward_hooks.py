# %% tags=["setup"]
import textwrap
import warnings
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)

from hookedu import HookTimeline, LanguageToggle, check, guess, hint, progress, solution

LanguageToggle()

# %% [markdown]
# ## 7.1 一个答非所问的钩子 · A hook that answers the wrong question
#
# <div lang="zh">
#
# 我们从第 05 课的小网络开始：一个卷积，两个通道的权重全是 `1` 和全是 `2`，后面接 `2×2` 的最大池化。输入是一张 `1×1×4×4`、全是 `1` 的图，输出和一个随机目标比较，用 L1 损失。
#
# 许多旧教程用 `register_backward_hook` 看梯度。钩子收到的第二个参数叫 `grad_input`，顾名思义，应该是**输入**的梯度。这个卷积只有一个输入。下面的钩子给 `grad_input` 里的每一项打印一行 `in grad_input`。**先猜。**
#
# </div>
# <div lang="en">
#
# We begin with the small net of lesson 05: a convolution with two channels, whose weights are all `1` and all `2`, followed by a `2×2` max pool. The input is a `1×1×4×4` picture of ones, and the output is compared with a random target by L1 loss.
#
# Many old tutorials watch gradients with `register_backward_hook`. The second argument that its hook receives is called `grad_input`, so it should be the gradient of the **input**, and this convolution has only one.
#
# The hook below prints a line `in grad_input` for each of its entries. **Guess first.**
#
# </div>


# %% tags=["E17", "F16"]
def small_net():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2))
    with torch.no_grad():
        net[0].weight[0], net[0].weight[1] = 1.0, 2.0
        net[0].bias.zero_()
    return net


def look(module, grad_input, grad_output):
    for grad in grad_input:
        lines.append(grad)
        print("in grad_input:", None if grad is None else tuple(grad.shape))


def step(net):
    F.l1_loss(net(torch.ones(1, 1, 4, 4)), target).backward()


# %%
guess("07.a")

# %% tags=["E17", "F16"]
torch.manual_seed(0)
target, net, lines = torch.rand(1, 2, 1, 1), small_net(), []
with warnings.catch_warnings(record=True) as caught, net[0].register_backward_hook(look):
    warnings.simplefilter("always")
    step(net)
    print(textwrap.fill(f"{caught[0].category.__name__}: {caught[0].message}", 90))
    try:
        net[0].register_full_backward_hook(look)
    except RuntimeError as error:
        print(textwrap.fill(f"RuntimeError: {error}", 90))

# %% [markdown] tags=["F16"]
# <div lang="zh">
#
# 三行，可是只有第一行说的是输入，而且是 `None`，因为这张图不需要梯度。另外两行是权重和偏置的梯度。旧式钩子其实挂在产生输出的那个**运算**上，而不在模块上：卷积这个运算有三个输入，图、权重和偏置。
#
# </div>
# <div lang="en">
#
# Three lines, of which only the first is about the input; it is `None` because this picture needs no gradient. The other two are the gradients of weight and bias. The legacy hook actually sits on the **operation** that makes the output, not on the module, and a convolution as an operation has three inputs: picture, weight and bias.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别用 `register_backward_hook`：它的 `grad_input` 属于一个运算，不属于模块。torch 2.15.0 在这里会警告，不过措辞不合：什么也没有少（missing），反而多出两项。同一个模块上，旧式和完整的反向钩子不能混用。
#
# </div>
# <div lang="en">
#
# Do not use `register_backward_hook`: its `grad_input` belongs to an operation and not to the module. torch 2.15.0 warns here, in words that do not fit: nothing is missing, two entries are too many. One module cannot have both legacy and full backward hooks.
#
# </div>
# </div>

# %% [markdown]
# ## 7.2 完整反向钩子 · The full backward hook
#
# <div lang="zh">
#
# 正确的工具是 `register_full_backward_hook`，钩子收到的三个参数和上面一样。
#
# 我们让 `6×5` 的输入进入 `Linear(5, 3)`。**先猜。**
#
# </div>
# <div lang="en">
#
# The right tool is `register_full_backward_hook`; its hook takes the same three arguments.
#
# An input of `6×5` goes into `Linear(5, 3)`. **Guess first.**
#
# </div>


# %%
guess("07.b")


# %%
def shapes(grads):
    return tuple(None if grad is None else tuple(grad.shape) for grad in grads)


def report(module, grad_input, grad_output):
    received.update(grad_input=shapes(grad_input), grad_output=shapes(grad_output))
    print("   hook on", module)
    print("   grad_input: ", shapes(grad_input))
    print("   grad_output:", shapes(grad_output))


layer, received = nn.Linear(5, 3), {}
x = torch.ones(6, 5, requires_grad=True)
with layer.register_full_backward_hook(report):
    print("forward pass")
    y = layer(x)
    print("backward pass")
    y.sum().backward()

# %% [markdown]
# <div lang="zh">
#
# 梯度的形状总是和它所属的张量相同。`grad_output` 属于这一层的**输出**，所以是 `6×3`；`grad_input` 属于**输入**，所以是 `6×5`。输入和输出说的是前向传播的方向，反向传播时，`grad_output` 先到，`grad_input` 后算出来。两个都是元组，因为一层可以有几个输入和几个输出。
#
# 下面的控件把一个两层的网络走一遍，这一课讲的是其中的 `backward_pre` 和 `backward`。**先猜一猜**：反向传播里，`Linear` 和 `Tanh` 谁的 `backward_pre` 先触发？轮到另一层的 `backward_pre` 时，先触发的那一层，`backward` 触发过了吗？再一步一步往后点，看猜得对不对。
#
# </div>
# <div lang="en">
#
# A gradient always has the shape of the tensor that it belongs to. `grad_output` belongs to the **output** of the layer, hence `6×3`; `grad_input` belongs to its **input**, hence `6×5`. Input and output are meant as in forward; in backward, `grad_output` comes first and `grad_input` is computed from it. Both are tuples, because a layer may have several inputs and outputs.
#
# The widget below takes a net of two layers through one pass; this lesson is about its `backward_pre` and `backward`. **Guess first**: in backward, whose `backward_pre` fires first, that of `Linear` or of `Tanh`? And by the time that of the other layer fires, has the layer that came first had its `backward`? Then step through it and see.
#
# </div>

# %% picture="timeline"
HookTimeline(nn.Sequential(nn.Linear(5, 3), nn.Tanh()), torch.ones(6, 5, requires_grad=True))

# %% [markdown]
# <div lang="zh">
#
# `Tanh` 先，因为反向传播从最后一层开始。`Linear` 的 `backward_pre` 触发时，`Tanh` 的 `backward` 已经触发过了：`Tanh` 的 `grad_input` 算出来，才有 `Linear` 的 `grad_output`。网络自己也是模块，它的 `backward_pre` 在最前；这里的输入需要梯度，所以它的 `backward` 在这两层的之后。
#
# </div>
# <div lang="en">
#
# `Tanh` comes first, because backward begins with the last layer. When `backward_pre` of `Linear` fires, `Tanh` has had its `backward`: only when the `grad_input` of `Tanh` has been computed is there a `grad_output` for `Linear`. The net is a module as well: its `backward_pre` comes before those of its layers and, as the input needs a gradient here, its `backward` after theirs.
#
# </div>
#
# ## 7.3 没有人要的梯度 · A gradient that nobody needs
#
# <div lang="zh">
#
# 到现在为止，`x` 都需要梯度。训练时，第一层的输入是数据，不需要梯度，也就没有人去算它。我们在第一层上挂一个完整钩子。**先猜。**
#
# </div>
# <div lang="en">
#
# So far, `x` has needed a gradient. In training, the input of the first layer is data, which needs none, and so nobody computes it.
#
# We attach a full hook to such a first layer. **Guess first.**
#
# </div>


# %%
guess("07.c")


# %% tags=["F18"]
def report(module, grad_input, grad_output):
    print("   grad_input: ", shapes(grad_input))
    print("   grad_output:", shapes(grad_output))
    written[needs] = module.weight.grad is not None
    print("   weight.grad:", "None" if module.weight.grad is None else "filled")


written = {}
for needs in (False, True):
    print(f"x.requires_grad is {needs}")
    layer, x = nn.Linear(5, 3), torch.ones(6, 5, requires_grad=needs)
    with warnings.catch_warnings(record=True) as caught, layer.register_full_backward_hook(report):
        warnings.simplefilter("always")
        layer(x).sum().backward()
    print("   afterwards, weight.grad:", tuple(layer.weight.grad.shape))
    for warning in caught:
        text = str(warning.message).split(" See ")[0]
        print(textwrap.indent(textwrap.fill(f"{warning.category.__name__}: {text}", 90), "   "))

# %% tags=["F18"]
print("two inputs, only the first needs a gradient")
layer = nn.Bilinear(5, 5, 3)
handle = layer.register_full_backward_hook(
    lambda m, grads, _: print("   not all 0:", [bool(grad.any()) for grad in grads])
)
layer(x, torch.ones(6, 5)).sum().backward()
handle.remove()

print("two outputs, only the first is used")
layer = nn.MultiheadAttention(4, 1)
handle = layer.register_full_backward_hook(
    lambda m, _, grads: print("   grad_output:", shapes(grads))
)
output, weights = layer(*[torch.ones(6, 4, requires_grad=True)] * 3)
output.sum().backward()
handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 钩子照样触发，只是收到 `(None,)`。因为没有输入的梯度可等，`grad_output` 一到它就触发，这时 `weight.grad` 还没有写好；输入需要梯度时，它要等 `grad_input` 算出来，而 `Linear` 的 `weight.grad` 已经先写好了。整个网络也一样：输入是数据时，它的 `backward` 比各层的都早。
#
# `grad_output` 里也会有 `None`：注意力层返回两个张量，而损失没有用到后一个，那一项就是 `None`。
#
# </div>
# <div lang="en">
#
# It fires all the same, and receives `(None,)`. As there is no gradient of an input to wait for, it fires as soon as `grad_output` arrives, before `weight.grad` has been written. If the input needs a gradient, the hook waits for `grad_input`, and here the `weight.grad` of the `Linear` has been written before that. The same goes for a whole net: with data as its input, its `backward` comes before those of its layers.
#
# `grad_output` may hold a `None` as well: the attention layer returns two tensors, and the entry of the one that the loss does not use is `None`.
#
# </div>

# %% [markdown] tags=["F18"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `grad_input` 里可能有 `None`，别直接问它的形状。几个输入张量里只有一部分需要梯度时，其余张量的那几项不是 `None`，而是全零的张量。也别指望钩子触发时 `weight.grad` 已经写好。
#
# </div>
# <div lang="en">
#
# `grad_input` may hold `None`: do not ask it for a shape. If only some of several input tensors need a gradient, the entries of the other tensors are not `None` but zeros. And do not rely on `weight.grad` being there when the hook fires.
#
# </div>
# </div>
#
# ### 练习 07.1：Linear 的形状 · Exercise 07.1: Shapes for Linear
#
# ●● · 6 min
#
# <div lang="zh">
#
# 写 `grad_shapes(layer, x)`：给一个 `nn.Linear`（可以没有偏置）和 2 维或更多的 `x`，返回两个元组，即完整钩子会看到的形状，
# 没有梯度的那一项写 `None`。层可能是冻结的，也可能只冻结了权重。钩子、`.grad` 和 `requires_grad` 都保持原样。
#
# </div>
# <div lang="en">
#
# Write `grad_shapes(layer, x)`: for an `nn.Linear` (perhaps biasless, frozen, or only its weight frozen) and `x` of
# 2 or more dimensions, return two tuples: the shapes a full hook sees, or `None`. Leave hooks, `.grad` and
# `requires_grad` alone.
#
# </div>


# %% exercise="07.1"
def grad_shapes(layer, x):
    """返回 (grad_input 的形状, grad_output 的形状)，例如 (((6, 5),), ((6, 3),))。

    Return (shapes in grad_input, shapes in grad_output), such as (((6, 5),), ((6, 3),)).
    """
    ### BEGIN SOLUTION
    grad_input = (tuple(x.shape) if x.requires_grad else None,)
    grad_output = ((*x.shape[:-1], layer.out_features),)
    return grad_input, grad_output
    ### END SOLUTION


# %% check="07.1"
check("07.1", grad_shapes)

# %% [markdown]
# ## 7.4 三种钩子，同一个网络 · Three hooks, one net
#
# <div lang="zh">
#
# 回到 7.1 节的网络，把三种反向钩子摆在一起。第三种是**反向前置钩子**：它在反向传播进入这一层之前触发，所以只收到 `grad_output`。
#
# `grad_output` 有 8 个数。**先猜**，再看看谁的 `grad_input` 可信。
#
# </div>
# <div lang="en">
#
# Back to the net of section 7.1, with the three kinds of backward hooks side by side. The third kind is the **backward pre-hook**: it fires before backward enters the layer, and therefore receives `grad_output` only.
#
# `grad_output` has 8 numbers. **Guess first**, and then see whose `grad_input` can be trusted.
#
# </div>


# %% tags=["E17"]
def look_with(kind):
    net, seen = small_net(), {"grad_input": "not given"}

    def look(module, grad_input, grad_output):
        seen.update(grad_input=shapes(grad_input), grad_output=grad_output)

    def look_before(module, grad_output):
        seen.update(grad_output=grad_output)

    with warnings.catch_warnings():  # we have read both warnings above
        warnings.simplefilter("ignore")
        getattr(net[0], kind)(look_before if "pre_hook" in kind else look)
        step(net)
    return seen


# %%
guess("07.d")

# %% tags=["E17"]
for kind in ("backward_hook", "full_backward_hook", "full_backward_pre_hook"):
    seen = look_with(f"register_{kind}")
    print(f"register_{kind}")
    print("   grad_input: ", seen["grad_input"])
    print("   grad_output:", seen["grad_output"][0].tolist())

# %% [markdown]
# <div lang="zh">
#
# 只有完整钩子的 `grad_input` 可信；`grad_output` 三者相同，8 个数里有 2 个不是 `0`，每个通道一个。
#
# 为什么是 `0.5`？L1 损失是两个差的平均，各占一半。为什么只在左上角？卷积的输出全是 `9`（另一个通道全是 `18`），一样大的时候，池化在 CPU 上取第一个，梯度就只回到那里。
#
# </div>
# <div lang="en">
#
# Only the `grad_input` of the full hook can be trusted. All three show the same `grad_output`, in which 2 of the 8 numbers are not `0`, one in each channel.
#
# Why `0.5`? The L1 loss is the mean of two differences, so each has one half. Why only at the top left? The convolution returns `9` everywhere (`18` in the other channel); among equals, the pool takes the first one on a CPU, and the gradient returns only to that place.
#
# </div>

# %% [markdown]
# ## 7.5 零从哪里来 · Where the zeros come from
#
# <div lang="zh">
#
# 全是一样的数看不出规律，所以换一张随机数字的图。`F.max_pool2d` 加上 `return_indices=True`，会说出每个窗口里池化取了谁。
#
# **先猜一猜**：`grad_output` 不是 `0` 的位置，和池化取走的位置是同一批吗？
#
# </div>
# <div lang="en">
#
# Equal numbers do not show much, so we take a picture of random numbers. With `return_indices=True`, `F.max_pool2d` tells which number it took from each window.
#
# **Guess first**: are the places where `grad_output` is not `0` the same as those that the pool took?
#
# </div>

# %% tags=["E17"]
torch.manual_seed(3)
net, seen = small_net(), {}
keep_output = net[0].register_forward_hook(lambda m, x, out: seen.update(output=out.detach()))
keep_grad = net[0].register_full_backward_pre_hook(lambda m, g: seen.update(grad_output=g[0]))
with keep_output, keep_grad:
    net(torch.randint(0, 10, (1, 1, 6, 6)).float()).sum().backward()

took = F.max_pool2d(seen["output"], 2, return_indices=True)[1][0, 0].flatten()
arrived = seen["grad_output"][0, 0].flatten().nonzero().flatten()
print("the pool took, counted row by row:", took.tolist())
print("grad_output is not 0 at:          ", arrived.tolist())

# %% picture="pool"
fig, axes = plt.subplots(1, 2, figsize=(6, 3.2), layout="constrained")
for ax, (name, values) in zip(axes, seen.items(), strict=True):
    ax.imshow(values[0, 0], cmap="viridis" if name == "output" else "Greens", alpha=0.6)
    for row, column in values[0, 0].isfinite().nonzero().tolist():
        value = values[0, 0, row, column]
        ax.text(column, row, f"{value:g}", ha="center", va="center", fontsize=13)
    ax.axhline(1.5, color="black", lw=2)
    ax.axvline(1.5, color="black", lw=2)
    ax.set(title=f"{name}, channel 0", xticks=[], yticks=[])

# %% [markdown]
# <div lang="zh">
#
# 是同一批。粗线围出 4 个窗口，每个窗口有一个赢家，梯度 `1` 全归它，其余的位置都是 `0`。
#
# </div>
# <div lang="en">
#
# They are the same. The thick lines mark 4 windows; each has one winner, which gets the whole gradient of `1`, and all other places get `0`.
#
# </div>
#
# ### 练习 07.2：零从哪里来 · Exercise 07.2: Where the zeros come from
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `pool_mask(features, size)`：`features` 是池化前的特征图（批、通道、高、宽；自己不需要梯度，可以有小数和 `inf`），`size` 是窗口边长。
# 返回同样形状的 `torch.bool` 张量，在 `grad_output` 不是 `0` 的地方为 `True`。凑不满一个窗口的行和列，池化会丢掉。
# `features` 和它的 `.grad` 都保持原样。
#
# </div>
# <div lang="en">
#
# Write `pool_mask(features, size)`: `features` are the maps before the pool (batch, channel, height, width), of any numbers,
# even `inf`, and need no gradient themselves; `size` is the side of a window. Return a `torch.bool` tensor of the same
# shape, `True` where `grad_output` is not `0`. The pool drops rows and columns that fill no window. Leave `features` and its
# `.grad` as they were.
#
# </div>


# %% exercise="07.2"
def pool_mask(features, size):
    """返回布尔掩码：最大池化之后，梯度会回到 features 的哪些位置。

    Return a bool mask: to which positions of features a gradient comes back through the max pool.
    """
    ### BEGIN SOLUTION
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2)
    mask.scatter_(2, index.flatten(2), True)
    return mask.view_as(features)
    ### END SOLUTION


# %% check="07.2"
check("07.2", pool_mask)

# %% [markdown]
# ## 7.6 改动梯度 · Changing the gradient
#
# <div lang="zh">
#
# 反向钩子如果返回一个元组，就会替换梯度：完整钩子替换的是 `grad_input`，前置钩子替换的是 `grad_output`。下面分别把它们换成零。权重全是 `1`，`x` 是 `6×5`，全是 `2`，损失是输出的和。**先猜。**
#
# </div>
# <div lang="en">
#
# A backward hook that returns a tuple replaces gradients: a full hook replaces `grad_input`, a pre-hook `grad_output`. Below, we replace the one and then the other by zeros.
#
# All weights are `1`, `x` is `6×5` and all `2`, and the loss is the sum of the outputs. **Guess first.**
#
# </div>


# %%
def stop(module, grad_input, grad_output):
    return (torch.zeros_like(grad_input[0]),)  # a tuple of the same length as grad_input


def stop_early(module, grad_output):
    return (torch.zeros_like(grad_output[0]),)


# %%
guess("07.e")

# %% tags=["F19"]
layer = nn.Linear(5, 3)
nn.init.ones_(layer.weight)
x = torch.full((6, 5), 2.0, requires_grad=True)


def gradients():
    x.grad = layer.weight.grad = None
    layer(x).sum().backward()
    return f"x.grad {x.grad[0].tolist()}, weight.grad {layer.weight.grad[0].tolist()}"


print("no hook:          ", gradients())
with layer.register_full_backward_hook(stop):
    print("zero grad_input:  ", gradients())
    weight_grad = layer.weight.grad
with layer.register_full_backward_pre_hook(stop_early):
    print("zero grad_output: ", gradients())

# %% [markdown] tags=["F19"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 改 `grad_input`，只改变继续往回流的那一份；这一层自己的权重用的是 `grad_output`，照旧得到 `12`。要连权重的梯度一起改，就得在前置钩子里改 `grad_output`。
#
# </div>
# <div lang="en">
#
# Changing `grad_input` changes only what flows on to earlier layers; the weights of the layer itself use `grad_output` and get their `12` as before. To change their gradient too, change `grad_output` in a pre-hook.
#
# </div>
# </div>

# %% [markdown]
# ## 7.7 一次挂到所有模块上 · On all modules at once
#
# <div lang="zh">
#
# 全局钩子（6.10 节）也有反向传播用的。它和模块自己的完整钩子一样，收到 `grad_input` 和 `grad_output`。
#
# **先猜一猜**：`layer(input=x)` 按关键字传入 `x` 时，`grad_input` 里有什么？前向前置钩子可以只返回一个张量，不写成元组，反向钩子也可以吗？
#
# </div>
# <div lang="en">
#
# Global hooks (section 6.10) exist for backward too. They receive `grad_input` and `grad_output` just as a module's own full hook does.
#
# **Guess first**: what is in `grad_input` when `x` is passed by keyword, as `layer(input=x)`? A forward pre-hook may return a single tensor instead of a tuple; may a backward hook do that, too?
#
# </div>

# %% tags=["E12"]
net, x = nn.Sequential(nn.Linear(5, 3), nn.ReLU()), torch.ones(6, 5, requires_grad=True)


def report(module, grad_input, grad_output):
    print(f"{type(module).__name__:12} {shapes(grad_input)} {shapes(grad_output)}")


with register_module_full_backward_hook(report), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that no input needs a gradient
    net(x).sum().backward()
    print("by keyword, layer(input=x):")
    net[0](input=x).sum().backward()

# %% tags=["E12"]
with register_module_forward_pre_hook(lambda module, args: args[0]):
    print("a forward pre-hook's tensor is wrapped into a tuple:", tuple(net(x).shape))
with register_module_full_backward_hook(lambda module, grad_input, _: grad_input[0]):
    try:
        net(x).sum().backward()
    except RuntimeError as error:
        print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# `grad_input` 只含位置参数：按关键字传入时，它是空的。前向前置钩子返回的单个张量会被包成元组，反向钩子返回的不会；它被当成一个有 `6` 项的元组，长度不对，于是报错。
#
# 输出也有限制。许多语言模型的输出是一个字典或数据类（dataclass）。我们在这样的模块上挂一个完整反向钩子，做一次反向传播。**先猜。**
#
# </div>
# <div lang="en">
#
# `grad_input` holds positional arguments only: with a keyword it is empty. The single tensor that a forward pre-hook returns is wrapped into a tuple; that of a backward hook is not, it is taken for a tuple of `6` entries, a wrong length, which raises.
#
# Outputs are limited as well. Many language models return a dictionary or a dataclass. We attach a full backward hook to such a module and run backward once. **Guess first.**
#
# </div>


# %%
guess("07.f")


# %% tags=["F39"]
class Named(nn.Linear):
    def forward(self, x):
        return {"logits": super().forward(x)}


layer, fired = Named(5, 3), []
counting = layer.register_full_backward_hook(lambda *_: fired.append(1))
with warnings.catch_warnings(record=True) as caught, counting:
    warnings.simplefilter("always")
    layer(x)["logits"].sum().backward()
print("fired:", len(fired))
print(textwrap.fill(f"{caught[0].category.__name__}: {caught[0].message}", 90))

# %% [markdown] tags=["F39"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 一次也没有，只有一句警告。输出必须是张量，或者装着张量的元组；否则就在前向钩子里，给里面的张量挂张量钩子（7.8 节）。
#
# </div>
# <div lang="en">
#
# Never, and there is only a warning. The output must be a tensor or a tuple that holds tensors; for anything else, set tensor hooks on the tensors inside it, in a forward hook (section 7.8).
#
# </div>
# </div>
#
# ### 练习 07.3：导向 ReLU · Exercise 07.3: Guided ReLU
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `guided_relu(model)`：让模型里每个 `nn.ReLU`（这里都不是就地的；就地的见 7.8）在反向传播时只放过正的梯度，负的变成 `0`；
# ReLU 自己的规则照旧，捷径 `h + relu(h)` 也照旧。`eval()` 之后、半精度时也一样，`torch.no_grad()` 里不能出错。不用旧式钩子。返回所有句柄的列表。
#
# </div>
# <div lang="en">
#
# Write `guided_relu(model)`: in backward, every `nn.ReLU` (none in place; see 7.8) passes only positive
# gradients, negative ones become `0`; ReLU's own rule and shortcuts stay, `h + relu(h)`. Also
# after `eval()` and in half precision; no crash under `torch.no_grad()`. No legacy hooks. Return the handles in
# a list.
#
# </div>


# %% exercise="07.3"
def guided_relu(model):
    """让每个 nn.ReLU 只放过正的梯度，返回句柄的列表。

    Make every nn.ReLU let only positive gradients pass; return the list of handles.
    """

    ### BEGIN SOLUTION
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [
        module.register_full_backward_hook(keep_positive)
        for module in model.modules()
        if isinstance(module, nn.ReLU)
    ]
    ### END SOLUTION


# %% check="07.3"
check("07.3", guided_relu)

# %% [markdown]
# ## 7.8 就地操作前的崩溃 · The crash before an in-place operation
#
# <div lang="zh">
#
# 许多现成的模型用 `nn.ReLU(inplace=True)`，它直接改写前一层的输出。我们挂一个什么也不做的完整钩子，先挂在 ReLU 前面的那一层上，再挂在 ReLU 自己身上。**先猜。**
#
# </div>
# <div lang="en">
#
# Many ready-made models use `nn.ReLU(inplace=True)`, which overwrites the output of the layer before it. We attach a full hook that does nothing at all, first to the layer before the ReLU, then to the ReLU itself. **Guess first.**
#
# </div>


# %%
guess("07.g")


# %% tags=["F17"]
def net_with(inplace):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(inplace=inplace), nn.Linear(4, 1))


x = torch.ones(2, 5, requires_grad=True)
crashed = []
full, before = "register_full_backward_hook", "register_full_backward_pre_hook"
for inplace, kind, place in ((False, full, 0), (True, full, 0), (True, full, 1), (True, before, 0)):
    net = net_with(inplace)
    print(f"inplace={inplace}: {kind} on {net[place]}")
    with getattr(net[place], kind)(lambda module, *grads: None):
        try:
            net(x).sum().backward()
            print("   fine")
        except RuntimeError as error:
            crashed.append((inplace, kind, place))
            print("   RuntimeError:", str(error).split(". ")[0])

# %% [markdown]
# <div lang="zh">
#
# 两处都崩溃，反向前置钩子也一样。为了知道梯度什么时候经过一层的边界，PyTorch 把这一层的输入和输出都换成了视图（view，和原来的张量共享内存），而这种视图不允许就地改写。
#
# 张量钩子不需要视图。所以换一个办法：挂一个前向钩子，在里面给输出挂张量钩子。为了比较，下面同时调用 `retain_grad`。**先猜。**
#
# </div>
# <div lang="en">
#
# It crashes in both places, and so does a backward pre-hook. To notice when the gradient crosses the border of a layer, PyTorch turns inputs and outputs of that layer into views (which share memory with the original tensor), and these views must not be changed in place.
#
# A tensor hook needs no view. So here is another way: a forward hook that sets a tensor hook on the output. For comparison, we also call `retain_grad`. **Guess first.**
#
# </div>


# %%
guess("07.h")


# %% tags=["F17"]
def watched(inplace):
    net, seen = net_with(inplace), {}

    def catch(module, args, output):
        output.register_hook(lambda grad: seen.update(hook=grad))
        output.retain_grad()
        seen["output"] = output

    with net[0].register_forward_hook(catch):
        net(x).sum().backward()
    return seen["hook"][0], seen["output"].grad[0]


wanted, _ = watched(inplace=False)
hooked, retained = watched(inplace=True)
print("not in place:            ", wanted)
print("in place, tensor hook:   ", hooked, torch.equal(hooked, wanted))
print("in place, retain_grad:   ", retained, torch.equal(retained, wanted))

# %% [markdown] tags=["F17"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 像 `Linear` 这样的层，后面有就地操作时，别用完整反向钩子，用前向钩子里的张量钩子：它留在改写之前的值那里。`retain_grad` 会跟着张量走到 ReLU 之后（4.6 节），给出的是另一个梯度。
#
# </div>
# <div lang="en">
#
# Where an in-place operation follows a layer such as `Linear`, use a tensor hook set inside a forward hook instead of a full backward hook: it stays with the value before the change. `retain_grad` moves with the tensor behind the ReLU (section 4.6) and gives another gradient.
#
# </div>
# </div>
#
# <div lang="zh">
#
# 有些层的输出本身就是视图，例如 `nn.Flatten` 的。后面就地改写视图，PyTorch 就重写它的历史，改写之前挂上的张量钩子不再触发，也没有任何报错。那就让前向钩子返回 `output.clone()`：就地操作改写的是拷贝，钩子照常触发。
#
# </div>
# <div lang="en">
#
# The output of some layers is itself a view, that of `nn.Flatten` for example. Where a view is changed in place, PyTorch rewrites its history, and a tensor hook from before the change no longer fires, without any error. Then let the forward hook return `output.clone()`: what is overwritten is the copy, and the hook fires as usual.
#
# </div>
#
# ### 练习 07.4：用张量钩子修好它 · Exercise 07.4: Mend it with a tensor hook
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `watch_output(layer, seen)`：每次反向传播，把 `layer` 的输出（不是视图）的梯度原样放到列表 `seen` 的末尾，全是零也放，哪怕后面是就地 ReLU。
# `torch.no_grad()` 里也不能出错，输出和流过的梯度都不变。返回句柄。
#
# </div>
# <div lang="en">
#
# Write `watch_output(layer, seen)`: each backward appends the gradient of `layer`'s output (which is no view), even all
# zeros, to list `seen`, despite an in-place ReLU behind. No crash under `torch.no_grad()`; outputs and gradients stay
# unchanged. Return the handle.
#
# </div>


# %% exercise="07.4"
def watch_output(layer, seen):
    """把 layer 输出的每个梯度放进 seen，不怕后面的就地 ReLU；返回句柄。

    Put each gradient of layer's output into seen, even before an in-place ReLU; return the handle.
    """

    ### BEGIN SOLUTION
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)
    ### END SOLUTION


# %% check="07.4"
check("07.4", watch_output)

# %% [markdown]
# ## 7.9 实例：多少梯度活了下来 · Worked example: how much gradient survives
#
# <div lang="zh">
#
# 现在把完整钩子用在一个小的卷积网络上：每一层挂一个，记下 `grad_input` 里有多少不是 `0`。这样，一次反向传播就能看出每种层的规则。
#
# **先猜一猜**：梯度往回穿过一个 `2×2` 的最大池化之后，最多还有多少不是 `0`？穿过卷积之后呢？
#
# </div>
# <div lang="en">
#
# Now we use full hooks on a small convolutional net: one on every layer, which notes the share of `grad_input` that is not `0`. One backward pass then shows the rule of each kind of layer.
#
# **Guess first**: once the gradient has gone back through a `2×2` max pool, how much of it can still be different from `0`? And after a convolution?
#
# </div>

# %%
torch.manual_seed(0)
blocks = [(1, 8), (8, 16)]
layers = [m for i, o in blocks for m in (nn.Conv2d(i, o, 3), nn.ReLU(), nn.MaxPool2d(2))]
net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 5 * 5, 10))
alive = {}


def note(name, module, grad_input, grad_output):
    alive[f"{name} {type(module).__name__}"] = (grad_input[0] != 0).float().mean().item()


handles = []
for name, module in net.named_children():
    handles.append(module.register_full_backward_hook(partial(note, name)))
pictures = torch.randn(4, 1, 28, 28, requires_grad=True)
F.cross_entropy(net(pictures), torch.arange(4)).backward()
for handle in handles:
    handle.remove()

# %% picture="shares"
fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
bars = ax.barh(list(alive), list(alive.values()), color="#2166ac")
ax.bar_label(bars, fmt="{:.0%}", padding=3)
ax.set(xlim=(0, 1.15), xlabel="share of grad_input that is not 0")
ax.set_title("top: next to the input, bottom: next to the loss", fontsize=10)
most = max(share for name, share in alive.items() if "Pool" in name)
print("share that comes back through a pool is at most 1/4:", most <= 0.25)

# %% [markdown]
# ## 7.10 零不是 None · Zeros are not None
#
# <div lang="zh">
#
# 图里看得到：池化之后最多剩四分之一，ReLU 再减去一些，而卷积把梯度又摊到几乎所有的位置。卷积那里剩下的零多半在下边和右边的边缘：往后走到池化，那边的行和列凑不满一个窗口，被丢掉了。
#
# 最后一个问题来自微调：让一层自己继续学，而它前面的层不再动。按 7.6 节，完整钩子把 `grad_input` 换成零就行，看上去是这样。钩子也可以返回 `(None,)`，那就根本没有梯度从这一层往回流。（单独返回一个 `None`，是什么也不改。）
#
# 两种办法各用 AdamW（带权重衰减）训练 5 步。**先猜。**
#
# </div>
# <div lang="en">
#
# The picture shows it: at most a quarter comes back through a pool, a ReLU removes some more, and a convolution spreads the gradient over nearly all places again. Most of the remaining zeros lie along the bottom and the right edge: what comes from there reaches only rows and columns that a later pool drops, because they fill no window.
#
# The last question comes from fine-tuning: one layer should go on learning, and the layers before it should not move. By section 7.6, a full hook that puts zeros into `grad_input` seems to be enough. The hook may also return `(None,)`, and then no gradient flows on from this layer at all. (To return a plain `None` changes nothing.)
#
# We train for 5 steps with AdamW, which has weight decay, in both ways. **Guess first.**
#
# </div>


# %%
guess("07.i")


# %% tags=["F38"]
def moved(stop):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    before = net[0].weight.detach().clone()
    net[1].register_full_backward_hook(stop)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        net(torch.ones(2, 2)).sum().backward()
        optimizer.step()
    return (net[0].weight - before).abs().max().item(), net[0].weight.grad


far = {}
for title, returns in (("zeros", torch.zeros_like), ("None", lambda grad: None)):
    distance, grad = moved(lambda module, grads, _: tuple(returns(grad) for grad in grads))
    far[title] = distance
    shown = "None" if grad is None else grad.tolist()
    print(f"{title:5}  moved by {distance:.4f}, .grad is {shown}")

# %% [markdown] tags=["F38"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 梯度是零，不等于不动：优化器看到一个零梯度，照样做权重衰减，这里移动了 0.0285。`.grad` 是 `None` 的参数，优化器会跳过。要让前面的层不动，就返回 `(None,)`（前面若还有一层也挂着反向钩子，它可能又变成零），或者设 `requires_grad_(False)`。
#
# </div>
# <div lang="en">
#
# A gradient of zeros does not mean standing still: the optimizer sees a gradient and applies weight decay all the same; here the weight moved by 0.0285. Parameters whose `.grad` is `None` are skipped. To keep earlier layers where they are, return `(None,)` (which a backward hook on one of them may turn into zeros again), or set `requires_grad_(False)`.
#
# </div>
# </div>
#
# ### 练习 07.5：让梯度停在一层 · Exercise 07.5: Stop the gradient at a layer
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `stop_gradient(layer)`：`layer` 的权重照常得到梯度，而它前面的层从哪个输入都得不到（输入都是张量，按位置传入）。它们的 `.grad` 仍是 `None`，填上零也不行：权重衰减不能移动它们。
#
# 捷径上的梯度照旧，例如 `y = layer(h) + h`（3.7 节）。层在 `eval()` 之后也一样；输入不需要梯度时、`torch.no_grad()` 里都不能出错。返回句柄。
#
# </div>
# <div lang="en">
#
# Write `stop_gradient(layer)`: the weights of `layer` get their gradient as before, while the layers before it get none, through any of its inputs (all are tensors, given by position). Their `.grad` stays `None`, and is not filled with zeros either: weight decay must not move them.
#
# A shortcut keeps its gradient, as in `y = layer(h) + h` (section 3.7). All this holds after `eval()` too, and nothing fails where the input needs no gradient, or under `torch.no_grad()`. Return the handle.
#
# </div>


# %% exercise="07.5"
def stop_gradient(layer):
    """让梯度停在 layer：它的权重照常得到梯度，前面的层什么也得不到；返回句柄。

    Stop the gradient at layer: its weights get theirs, what comes before gets none.
    Return the handle.
    """

    ### BEGIN SOLUTION
    def stop(module, grad_input, grad_output):
        return (None,) * len(grad_input)

    return layer.register_full_backward_hook(stop)
    ### END SOLUTION


# %% check="07.5"
check("07.5", stop_gradient)

# %% [markdown]
# ## 7.11 小结 · Recap
#
# <div lang="zh">
#
# 1. 用 `register_full_backward_hook`，别用旧式的 `register_backward_hook`。
# 2. `grad_output` 是输出的梯度，`grad_input` 是输入的梯度；都是元组，`grad_input` 里可以有 `None`；损失没有用到其中一个输出时，`grad_output` 里也会有。
# 3. 最大池化把梯度只交给每个窗口的赢家。
# 4. 返回元组会替换梯度：改 `grad_input` 不影响这一层的权重，改 `grad_output` 会。返回零和返回 `None`，优化器的反应不同。
# 5. 后面有就地操作，或者输出是字典时，用前向钩子里的张量钩子。
#
# </div>
# <div lang="en">
#
# 1. Use `register_full_backward_hook`, not the legacy `register_backward_hook`.
# 2. `grad_output` is the gradient of the output, `grad_input` that of the input; both are tuples, and `grad_input` may hold `None`. So may `grad_output`, where the loss does not use one of several outputs.
# 3. A max pool hands the gradient only to the winner of each window.
# 4. A returned tuple replaces gradients: changing `grad_input` spares the weights of the layer, changing `grad_output` does not. An optimizer treats zeros differently from `None`.
# 5. Where an in-place operation follows, or the output is a dictionary, use tensor hooks set inside a forward hook.
#
# </div>

# %% [markdown]
# ## 7.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 完整钩子收到的 <code>grad_input</code> 为什么会是 <code>(None,)</code>？</summary>这一个输入不需要梯度。几个输入张量里只有一部分需要时，其余张量的那几项全是零。</details>
# <details><summary>2. 怎样让前面的层收不到梯度，而本层照常学习？</summary>完整钩子返回一个元组，每一项是零，或者是 <code>None</code>。权重衰减只有在 <code>None</code> 时才会停下。</details>
# <details><summary>3. 完整钩子遇上 <code>nn.ReLU(inplace=True)</code> 报错，怎么办？</summary>改用前向钩子，在里面给输出挂张量钩子。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why can a full hook receive <code>(None,)</code> as <code>grad_input</code>?</summary>Its one input needs no gradient. Where only some of several input tensors do, the entries of the other tensors are zeros.</details>
# <details><summary>2. How do you stop the gradient from reaching earlier layers while this one goes on learning?</summary>A full hook returns a tuple whose entries are zeros, or <code>None</code>. Weight decay stops only with <code>None</code>.</details>
# <details><summary>3. A full hook fails before <code>nn.ReLU(inplace=True)</code>. What now?</summary>Use a forward hook that sets a tensor hook on the output.</details>
# </div>

# %% [markdown]
# ## 7.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# Captum 的 `GuidedBackprop` 做的就是练习 07.3 的事。它没有用完整反向钩子：在它的源代码里搜索 `_register_backward_hook`，你会看到 7.8 节的办法：张量钩子，在前向钩子里挂在输出上，在前向前置钩子里挂在输入上。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# `GuidedBackprop` of Captum does what exercise 07.3 does, and it does not use a full backward hook: search its source for `_register_backward_hook`, and you will find the way of section 7.8: tensor hooks, set on the output in a forward hook and on the input in a forward pre-hook. Below is your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
