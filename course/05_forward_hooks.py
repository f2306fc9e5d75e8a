# %% tags=["setup"]
import inspect
from collections import Counter, OrderedDict
from contextlib import contextmanager, suppress
from functools import partial

import torch
import torchvision
from torch import nn

from hookedu import (
    LanguageToggle,
    check,
    hint,
    list_hooks,
    plot_feature_maps,
    progress,
    record,
    solution,
)

LanguageToggle()

# %% [markdown]
# ## 5.1 两个数的背后 · Behind two numbers
#
# <div lang="zh">
#
# 下面的网络只有 2 层：卷积（2 个 3×3 卷积核，权重一个全是 1，一个全是 2，偏置为 0），然后 2×2 最大池化。
# 输入 4×4 的全 1 图，出来的只有 2 个数。
#
# **前向钩子**挂在模块上：前向传播每运行完一次这个模块，PyTorch 就调用 `hook(module, args, output)`。
#
# **先猜一猜**：卷积给出了哪些数？`args` 又是什么？
#
# </div>
# <div lang="en">
#
# The net below has 2 layers: a convolution (2 kernels of 3×3, one all 1 and one all 2, bias 0), then 2×2 max pooling.
# A 4×4 picture of ones goes in, and only 2 numbers come out.
#
# A **forward hook** is attached to a module: each time the forward pass has run that module, PyTorch calls
# `hook(module, args, output)`.
#
# **Guess first**: which numbers did the convolution give, and what is `args`?
#
# </div>

# %% tags=["E3"]
conv, pool = nn.Conv2d(1, 2, 3), nn.MaxPool2d(2)
with torch.no_grad():
    conv.weight[0], conv.weight[1], conv.bias[:] = 1, 2, 0
net = nn.Sequential(conv, pool)
seen = []


def keep(module, args, output):
    seen.append((args, output))


handle = conv.register_forward_hook(keep)
out = net(torch.ones(1, 1, 4, 4))
handle.remove()

args, output = seen[0]
print("the net returned:", tuple(out.shape), out.flatten().tolist())
print("the hook saw:    ", tuple(output.shape), output.flatten().tolist())
print("args is a", type(args).__name__, "of length", len(args))
print("args[0]:         ", tuple(args[0].shape), "all ones:", bool((args[0] == 1).all()))

# %% [markdown]
# <div lang="zh">
#
# 卷积给出了 2 张 2×2 的**特征图**，每个通道一张：每个窗口有 9 个 1，权重为 1 就得 9，为 2 就得 18。池化只留下最大值。`args` 是一个**元组**，装着所有位置参数，所以输入是 `args[0]`。
# 钩子只看不改，就什么也不返回。
#
# </div>
# <div lang="en">
#
# The convolution gave 2 **feature maps** of 2×2, one for each channel: each window has 9 ones, which weights of 1 turn into 9, weights of 2 into 18.
# Pooling kept the largest. `args` is a **tuple** of all
# positional arguments, so the input is `args[0]`. A hook that only looks returns nothing.
#
# </div>
#
# ## 5.2 同样的结果，沉默的钩子 · The same result, a silent hook
#
# <div lang="zh">
#
# 下面给网络和卷积各挂一个计数的钩子，再用 3 种写法运行。**先猜**：各触发几次？
#
# </div>
# <div lang="en">
#
# Now the net and the convolution each get a hook that counts, and we run them in 3 ways. **Guess**: how often does each fire?
#
# </div>

# %% tags=["F11"]
fired, x = Counter(), torch.ones(1, 1, 4, 4)


def count(name, module, args, output):
    fired[name] += 1


ways = {"net(x)": net, "net.forward(x)": net.forward, "conv.forward(x)": conv.forward}
with net.register_forward_hook(partial(count, "net")), conv.register_forward_hook(partial(count, "conv")):
    for way, run in ways.items():
        fired.clear()
        largest = run(x).max().item()
        print(f"{way:15}  largest value {largest}  hook on net: {fired['net']}, on conv: {fired['conv']}")

