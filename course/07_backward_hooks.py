# %% tags=["setup"]
import textwrap
import warnings
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from hookedu import LanguageToggle, check, hint, progress, solution

LanguageToggle()

# %% [markdown]
# ## 7.1 一个答非所问的钩子 · A hook that answers the wrong question
#
# <div lang="zh">
#
# 第 05 课的小网络：一个卷积（两个通道，权重全是 `1` 和全是 `2`），后面是 `2×2` 的最大池化。输入是一张 `1×1×4×4`、
# 全是 `1` 的图，输出和随机目标比较，用 L1 损失。
#
# 旧教程用 `register_backward_hook` 看梯度。钩子收到的 `grad_input`，顾名思义应该是**输入**的梯度，而输入只有一个。
#
# **先猜一猜**：下面会打印几行 `in grad_input`，各是什么形状？
#
# </div>
# <div lang="en">
#
# The net of lesson 05: a convolution (two channels, weights all `1` and all `2`), then a `2×2` max pool. The input
# is a `1×1×4×4` picture of ones; what comes out is compared with a random target by L1 loss.
#
# Old tutorials watch gradients with `register_backward_hook`. By its name, the `grad_input` that the hook receives is the
# gradient of the **input**, and there is only one input.
#
# **Guess first**: how many lines `in grad_input` will be printed, and of which shapes?
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
        print("in grad_input:", None if grad is None else tuple(grad.shape))


torch.manual_seed(0)
target, net = torch.rand(1, 2, 1, 1), small_net()
with warnings.catch_warnings(record=True) as caught, net[0].register_backward_hook(look):
    warnings.simplefilter("always")
    F.l1_loss(net(torch.ones(1, 1, 4, 4)), target).backward()
    print(textwrap.fill(f"{caught[0].category.__name__}: {caught[0].message}", 110))
    try:
        net[0].register_full_backward_hook(look)
    except RuntimeError as error:
        print("RuntimeError:", error)

# %% [markdown] tags=["F16"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 第一行才是输入（它不需要梯度），另外两行是权重和偏置的梯度：旧式钩子挂在一个运算上，而不在模块上。
# 在 torch 2.15.0 上，它会警告，但措辞不合这里：什么也没少（missing），反而多出两项。同一模块上两种不能混用。
#
# </div>
# <div lang="en">
#
# Only the first line is the input, which needs no gradient; the other two belong to weight and bias. The legacy hook
# sits on an operation, not on the module. On torch 2.15.0 it warns, in words that do not fit here: nothing is missing, two
# entries are too many. One module cannot have both kinds.
#
# </div>
# </div>
#
# ## 7.2 完整反向钩子 · The full backward hook
#
# <div lang="zh">
#
# 换成 `register_full_backward_hook`，钩子同样收三个参数。**先猜**：`6×5` 进入 `Linear(5, 3)`，两个形状各是什么？
#
# </div>
# <div lang="en">
#
# Use `register_full_backward_hook` instead; its hook takes the same three arguments. **Guess**: `6×5` goes into `Linear(5, 3)`; what are the two shapes?
#
# </div>


# %%
def shapes(grads):
    return tuple(None if grad is None else tuple(grad.shape) for grad in grads)


def report(module, grad_input, grad_output):
    print("   hook on", module)
    print("   grad_input: ", shapes(grad_input))
    print("   grad_output:", shapes(grad_output))


layer = nn.Linear(5, 3)
x = torch.ones(6, 5, requires_grad=True)
with layer.register_full_backward_hook(report):
    print("forward")
    y = layer(x)
    print("backward")
    y.sum().backward()

# %% [markdown]
# <div lang="zh">
#
# 梯度的形状总是与它所属的张量相同。`grad_output` 属于层的**输出**，`grad_input` 属于**输入**：名字说的是前向传播。
# 两个都是元组，因为一层可以有几个输入和输出。
#
# </div>
# <div lang="en">
#
# A gradient has the shape of its own tensor. `grad_output` belongs to the layer's **output**, `grad_input` to its
# **input**: the names speak of forward. Both are tuples, since a layer may have several of each.
#
# </div>
#
# ## 7.3 没有人要的梯度 · A gradient that nobody needs
#
# <div lang="zh">
#
# 现在 `x` 不需要梯度，训练时第一层就是这样。**先猜**：钩子还触发吗？那时 `weight.grad` 写好了吗？随后再看需要梯度的 `x`，以及两个输入里只有一个需要的情形。
#
# </div>
# <div lang="en">
#
# Now `x` needs no gradient, as with the first layer in training. **Guess**: does the hook still fire? And is
# `weight.grad` filled by then? Then an `x` that needs one, and
# two inputs of which one does.
#
# </div>


