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
# 反向传播时，我们想看看传到一个卷积的梯度。许多老教程用 `register_backward_hook` 来看。它的钩子收到的第二个参数叫 `grad_input`，顾名思义，应该是**输入**的梯度。真是这样吗？
#
# 我们用第 05 课的小网络试一试。它先是一个卷积，两个通道的权重分别全是 `1` 和全是 `2`，再接一个 `2×2` 的最大池化。输入是一张 `1×1×4×4`、全是 `1` 的图，输出用 L1 损失和一个随机目标比较。
#
# 这个卷积只有一个输入。下面的钩子给 `grad_input` 里的每一项打印一行 `in grad_input`，会打印几行？**先猜。**
#
# </div>
# <div lang="en">
#
# Suppose you want to see the gradient that reaches a convolution in backward. Many old tutorials will tell you to use
# `register_backward_hook`. The second argument that its hook receives is called `grad_input`, so going by its name, it
# should be the gradient of the **input**. Is it?
#
# Let us try it on the small net of lesson 05: a convolution with two channels, and after it a `2×2` max pool. The
# weights of the first channel are all `1`, those of the second all `2`. The input is a `1×1×4×4` picture of ones, and
# L1 loss compares the output with a random target.
#
# To find out, we count the entries. This convolution has only one input, and the hook below prints a line
# `in grad_input` for each entry of `grad_input`. How many lines do you expect? **Guess first.**
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
# 输入只有一个，钩子却打印了三行！只有第一行说的是这个输入。它是 `None`，因为这张图不需要梯度。另外两行是权重和偏置的梯度。
#
# 它们怎么会出现在 `grad_input` 里？你把这个旧式钩子注册在模块上，其实它挂在产生输出的那个**运算**上。权重和偏置归模块所有，对运算来说却和图一样，都是输入。所以卷积作为运算，有三个输入：图、权重和偏置。
#
# </div>
# <div lang="en">
#
# There are three lines, although the convolution has only one input. Only the first line is about this input. It says
# `None`, because the picture needs no gradient. The other two are the gradients of the weight and the bias.
#
# How did these two get into `grad_input`? You registered the legacy hook on the module, but PyTorch really attaches it
# to the **operation** that computes the output. The weight and the bias belong to the module, but for the operation
# they are inputs, just like the picture. So a convolution, as an operation, has three inputs: picture, weight and bias.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别用 `register_backward_hook`，因为它的 `grad_input` 属于某个运算，不属于模块。
#
# 打印出来的警告在这里帮不上忙。torch 2.15.0 说会缺（missing）几项，其实反而多了两项，就是权重和偏置的。
#
# 代替它的是完整反向钩子，下一节就讲。同一个模块上不能既有旧式的，又有完整的：上面我们试了一次，PyTorch 抛出了 `RuntimeError`。
#
# </div>
# <div lang="en">
#
# Do not use `register_backward_hook`, because its `grad_input` belongs to an operation and not to the module.
#
# The warning that is printed is no help here. In torch 2.15.0 it says that entries will be missing, but there are two
# too many, those of weight and bias.
#
# The next section shows what to use instead, the full backward hook. One module cannot have both kinds: we tried it
# above, and PyTorch raised a `RuntimeError`.
#
# </div>
# </div>

# %% [markdown]
# ## 7.2 完整反向钩子 · The full backward hook
#
# <div lang="zh">
#
# 正确的工具是 `register_full_backward_hook`。它的钩子也收到那三个参数，但这次说的是模块本身，不是里面的某个运算。
#
# 我们把 `6×5` 的输入送进 `Linear(5, 3)`。钩子收到的 `grad_input` 里，张量会是什么形状？**先猜。**
#
# </div>
# <div lang="en">
#
# The right tool is `register_full_backward_hook`. Its hook takes the same three arguments, but this time all of them
# are about the module itself, and not about an operation inside it.
#
# We send an input of `6×5` through `Linear(5, 3)`. What shape will the tensor in `grad_input` have? **Guess first.**
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
# 张量里的每个数都有一个梯度，所以梯度的形状总是和它所属的张量相同。`grad_output` 属于这一层的**输出**，所以是 `6×3`；`grad_input` 属于**输入**，所以是 `6×5`。两个都是元组，因为一层可以有几个输入和几个输出。
#
# 「输入」「输出」说的是前向传播的方向。反向传播正好倒过来：`grad_output` 先到，再由它算出 `grad_input`。
#
# 下面的控件让一个两层的网络走一遍（`Linear` 叫 `0`，`Tanh` 叫 `1`），一个事件一个事件地放给你看。请盯住这一课的两个事件：在这里，`grad_output` 一到达某一层，`backward_pre` 就触发；等这一层的 `grad_input` 算好了，`backward` 才触发。
#
# **先猜一猜**：反向传播时，`Linear` 和 `Tanh` 谁的 `backward_pre` 先触发？另一层的 `backward_pre` 触发时，先来的那一层触发过 `backward` 了吗？猜好再一步一步往后点。
#
# </div>
# <div lang="en">
#
# A gradient holds one number for each number of the tensor that it belongs to, so it always has the same shape as that
# tensor. `grad_input` belongs to the **input** of the layer, so it is `6×5`, and `grad_output` belongs to the
# **output**, so it is `6×3`. Both are tuples, because a layer may have several inputs and outputs.
#
# Do not let the names confuse you: "input" and "output" are meant as in forward. Backward goes the other way, so
# `grad_output` arrives first, and `grad_input` is computed from it.
#
# The widget below takes a net of two layers, `Linear` as `0` and `Tanh` as `1`, through forward and backward. Watch
# the two events of this lesson: here `backward_pre` fires when the `grad_output` of a layer arrives, and `backward`
# fires only when the `grad_input` of this layer is ready.
#
# **Guess first**: in backward, whose `backward_pre` fires first, that of `Linear` or that of `Tanh`? And when the
# `backward_pre` of the second layer fires, has the `backward` of the first one already fired? Then step through the
# events.
#
# </div>

