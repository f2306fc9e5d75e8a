# %% tags=["setup"]
import inspect
from collections import Counter, OrderedDict
from contextlib import contextmanager, suppress
from dataclasses import make_dataclass
from functools import partial

import matplotlib.pyplot as plt
import torch
import torchvision
from torch import nn

from hookedu import HookTimeline, LanguageToggle, check, guess, hint, list_hooks, progress, solution

LanguageToggle()

# %% [markdown]
# ## 5.1 两个数的背后 · Behind two numbers
#
# <div lang="zh">
#
# 一个网络答错了，错出在哪一层？光看结果看不出来，因为我们只看得到最后的结果，中间各层算出的东西由一层直接交给下一层，从不露面。当然可以改写模型的代码，让它把这些值也交出来；这一课改用钩子，模型的代码不必改动。
#
# 先看一个很小的网络，小得每个数都能心算。它的第一层是卷积，有两个 `3×3` 的卷积核：一个的权重全是 `1`，另一个全是 `2`，偏置为 `0`。第二层是 `2×2` 的最大池化。输入是一张 `4×4` 的图，每个像素都是 `1`。
#
# 运行之后只出来两个数，因为池化在每个通道里只挑最大的一个。我们想看的，正是它挑选之前的数，也就是卷积的输出。
#
# </div>
# <div lang="en">
#
# Suppose a network gives a wrong answer. In which layer did it go wrong? You cannot tell, because you see only what
# comes out at the end: each layer hands its result straight on to the next. You could rewrite the model so that it
# returns what lies in between as well. With a hook you get the same values without touching the model's code, and this
# lesson shows you how.
#
# We begin with a net so small that you can work out every number in your head. Its first layer is a convolution with
# two `3×3` kernels: all weights of the first kernel are `1`, all weights of the second are `2`, and the bias is `0`.
# The second layer is a `2×2` max pooling. The input is a `4×4` picture of ones.
#
# When we run this net, only two numbers come out, because the pool picks just the largest number of each channel. What
# we would like to see is what it picks from: the output of the convolution.
#
# </div>

# %% tags=["E3"]
conv, pool = nn.Conv2d(1, 2, 3), nn.MaxPool2d(2)
with torch.no_grad():
    conv.weight[0], conv.weight[1] = 1, 2
    conv.bias.zero_()
net, x = nn.Sequential(conv, pool), torch.ones(1, 1, 4, 4)
out = net(x)
print("the net returned:", tuple(out.shape), out.flatten().tolist())

# %% [markdown]
# <div lang="zh">
#
# 这正是**前向钩子**的用处。我们把一个函数挂在模块上，前向传播每运行完一次这个模块，PyTorch 就调用它：`hook(module, args, output)`。这个函数由此拿到三样东西：模块本身、模块收到的位置参数，还有模块算出的输出。
#
# 刚才，整个网络给出了两个数。里面的卷积给出了几个数？钩子在 `args` 里又会找到什么？**先猜。**
#
# </div>
# <div lang="en">
#
# This is what a **forward hook** is for. You write a function and attach it to a module. Each time the forward pass
# has run that module, PyTorch calls your function as `hook(module, args, output)`. So your function gets three things:
# the module itself, the positional arguments that the module received, and the output that it computed.
#
# The net as a whole returned two numbers. How many numbers did the convolution inside the net return? And what does a
# hook find in `args`? **Guess first.**
#
# </div>

# %%
guess("05.a")

# %% tags=["E3"]
seen = []


def keep(module, args, output):
    seen.append((args, output))


handle = conv.register_forward_hook(keep)
net(x)
handle.remove()

args, output = seen[0]
print("the hook saw:", tuple(output.shape), output.flatten().tolist())
print("args is a", type(args).__name__, "of length", len(args))
print("args[0]:", tuple(args[0].shape), "is x itself:", args[0] is x)

# %% [markdown]
# <div lang="zh">
#
# 卷积给出了两张**特征图**，每个通道一张。卷积核在图上横竖都只有两个位置可放，所以每张是 `2×2`。每个窗口里有 9 个 1，所以权重全是 1 的通道得到 9，权重全是 2 的通道得到 18。池化再从每张特征图里取最大的数，这就是我们看到的那两个数。
#
# `args` 是一个**元组**，装着所有的位置参数，哪怕只有一个。所以要取输入，就写 `args[0]`。在这里，它就是我们传进去的那个张量，不是副本。我们的钩子只看不改，所以什么也不返回。
#
# 下面的控件把网络的一次运行拆成一个个事件，让你一步一步地看，其中 `net` 叫 `(model)`，`conv` 叫 `0`，`pool` 叫 `1`。这一课讲的是名叫 `forward` 的事件。`net` 自己也是模块，所以也有一个这样的事件。它排在 `conv` 和 `pool` 的 `forward` 之前，还是之后？选 **预测**，就可以先猜再看。
#
# </div>
# <div lang="en">
#
# The convolution gave two **feature maps**, one for each channel. They are `2×2`, because in each direction the kernel
# fits into the picture in two places. Every window holds 9 ones, so the channel whose weights are all 1 gives 9, and
# the channel whose weights are all 2 gives 18. The pool then takes the largest number of each map, and these are the
# two numbers that we saw.
#
# `args` is a **tuple** of all positional arguments, even if there is only one of them. So the input is `args[0]`, and
# here it is the very tensor that we passed in, not a copy. Since this hook only looks, it returns nothing.
#
# The widget below takes you through one run of the net, event by event. In it, `net` is called `(model)`, `conv` is
# `0` and `pool` is `1`. This lesson is about the events called `forward`. `net` is a module too, so it has one as
# well. Does it come before or after those of `conv` and `pool`? Choose **Predict** to guess before you see it.
#
# </div>

# %% picture="timeline"
HookTimeline(net, x)

# %% [markdown]
# <div lang="zh">
#
# `net` 的 `forward` 排在最后。一个模块要等里面的各层全部算完，自己才算完，而前向钩子报告的正是「算完了」这件事。
#
# </div>
# <div lang="en">
#
# The `forward` of `net` comes last. A forward hook runs when its module is done, and `net` is done only when all the
# modules inside it are.
#
# </div>
#
# ## 5.2 同样的结果，沉默的钩子 · The same result, a silent hook
#
# <div lang="zh">
#
# 写模型的 `forward` 时，我们从来不提钩子。那么，钩子是谁调用的？弄清楚了，才知道钩子什么时候会沉默。为此，我们用几种写法来运行网络，或者只运行其中的卷积，看哪些钩子会触发。
#
# 我们给网络和卷积各挂一个只会计数的钩子，再试三种写法：`net(x)`、`net.forward(x)` 和 `conv.forward(x)`。每一种写法会触发哪些钩子？**先猜。**
#
# </div>
# <div lang="en">
#
# When you write the `forward` of a model, you never mention hooks, and yet they fire. So who calls them? This is worth
# knowing, because it also tells you when a hook will stay silent. To find out, we run the net in two ways, and then
# its convolution alone, and each time see which hooks fire.
#
# The net and the convolution each get a hook that only counts how often it is called. Then we try `net(x)`,
# `net.forward(x)` and `conv.forward(x)`. Which hooks fire in each of the three cases? **Guess first.**
#
# </div>