# %% [markdown] tags=["F11"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 触发钩子的是 `module(x)`。写成 `module.forward(x)`，结果一样，这个模块的钩子却不触发；里面各层的钩子照常触发。
#
# </div>
# <div lang="en">
#
# It is `module(x)` that fires hooks. `module.forward(x)` gives the same result, but that module's hooks stay silent; layers inside still fire.
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
# 写 `capture(module, seen)`：`module` 每运行一次，就往列表 `seen` 末尾添加一对 `(x, output)`（元组或列表）。`x` 是输入张量本身，不是元组，也不是副本；
# `output` 只看值，`detach()` 过的也行。只看不改，什么模式下都一样。返回句柄。
#
# </div>
# <div lang="en">
#
# Write `capture(module, seen)`: each time `module` runs, one pair `(x, output)`, a tuple or a list, goes to the end of the list
# `seen`. There `x` is the input tensor itself, neither the tuple nor a copy; of `output` only the values count, so `detach()` is
# fine. Look only and change nothing, in whatever mode. Return the handle.
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
# 钩子看到的，真的就是 `forward` 里算出的值吗？让 `forward` 自己也交出中间值，逐个相减。
#
# 所有权重和偏置都是 1，输入都是 0.1。同一个钩子挂到每个子模块上，是谁在调用，看参数 `module`；
# 只有 `ReLU6` 不挂：它的输出就是 `out`，不在 `[a, b, c]` 里。**先猜**：钩子看到的 3 个值各是多少？
#
# </div>
# <div lang="en">
#
# Is what a hook sees really what `forward` computed? Let `forward` hand out its intermediate values as well, and subtract.
#
# All weights and biases are 1, all inputs 0.1. One and the same hook is on every child but `ReLU6` (its output is `out`, not one of
# `[a, b, c]`); its argument `module` tells who is calling. **Guess**: which 3 values does it see?
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
# 0.1+0.1+1 得 1.2，1.2+1.2+1 得 3.4，一点不差。
#
# </div>
# <div lang="en">
#
# 0.1+0.1+1 is 1.2, and 1.2+1.2+1 is 3.4: no difference.
#
# </div>
#
# ### 练习 05.2：拿出证据 · Exercise 05.2: Prove it
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `prove(model, x, skip)`：`model(x)` 返回 `(out, returned)`，`returned` 是 `forward` 自己交出的中间值，按调用的次序。给 `children()` 里的每个子模块挂上钩子，类型为 `skip` 的除外，
# 运行一次 `model(x)`，再取下。模型算出的张量不要改动。
# 返回一个列表，按**调用**的次序，每项是一对：类名，以及输出与 `returned` 里对应值的最大绝对差。
#
# 检查时也会用一个谎报中间值的模型：你的证据必须能失败。
#
# </div>
# <div lang="en">
#
# Write `prove(model, x, skip)`: `model(x)` returns `(out, returned)`, and `returned` holds the values that `forward` hands out, in the
# order of calls. Hook each of `children()` except type `skip`, run `model(x)` once, take the hooks off; change no tensor. Return a list of pairs in the
# order of **calls**: class name, largest absolute difference from the value in `returned`.
#
# The check also uses a model that misreports: your proof must be able to fail.
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
    return [
        (name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned, strict=True)
    ]
    ### END SOLUTION


# %% check="05.2"
check("05.2", prove)

# %% [markdown]
# ## 5.4 小张量，大内存 · A small tensor, a lot of memory
#
# <div lang="zh">
#
# ResNet-50，一批 4 张图。钩子只留下最后一组层的输出：4×2048×7×7 个数，不到 2 MB。
#
# `held` 从一个张量沿 `grad_fn` 往回走，把图上各节点为反向传播存下的张量（属性名以 `_saved_` 开头）都加起来，参数不算。
# `held` 的写法不必看懂，只看结果。**先猜**：留着 `output`，一共占住多少内存？留着 `output.detach()` 呢？
#
# </div>
# <div lang="en">
#
# ResNet-50 on a batch of 4 pictures. A hook keeps the output of the last group of layers only: 4×2048×7×7 numbers, less than 2 MB.
#
# `held` walks back from a tensor along `grad_fn` and adds up the tensors that each node saved for backward (attributes that begin with
# `_saved_`), without parameters. No need to follow how `held` is written; look at its result. **Guess**: how much memory does keeping `output` tie up? And `output.detach()`?
#
# </div>


# %% tags=["F13"]
def held(tensor):
    """MB of memory that cannot be freed while `tensor` lives."""
    tensors, nodes = [tensor], [tensor.grad_fn] if tensor.grad_fn else []
    for node in nodes:  # the list grows as we walk back
        nodes += [parent for parent, _ in node.next_functions if parent and parent not in nodes]
        tensors += [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    kept = [t for t in tensors if isinstance(t, torch.Tensor) and not isinstance(t, nn.Parameter)]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}
    return sum(storages.values()) / 1e6


torch.manual_seed(0)
resnet, seen = torchvision.models.resnet50(), {}


def keep(module, args, output):
    seen["attached"], seen["detached"] = output, output.detach()