# %% picture="timeline"
HookTimeline(nn.Sequential(nn.Linear(5, 3), nn.Tanh()), torch.ones(6, 5, requires_grad=True))

# %% [markdown]
# <div lang="zh">
#
# `Tanh` 在先，因为反向传播从最后一层开始。轮到 `Linear` 的 `backward_pre` 时，`Tanh` 的 `backward` 已经触发过了。原因是 `Tanh` 的 `grad_input` 就是 `Linear` 的 `grad_output`，得先算出来。
#
# 整个网络也是一个模块，所以也有这两个事件。梯度先进入网络，再进入里面的层，所以网络的 `backward_pre` 最早。网络的 `backward` 却最晚：这里网络的输入需要梯度，而反向传播要走完所有的层，最后才算出这个梯度。各层的事件，就这样夹在网络的两个事件中间。
#
# </div>
# <div lang="en">
#
# `Tanh` comes first, because backward begins with the last layer. When the `backward_pre` of `Linear` fires, the
# `backward` of `Tanh` has already fired. The reason is that the `grad_input` of `Tanh` becomes the `grad_output` of
# `Linear`, so it has to be computed first.
#
# The net is a module as well, so it has these two events. The gradient enters the net before it enters any layer
# inside, so the `backward_pre` of the net fires before those of the layers. Its `backward` fires after theirs, because
# here the net's input needs a gradient, and backward has to go through every layer before this gradient is ready. So
# the layers' events lie between the two events of the net.
#
# </div>
#
# ## 7.3 没有人要的梯度 · A gradient that nobody needs
#
# <div lang="zh">
#
# 7.2 节里的 `x` 需要梯度。可是训练时，第一层的输入是数据。训练不改动数据，所以数据不需要梯度，也就没有人去算。
#
# 在这样的第一层上挂一个完整钩子，它还会触发吗？如果会，那时 `weight.grad` 写好了没有？**先猜。**
#
# </div>
# <div lang="en">
#
# In section 7.2, `x` needed a gradient. In training, however, the input of the first layer is data. Training changes
# the weights and not the data, so the data need no gradient, and nobody computes one.
#
# Will a full hook on such a first layer fire at all? If it does, will `weight.grad` have been written by then? **Guess
# first.**
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
# 输入不需要梯度时，钩子照样触发，因为权重需要梯度；它收到的 `grad_input` 是 `(None,)`。它没有输入的梯度可等，所以 `grad_output` 一到就触发，这时 `weight.grad` 还没有写好。整个网络也一样：输入是数据时，网络的 `backward` 比各层的都早。
#
# 输入需要梯度时，钩子就要等 `grad_input` 算出来。等到那时，这里的 `Linear` 已经写好了 `weight.grad`。
#
# 有时这样的钩子会白等。如果你用 `torch.autograd.grad` 只求权重的梯度，就没有人算 `grad_input`，钩子一直不触发。
#
# 一层也可以有几个输入，双线性层就有两个。如果只有前一个需要梯度，你也许以为 `grad_input` 里的后一项会是 `None`，其实它是全零的张量。
#
# `grad_output` 里也会有 `None`。上面的注意力层返回两个张量，损失却只用到前一个，所以后一项就是 `None`。
#
# </div>
# <div lang="en">
#
# The weights need a gradient, so the hook fires even if the input needs none. Then `grad_input` is `(None,)`, and
# the hook has nothing to wait for. It fires as soon as `grad_output` arrives, before `weight.grad` has been
# written. The same goes for a whole net: if its input is data, the `backward` of the net fires before those of its
# layers.
#
# If the input does need a gradient, the hook waits until `grad_input` is computed. By then, the `weight.grad` of this
# `Linear` has been written.
#
# Sometimes such a hook waits in vain. Suppose you ask `torch.autograd.grad` for the gradient of the weight alone. Then
# nobody computes `grad_input`, and so the hook never fires.
#
# What if a layer has several inputs? The bilinear layer has two. If only the first needs a gradient, you might expect
# `None` for the second, but you get zeros.
#
# In `grad_output` there may be a `None` as well. The attention layer returns two tensors, but the loss uses only the
# first. So no gradient comes back to the second, and its entry is `None`.
#
# </div>