# %%
guess("05.b")

# %% tags=["F11"]
fired = Counter()


def count(name, module, args, output):
    fired[name] += 1


on_net = net.register_forward_hook(partial(count, "net"))
on_conv = conv.register_forward_hook(partial(count, "conv"))
ways = {"net(x)": net, "net.forward(x)": net.forward, "conv.forward(x)": conv.forward}
with on_net, on_conv:
    for way, run in ways.items():
        fired.clear()
        print(f"{way:15}  largest: {run(x).max().item()}  fired: {dict(fired)}")

# %% [markdown] tags=["F11"]
# <div lang="zh">
#
# 三次的最大值都是 `18`，触发的钩子却不同。模块的 `__call__` 先运行 `forward`，再调用前向钩子，所以 `net(x)` 触发了两个。
#
# `net.forward(x)` 绕过了 `net` 的 `__call__`，`net` 的钩子就没有触发。里面的卷积照常调用，所以还会报告。`conv.forward(x)` 没有调用 `net`，又绕过了卷积的 `__call__`，于是一个也没有触发。
#
# </div>
# <div lang="en">
#
# The largest value is `18` each time, but different hooks fired. The `__call__` of a module runs `forward` and then the
# forward hooks, so with `net(x)` both fired.
#
# `net.forward(x)` skips the `__call__` of `net`, so the hook of `net` stays silent. The convolution inside is called as
# usual, so its hook fires. `conv.forward(x)` skips the `__call__` of the convolution and does not run the net, so
# neither hook fires.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 要运行一个模块，写 `module(x)`。钩子都只看不改的话，`module.forward(x)` 的结果一样，可是这个模块自己的钩子不触发，也没有任何提示。
#
# </div>
# <div lang="en">
#
# To run a module, write `module(x)`. If the hooks only look, `module.forward(x)` gives the same result, but the hooks
# of that module itself do not fire, and there is no error.
#
# </div>
# </div>
#
# ### 练习 05.1：捕获输入和输出 · Exercise 05.1: Capture input and output
#
# ●● · 6 min
#
# <div lang="zh">
#
# 现在自己写一个钩子，留下进出模块的东西。
#
# 写 `capture(module, seen)`，返回句柄，好让调用的人取下钩子。`module` 每运行一次，就往列表 `seen` 的末尾添加一对 `(x, output)`：
#
# - 这一对是元组还是列表都可以。
# - `x` 要是传进来的那个张量本身，不是元组，也不是副本。
# - `output` 只看值，所以 `detach()` 过的也行。
# - 钩子什么也不改，训练模式和评估模式下都一样。
#
# </div>
# <div lang="en">
#
# To study a module, you can keep what goes in and comes out.
#
# Write `capture(module, seen)`, which returns the handle, so that callers can remove the hook. Each time `module` runs,
# the hook appends `(x, output)`, a tuple or list, to the list `seen`.
#
# - `x` is the very tensor that came in, not a tuple or copy.
# - Of `output` only the values count, so you may `detach()` it.
# - The hook only watches, so it changes nothing, in training and evaluation mode alike.
#
# </div>


# %% exercise="05.1"
def capture(module, seen):
    """module 每运行一次，就往 seen 里添加 (x, output)；返回句柄。

    Add (x, output) to seen each time module runs; return the handle.
    """

    ### BEGIN SOLUTION
    def keep(module, args, output):
        seen.append((args[0], output))

    return module.register_forward_hook(keep)
    ### END SOLUTION


# %% check="05.1"
check("05.1", capture)

# %% [markdown]
# ## 5.3 每一层，外加证据 · Every layer, with proof
#
# <div lang="zh">
#
# 钩子给我们看的，真的就是 `forward` 里算出来的值吗？这可以查证。下面的 `forward` 除了结果，还把中间值 `[a, b, c]` 一起交出来，我们拿钩子看到的和它们相减。如果钩子看到的是真的，差就全是零。
#
# 几个模块共用一个函数当钩子，因为参数 `module` 会告诉它，刚刚运行完的是哪一个。只有 `ReLU6` 没有钩子：它的输出就是整个网络的结果，不用钩子也看得到。
#
# 为了好算，所有的权重和偏置都是 `1`，输入都是 `0.1`。`fc2` 上的钩子会看到什么数？**拿支笔算一算。**
#
# </div>
# <div lang="en">
#
# Does a hook really show what `forward` computed? You need not take that on trust, because you can check it. The
# `forward` below hands out its intermediate values `[a, b, c]` along with the result, and we subtract them from what
# the hooks saw. If the hooks show the truth, every difference is zero.
#
# One function can serve as the hook of several modules, because its argument `module` tells it which of them has just
# run. Only `ReLU6` gets no hook: its output is the result of the whole net, which you see without a hook.
#
# To keep the sums easy, all weights and biases are `1` and all inputs are `0.1`. Which number will the hook on `fc2`
# see? **Take a pencil.**
#
# </div>


# %% tags=["E4"]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(2, 2), nn.Linear(2, 1)
        self.relu, self.relu6 = nn.ReLU(), nn.ReLU6()
        for parameter in self.parameters():
            nn.init.ones_(parameter)

    def forward(self, x):
        a = self.fc1(x)
        b = self.fc2(a)
        c = self.relu(b)
        return self.relu6(c), [a, b, c]


# %%
guess("05.c")

# %% tags=["E4"]
net, seen, handles = Net(), [], []


def keep(module, args, output):
    seen.append((type(module).__name__, output))


for child in net.children():
    if not isinstance(child, nn.ReLU6):
        handles.append(child.register_forward_hook(keep))
out, returned = net(torch.full((2, 2), 0.1))
for handle in handles:
    handle.remove()

for (name, output), own in zip(seen, returned, strict=True):
    print(f"{name:6}  {output[0, 0]:.1f}  difference {(output - own).abs().max():g}")

# %% [markdown]
# <div lang="zh">
#
# 差值全是 `0`，所以钩子看到的就是 `forward` 算出的值。这很要紧：大多数模型不交出中间值，我们只能相信钩子。
#
# 这些数也可以验算：权重和偏置都是一，所以层把输入加起来，再加一。`fc1` 从两个 `0.1` 算出 $0.1+0.1+1=1.2$，`fc2` 从两个 `1.2` 算出 $1.2+1.2+1=3.4$。ReLU 不动正数，所以它给出的还是 `3.4`。
#
# </div>
# <div lang="en">
#
# All differences are `0`, so the hooks saw what `forward` computed. This matters, because most models return no such
# values, and then we must trust the hooks.
#
# Your pencil gives the same. All weights and biases are one, so a linear layer adds up its inputs and adds one. `fc1`
# gets two inputs of `0.1` and gives $0.1+0.1+1=1.2$. `fc2` gets two inputs of `1.2` and gives $1.2+1.2+1=3.4$. ReLU
# keeps positive numbers and gives `3.4` again.
#
# </div>
#
# ### 练习 05.2：拿出证据 · Exercise 05.2: Prove it
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 刚才的证据只说明了一个网络。把它写成函数，凡是交出中间值的模型都能查证。
#
# 写 `prove(model, x, skip)`。`model(x)` 返回 `(out, returned)`，`returned` 是 `forward` 交出的中间值，按调用的次序排。
#
# - 给 `children()` 里的每个子模块挂上钩子，类型为 `skip` 的除外。
# - 运行一次 `model(x)`，再取下钩子，不改动任何张量。
# - 返回一个列表，按**调用**的次序，每项是一对，如 `("Linear", 0.0)`：类名，以及输出与 `returned` 里对应值的最大绝对差。
#
# 检查时也会用一个谎报中间值的模型，因为永远得 `0` 的证据，证明不了什么。
#
# </div>
# <div lang="en">
#
# That proof is for one net. Turn it into a function for every model that hands out its values.
#
# Write `prove(model, x, skip)`. `model(x)` returns `(out, returned)`, where `returned` holds the intermediate values of
# `forward` in the order of calls.
#
# - Return a list of pairs such as `("Linear", 0.0)`, in the order of **calls**: the class name, and the largest
#   absolute difference between the output and the matching value in `returned`.
# - Hook all `children()`, except those of type `skip`.
# - Run `model(x)` once, without changing any tensor, and take the hooks off.
#
# In the check, one model lies about its values, because a proof that always says `0` proves nothing.
#
# </div>