with resnet.layer4.register_forward_hook(keep):
    resnet(torch.randn(4, 3, 224, 224))
for name, tensor in seen.items():
    print(f"{name}: {tuple(tensor.shape)} holds {held(tensor):.1f} MB")

# %% [markdown] tags=["F13"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 留下 `output` 就留下了它身后的整张图：344 MB，而不是 1.6 MB。只要值，就用 `output.detach()`。
#
# </div>
# <div lang="en">
#
# Keep `output` and you keep the whole graph behind it: 344 MB instead of 1.6 MB. For the values alone, take `output.detach()`.
#
# </div>
# </div>
#
# ## 5.5 异常跳过了清理 · The exception that skips the cleaning up
#
# <div lang="zh">
#
# 下面的网络要宽度为 3 的输入；宽度为 4 的会让 `forward` 抛出异常。两个函数都挂钩子、运行、取下；`list_hooks(net)` 列出还挂着的钩子。**先猜**：各运行 3 次之后，还挂着几个？
#
# </div>
# <div lang="en">
#
# The net below wants inputs 3 wide; with 4, `forward` raises an exception. Both functions attach a hook, run and take it off.
# `list_hooks(net)` lists the hooks that are still on.
# **Guess**: how many are left on after 3 runs of each?
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


for run in (careless, careful):
    net, seen = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), []
    for width in (4, 4, 3):
        with suppress(RuntimeError):
            run(torch.ones(1, width))
        print(f"{run.__name__}, {width} wide: hooks left on {len(list_hooks(net))}, outputs kept {len(seen)}")

# %% [markdown] tags=["F28"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 一抛异常，`handle.remove()` 就不执行了，旧钩子越积越多，最后一个输出记了 3 遍。用 `with` 或 `finally`。
#
# </div>
# <div lang="en">
#
# An exception skips `handle.remove()`, hooks pile up, the last output is kept 3 times. Use `with` or `finally`.
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
# 写 `with extracting(model, names) as seen:`。名字像 `body.conv` 这样带点，用 `model.get_submodule(name)` 找到模块；
# `seen[name]` 是它最后一次运行的 `output.detach()`，块结束之后也还能读。每个名字指一个不同的模块。块里的模型照常运行，梯度也不关。
# 模型抛异常也好，某个名字写错也好，都不留下钩子，异常原样传出去。
#
# </div>
# <div lang="en">
#
# Write `with extracting(model, names) as seen:`. Names are dotted, like `body.conv`; `model.get_submodule(name)` finds the module, and
# `seen[name]` is the `output.detach()` of its last run, readable after the block too. Each name is another module's. In the block
# gradients stay on. If the model raises or a name is misspelt, no hook stays on, and the exception comes through as it is.
#
# </div>