# %% [markdown] tags=["F18"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `grad_input` 里可能有 `None`，而 `None` 没有形状，所以要先判断，再问形状。
#
# 反过来，不是 `None` 也不等于这个输入需要梯度。几个输入张量里只有一部分需要梯度时，其余张量的那几项是全零的张量。
#
# `weight.grad` 也要当心：钩子触发时，它可能还没有写好。
#
# </div>
# <div lang="en">
#
# An entry of `grad_input` may be `None`, which has no shape. So do not ask for its shape without checking.
#
# On the other hand, not every input without a gradient shows as `None`. If only some of several input tensors need a
# gradient, the entries of the other tensors are zeros.
#
# And do not rely on `weight.grad` inside the hook, because it may not have been written yet when the hook fires.
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
# 你不挂钩子，也能推算出完整钩子会看到什么形状。推算得出，上面的规则就真懂了。
#
# 写 `grad_shapes(layer, x)`。它收到的 `layer` 是一个 `nn.Linear`，`x` 有 2 维或更多。它返回两个元组，也就是完整钩子在 `grad_input` 和 `grad_output` 里会看到的形状。哪一项没有梯度，就写 `None`。
#
# - 层可以没有偏置，可能是冻结的，也可能只冻结了权重。但 `x` 和参数中总有一个需要梯度，所以在 `backward()` 里钩子一定会触发。
# - 你只是推算，所以钩子、`.grad` 和 `requires_grad` 都保持原样。
#
# </div>
# <div lang="en">
#
# If you have understood the rules above, you can tell which shapes a full hook will see, even without registering a
# hook.
#
# Write `grad_shapes(layer, x)`, where `layer` is an `nn.Linear` and `x` has 2 or more dimensions. It returns two
# tuples: the shapes that a full hook sees in `grad_input`, and those in `grad_output`. Where an entry has no gradient,
# put `None`.
#
# - You only predict, so leave hooks, `.grad` and `requires_grad` as they were.
# - `layer` may have no bias, and it may be frozen, or only its weight may be. But `x` or a parameter always needs a
#   gradient, so the hook is sure to fire in `backward()`.
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
# 模块的反向钩子一共有三种，旧式的和完整的你已经见过。第三种是**反向前置钩子**：它在反向传播进入这一层之前触发。那时输入的梯度还没有算，所以它只收到 `grad_output`。
#
# 三种钩子里，谁的 `grad_input` 可信？我们把它们都挂到 7.1 节的网络上比一比。先看 `grad_output`，因为 `grad_input` 是由它算出来的。它属于卷积的输出，所以有 8 个数，两个通道各四个。其中几个不是 `0`？**先猜。**
#
# </div>
# <div lang="en">
#
# You have met two of the three kinds of backward hooks for modules, the legacy hook and the full hook. The third is
# the **backward pre-hook**. It fires before backward enters the layer, when nobody has computed the gradient of the
# input yet, and so it receives `grad_output` only.
#
# Which of the three gives you a `grad_input` that you can trust? To find out, we try all of them on the net of section
# 7.1. But look at `grad_output` first, because `grad_input` is computed from it. It belongs to the output of the
# convolution, so it has 8 numbers, four in each of the two channels. How many of them are not `0`? **Guess first.**
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
# 三种钩子看到的 `grad_output` 都一样，8 个数里有 2 个不是 `0`，每个通道一个。`grad_input` 却只有完整钩子的可信：它是只有一项的元组，说的就是那一个输入。旧式钩子的又有三项，其中两项说的不是输入；前置钩子则根本收不到。
#
# 这两个数为什么是 `0.5`？池化在每个通道里只留下一个数，所以 L1 损失在这里是两个差的平均，每个差各占一半。
#
# 它们又为什么都在左上角？卷积的输出在一个通道里全是 `9`，在另一个通道里全是 `18`。数一样大时，取哪个结果都相同；池化在 CPU 上取第一个，梯度也就只回到那里。
#
# </div>
# <div lang="en">
#
# All three hooks see the same `grad_output`: of its 8 numbers, 2 are not `0`, one in each channel. For `grad_input`,
# however, you can trust only the full hook. There `grad_input` is a tuple with a single entry, which belongs to the one
# input of the layer. The legacy hook received three entries again, two of which belong to no input of the layer, and
# the pre-hook received no `grad_input` at all.
#
# Why are the two numbers `0.5`? The pool returns one number for each channel. So the L1 loss here is the mean of two
# differences, and each difference counts for one half.
#
# And why are they at the top left? The convolution returns `9` everywhere in one channel and `18` everywhere in the
# other, so in each window all numbers are equal. Any of them would do, because the pool returns the same value
# whichever it takes. On a CPU it takes the first one, and the gradient returns only to the place that was taken.
#
# </div>

# %% [markdown]
# ## 7.5 零从哪里来 · Where the zeros come from
#
# <div lang="zh">
#
# 刚才窗口里的数都一样大，看不出池化是怎么挑的，所以这次换一张随机数字的图。给 `F.max_pool2d` 加上 `return_indices=True`，它还会告诉我们每个窗口里取了哪个数。
#
# **先猜一猜**：`grad_output` 不是 `0` 的位置，就是池化取数的那些位置吗？
#
# </div>
# <div lang="en">
#
# How does the pool choose? So far you could not see that, because all numbers in a window were equal. This time we
# take a picture of random numbers, and we ask the pool itself which places it chose: with `return_indices=True`,
# `F.max_pool2d` returns them along with the numbers.
#
# **Guess first**: are the places where `grad_output` is not `0` the same as those from which the pool took its
# numbers?
#
# </div>