# %% exercise="05.2"
def prove(model, x, skip):
    """按调用的次序返回 [(类名, 最大绝对差), ...]。

    Return [(class name, largest absolute difference), ...] in the order of calls.
    """
    ### BEGIN SOLUTION
    seen, handles = [], []

    def keep(module, args, output):
        seen.append((type(module).__name__, output))

    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(keep))
    _, returned = model(x)
    for handle in handles:
        handle.remove()
    pairs = zip(seen, returned, strict=True)
    return [(name, (output - own).abs().max().item()) for (name, output), own in pairs]
    ### END SOLUTION


# %% check="05.2"
check("05.2", prove)

# %% [markdown]
# ## 5.4 小张量，大内存 · A small tensor, a lot of memory
#
# <div lang="zh">
#
# 钩子留下一个输出，占住的内存可能比看上去多得多。我们拿 ResNet-50 来看，给它一批 `4` 张图。钩子只留最后一组卷积 `layer4` 的输出，那是 `4×2048×7×7` 个数，不到 `2` MB，看上去没什么要紧。
#
# 可是 `output` 后面还连着计算图，图上的节点为反向传播存着许多张量。留着 `output`，它们也会跟着留下来。
#
# 一共占住多少内存，由下面的 `held` 来算。它从一个张量沿 `grad_fn` 往回走，把一路上存着的张量占的内存加起来，模型的参数不算，因为它们本来就在内存里。`held` 的写法不必看懂，只看它给出的数。
#
# 留着 `output`，会占住多少？**先猜。** 之后我们再看 `output.detach()` 占住多少，反向传播之后又还剩多少。
#
# </div>
# <div lang="en">
#
# A hook that keeps an output can tie up far more memory than the output itself needs. Take ResNet-50 and a batch of
# `4` pictures, and let the hook keep only the output of `layer4`, the last group of convolutions. These are
# `4×2048×7×7` numbers, or less than `2` MB, which looks harmless.
#
# But `output` is connected to a computation graph, whose nodes have saved many tensors for the backward pass. If we
# keep `output`, these tensors stay in memory as well.
#
# How much memory is that? The function `held` below works it out. It starts at a tensor, follows the graph back from
# its `grad_fn`, and adds up the memory of all the tensors saved on the way. It skips the parameters of the model,
# because they are in memory anyway. You need not understand its code, only the number that it returns.
#
# So how much memory do you tie up if you keep `output`? **Guess first.** Afterwards we look at `output.detach()`, and
# at what is left after backward.
#
# </div>


# %% tags=["F13"]
def held(tensor):
    """Return the memory, in MB, that `tensor` keeps from being freed, parameters aside."""
    tensors, nodes = [tensor], [tensor.grad_fn] if tensor.grad_fn else []
    for node in nodes:  # the list grows as we walk back
        nodes += [parent for parent, _ in node.next_functions if parent and parent not in nodes]
        tensors += [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    kept = [t for t in tensors if isinstance(t, torch.Tensor) and not isinstance(t, nn.Parameter)]
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}
    return sum(sizes.values()) / 1e6


# %%
guess("05.d")


# %% tags=["F13"]
def keep(module, args, output):
    seen["attached"], seen["detached"] = output, output.detach()


torch.manual_seed(0)
resnet, seen, pictures = torchvision.models.resnet50(), {}, torch.randn(4, 3, 224, 224)
handle = resnet.layer4.register_forward_hook(keep)
out = resnet(pictures)
for name, tensor in seen.items():
    print(f"{name}: {tuple(tensor.shape)} holds {held(tensor):.1f} MB")

# %% tags=["F13"]
out.sum().backward()
try:
    held(seen["attached"])
except RuntimeError as error:
    print("after backward:", str(error).split(". ")[1])
with torch.no_grad(), handle:
    resnet(pictures)
print(f"under no_grad: holds {held(seen['attached']):.1f} MB")

# %% [markdown] tags=["F13"]
# <div lang="zh">
#
# 留着 `output`，占住 344 MB；留着 `output.detach()`，只占 1.6 MB。`output` 拉住了后面的整张图，也就拉住了各层存下的张量。`detach()` 给出的张量没有 `grad_fn`，后面没有图，占住的就只有它自己的数。
#
# 训练时，这些内存通常占不久，因为反向传播走过之后，存下的张量就放掉了（除非写了 `retain_graph=True`）。在 `torch.no_grad()` 里运行，则根本没有图。
#
# 所以这种泄漏最常见于验证：忘了写 `no_grad`，又没有反向传播来放掉存下的张量，于是每留下一批的 `output`，就留下一张图。
#
# </div>
# <div lang="en">
#
# Keeping `output` ties up 344 MB, but keeping `output.detach()` only 1.6 MB. Why is the difference so large? `output`
# keeps the whole graph behind it alive, and until backward also the tensors that the layers saved in it. The tensor
# that `detach()` gives has no `grad_fn`, so there is no graph behind it, and only its own numbers are kept.
#
# In training this memory is usually taken only for a moment, because backward frees the saved tensors, unless you
# wrote `retain_graph=True`. And under `torch.no_grad()` no graph is built at all.
#
# So where does this leak happen? Mostly in evaluation. If you forget `no_grad` there, each run builds a graph, but no
# backward follows that would free the saved tensors. With each batch whose `output` you keep, another graph stays in
# memory.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 如果留下 `output`，就留下了它后面的整张图。反向传播走过这张图，会放掉图上存着的张量，除非写了 `retain_graph=True`。如果只需要值，就留 `output.detach()`。
#
# </div>
# <div lang="en">
#
# If you keep `output`, you keep the whole graph behind it. A backward pass through that graph frees the tensors saved
# in it, unless you write `retain_graph=True`. If you need only the values, keep `output.detach()`.
#
# </div>
# </div>