# %% tags=["F18"]
def report(module, grad_input, grad_output):
    print("   grad_input: ", shapes(grad_input))
    print("   grad_output:", shapes(grad_output))
    print("   weight.grad:", "None" if module.weight.grad is None else "filled")


for needs in (False, True):
    print(f"x.requires_grad is {needs}")
    layer = nn.Linear(5, 3)
    x = torch.ones(6, 5, requires_grad=needs)
    with warnings.catch_warnings(record=True) as caught, layer.register_full_backward_hook(report):
        warnings.simplefilter("always")
        layer(x).sum().backward()
    print("   afterwards, weight.grad:", tuple(layer.weight.grad.shape))
    for warning in caught:
        print(f"   {warning.category.__name__}:", str(warning.message).split(" See ")[0])

print("two inputs, only the first needs a gradient")
layer = nn.Bilinear(5, 5, 3)
layer.register_full_backward_hook(lambda m, grads, _: print("   not all 0:", [bool(g.any()) for g in grads]))
layer(x, torch.ones(6, 5)).sum().backward()

# %% [markdown] tags=["F18"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 钩子照样触发，收到 `(None,)`：没有输入的梯度可等，`grad_output` 一到它就触发，`weight.grad` 还没写好。输入需要梯度时，它要等
# `grad_input`，那时 `weight.grad` 已经写好。别依赖这个先后，也别对 `None` 求形状。
#
# </div>
# <div lang="en">
#
# It fires all the same, with `(None,)`. With no input gradient to wait for, it fires once `grad_output` arrives, before
# `weight.grad` is filled. Else it waits for `grad_input`, and `weight.grad` comes first. Never rely on the order, nor ask
# `None` for a shape.
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
# 回到 7.1 的网络，把三种反向钩子摆在一起。第三种是**反向前置钩子**：它在这一层的反向传播之前触发，
# 只收到 `grad_output`。
#
# **先猜**：谁的 `grad_input` 可信？`grad_output` 里有几个数不是 `0`？
#
# </div>
# <div lang="en">
#
# Back to the net of 7.1, with the three kinds of backward hooks side by side. The third is the **backward pre-hook**: it
# fires before backward goes through this layer, and receives `grad_output` only.
#
# **Guess**: whose `grad_input` can you trust? How many numbers in `grad_output` are not `0`?
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
        F.l1_loss(net(torch.ones(1, 1, 4, 4)), target).backward()
    return seen


for kind in ("register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"):
    seen = look_with(kind)
    print(kind)
    print("   grad_input: ", seen["grad_input"])
    print("   grad_output:", seen["grad_output"][0].tolist())

# %% [markdown]
# <div lang="zh">
#
# `grad_input` 只有完整钩子的可信；三者的 `grad_output` 相同。为什么是 `0.5`？损失是 2 个差的平均，各占一半。为什么只在左上角？卷积的输出全是
# `9`（或 `18`），一样大时池化取**第一个**，梯度只回到那里。
#
# </div>
# <div lang="en">
#
# Trust the `grad_input` of the full hook only. All three show the same `grad_output`. Why `0.5`? The loss is the mean of 2 differences, half for each. Why only top left?
# The convolution gives `9` everywhere (or `18`); among equals the pool takes the **first**, and the gradient returns
# only there.
#
# </div>
#
# ## 7.5 零从哪里来 · Where the zeros come from
#
# <div lang="zh">
#
# 换一张随机数字的图，看梯度去哪里。`return_indices=True` 会说出池化取了谁。
#
# </div>
# <div lang="en">
#
# Now a picture of random numbers. Where does the gradient go? `return_indices=True` tells which ones the pool took.
#
# </div>

# %% tags=["E17"]
torch.manual_seed(3)
net, seen = small_net(), {}
keep_output = net[0].register_forward_hook(lambda m, args, output: seen.update(output=output.detach()))
keep_grad = net[0].register_full_backward_pre_hook(lambda m, grads: seen.update(grad_output=grads[0]))
with keep_output, keep_grad:
    net(torch.randint(0, 10, (1, 1, 6, 6)).float()).sum().backward()

index = F.max_pool2d(seen["output"], 2, return_indices=True)[1]
print("the pool took, counted row by row:", index[0, 0].flatten().tolist())
print("grad_output is not 0 at:          ", seen["grad_output"][0, 0].flatten().nonzero().flatten().tolist())