# %%
guess("07.e")

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
# 就是那些位置。图里的粗线隔出 4 个窗口，每个窗口只有一个赢家，就是最大的那个数，梯度 `1` 全归它。其余的数没有传下去，影响不了损失，所以它们的梯度都是 `0`。
#
# </div>
# <div lang="en">
#
# Yes, they are the same places. In the picture, the thick lines mark 4 windows. Each window has one winner, its
# largest number, and this number gets the whole gradient of `1`. The others were not passed on, so they had no
# influence on the loss, and their gradient is `0`.
#
# </div>
#
# ### 练习 07.2：零从哪里来 · Exercise 07.2: Where the zeros come from
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 最大池化在前向传播时就选出了赢家，梯度会回到哪里，那时就定了。所以不等反向传播，你也说得出来。
#
# 写 `pool_mask(features, size)`。它收到池化前的特征图 `features`（批、通道、高、宽）和窗口的边长 `size`，返回一个 `torch.bool` 张量。这个张量和 `features` 形状一样，在 `grad_output` 可能不是 `0` 的地方为 `True`。
#
# - `features` 里可以是任何数，连 `inf` 也可能有；它自己不需要梯度。
# - 有的行和列凑不满一个窗口，池化会丢掉它们。
# - 你在这里也只是推算，所以 `features` 和它的 `.grad` 都保持原样。
#
# </div>
# <div lang="en">
#
# A max pool picks its winners in forward. With that it has also decided where the gradient will come back, because each
# window hands the gradient only to its winner. So you can tell these places from the maps alone, before backward has
# run.
#
# Write `pool_mask(features, size)`, which marks these places. It gets `features`, the maps before the pool (batch,
# channel, height, width), and `size`, the side of a window. It returns a `torch.bool` tensor with the same shape as
# `features`, which is `True` where `grad_output` can differ from `0`.
#
# - `features` may hold any numbers, even `inf`, and it needs no gradient itself.
# - The pool drops rows and columns that do not fill a window.
# - Here, too, you only predict, so leave `features` and its `.grad` as they were.
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
# 反向钩子不光能看，还能改：它返回一个元组，就会替换梯度。完整钩子替换的是 `grad_input`（要有输入需要梯度才行），前置钩子替换的是 `grad_output`。
#
# 换掉哪一个，有什么区别吗？我们先把 `grad_input` 换成零，再把 `grad_output` 换成零。例子里的权重全是 `1`，`x` 是 `6×5`，全是 `2`，损失是输出的和。
#
# 损失是输出的和，所以一个权重的梯度，就是和它相乘的那些输入之和。这样的输入在 6 行里各有一个，都是 `2`。所以没有钩子时，`weight.grad` 里的数都是 `12`。把 `grad_input` 换成零以后，它们是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# A backward hook can do more than look. If it returns a tuple, it replaces gradients: a full hook replaces
# `grad_input`, provided that an input needs a gradient, and a pre-hook replaces `grad_output`.
#
# Does it matter which of the two you replace? Let us put zeros first into `grad_input`, and then into `grad_output`. We
# take a layer whose weights are all `1`, an `x` of `6×5` that holds `2` everywhere, and the sum of the outputs as the
# loss.
#
# With the sum as the loss, the gradient of a weight is the sum of the inputs that this weight is multiplied by. There
# is one such input in each of the 6 rows, and each is `2`. So without a hook, each number in `weight.grad` is `12`.
# What is it once a full hook has put zeros into `grad_input`? **Guess first.**
#
# </div>


# %%
def stop(module, grad_input, grad_output):
    return (torch.zeros_like(grad_input[0]),)  # a tuple of the same length as grad_input


def stop_early(module, grad_output):
    return (torch.zeros_like(grad_output[0]),)


# %%
guess("07.f")

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
twice = nn.Linear(1, 1, bias=False)
nn.init.ones_(twice.weight)
for name, hook in {"no hook": lambda *_: None, "zero grad_input": stop}.items():
    twice.weight.grad = None
    with twice.register_full_backward_hook(hook):
        twice(twice(x[:, :1])).sum().backward()
    print(f"layer(layer(x)), {name}: weight.grad {twice.weight.grad.item()}")

# %% [markdown] tags=["F19"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 你改 `grad_input`，改变的只是接着流向前面各层的梯度。这一次调用里，这一层自己的权重用的是 `grad_output`，照旧得到 `12`。要连权重的梯度一起改，就在前置钩子里改 `grad_output`。
#
# 可是，一层在一次前向传播里也可能运行两次，例如 `layer(layer(x))`。两次用的是同一份权重，所以权重从两次调用各得一份梯度；而第二次的 `grad_input`，就是第一次的 `grad_output`。把它改成零，权重本该从第一次得到的那份也就没了，只剩第二次的：最后两行里，`weight.grad` 从 `24` 变成了 `12`。
#
# </div>
# <div lang="en">
#
# If you change `grad_input`, you change only what flows on to earlier layers. In this call, the gradient of the layer's
# own weights is computed from `grad_output`, which you did not change, and so its numbers are still `12`. To change the
# gradient of the weights too, change `grad_output` in a pre-hook.
#
# But a layer may also run twice in one forward pass, as in `layer(layer(x))`. Both calls use the same weights, so the
# weights get a gradient from each of them. And the `grad_input` of the second call is the `grad_output` of the first.
# If you make it zero, the weights lose what the first call would have brought them, and keep only the part of the
# second. In the last two lines, `weight.grad` falls from `24` to `12`.
#
# </div>
# </div>