# %% [markdown]
# ## 5.5 异常跳过了清理 · The exception that skips the cleaning up
#
# <div lang="zh">
#
# 钩子用完要取下来，不然以后每次运行它还会触发。可是，如果模型在半路抛出异常，写在后面的 `handle.remove()` 就轮不到执行。我们故意让这种事发生，看看后果。
#
# 下面的网络要宽度为 `3` 的输入，宽度为 `4` 的输入会让 `forward` 抛出异常。`careless` 和 `careful` 做的是同一件事：挂上钩子、运行、取下；不同的是，`careful` 把取下的事交给了 `with`，网络抛出异常也会取下。
#
# 两个函数各运行三次，前两次的宽度是错的。异常由 `suppress` 接住，程序就能接着试下一次。每次之后，我们用 `list_hooks(net)` 列出还挂着的钩子，看有没有忘了取下的。
#
# 只有第三次走得完，所以两个函数应当各记下 `1` 个输出。`careless` 记下了几个？**先猜。**
#
# </div>
# <div lang="en">
#
# A hook has to come off when it has done its work, because otherwise it fires in later runs, too. But if the model
# raises an exception half way, a `handle.remove()` further down is never reached. Let us make this happen on purpose
# and see what follows.
#
# The net below takes inputs of width `3`. With a width of `4`, its `forward` raises an exception. `careless` and
# `careful` do the same job: they attach a hook, run the net and take the hook off. But `careful` lets a `with` block
# do the last step, so its hook comes off even if the net raises an exception.
#
# Each function gets three tries, two with a wrong width and the third with the right one. `suppress` catches the
# exception, so that the program goes on to the next try. After each try, `list_hooks(net)` lists the hooks that are
# still on, so that we see whether one was forgotten.
#
# Since only the third run gets to the end, each function should keep `1` output. How many does `careless` keep? **Guess
# first.**
#
# </div>


# %% tags=["F28"]
def keep(module, args, output):
    seen.append(output.detach())


def careless(x):
    handle = net[0].register_forward_hook(keep)
    net(x)
    handle.remove()


def careful(x):
    with net[0].register_forward_hook(keep):
        net(x)


# %%
guess("05.e")

# %% tags=["F28"]
kept = {}
for run in (careless, careful):
    net, seen = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), []
    kept[run.__name__] = seen
    for width in (4, 4, 3):
        with suppress(RuntimeError):
            run(torch.ones(1, width))
        print(f"{run.__name__}, width {width}: hooks on {len(list_hooks(net))}, kept {len(seen)}")

# %% [markdown] tags=["F28"]
# <div lang="zh">
#
# `careless` 留下了两个钩子，一次异常留一个。第三次运行本身很顺利，可是旧的两个钩子也跟着触发，于是同一个输出记了 3 遍，没有任何报错。
#
# `careful` 一个也没有留下，因为 `with` 块不论怎样结束，都会取下钩子。
#
# </div>
# <div lang="en">
#
# `careless` left two hooks on, one for each exception. Its third run went well, but the two old hooks fired as well, so
# one output was kept 3 times, without any error.
#
# `careful` left none, because a `with` block takes its hook off however the block ends.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 如果异常跳过了 `handle.remove()`，旧的钩子就越积越多。把取下的事交给 `with`，或者写进 `finally`。
#
# </div>
# <div lang="en">
#
# If an exception skips `handle.remove()`, old hooks pile up. Let a `with` block take the hooks off, or write the
# removal into a `finally`.
#
# </div>
# </div>
#
# ### 练习 05.3：提取器 · Exercise 05.3: An extractor
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 我们常常想同时看好几层，看完又一个钩子也不留下。为此写一个上下文管理器，用法是 `with extracting(model, names) as seen:`。
#
# - 名字可以像 `body.conv` 这样带点，用 `model.get_submodule(name)` 找到模块；每个名字指一个不同的模块。
# - `seen[name]` 是它最后一次运行的 `output.detach()`，块里和块结束之后都能读。
# - 块里的模型照常运行，梯度也不关。
# - 不论是模型抛出异常，还是名字写错，都不留下钩子，异常原样传出去。
#
# </div>
# <div lang="en">
#
# Often you want to look at several layers at once, and never leave a hook behind. Write a context manager for this,
# used as `with extracting(model, names) as seen:`.
#
# - Whatever goes wrong, say a failing model or a misspelt name, no hook stays on, so that the next run starts clean. The
#   exception reaches the caller unchanged.
# - `seen[name]` is the `output.detach()` of the module's last run. You can read it inside the block and after it.
# - Inside the block the model runs as usual, and gradients stay on.
# - Layers may lie inside others, so names may have dots, like `body.conv`. `model.get_submodule(name)` finds the
#   module, and each name stands for a different one.
#
# </div>


# %% exercise="05.3"
@contextmanager
def extracting(model, names):
    """在 with 块内收集各层的输出：给出字典 seen，无论如何都取下所有钩子。

    Collect outputs inside a with block: yield the dict seen, take every hook off in any case.
    """
    ### BEGIN SOLUTION
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()
    ### END SOLUTION


# %% check="05.3"
check("05.3", extracting)

# %% [markdown]
# ## 5.6 钩子返回了什么 · What the hook returns
#
# <div lang="zh">
#
# 到现在为止，我们的钩子只看不改，返回的是 `None`，这时输出还是原来那个张量。如果钩子返回了别的**任何东西**，它就取代输出，下一层收到的就是它。
#
# 这样，我们就可以有意地改动网络。不过，无意中改动它也很容易，只要钩子不小心返回了什么。
#
# 下面有五个钩子，后三个看上去都只是把输出记下来。我们把它们逐个挂到第一层上，每一次都让网络先处理 `x`，再处理 `2 * x`，因为有的错要到第二次才看得出来。没有钩子时，网络给出 `3` 和 `5`。
#
# 哪几个钩子会改变这两个数？`setdefault` 会让第二个数变成多少？**先猜。** 五个里有一个会报错，留意错误出在哪一层。
#
# </div>
# <div lang="en">
#
# So far our hooks only looked. They returned `None`, and then the output stays the same tensor. **Anything else** that
# a hook returns takes the place of the output, and the next layer receives it instead.
#
# You can use this to change a net on purpose. But it also happens by accident, because a hook may return something
# without your noticing.
#
# Here are five hooks, of which the last three look as if they only kept the output. We attach them to the first layer,
# one at a time, and each time the net gets two inputs, first `x` and then `2 * x`, because some mistakes show only in
# the second run. Without a hook, the net gives `3` and `5`.
#
# Which hooks change these two numbers? What will the second number be with `setdefault`? **Guess first.** One of the
# five leads to an error. Notice in which layer this error appears.
#
# </div>

# %% tags=["F8"]
net, x, seen = nn.Sequential(nn.Linear(2, 1), nn.ReLU()), torch.ones(1, 2), {}
for parameter in net.parameters():
    nn.init.ones_(parameter)

hooks = {
    "nothing": lambda module, args, output: None,
    "ten times": lambda module, args, output: 10 * output,
    "update": lambda module, args, output: seen.update(fc=output.detach()),
    "setdefault": lambda module, args, output: seen.setdefault("fc", output.detach()),
    "tuple": lambda module, args, output: (seen.update(fc=output.detach()), output),
}

# %%
guess("05.f")