fig, axes = plt.subplots(1, 2, figsize=(6, 3.2), layout="constrained")
for ax, (name, values) in zip(axes, seen.items(), strict=True):
    ax.imshow(values[0, 0], cmap="viridis" if name == "output" else "Greens", alpha=0.6)
    for row, column in torch.cartesian_prod(torch.arange(4), torch.arange(4)).tolist():
        ax.text(column, row, f"{values[0, 0, row, column]:g}", ha="center", va="center", fontsize=13)
    ax.axhline(1.5, color="black", lw=2)
    ax.axvline(1.5, color="black", lw=2)
    ax.set(title=f"{name}, channel 0", xticks=[], yticks=[])

# %% [markdown]
# <div lang="zh">
#
# 粗线围出 4 个窗口，每个窗口一个赢家，梯度 `1` 全归它。
#
# </div>
# <div lang="en">
#
# The thick lines make 4 windows. Each has one winner, which gets the whole gradient of `1`.
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
# 反向钩子返回一个元组，就会替换梯度。完整钩子替换的是 `grad_input`，前置钩子替换的是 `grad_output`。
#
# 下面两个都换成零。**先猜**：`x.grad` 和 `weight.grad` 各剩什么？
#
# </div>
# <div lang="en">
#
# A backward hook that returns a tuple replaces gradients: a full hook replaces `grad_input`, a pre-hook `grad_output`.
#
# Below, each puts zeros in their place. **Guess**: what remains of `x.grad` and of `weight.grad`?
#
# </div>

# %% tags=["F19"]
layer = nn.Linear(5, 3)
nn.init.ones_(layer.weight)
x = torch.full((6, 5), 2.0, requires_grad=True)


def stop(module, grad_input, grad_output):
    return (torch.zeros_like(grad_input[0]),)  # a tuple of the same length as grad_input


def stop_early(module, grad_output):
    return (torch.zeros_like(grad_output[0]),)


def gradients():
    x.grad = layer.weight.grad = None
    layer(x).sum().backward()
    return f"x.grad {x.grad[0].tolist()}, weight.grad {layer.weight.grad[0].tolist()}"


print("no hook:          ", gradients())
with layer.register_full_backward_hook(stop):
    print("zero grad_input:  ", gradients())
with layer.register_full_backward_pre_hook(stop_early):
    print("zero grad_output: ", gradients())

# %% [markdown] tags=["F19"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 改 `grad_input`，只改继续往回流的；这一层的权重用的是 `grad_output`，照旧拿到自己那份。要连权重一起改，就改 `grad_output`。
#
# </div>
# <div lang="en">
#
# Changing `grad_input` changes only what flows on to earlier layers; the layer's own weights get their share from
# `grad_output`, as before. To change that too, change `grad_output`.
#
# </div>
# </div>
#
# ## 7.7 一次挂到所有模块上 · On all modules at once
#
# <div lang="zh">
#
# 全局钩子（6.10 节）也有反向传播用的。**先猜**：返回一个张量，不写成元组，行不行？
#
# </div>
# <div lang="en">
#
# Global hooks (section 6.10) exist for backward too. **Guess**: may such a hook return a tensor instead of a tuple?
#
# </div>

# %% tags=["E12"]
from torch.nn.modules.module import register_module_forward_pre_hook, register_module_full_backward_hook

net = nn.Sequential(nn.Linear(5, 3), nn.ReLU())
x = torch.ones(6, 5, requires_grad=True)


def report(module, grad_input, grad_output):
    print(f"{type(module).__name__:12} {shapes(grad_input)} {shapes(grad_output)}")


with register_module_full_backward_hook(report):
    net(x).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print("by keyword, layer(input=x):")
        net[0](input=x).sum().backward()

with register_module_forward_pre_hook(lambda module, args: args[0]):
    print("a forward pre-hook's tensor is wrapped into a tuple:", tuple(net(x).shape))
with register_module_full_backward_hook(lambda module, grad_input, grad_output: grad_input[0]):
    try:
        net(x).sum().backward()
    except RuntimeError as error:
        print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 完整反向钩子，不论是不是全局的，`grad_input` 只含位置参数。前向前置钩子返回的张量会被包成元组，反向钩子返回的不会，长度不对就报错。