# %% [markdown]
# ## 7.7 一次挂到所有模块上 · On all modules at once
#
# <div lang="zh">
#
# 假如你想看每个模块的梯度，也不必一个一个地挂钩子：和 6.10 节一样，反向传播也有全局钩子，只要一个，就管得到所有的模块。它收到的 `grad_input` 和 `grad_output`，和模块自己的完整钩子收到的一样。
#
# **先猜一猜**下面两件事。你用 `layer(input=x)` 按关键字传入 `x`，`grad_input` 里会有什么？还有，前向前置钩子可以只返回一个张量，不写成元组，反向钩子也可以吗？
#
# </div>
# <div lang="en">
#
# Suppose you want to see the gradients of every module. You need not register a hook on each of them: as in section
# 6.10, there are global hooks for backward too, and a single one covers all modules. It receives the same `grad_input`
# and `grad_output` as a module's own full hook.
#
# **Guess first**, twice. What is in `grad_input` when you pass `x` by keyword, as in `layer(input=x)`? And may a
# backward hook return a single tensor instead of a tuple, as a forward pre-hook may?
#
# </div>

# %%
guess("07.g")

# %% tags=["E12"]
net, x = nn.Sequential(nn.Linear(5, 3), nn.ReLU()), torch.ones(6, 5, requires_grad=True)
received = []


def report(module, grad_input, grad_output):
    received.append(grad_input)
    print(f"{type(module).__name__:12} {shapes(grad_input)} {shapes(grad_output)}")


with register_module_full_backward_hook(report), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that no input needs a gradient
    net(x).sum().backward()
    print("by keyword, layer(input=x):")
    net[0](input=x).sum().backward()

# %%
guess("07.h")

# %% tags=["E12"]
refused = False
with register_module_forward_pre_hook(lambda module, args: args[0]):
    print("a forward pre-hook's tensor is wrapped into a tuple:", tuple(net(x).shape))
with register_module_full_backward_hook(lambda module, grad_input, _: grad_input[0]):
    try:
        net(x).sum().backward()
    except RuntimeError as error:
        refused = True
        print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 你按关键字传入 `x` 时，`grad_input` 是空的，因为它只管位置参数。
#
# 两种钩子能返回的东西也不同。普通的前向前置钩子返回的单个张量，PyTorch 会包成元组。反向钩子返回单个张量时，PyTorch 却把它当成元组，一行算一项。这里的张量有 `6` 行，而这一层只有一个输入，元组本该只有一项，于是报错。
#
# 对完整钩子来说，模块返回什么也有关系。许多语言模型返回的不是张量，而是字典或数据类（dataclass），那会怎样？我们在一个返回字典的模块上挂完整反向钩子，做一次反向传播。钩子会触发几次？**先猜。**
#
# </div>
# <div lang="en">
#
# If you pass `x` by keyword, `grad_input` is empty, because it covers positional arguments only.
#
# The two kinds of hooks also differ in what they may return. If a plain forward pre-hook returns a single tensor,
# PyTorch wraps it into a tuple. If a backward hook returns one, PyTorch takes the tensor itself for the tuple and each
# of its rows for an entry. The tensor here has `6` rows, but the layer has one input. PyTorch therefore expects one
# entry, and raises an error.
#
# For a full hook, it also matters what the module itself returns. Many language models return a dictionary or a
# dataclass instead of a tensor. What happens then? We attach a full backward hook to a module that returns a
# dictionary, and run backward once. How often will the hook fire? **Guess first.**
#
# </div>


# %%
guess("07.i")


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
# 钩子一次也不触发，只有一句警告。完整反向钩子要求输出是张量，或者是直接装着张量的元组，因为 PyTorch 不会再往里找。这里的张量却藏在字典里。
#
# 输出是别的样子时，就用前向钩子，在里面给输出中的张量挂张量钩子（7.8 节）。
#
# </div>
# <div lang="en">
#
# The hook never fires, and you get only a warning. For a full backward hook, the output must be a tensor or a tuple
# with tensors directly in it, because PyTorch searches no deeper. Here the tensor is hidden in a dictionary.
#
# For any other output, use a forward hook, and let it register tensor hooks on the tensors inside (section 7.8).
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
# 梯度为正的数支持一个判断，因为它变大，判断就更有把握。要让反向传播只顺着这样的数往回走，就在 ReLU 那里只放过正的梯度。
#
# 写 `guided_relu(model)`，返回所有句柄的列表。此后在反向传播时，`model` 里的每个 `nn.ReLU` 只放过正的梯度，负的变成 `0`。
#
# - ReLU 自己的规则照旧，捷径也照旧，例如 `h + relu(h)`。
# - `eval()` 之后、半精度时都要这样，`torch.no_grad()` 里也不能出错。
# - 你遇到的 `nn.ReLU` 都不是就地的（就地的见 7.8 节），梯度都是有限的数。
# - 不要用旧式钩子，因为它的 `grad_input` 不可信。
#
# </div>
# <div lang="en">
#
# Numbers with a positive gradient speak for a decision, because the decision would get stronger if they grew. To follow
# only these, you let only positive gradients pass back through each ReLU.
#
# Write `guided_relu(model)`, which sets this up and returns all handles in a list. After the call, every `nn.ReLU` in
# `model` passes only positive gradients in backward, and negative ones become `0`.
#
# - ReLU keeps its own rule.
# - A shortcut such as `h + relu(h)` keeps its gradient.
# - All this holds after `eval()` and in half precision too, and nothing may crash under `torch.no_grad()`.
# - Use no legacy hooks, since their `grad_input` cannot be trusted.
# - All gradients are finite, and no `nn.ReLU` works in place (section 7.8).
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
# 许多现成的模型用 `nn.ReLU(inplace=True)`。它为了省内存，直接改写前一层的输出。
#
# 这时完整钩子还能用吗？万一报错，也不该怪钩子做的事，所以我们挂一个什么也不做的完整钩子，先挂在 ReLU 前面的那一层上，再挂在 ReLU 自己身上。哪里会报错？**先猜。**
#
# </div>
# <div lang="en">
#
# Many ready-made models use `nn.ReLU(inplace=True)`, which saves memory by overwriting the output of the layer before
# it.
#
# Can a full hook cope with that? If there is an error, we do not want to blame it on what the hook does, so we take a
# hook that does nothing at all. We attach it first to the layer before the ReLU, then to the ReLU itself. Where will
# there be an error? **Guess first.**
#
# </div>