# %% tags=["F8"]
for name, hook in hooks.items():
    seen.clear()
    with net[0].register_forward_hook(hook):
        try:
            outs = [net(x), net(2 * x)]
            attached = [out.requires_grad for out in outs]
            print(f"{name:10}", [out.item() for out in outs], "requires_grad:", attached)
        except TypeError as error:
            print(f"{name:10} TypeError in", str(error).splitlines()[0])

# %% [markdown] tags=["F8"]
# <div lang="zh">
#
# `ten times` 有意改动了输出。`update` 返回 `None`，没有影响。`setdefault` 和 `tuple` 却在无意中改动了输出，因为 `lambda` 算出什么，就返回什么。
#
# `setdefault` 返回的是字典里存着的张量。第一次，值还是对的，梯度却被 `detach()` 断开了。第二次，字典里仍是旧的张量，`5.0` 就成了 `3.0`，没有报错。元组倒是会报错，可是要到下一层 `relu`，离原因已经隔了一层。
#
# </div>
# <div lang="en">
#
# `ten times` changed the output on purpose, and `update`, which returns `None`, left it alone. `setdefault` and `tuple`
# changed it by accident, because a `lambda` returns whatever it computes.
#
# `setdefault` returns the tensor stored in the dictionary. The first time, its values are right, but `detach()` has cut
# off the gradient. The second time, the dictionary still holds the old tensor, so `5.0` becomes `3.0` without an error.
#
# The tuple raises an error, but only in `relu`, one layer after the hook.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 只想看的钩子，不要返回任何值。不带 `return` 的 `def` 最稳妥。要用 `lambda`，就得确认它的值是 `None`。
#
# </div>
# <div lang="en">
#
# A hook that only looks should not return a value. A `def` without `return` is safest. With a `lambda`, make sure that
# its value is `None`.
#
# </div>
# </div>
#
# ### 练习 05.4：操纵输出 · Exercise 05.4: Steer an output
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 有意改动输出，就可以把模型往我们选的方向推一把。写 `steer(module, direction, strength)`，返回句柄。从这时起，直到取下钩子：
#
# - `module` 的每个输出都加上 `strength * direction`，不论什么模式、什么形状。
# - 梯度要照样流过。
# - 不要让模块再算一遍。
# - 不要就地改动原来的 `output`，因为别人可能还留着它。
#
# </div>
# <div lang="en">
#
# By changing outputs on purpose, you can push a model in a direction of your choice. Write
# `steer(module, direction, strength)`, which returns the handle. Until the hook is taken off:
#
# - It adds `strength * direction` to every output of `module`, in any mode and of any shape.
# - The gradient still flows through the result.
# - Do not change `output` in place, because others may have kept it.
# - Do not run the module again, because it has just run.
#
# </div>


# %% exercise="05.4"
def steer(module, direction, strength):
    """给 module 的输出加上 strength * direction；返回句柄。

    Add strength * direction to the output of module; return the handle.
    """

    ### BEGIN SOLUTION
    def push(module, args, output):
        return output + strength * direction

    return module.register_forward_hook(push)
    ### END SOLUTION


# %% check="05.4"
check("05.4", steer)

# %% [markdown]
# ## 5.7 一个模块，几次调用 · One module, several calls
#
# <div lang="zh">
#
# 在一次前向传播里，同一个模块可以运行好几次。那么它的钩子留下的，是哪一次的输出？
#
# ResNet-50 里就有这样的模块。它由许多下面这样的块组成：每块有三个卷积和三个归一化层，却只有**一个** `relu`。ReLU 没有权重，所以需要时可以把同一个再用一遍。我们按名字给每个子模块挂上钩子，把块运行一次，再看 `seen` 里的 `relu`。**先猜。**
#
# 还有一件事要查：留下的输出，后来会不会被改动？所以除了 `output.detach()`，钩子还留一份 `clone()`，它保住了那一刻的数。最后比较两份，看哪些名字下的不一样。
#
# </div>
# <div lang="en">
#
# A module may run more than once in a single pass. Which of its outputs does a hook then keep?
#
# You can find such modules in ResNet-50. It consists of many blocks like the one below, which has three convolutions
# and three normalisation layers, but just **one** `relu`. A ReLU has no weights, so the block can use the same one
# again wherever it needs it. We hook every child by name, run the block once, and look up `relu` in `seen`. **Guess
# first** what is there.
#
# There is a second thing to find out: does an output stay as it was once you have kept it? So the hook keeps it twice,
# as `output.detach()` and as a `clone()`, which preserves the numbers of that moment. At the end we compare the two
# and see under which names they differ.
#
# </div>

# %%
guess("05.g")

# %% tags=["F27"]
block, calls, seen, copies, handles = resnet.layer1[1], Counter(), {}, {}, []


def keep(name, module, args, output):
    calls[name] += 1
    seen[name], copies[name] = output.detach(), output.detach().clone()


for name, child in block.named_children():
    handles.append(child.register_forward_hook(partial(keep, name)))
out = block(torch.randn(1, 256, 8, 8))
for handle in handles:
    handle.remove()

print("calls:", dict(calls))
print(f"{sum(calls.values())} outputs, {len(seen)} of them kept")
print("seen['relu'] is the block's output:", torch.equal(seen["relu"], out))
print("changed since:", [name for name in seen if not torch.equal(seen[name], copies[name])])

# %% [markdown] tags=["F27"]
# <div lang="zh">
#
# `relu` 运行了三次，每次 `seen[name] = ...` 都换掉了前一次的输出，最后留下的，就是整个块的输出。
#
# 三个归一化层的两份都不一样，因为它们的输出后来被改写了。这个 `relu` 是就地的，直接改写了 `bn1` 和 `bn2` 的输出。`bn3` 的输出先就地加上了捷径（`out += identity`），再由 `relu` 改写。
#
# `detach()` 防不住这种改写：它断开计算图，内存却还是同一块。`clone()` 才有自己的内存（9.1 节）。
#
# </div>
# <div lang="en">
#
# `relu` ran three times, and with `seen[name] = ...` each output replaced the one before. Only the last is left, the
# output of the whole block.
#
# For all three normalisation layers the two differ: their outputs were overwritten later. This `relu` works in place,
# so it changed the outputs of `bn1` and `bn2`. The output of `bn3` was changed twice: the shortcut was added in place
# (`out += identity`), and then `relu` ran.
#
# Why did `detach()` not prevent this? It cuts the graph, but memory stays shared. A `clone()` has its own (section
# 9.1).
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 一个模块运行几次，就报告几次，所以要用列表来收。如果后面可能有就地操作，就留 `output.detach().clone()`。
#
# </div>
# <div lang="en">
#
# A hook fires each time its module runs, so collect the outputs in a list. Where something may later work in place,
# keep `output.detach().clone()`.
#
# </div>
# </div>
#
# ## 5.8 不是张量，也不是模块 · Not a tensor, and not a module
#
# <div lang="zh">
#
# 我们一直默认两件事：`output` 是一个张量，每个运算都是一个模块。在真实的模型里，这两件都靠不住。
#
# 先看第一件。下面有三个模块：一个 LSTM，Transformer 编码层里的自注意力，还有一个返回字典的线性层。每一个上的钩子都调用 `output.detach()`。有几个行得通？**先猜。**
#
# </div>
# <div lang="en">
#
# We have taken two things for granted: that `output` is a tensor, and that every operation is a module. In real models
# you can rely on neither.
#
# We begin with the output. Below are an LSTM, the self-attention of a Transformer encoder layer, and a linear layer
# that returns a dictionary. On each, a hook calls `output.detach()`. For how many does this work? **Guess first.**
#
# </div>