#
# </div>
# <div lang="en">
#
# In a full backward hook, global or not, `grad_input` holds only positional arguments. A tensor that a forward pre-hook
# returns is wrapped into a tuple, a backward hook's is not: a wrong length fails.
#
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
# 挂一个什么也不做的钩子，ReLU 换成 `inplace=True`，许多现成模型都这样写。**先猜**：挂在前一层会怎样？挂在 ReLU 自己身上呢？
#
# 再往下：改用前向钩子，在里面给输出挂一个张量钩子；为了比较，也调用 `retain_grad`。
#
# </div>
# <div lang="en">
#
# We attach a hook that does nothing, and the ReLU becomes `inplace=True`, as in many ready-made models. **Guess**: what
# happens with the hook on the layer before, and what with it on the ReLU itself?
#
# Further down: a forward hook instead, which registers a tensor hook on the output; and, to compare, `retain_grad`.
#
# </div>


# %% tags=["F17"]
def net_with(inplace):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(inplace=inplace), nn.Linear(4, 1))


def nothing(module, *grads):
    pass


x = torch.ones(2, 5, requires_grad=True)
full, before = "register_full_backward_hook", "register_full_backward_pre_hook"
for inplace, kind, place in ((False, full, 0), (True, full, 0), (True, full, 1), (True, before, 0)):
    net = net_with(inplace)
    with getattr(net[place], kind)(nothing):
        print(f"inplace={inplace}: {kind} on {net[place]}")
        try:
            net(x).sum().backward()
            print("   fine")
        except RuntimeError as error:
            print("   RuntimeError:", str(error).split(". ")[0])


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
# 完整钩子把输入和输出都变成视图（view：与原张量共享内存），就地改它被禁止。所以钩子挂在就地 ReLU 自己身上也会崩溃，反向前置钩子也一样。
# 张量钩子认的是改动之前的值；`retain_grad` 会跟到 ReLU 之后（4.6 节）。
#
# </div>
# <div lang="en">
#
# A full hook turns input and output into views (sharing memory), which may not change in place. So it crashes on the
# in-place ReLU itself too, as does a backward pre-hook. A tensor hook stays with the old value; `retain_grad` moves
# behind the ReLU (section 4.6).
#
# </div>
# </div>
#
# ### 练习 07.4：用张量钩子修好它 · Exercise 07.4: Mend it with a tensor hook
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `watch_output(layer, seen)`：每次反向传播，把 `layer` 输出的梯度原样放到列表 `seen` 的末尾，全是零也放，哪怕后面是就地 ReLU。
# `torch.no_grad()` 里也不能出错，输出和流过的梯度都不变。返回句柄。
#
# </div>
# <div lang="en">
#
# Write `watch_output(layer, seen)`: each backward appends the gradient of `layer`'s output, even all zeros, to list
# `seen`, despite an in-place ReLU behind. No crash under `torch.no_grad()`; outputs and gradients stay
# unchanged. Return the handle.
#
# </div>