# %%
guess("07.j")


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
# 完整钩子什么也不做，却在两处都崩溃了，反向前置钩子也一样。这是怎么回事？
#
# PyTorch 要知道梯度什么时候经过一层的边界。为此，它让这一层的输入和输出都经过自己的一个函数，换成视图（view）。视图和原来的张量共享内存，历史里却多了这个函数。就地改写会重写历史，这个函数就丢了，所以 PyTorch 不允许。就地 ReLU 却偏要改写，于是报错。
#
# 张量钩子不需要视图，所以你可以换一个办法：挂一个前向钩子，在里面给输出挂张量钩子。为了比较，我们也调用 `retain_grad`。张量钩子看到一个梯度，`retain_grad` 存下一个。哪一个和没有就地操作时一样？**先猜。**
#
# </div>
# <div lang="en">
#
# With the full hook the run crashes in both places, although the hook does nothing, and with a backward pre-hook it
# crashes as well. What goes wrong?
#
# Such a hook watches a whole layer, so PyTorch has to notice when a gradient crosses the border of this layer. For
# that, it passes the inputs and outputs of the layer through a function of its own, which turns them into views. A view
# shares its memory with the original tensor, but it has a history of its own, and this history now contains PyTorch's
# function. A change in place would rewrite the history, and the function would be lost. That is why PyTorch forbids it,
# and it is just what the in-place ReLU tries to do.
#
# A tensor hook needs no view, so it offers a way out: you use a forward hook, and let it register a tensor hook on the
# output. For comparison, we also call `retain_grad` on the output. Which of the two gives the gradient that the net has
# without the in-place operation? **Guess first.**
#
# </div>


# %%
guess("07.k")


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
# 像 `Linear` 这样的层，后面有就地操作时，别用完整反向钩子，改用前向钩子里的张量钩子。它留在改写之前的值那里，所以给出的梯度是对的。
#
# `retain_grad` 却会跟着张量走到 ReLU 之后（4.6 节），给出的是另一个梯度。
#
# </div>
# <div lang="en">
#
# If an in-place operation follows a layer such as `Linear`, use a tensor hook registered inside a forward hook
# instead of a full backward hook. The tensor hook stays with the value before the change, and so its gradient is
# right.
#
# `retain_grad`, however, moves with the tensor to the other side of the ReLU (section 4.6) and gives another
# gradient.
#
# </div>
# </div>
#
# <div lang="zh">
#
# 还有一个陷阱。有些层的输出本身就是视图，例如 `nn.Flatten`。下一层若是就地的，挂在它上面的张量钩子也可能不触发，而且没有任何报错。
#
# 这是因为，有人就地改写视图时，PyTorch 会重写它的历史，先前挂上的张量钩子却留在旧的历史里。经过改写的梯度走新的历史，到不了这个钩子。
#
# 遇到这样的层，就让前向钩子返回 `output.clone()`。这样，后面的就地操作改写的是拷贝，视图没有变，钩子照常触发。
#
# </div>
# <div lang="en">
#
# One trap is left. Some layers, such as `nn.Flatten`, return a view themselves. If the next layer works in place, even
# the tensor hook may then never fire, and no error warns you.
#
# Why does it not fire? When a view is changed in place, PyTorch rewrites its history. A tensor hook that was registered
# before the change stays behind in the old history. But the gradient that passes through the change goes by the new
# history, and so it never reaches this hook.
#
# So let the forward hook return `output.clone()` for such a layer. Then the in-place operation overwrites the copy, the
# view stays as it was, and the hook fires as usual.
#
# </div>