# %% tags=["F36"]
class Named(nn.Linear):
    def forward(self, x):
        return {"logits": super().forward(x)}


torch.manual_seed(0)
lstm, named = nn.LSTM(4, 3, batch_first=True), Named(4, 3)
encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
x = torch.randn(3, 2, 4)  # sentences, tokens, features


# %%
guess("05.h")


# %% tags=["F36"]
def keep(module, args, output):
    parts = output.values() if isinstance(output, dict) else output
    print(type(module).__name__, "gave", [type(part).__name__ for part in parts])
    output.detach()


works = []
for model, module in ((lstm, lstm), (encoder, encoder.self_attn), (named, named)):
    with module.register_forward_hook(keep):
        try:
            model(x)
            works.append(module)
        except AttributeError as error:
            print("   AttributeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 三个都行不通，因为它们返回的都不是张量，而元组和字典都没有 `detach`。LSTM 返回一个元组，里面还有一个元组。自注意力返回输出和注意力权重；编码层不要权重，所以第二项是 `None`。最后那个线性层返回字典。
#
# 报错还算走运，至少看得见。常见的补救是加一句 `isinstance`，不是张量就跳过。这样就不再报错了，可是跳过了什么，也没有人告诉我们。
#
# 我们在编码层上试一试。它有 8 个子模块，每一个都会运行；在 `linear1` 和 `dropout` 之间，还要经过一个 ReLU。这些输出里，最后会缺什么？**先猜。**
#
# </div>
# <div lang="en">
#
# It works for none of the three, because none of them returned a tensor, and neither a tuple nor a dictionary has a
# `detach`. The LSTM returned a tuple with another tuple in it. Self-attention returned a tuple as well, of its output
# and the attention weights. Since the encoder layer does not ask for those weights, the second item is `None`. And our
# linear layer returned a dictionary.
#
# An error is still the lucky case, because you notice it. A common remedy is a line with `isinstance`, which skips
# whatever is not a tensor. After that the errors are gone, but nobody tells you what was skipped.
#
# Let us try this remedy on the encoder layer. It has 8 children, and every one of them runs. Between `linear1` and
# `dropout` a ReLU is applied as well. Which of all these outputs will be missing? **Guess first.**
#
# </div>


# %%
guess("05.i")


# %% tags=["F36"]
def keep(name, module, args, output):
    if isinstance(output, torch.Tensor):
        seen[name] = output.detach()


seen, children = {}, dict(encoder.named_children())
handles = [child.register_forward_hook(partial(keep, name)) for name, child in children.items()]
encoder(x)
for handle in handles:
    handle.remove()

print("kept:", list(seen))
print("missing children:", list(children.keys() - seen.keys()))
print("modules of type nn.ReLU:", sum(isinstance(m, nn.ReLU) for m in encoder.modules()))
print("encoder.activation is the function", encoder.activation.__name__)

# %% [markdown]
# <div lang="zh">
#
# 缺了两样东西，程序却没有任何提示。`self_attn` 的钩子触发了，可是它的输出是元组，被 `isinstance` 跳过了。
#
# ReLU 则从来没有触发过钩子。编码层的 `forward` 调用的是函数 `F.relu`，而函数不是模块，没有地方可以挂钩子。编码层里的两个 `+` 也是这样。
#
# 两样都拿得到。`self_attn` 的输出是嵌套的，也就是说，它是个容器，例如元组，里面的项可能又是容器。那就一项一项走进去，每一项都照样处理，遇到张量就断开它的图。
#
# ReLU 的输出是函数算的，函数上挂不了钩子。可是函数的结果会传给下一个模块，挂在那里的钩子，从**输入** `args` 里就拿得到它。
#
# </div>
# <div lang="en">
#
# Two outputs are missing, although there was no error and no warning. The hook of `self_attn` did fire, but its output
# was a tuple, so the hook skipped it because of `isinstance`.
#
# For the ReLU, no hook fired at all. The `forward` of the encoder layer calls the function `F.relu`. A function is not
# a module, so there is nothing to attach a hook to. The same holds for the two `+` inside the layer.
#
# We can get both. The output of `self_attn` is nested: it is a container, such as a tuple, whose items may be
# containers again. So we go through it item by item, treat each item in the same way, and detach every tensor that we
# find.
#
# The output of the ReLU was computed by a function, and a function cannot carry a hook. But the result goes on to the
# next module, and a hook on that module finds it in `args`, the **input** of the module.
#
# </div>


# %% tags=["F36"]
def detached(value):
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [detached(item) for item in value]
    return value  # None, a number


def keep(name, module, args, output):
    seen[name] = detached(args), detached(output)


# %% tags=["F36"]
chosen = ("self_attn", "linear1", "dropout")
handles = [children[name].register_forward_hook(partial(keep, name)) for name in chosen]
encoder(x)
for handle in handles:
    handle.remove()

_, (attended, weights) = seen["self_attn"]
print("self_attn gave", tuple(attended.shape), "and", weights)
(_, before), ((after,), _) = seen["linear1"], seen["dropout"]
print(f"smallest number: out of linear1 {before.min():.2f}, into dropout {after.min():.2f}")
print("the relu of the first is the second:", torch.equal(before.relu(), after))

Output = make_dataclass("Output", ["logits"])
kept = detached(Output(named(x)["logits"]))
print("in a dataclass, still attached:", kept.logits.requires_grad)

# %% [markdown]
# <div lang="zh">
#
# 现在两样都看得到了。自注意力的输出留了下来，里面的 `None` 也还在原来的位置上。
#
# 函数上挂不了钩子，看前后的模块就知道它做了什么。`linear1` 给出的数里有负数，`dropout` 收到的却没有，而且正好就是对前者做 ReLU 的结果。在自己的模型里，更简单的办法是把它写成 `nn.ReLU` 模块，那就可以直接挂钩子。
#
# 还是有东西溜了过去。例如有些模型返回普通的数据类（dataclass），`detached` 不认识它，就把它原样返回，里面的张量还连着计算图。遇到这样的模型，要再加一种情形。
#
# **改动**元组也有陷阱。下面的钩子 `first_item` 一个数也没有改，只是从元组里取出 `output[0]` 返回，这一项就是注意力的输出。`x` 里有 3 个句子。挂上这个钩子，编码层给出的句子还和原来一样吗？**先猜。**
#
# </div>
# <div lang="en">
#
# Now we have both. The output of self-attention was kept, with the `None` still in its place.
#
# We could not hook the function, but the modules before and after it tell us what it did. `linear1` gave some negative
# numbers, and `dropout` received none: its input is exactly what ReLU makes of the output of `linear1`. In a model of
# your own it is easier to use a module, `nn.ReLU`, because you can hook a module directly.
#
# Some outputs still slip through. There are models that return a plain dataclass, for example, which `detached` does
# not know. So it returns the dataclass as it is, and the tensor inside stays attached to its graph. For such models,
# add one more case.
#
# **Changing** a tuple has a trap of its own. The hook `first_item` below does not change a single number: it just takes
# `output[0]`, which is the output of the attention, out of the tuple and returns it. `x` holds 3 sentences. Will the
# encoder layer give the same for them as before? **Guess first.**
#
# </div>


# %%
guess("05.j")


# %% tags=["F36"]
def first_item(module, args, output):
    return output[0]


def whole_tuple(module, args, output):
    return output[0], *output[1:]


plain, as_before = encoder(x), {}
for hook in (first_item, whole_tuple):
    with encoder.self_attn.register_forward_hook(hook):
        out = encoder(x)
    same = [torch.allclose(ours, own) for ours, own in zip(out, plain, strict=True)]
    as_before[hook.__name__] = same
    print(f"{hook.__name__:11}  sentences as before: {same}")

# %% [markdown] tags=["F36"]
# <div lang="zh">
#
# 没有报错，可是后两个句子变了。编码层总是取返回值的第 `[0]` 项。元组的第 `[0]` 项是所有句子的注意力输出，而张量的第 `[0]` 项只是**第一个句子**的。这一份接着被加到了每个句子上。形状靠广播对得上，所以没有报错，只有第一个句子得到了该得的。
#
# `whole_tuple` 返回的结构和它收到的一样，所以一切照旧。要推动注意力，就只改第一项，其余照旧：`(output[0] + strength * direction, *output[1:])`。
#
# </div>
# <div lang="en">
#
# There was no error, and yet the last two sentences changed. Why? The encoder layer takes item `[0]` of whatever
# self-attention returns. Of a tuple, that is the attention output for all sentences. But of a tensor, it is only the
# output for the **first sentence**. The layer then adds this output to every sentence. Since broadcasting makes the
# shapes fit, there is no error, and only the first sentence gets what it should.
#
# `whole_tuple` returns the same structure that it received, so nothing changes. To steer the attention, change only the
# first item and keep the rest: `(output[0] + strength * direction, *output[1:])`.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `output` 不一定是张量。要留下它，就走进去，别一声不响地跳过。要改动它，就返回同样的结构。函数不是模块，所以不会触发前向钩子。
#
# </div>
# <div lang="en">
#
# `output` need not be a tensor. To keep it, go through its items, and do not skip it in silence. To change it, return
# the same structure. A function is not a module, so no forward hook fires for it.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 05.5：记下每一次调用 · Exercise 05.5: Record every call
#
# ●●●● · 12 min
#
# <div lang="zh">
#
# 在 5.7 节和 5.8 节里，我们的钩子漏掉了不少东西：同一个模块先前的输出，还有元组里的输出。现在写一个记录器，把这些也都留下来。
#
# 写 `every_call(model, x)`：运行一次 `model(x)`，返回一个字典，从模块的名字到它各次输出的列表。
#
# - `model.named_modules()` 里凡是没有子模块的模块（`list(children())` 为空），都有一个列表，每次调用一项；从没运行过的，列表为空。
# - 有两个名字的模块只算一次。
# - 每一项是那次的输出，里面的张量都断开了计算图（`detach()`）。
# - 结构照旧：元组还是元组，列表还是列表，字典还是字典，可以一层套一层（不会有具名元组）；别的（如 `None`）原样留下。
# - 最后取下钩子，出了异常也一样；异常原样传出去。
# - 模型照常运行：模式不变，梯度也不关。
#
# </div>
# <div lang="en">
#
# In sections 5.7 and 5.8 our hooks lost a good deal: earlier outputs of the same module, and outputs inside a tuple.
# Now write a recorder that keeps these as well.
#
# Write `every_call(model, x)`. It runs `model(x)` once and returns a dictionary that has, under the name of each
# module, a list of its outputs.
#
# - Every module in `model.named_modules()` without children (`list(children())` is empty) gets a list, with one entry
#   per call. If it never runs, its list is empty.
# - A module with two names counts once.
# - An entry is the output of that call, with every tensor in it cut off from its graph by `detach()`.
# - Outputs may be nested, and their structure stays: a tuple stays a tuple, a list a list, a dictionary a dictionary.
#   (Named tuples do not occur.) Anything else, such as `None`, stays as it is.
# - Take the hooks off even after an exception, so that the next run starts clean. The exception reaches the caller
#   unchanged.
# - You only record, so the model runs as usual: it keeps its mode, and gradients stay on.
#
# </div>


# %% exercise="05.5"
def every_call(model, x):
    """返回 {名字: [每次调用的输出]}，只含没有子模块的模块。

    Return {name: [output of each call]} for the modules without children.
    """
    ### BEGIN SOLUTION
    seen, handles = {}, []

    def detached(value):
        if isinstance(value, torch.Tensor):
            return value.detach()
        if isinstance(value, dict):
            return {key: detached(item) for key, item in value.items()}
        if isinstance(value, list):
            return [detached(item) for item in value]
        if isinstance(value, tuple):
            return tuple(detached(item) for item in value)
        return value

    def keep(name, module, args, output):
        seen[name].append(detached(output))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                seen[name] = []
                handles.append(module.register_forward_hook(partial(keep, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen
    ### END SOLUTION


# %% check="05.5"
check("05.5", every_call)

# %% [markdown]
# ## 5.9 实例：分类头看到了什么 · Worked example: what the head gets to see
#
# <div lang="zh">
#
# 一个分类网络的最后一层，到底看到了什么？
#
# 我们用一个很小的网络来回答：先是一个卷积，从 `3` 个通道变到 `8` 个，然后是 ReLU。接着，自适应平均池化把每张特征图缩到 `4×4`，这样不管图有多大，数都一样多。最后把特征图展平成一行，因为线性层收的是一行数，再交给线性层。
#
# 送进去的图是黑的，只有右上方有一个亮方块，因为这样的方块在特征图里很容易找到。
#
# 我们用钩子留下池化之后的特征图，再用它们重算一遍线性层。如果结果分毫不差，线性层需要的就只有这些，看到的也只有这些。
#
# </div>
# <div lang="en">
#
# What does the last layer of a classifier get to see of a picture?
#
# A small net is enough to find out. It begins with a convolution from `3` channels to `8` and a ReLU. An adaptive
# average pooling then shrinks each feature map to `4×4`, so that pictures of any size lead to the same number of
# values. A linear layer takes a row of numbers, so the maps are flattened into one row, and this row goes into the
# linear layer.
#
# We give this net a picture that is dark except for one bright square at the upper right, because such a square is easy
# to find again in the maps.
#
# With a hook we keep the maps that come out of the pooling, and then run the linear layer on them once more. If the
# result is the same, these maps are all that the last layer needs, and so all that it sees.
#
# </div>

# %% tags=["E23"]
torch.manual_seed(0)
layers = OrderedDict(conv=nn.Conv2d(3, 8, 2), relu=nn.ReLU(), pool=nn.AdaptiveAvgPool2d(4))
net = nn.Sequential(layers | OrderedDict(flat=nn.Flatten(), head=nn.Linear(8 * 4 * 4, 2)))
image, seen = torch.zeros(1, 3, 10, 10), []
image[:, :, 1:5, 5:9] = 1

with net.pool.register_forward_hook(lambda m, args, output: seen.append(output.detach())):
    out = net(image)

maps = seen[0]
print("image:", tuple(image.shape), " kept:", tuple(maps.shape))
print("holds a graph:", maps.requires_grad)
print("the head on what was kept gives the same:", torch.equal(net.head(maps.flatten(1)), out))

# %% picture="head_sees"
from hookedu import plot_feature_maps

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[1, 2.2], layout="constrained")
axes[0].imshow(image[0].permute(1, 2, 0))
axes[0].set(title="what goes in", xticks=[], yticks=[])
ax = plot_feature_maps(maps, title="what the head sees", ax=axes[1])

# %% [markdown]
# <div lang="zh">
#
# 线性层看不到左边的图，只看得到右边这 8 个通道的特征图，编号从 0 起。通道 5 反应最强，最亮的地方在右上方，正是方块的位置。通道 2 全是 0，对这张图没有反应。
#
# `4×4` 格里，每一格都是池化之前 `3×3` 个位置的平均，所以只说得出这一带的反应有多强，说不出在哪个位置。
#
# </div>
# <div lang="en">
#
# The linear layer does not see the picture on the left, only the maps of the 8 channels on the right, counted from 0.
# Channel 5 responds most, and it is brightest at the upper right, where the square is. Channel 2 is 0 everywhere: it
# does not respond to this picture.
#
# Each of the `4×4` cells is the mean of `3×3` places before the pooling. So it tells how strongly the channel
# responded around there, but not at which place.
#
# </div>
#
# ## 5.10 现在读真的 · Now read the real one
#
# <div lang="zh">
#
# 本课程的 `record` 用的也是前向钩子。它做的事，你大多已经自己写过了，所以它的源代码你读得懂。运行下面的代码，再打开 [`capture.py`](../hookedu/hooks/capture.py) 和 [`taps.py`](../hookedu/hooks/taps.py)，你会认出许多东西：
#
# - `__exit__` 取下钩子，和练习 05.3 里的 `finally` 一样。（`failed_at` 先不用管。）
# - 嵌套的输出保持原样，`calls` 里每次调用一项，和练习 05.5 一样。
# - 钩子总是返回 `None`，这样就不会改动输出（5.6 节）。
# - 留下张量时用 `clone()`，以后就不会被别人改写（5.7 节）。
#
# </div>
# <div lang="en">
#
# The course's own `record` uses forward hooks too. You have built most of what it does yourself, so you can read its
# source. Run the cell, then open [`capture.py`](../hookedu/hooks/capture.py) and
# [`taps.py`](../hookedu/hooks/taps.py). You will recognise a lot:
#
# - `__exit__` takes the hooks off, like your `finally` in exercise 05.3. (Ignore `failed_at` for now.)
# - `calls` has an entry for each call, and nested outputs keep their structure, as in exercise 05.5.
# - The hooks always return `None`, because anything else would replace the output (section 5.6).
# - `record` keeps a `clone()`, because later layers may overwrite the tensor (section 5.7).
#
# </div>

# %%
from hookedu import record

with record(net, "pool") as rec, record(block, "relu") as reused, record(lstm, "") as nested:
    net(image)
    block(torch.randn(1, 256, 8, 8))
    lstm(x)

print("the same as ours:", torch.equal(rec["pool"].activation, maps))
print("calls of the block's relu:", len(reused["relu"].calls))
print("kept of the LSTM:", [type(part).__name__ for part in nested[""].activation])
print("hooks left on:", len(list_hooks(net)) + len(list_hooks(block)))
print(inspect.getsource(type(rec).__exit__))

# %% [markdown]
# ## 5.11 小结 · Recap
#
# <div lang="zh">
#
# 1. 前向钩子是 `hook(module, args, output)`，`args` 是位置参数的元组。`module(x)` 会触发它，`module.forward(x)` 不会。
# 2. 返回 `None`，输出还是原来那个张量；返回别的任何东西，都会取代输出。
# 3. 如果只需要值，就留 `output.detach()`。输出可能是元组或字典，要走进去。
# 4. 一个模块可以运行多次，所以用列表来收它的输出。函数不是模块，所以不会触发前向钩子。
# 5. 用 `with` 或 `try`/`finally` 取下钩子，这样出了异常，也不会有钩子留下。
#
# </div>
# <div lang="en">
#
# 1. A forward hook is called as `hook(module, args, output)`, where `args` is the tuple of positional arguments. It
#    fires if you write `module(x)`, but not with `module.forward(x)`.
# 2. If a hook returns `None`, the output stays the same tensor. Anything else that it returns replaces the output.
# 3. If you need only the values, keep `output.detach()`. Outputs may be tuples or dictionaries, so go through their
#    items.
# 4. A module may run several times, so keep a list of its outputs. A function is not a module, so no forward hook
#    fires for it.
# 5. Use `with` or `try`/`finally` to take hooks off, so that none of them stays on after an exception.
#
# </div>

# %% [markdown]
# ## 5.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. <code>model.forward(x)</code> 会触发哪些钩子？</summary>里面各层的，只要它们是按「层(x)」调用的；<code>model</code> 自己的不触发。</details>
# <details><summary>2. <code>lambda m, a, o: (seen.append(o), o)</code> 错在哪里？</summary>它返回一个元组，元组取代了输出，等到拿它当张量用时才出错。留下的 <code>o</code> 还带着整张图。</details>
# <details><summary>3. 给每个子模块都挂了钩子，为什么还看不到 ReLU 的输出？</summary>因为 <code>forward</code> 里用的是函数 <code>F.relu</code>。去看下一个模块的输入，或者换成 <code>nn.ReLU</code>。</details>
# </div>
# <div lang="en">
# <details><summary>1. Which hooks fire when you call <code>model.forward(x)</code>?</summary>Those of the layers inside, if they are called in the normal way, but not those of <code>model</code> itself.</details>
# <details><summary>2. What is wrong with <code>lambda m, a, o: (seen.append(o), o)</code>?</summary>It returns a tuple, which replaces the output, and an error comes only where it is used as a tensor, perhaps in your own code. Besides, the <code>o</code> that is kept holds the whole graph.</details>
# <details><summary>3. Every child has a hook. Why do you still not see what the ReLU gives?</summary>Because <code>forward</code> uses the function <code>F.relu</code>. Look at the input of the next module, or use <code>nn.ReLU</code>.</details>
# </div>
#
# ## 5.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 研究大语言模型内部的人，每天都在用前向钩子。他们读出某一层的激活，看它从文字里读出了什么；或者把激活往某个方向推一把，看模型说出的话怎样改变，由此知道这个方向代表什么。后一种做法叫作引导（steering）。
#
# 第 14 课两样都做。其中引导用的钩子，和你在练习 05.4 里写的差不多。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# Researchers who look inside language models use forward hooks every day. They read the activations of a layer to learn
# what it has found in the text. Or they push the activations in some direction and watch how the words of the model
# change, which shows what that direction stands for. This is called steering.
#
# Lesson 14 does both. For steering, it needs little more than your hook from exercise 05.4. Below you see your progress
# so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