# %% exercise="07.4"
def watch_output(layer, seen):
    """把 layer 输出的每个梯度放进 seen，不怕后面的就地操作；返回句柄。

    Put every gradient of layer's output into seen, whatever happens in place behind it; return the handle.
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
# 一个小卷积网络，每层挂一个完整钩子，记下 `grad_input` 里不是 `0` 的比例。一次反向传播就看出每层的规则：
# 池化至多留下四分之一，ReLU 再减一些，卷积又把它摊到各处。
#
# </div>
# <div lang="en">
#
# A small convolutional net with a full hook on each layer, which notes how much of `grad_input` is not `0`. One backward pass
# shows each layer's rule: a quarter at most survives a pool, a ReLU takes some more, a convolution spreads it out again.
#
# </div>

# %%
torch.manual_seed(0)
blocks = [(1, 8), (8, 16)]
layers = [m for i, o in blocks for m in (nn.Conv2d(i, o, 3), nn.ReLU(), nn.MaxPool2d(2))]
net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 5 * 5, 10))
alive = {}


def note(name, module, grad_input, grad_output):
    alive[name] = (grad_input[0] != 0).float().mean().item()


handles = [
    module.register_full_backward_hook(partial(note, f"{name} {type(module).__name__}"))
    for name, module in net.named_children()
]
F.cross_entropy(net(torch.randn(4, 1, 28, 28).requires_grad_()), torch.arange(4)).backward()
for handle in handles:
    handle.remove()
fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
bars = ax.barh(list(alive), list(alive.values()), color="#2166ac")
ax.bar_label(bars, fmt="{:.0%}", padding=3)
ax.set(xlim=(0, 1.15), xlabel="share of grad_input that is not 0", title="top: the input, bottom: the loss")
most = max(share for name, share in alive.items() if "Pool" in name)
print("share that comes back through a pool is at most 1/4:", most <= 0.25)

# %% [markdown]
# ### 练习 07.5：让梯度停在一层 · Exercise 07.5: Stop the gradient at a layer
#
# ●●●● · 8 min
#
# <div lang="zh">
#
# 微调时常有的需求：这一层自己继续学，前面的层不再动。
#
# 写 `stop_gradient(layer)`：`layer` 的权重照常得到梯度，但没有梯度经过它继续往回流，哪个输入都不行（都是张量，按位置传入），
# 梯度是 `inf` 或 `nan`、层在 `eval()` 之后、用的是 `float64`，也都不行。不要就地改：`y = layer(h) + h` 里捷径上的梯度必须照旧（3.7 节）。
# 输入不需要梯度时、`torch.no_grad()` 里也不能出错。返回句柄。
#
# </div>
# <div lang="en">
#
# A common need in fine-tuning: this layer goes on learning, earlier ones stay.
#
# Write `stop_gradient(layer)`: the weights of `layer` get their gradient as before, but none flows back through it, to
# any input (all are tensors, given by position): not an `inf` or `nan` either, nor after `eval()`, nor in `float64`. Not in
# place: in `y = layer(h) + h` the shortcut must keep its gradient (section 3.7). It must work where the input needs no
# gradient, and under `torch.no_grad()`. Return the handle.
#
# </div>


# %% exercise="07.5"
def stop_gradient(layer):
    """让梯度停在 layer：它自己的权重照常得到梯度，前面的层什么也得不到；返回句柄。

    Stop the gradient at layer: its own weights get theirs, what comes before gets none; return the handle.
    """

    ### BEGIN SOLUTION
    def stop(module, grad_input, grad_output):
        return tuple(None if grad is None else torch.zeros_like(grad) for grad in grad_input)

    return layer.register_full_backward_hook(stop)
    ### END SOLUTION


# %% check="07.5"
check("07.5", stop_gradient)

# %% [markdown]
# ## 7.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 用 `register_full_backward_hook`，别用旧式的 `register_backward_hook`。
# 2. `grad_output` 是输出的梯度，`grad_input` 是输入的；都是元组，可以有 `None`。
# 3. 最大池化把梯度只交给每个窗口的赢家。
# 4. 返回元组：改 `grad_input` 不动本层权重，改 `grad_output` 会。
# 5. 后面有就地操作时，在前向钩子里挂张量钩子。
#
# </div>
# <div lang="en">
#
# 1. Use `register_full_backward_hook`, not the legacy `register_backward_hook`.
# 2. `grad_output` is the output's gradient, `grad_input` the input's; both are tuples and may hold `None`.
# 3. A max pool hands the gradient only to the winner of each window.
# 4. Return a tuple: changing `grad_input` spares the layer's weights, changing `grad_output` does not.
# 5. Before an in-place operation, register a tensor hook inside a forward hook.
#
# </div>

# %% [markdown]
# ## 7.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 完整钩子收到的 <code>grad_input</code> 为什么会是 <code>(None,)</code>？</summary>没有一个输入需要梯度。只有一部分需要时，其余各项是全零的张量。</details>
# <details><summary>2. 怎样让前面的层收不到梯度，而本层照常学习？</summary>完整钩子返回一个全是零的元组，替换 <code>grad_input</code>。</details>
# <details><summary>3. 完整钩子遇上 <code>nn.ReLU(inplace=True)</code> 报错，怎么办？</summary>改用前向钩子，在里面给输出挂张量钩子。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why can a full hook receive <code>(None,)</code> as <code>grad_input</code>?</summary>No input needs a gradient. Where only some do, the other entries are tensors of zeros.</details>
# <details><summary>2. How do you stop the gradient from reaching earlier layers while this one goes on learning?</summary>A full hook returns a tuple of zeros to replace <code>grad_input</code>.</details>
# <details><summary>3. A full hook fails before <code>nn.ReLU(inplace=True)</code>. What now?</summary>Use a forward hook that registers a tensor hook on the output.</details>
# </div>

# %% [markdown]
# ## 7.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# Captum 的 `GuidedBackprop` 做的就是练习 07.3 的事。它没有用完整反向钩子：在源码里搜索 `_register_backward_hook`，
# 你会看到 7.8 的办法，前向钩子里挂张量钩子。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# `GuidedBackprop` of Captum does what exercise 07.3 does, and it uses no full backward hook: search its source for
# `_register_backward_hook` and you find the fix from 7.8, tensor hooks set inside a forward hook. Below is your progress so
# far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