# %% [markdown]
# ### 练习 07.4：用张量钩子修好它 · Exercise 07.4: Mend it with a tensor hook
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 你想看 `Linear` 输出的梯度，后面却有一个就地 ReLU。完整反向钩子在这里会出错，张量钩子却不受影响。现在就把这个办法做成一个工具。
#
# 写 `watch_output(layer, seen)`，返回句柄。此后每次反向传播，`layer` 输出的梯度都要原样放到列表 `seen` 的末尾。`layer` 的输出不是视图，所以这里不用 `clone()`。
#
# - 梯度全是零也要放，因为这也值得知道。
# - 同一个模型不训练时也要运行，所以 `torch.no_grad()` 里不能出错，层冻结了、输出不需要梯度的时候也不能出错。
# - 你只是观察，所以输出和流过的梯度都不变。
#
# </div>
# <div lang="en">
#
# You want to see the gradient at the output of a `Linear`, but an in-place ReLU follows. There a full backward hook
# fails, while a tensor hook still works, as you have just seen. So let us turn the tensor hook into a tool that you can
# use again and again.
#
# Write `watch_output(layer, seen)`, which begins to watch a layer and returns a handle. From then on, each backward
# pass appends the gradient of the output of `layer` to the end of the list `seen`, just as it is. You need no `clone()`
# here, because the output of `layer` is no view.
#
# - Append every gradient, even if it is all zeros, because that is worth knowing too.
# - You only watch, so the outputs and the gradients that flow through stay unchanged.
# - The same model is also run without training. So nothing may crash under `torch.no_grad()`, nor when the layer is
#   frozen and its output needs no gradient.
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
# 梯度是 `0` 的地方，前面的层从中学不到什么。那么梯度往回穿过一个小的卷积网络时，还剩下多少？这可以用完整钩子来量。我们给每一层挂一个完整钩子，记下 `grad_input` 里不是 `0` 的占多少。做一次反向传播，就看得出每种层放过多少。
#
# **先猜一猜**：梯度往回穿过一个 `2×2` 的最大池化之后，最多还有多少不是 `0`？穿过卷积之后呢？
#
# </div>
# <div lang="en">
#
# Where a gradient is `0`, earlier layers learn nothing from it. So how much of a gradient survives its way back through
# a small convolutional net? Full hooks can measure this. We put one on every layer and let it note the share of
# `grad_input` that is not `0`. A single backward pass is enough to see how much each kind of layer lets through.
#
# **Guess first**: once the gradient has gone back through a `2×2` max pool, how much of it can still be different
# from `0`? And after a convolution?
#
# </div>

# %%
guess("07.l")

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
# 图里看得到每种层的规则：池化的每个窗口只有一个赢家，所以最多剩四分之一不是 `0`；ReLU 再减去一些；卷积又把梯度摊到几乎所有的位置，因为每个输入都参与许多输出。
#
# 为什么只是「几乎」？仍是 `0` 的位置，多半在下边和右边的边缘。那里的数只传到某些行和列，而这些行和列会被后面的池化丢掉，所以影响不了损失。
#
# 最后一个问题来自微调：一层要继续学，它前面的层却不该再动。按 7.6 节，让完整钩子把 `grad_input` 换成零，似乎就够了。可是钩子也可以返回 `(None,)`，那样就根本没有梯度从这一层往回流。（单独返回一个 `None`，什么也不改。）
#
# 零和 `(None,)` 有区别吗？我们各用 AdamW 训练 5 步，它带权重衰减。哪种情况下，第一层的权重会移动？**先猜。**
#
# </div>
# <div lang="en">
#
# The picture shows what each kind of layer does. A pool lets at most a quarter come back, because only one number in
# four is a winner. A ReLU takes away some more. Then a convolution spreads the gradient over nearly all places again,
# because each of its inputs has a part in many outputs.
#
# Why only nearly? The places that stay `0` lie mostly along the bottom and right edges: numbers there reach only rows
# and columns that a later pool drops, and have no influence on the loss.
#
# The last question comes from fine-tuning. You want one layer to go on learning, while the layers before it do not
# move. Section 7.6 suggests a full hook that puts zeros into `grad_input`. But the hook may also return `(None,)`, and
# then no gradient at all flows on from this layer. (A plain `None` changes nothing.)
#
# Does it matter which of the two you choose? We try both for 5 steps with AdamW, which has weight decay. In which case
# will the weight of the first layer move? **Guess first.**
#
# </div>