# %% exercise="05.3"
@contextmanager
def extracting(model, names):
    """在 with 块内收集各层的输出：给出字典 seen，无论如何都取下所有钩子。

    Collect outputs inside a with block: yields the dict seen, takes every hook off whatever happens.
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
# 返回 `None`，输出照旧。返回别的**任何东西**，它就取代输出，下一层收到的就是它。
#
# 下面 5 个钩子各遇到两个输入，`x` 和 `2 * x`；后面 3 个都像是只想看一看。**先猜**：哪几个改动了网络？哪一个会报错，在哪一层？
#
# </div>
# <div lang="en">
#
# Return `None` and the output stays as it is. Return **anything else** and it replaces the output: the next layer gets that.
#
# Each of the 5 hooks below meets two inputs, `x` and `2 * x`; the last 3 seem only to look. **Guess**: which of them change the net? Which one ends in an error, and in which layer?
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
for name, hook in hooks.items():
    seen.clear()
    with net[0].register_forward_hook(hook):
        try:
            out, second = net(x), net(2 * x)
            print(f"{name:10}  {out.item():4}, {second.item():4}  needs a gradient: {second.requires_grad}")
        except TypeError as error:
            print(f"{name:10}  TypeError in", str(error).splitlines()[0])

# %% [markdown] tags=["F8"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `lambda` 的值就是返回值。`update` 返回 `None`，没事；`setdefault` 交出的张量断了梯度，而且从第二次调用起交出的一直是第一次的旧张量，没有人报错；元组要到下一层 `relu` 才出错。
#
# </div>
# <div lang="en">
#
# A `lambda` returns its value. `update` returns `None`: harmless. `setdefault` hands over a tensor without gradient, from the second call on
# still the first; nobody complains. The tuple fails a layer later, in `relu`.
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
# 写 `steer(module, direction, strength)`：从此 `module` 每次的输出都加上 `strength * direction`，不论模式和形状，直到取下钩子；返回句柄。
# 梯度要照样流过；不要让模块再算一遍；原来的 `output` 不要就地改动，别人可能还留着它。
#
# </div>
# <div lang="en">
#
# Write `steer(module, direction, strength)`: `strength * direction` is added to every output of `module`, until the hook is taken off,
# in any mode and of any shape. Return the handle. The gradient must still flow; don't run the module again, nor change `output` in
# place: others may have kept it.
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
# ResNet-50 由许多这样的块组成：3 个卷积、3 个归一化，只有**一个** `relu`。按名字给每个子模块挂上钩子，运行一次。
# **先猜**：`seen["relu"]` 里会是什么？
#
# </div>
# <div lang="en">
#
# ResNet-50 consists of many such blocks: 3 convolutions, 3 normalisations, and just **one** `relu`. Hook every child by name and run the block once.
# **Guess**: what will be in `seen["relu"]`?
#
# </div>

# %% tags=["F27"]
block, calls, seen, handles = resnet.layer1[1], Counter(), {}, []


def keep(name, module, args, output):
    calls[name] += 1
    seen[name] = output.detach()


for name, child in block.named_children():
    handles.append(child.register_forward_hook(partial(keep, name)))
out = block(torch.randn(1, 256, 8, 8))
for handle in handles:
    handle.remove()

print("calls:", dict(calls))
print(f"{sum(calls.values())} outputs, {len(seen)} of them kept")
print("seen['relu'] is the block's output:", torch.equal(seen["relu"], out))

# %% [markdown] tags=["F27"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 一个模块运行几次就报告几次，`seen[name] = ...` 只留下最后一次。这里的 `relu` 还会就地改写 `bn1`、`bn2` 的输出：要留住当时的值，用 `output.detach().clone()`（9.1 节）。
#
# </div>
# <div lang="en">
#
# A module reports each run; `seen[name] = ...` keeps the last. This `relu` also overwrites the outputs of
# `bn1` and `bn2` in place: to keep those, take `output.detach().clone()` (section 9.1).
#
# </div>
# </div>
#
# ### 练习 05.5：记下每一次调用 · Exercise 05.5: Record every call
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 写 `every_call(model, x)`：运行一次 `model(x)`，返回字典「名字 → 列表」：`model.named_modules()` 里每个没有子模块（`list(children())` 为空，有两个名字的只算一次）的模块，
# 每次调用一项 `output.detach()`。从没运行的，列表为空。最后取下钩子，出了异常也一样，异常原样传出去；模式不变。
#
# </div>
# <div lang="en">
#
# Write `every_call(model, x)`: run `model(x)` once; return a dictionary from names to lists. For each module in `model.named_modules()`
# without children (`list(children())` is empty; two names count once): one `output.detach()` per call, an empty list if none. Take the hooks off
# even after an exception, which comes through unchanged; keep the mode.
#
# </div>


# %% exercise="05.5"
def every_call(model, x):
    """返回 {名字: [每次调用的输出]}，只含没有子模块的模块。

    Return {name: [output of each call]} for the modules without children.
    """
    ### BEGIN SOLUTION
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name].append(output.detach())

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
# ## 5.8 实例：分类头看到了什么 · Worked example: what the head gets to see
#
# <div lang="zh">
#
# 卷积（3→8 通道）、ReLU、自适应平均池化到 4×4，最后一个线性层。图里只有一个亮方块，在右上方。在池化上留下特征图，再用它重算一遍线性层：
# 分毫不差，可见线性层看到的就是这些。
#
# </div>
# <div lang="en">
#
# A convolution (3→8 channels), ReLU, adaptive average pooling to 4×4, and a linear layer. The picture holds one bright square, at the upper right. We keep the feature maps
# at the pooling and run the linear layer on them once more: no difference, so this is all that it gets to see.
#
# </div>

# %% tags=["E23"]
torch.manual_seed(0)
layers = OrderedDict(conv=nn.Conv2d(3, 8, 2), relu=nn.ReLU(), pool=nn.AdaptiveAvgPool2d(4))
net = nn.Sequential(layers | OrderedDict(flat=nn.Flatten(), head=nn.Linear(8 * 4 * 4, 2)))
image = torch.zeros(1, 3, 10, 10)
image[:, :, 1:5, 5:9] = 1
seen = []


def keep(module, args, output):
    seen.append(output.detach())


with net.pool.register_forward_hook(keep):
    out = net(image)

print("image:", tuple(image.shape), " kept:", tuple(seen[0].shape), " holds a graph:", seen[0].requires_grad)
print("the head on what was kept gives the same:", torch.equal(net.head(seen[0].flatten(1)), out))
ax = plot_feature_maps(seen[0], title="what the head sees")

# %% [markdown]
# <div lang="zh">
#
# 上图是 8 个通道的特征图：通道 5 最亮，亮在方块所在的右上方；通道 2 全是 0。
#
# </div>
# <div lang="en">
#
# Above: the maps of 8 channels. Channel 5 is brightest, at the upper right like the square; channel 2 is all 0.
#
# </div>
#
# ## 5.9 现在读真的 · Now read the real one
#
# <div lang="zh">
#
# 本课程的 `record` 用的就是这些钩子。运行下面的代码，然后读 [`capture.py`](../hookedu/hooks/capture.py) 和 [`taps.py`](../hookedu/hooks/taps.py)。
# 你会认出：`__exit__` 做的就是练习 05.3 的 `finally`（`failed_at` 先不用管），`calls` 是练习 05.5，钩子「总是返回 `None`」是 5.6 节。`detach()` 之后为什么还要 `clone()`？见 9.1 节。
#
# </div>
# <div lang="en">
#
# The course's own `record` is made of these hooks. Run the cell, then read [`capture.py`](../hookedu/hooks/capture.py) and [`taps.py`](../hookedu/hooks/taps.py).
# There `__exit__` does what the `finally` of exercise 05.3 did (ignore `failed_at` for now), `calls` is exercise 05.5,
# and hooks that always return `None` are section 5.6. Why `clone()` after `detach()`? See section 9.1.
#
# </div>

# %%
with record(net, layers=["conv", "pool"]) as rec, record(block, layers="relu") as reused:
    net(image)
    block(torch.randn(1, 256, 8, 8))

print("the same as ours:", torch.equal(rec["pool"].activation, seen[0]))
print("calls of the block's relu:", len(reused["relu"].calls))
print("hooks left on:", len(list_hooks(net)) + len(list_hooks(block)))
print(inspect.getsource(type(rec).__exit__))
rec.summary()

# %% [markdown]
# ## 5.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 前向钩子是 `hook(module, args, output)`，由 `module(x)` 触发；`args` 是元组。
# 2. 返回 `None` 是看；返回别的任何东西，都会取代输出。
# 3. 只要值，就留 `output.detach()`。
# 4. 一个模块可以运行多次：用列表，不要用一个值。
# 5. 挂钩子的代码放进 `with` 或 `try`/`finally`，出了异常也不留痕迹。
#
# </div>
# <div lang="en">
#
# 1. A forward hook is `hook(module, args, output)`, fired by `module(x)`; `args` is a tuple.
# 2. To return `None` is to look; anything else replaces the output.
# 3. For the values alone, keep `output.detach()`.
# 4. A module may run several times: keep a list, not one value.
# 5. Attach hooks inside `with` or `try`/`finally`, and nothing stays on after an exception.
#
# </div>

# %% [markdown]
# ## 5.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. <code>model.forward(x)</code> 会触发哪些钩子？</summary>里面各层的，但没有 <code>model</code> 自己的。</details>
# <details><summary>2. <code>lambda m, a, o: (seen.append(o), o)</code> 错在哪里？</summary>它返回元组，元组取代了输出，下一层才报错。</details>
# <details><summary>3. 留下的张量很小，内存为什么涨得很快？</summary>没有 <code>detach()</code>，整张计算图都跟着留下。</details>
# </div>
# <div lang="en">
# <details><summary>1. Which hooks does <code>model.forward(x)</code> fire?</summary>Those of the layers inside, but not those of <code>model</code> itself.</details>
# <details><summary>2. What is wrong with <code>lambda m, a, o: (seen.append(o), o)</code>?</summary>It returns a tuple, which replaces the output; the error comes a layer later.</details>
# <details><summary>3. You keep small tensors. Why does memory grow so fast?</summary>Without <code>detach()</code> the whole graph stays with them.</details>
# </div>

# %% [markdown]
# ## 5.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# 研究大语言模型内部的人每天都在用前向钩子：读出某一层的激活，或者推它一把，看模型说出的话怎样改变（搜索 `TransformerLens` 和 activation steering）。
# 练习 05.4 就是它的核心。下面是你的进度。
#
# </div>
# <div lang="en">
#
# Researchers who look inside language models use forward hooks every day: they read the activations of a layer, or push them and watch how
# what the model says changes (search for `TransformerLens` and activation steering). Exercise 05.4 is the heart of it. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