# %%
guess("07.m")


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
# 梯度是零，权重不一定就不动。优化器看到有梯度，照样做权重衰减，这里的权重移动了 0.0285。`.grad` 是 `None` 的参数，优化器会跳过。
#
# 所以要让前面的层不动，就返回 `(None,)`，或者设 `requires_grad_(False)`。
#
# 返回 `(None,)` 也不是一定有用：如果梯度往前还要经过别的反向钩子或自定义的 `autograd.Function`，到了那里可能又补成零，优化器就照样更新。
#
# </div>
# <div lang="en">
#
# A gradient of zeros need not keep a weight still. The optimizer sees a gradient and applies weight decay all the
# same, and here the weight moved by 0.0285. But it skips every parameter whose `.grad` is `None`.
#
# So to keep earlier layers where they are, return `(None,)` or set `requires_grad_(False)`.
#
# Take care if you return `(None,)`: a backward hook or a custom `autograd.Function` in an earlier layer may turn it
# into zeros again.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 07.5：让梯度停在一层 · Exercise 07.5: Stop the gradient at a layer
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 微调时，你有时只想训练一层，让它前面的都不动。那就让梯度停在这一层。
#
# 写 `stop_gradient(layer)`，返回句柄。`layer` 的权重照常得到梯度，而它前面的层得不到。你可以放心：`layer` 在每次前向传播里只运行一次，输入都是张量，按位置传入。
#
# - `layer` 可能有几个输入，梯度从哪一个都不能往回走。
# - 前面各层的 `.grad` 仍是 `None`。填上零也不行，因为那样权重衰减还是会移动它们。
# - 你断开的只是穿过 `layer` 的这条路。如果有捷径绕过它，例如 `y = layer(h) + h`（3.7 节），捷径上的梯度照旧。
# - `eval()` 之后也一样。
# - 同一个模型不训练时也要运行，所以输入不需要梯度时、`torch.no_grad()` 里都不能出错。
# - 你的钩子不要自己再运行一次 `layer`，否则其中的 dropout 会换一个掩码。
#
# </div>
# <div lang="en">
#
# In fine-tuning you sometimes want to train one layer and keep everything before it as it is. For that, the gradient
# may come as far as this layer, but no further.
#
# Write `stop_gradient(layer)`, which stops the gradient there and returns the handle. The weights of `layer` get their
# gradient as before, while the layers before it get none. You can count on this: `layer` runs once in each forward
# pass, and all its inputs are tensors, given by position.
#
# - The `.grad` of the layers before stays `None`. It is not enough to fill it with zeros, because weight decay would
#   still move these layers.
# - `layer` may have several inputs, and no gradient passes back through any of them.
# - You close only the way through `layer`. A shortcut around it keeps its gradient, as in `y = layer(h) + h` (section
#   3.7).
# - All this holds after `eval()` too.
# - The same model is also run without training. So nothing may fail under `torch.no_grad()`, nor when the input needs
#   no gradient.
# - Your hook must not run `layer` again, or a dropout inside would draw another mask.
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
# 1. 看模块的梯度，用 `register_full_backward_hook`，别用旧式的 `register_backward_hook`。
# 2. `grad_output` 是输出的梯度，`grad_input` 是输入的梯度，两个都是元组。`grad_input` 里可能有 `None`；损失没有用到其中一个输出时，`grad_output` 里也会有。
# 3. 在每个窗口里，最大池化只把梯度交给赢家。
# 4. 反向钩子返回元组，可以替换梯度：改 `grad_input`，不影响这一层在这次调用里的权重；改 `grad_output`，就会影响。梯度是 `None` 的参数，优化器会跳过；梯度是零的，不会跳过。
# 5. 后面有就地操作，或者输出是字典时，就在前向钩子里挂张量钩子。
#
# </div>
# <div lang="en">
#
# 1. To see the gradients of a module, use `register_full_backward_hook`, not the legacy `register_backward_hook`.
# 2. `grad_output` is the gradient of the output, and `grad_input` is that of the input. Both are tuples, and
#    `grad_input` may hold `None`. So may `grad_output`, if the loss does not use one of several outputs.
# 3. In each window, a max pool hands the gradient only to the winner.
# 4. By returning a tuple, a backward hook can replace gradients. A change of `grad_input` spares the weights of the
#    layer in that call, but a change of `grad_output` reaches them. An optimizer skips a parameter whose gradient is
#    `None`, but not one whose gradient is zero.
# 5. If an in-place operation follows, or the output is a dictionary, register tensor hooks inside a forward hook.
#
# </div>

# %% [markdown]
# ## 7.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 完整钩子收到的 <code>grad_input</code> 为什么会是 <code>(None,)</code>？</summary>因为它唯一的输入不需要梯度。有几个输入张量、其中只有一部分需要梯度时，其余张量对应的项全是零。</details>
# <details><summary>2. 怎样让前面的层收不到梯度，而本层照常学习？</summary>在本层上挂一个完整钩子，让它返回一个元组，每一项是零，或者是 <code>None</code>。只有用 <code>None</code>，权重衰减才会停下。</details>
# <details><summary>3. 完整钩子遇上 <code>nn.ReLU(inplace=True)</code> 报错，怎么办？</summary>改用前向钩子，在里面给输出挂张量钩子。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why can a full hook receive <code>(None,)</code> as <code>grad_input</code>?</summary>Because its one input needs no gradient. If only some of several input tensors need one, the entries of the other tensors are zeros.</details>
# <details><summary>2. How do you stop the gradient from reaching earlier layers while this one goes on learning?</summary>Register a full hook on this layer that returns a tuple whose entries are zeros, or <code>None</code>. Weight decay stops only with <code>None</code>.</details>
# <details><summary>3. A full hook raises an error at <code>nn.ReLU(inplace=True)</code>. What can you do?</summary>Use a forward hook instead, and let it register a tensor hook on the output.</details>
# </div>

# %% [markdown]
# ## 7.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# Captum 是一个解释神经网络的库。它的 `GuidedBackprop` 做的就是练习 07.3 的事，不过有捷径绕过 ReLU 时，它先把两条路的梯度加起来，再去掉负的。
#
# 遇到就地的 ReLU，它也要能用，所以它没有用完整反向钩子，用的是你在 7.8 节见过的办法：先在层上挂一个前向钩子，等层运行了，再由它给输出挂上张量钩子。对输入也照样做，只是改由前向前置钩子来挂。想看它怎么写，就在源代码里搜索 `_register_backward_hook`。
#
# 下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# Captum is a library that explains what neural networks do. Its `GuidedBackprop` does the same as exercise 07.3,
# except where a shortcut leads around a ReLU: there it adds the gradients of both ways first, and then drops what is
# negative.
#
# Its method should also work with in-place ReLUs, so Captum uses no full backward hook, but what you saw in section
# 7.8: a forward hook registers a tensor hook on the output. In the same way, a forward pre-hook registers one on the
# input. If you want to see how a much-used library writes such hooks, search the source of Captum for
# `_register_backward_hook`.
#
# Below you see your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
