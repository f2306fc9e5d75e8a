# %% tags=["setup"]
from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from hookedu import LanguageToggle, check, hint, progress, solution
from hookedu.models.shapes import Shapes, SmallCNN

LanguageToggle()

# %% [markdown]
# ## 10.1 四次训练 · Four runs
#
# <div lang="zh">
#
# 还是第 09 课的小图，每张一个形状，共 6 类。同一个小网络训练四次，只用 30 张图、30 步：先看它能不能把一批图背下来，这是训练前最常做的检查。A 是健康的，B、C、D 各有改动。
#
# **先猜一猜**：下面只看损失。能看出谁病了吗？B 和 C 得的是同一种病吗？
#
# </div>
# <div lang="en">
#
# The small pictures of lesson 09 again, one shape in each, of 6 classes. The same small network is trained four times, on 30 pictures in 30 steps:
# can it learn one batch by heart? That is the usual first check. A is healthy; B, C and D have been changed.
#
# **Guess first**: below you see the loss alone. Can you tell who is ill? Do B and C have the same illness?
#
# </div>


# %%
batch = [Shapes(30, seed=1)[i] for i in range(30)]
pictures, labels = torch.stack([s.image for s in batch]), torch.tensor([s.label for s in batch])
plt.figure(figsize=(9, 1.6), layout="constrained")
plt.imshow(torch.cat(list(pictures[:6]), dim=2).permute(1, 2, 0))
plt.axis("off")


class Contrast(nn.Module):
    def forward(self, x):
        return (x - x.mean((1, 2, 3), keepdim=True)) / x.std((1, 2, 3), keepdim=True)


def make(run):
    torch.manual_seed(0)
    model = SmallCNN()  # block1 to block4, each with conv, bn, relu; then avgpool, head
    for block in list(model.children())[:4]:
        if run in "BC":
            block.bn = nn.Identity()
        if run == "B":
            block.relu = nn.Sigmoid()
    if run == "D":
        layers = OrderedDict(contrast=Contrast(), **dict(model.block1.named_children()))
        model.block1 = nn.Sequential(layers)
    return model


# %%
images = F.avg_pool2d(pictures, 2)  # 32×32, to be quick


def train(model, rate=0.003, black=None):
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=rate), []
    for step in range(30):
        x = images.clone()
        if step == black:
            x[3] = 0  # for once, a picture arrives all black
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


options = {"A": {}, "B": {}, "C": {"rate": 0.1}, "D": {"black": 10}}
for run in options:
    losses = train(make(run), **options[run])
    print(f"run {run}: loss {losses[0]:.1f} at first, {losses[-1]:.1f} at last")

# %% [markdown]
# <div lang="zh">
#
# 损失说出有病，说不出病在哪里：B 和 C 都停在 1.8，也就是 6 类里瞎猜（$\ln 6$）。要往里面看，就用钩子。
#
# </div>
# <div lang="en">
#
# The loss says that something is wrong, not where: B and C both stay at 1.8, as good as guessing among 6 ($\ln 6$). Hooks look inside.
#
# </div>
#
# ## 10.2 每个子模块一个数 · One number per child
#
# <div lang="zh">
#
# 先在没有训练过的 ResNet-50 上练手：按名字收集每个子模块输出的均值。钩子同时也留下了张量本身。**先猜**：最后由 `kept` 再算一遍，数还一样吗？
#
# </div>
# <div lang="en">
#
# We practise on an untrained ResNet-50: the mean of every child's output, by name. The hook also keeps the tensor itself.
# **Guess**: computed once more from `kept` at the end, are the numbers the same?
#
# </div>

# %% tags=["E10"]
torch.manual_seed(0)
resnet = torchvision.models.resnet50().double()  # float64: the same digits on every machine
means, kept = {}, {}


def note(name, module, args, output):
    means[name] = output.mean().item()
    kept[name] = output.detach()


handles = [child.register_forward_hook(partial(note, name)) for name, child in resnet.named_children()]
out = resnet(pictures[:4].double())
for handle in handles:
    handle.remove()

for name, mean in means.items():
    later = kept[name].mean().item()  # below, + 0 makes 0.0 of -0.0
    print(f"{name:8} {round(mean, 2) + 0:5.2f}", "" if later == mean else f"  from kept: {later:.2f}")

# %% [markdown]
# <div lang="zh">
#
# `bn1` 变了：后面的 `relu` 就地改写了它的输出。在钩子里当场算成一个数，就不会错，也不占内存。
#
# </div>
# <div lang="en">
#
# `bn1` differs: the `relu` behind it has overwritten its output in place. A number computed inside the hook cannot go wrong, and takes no memory.
#
# </div>
#
# ### 练习 10.1：子模块的均值 · Exercise 10.1: Means of the children
#
# ●● · 6 min
#
# <div lang="zh">
#
# 写 `child_means(model, x)`：运行一次 `model(x)`，返回字典：子模块的名字 → 输出的均值（Python 的数），按运行的次序（每个只运行一次）。模型在它原来的模式（训练或评估）下运行，保持原样；出了异常也要取下钩子，异常照常传出去。
#
# </div>
# <div lang="en">
#
# Write `child_means(model, x)`: run `model(x)` once and return a dictionary from each child's name to the mean of its
# output, a Python number, in the order in which they ran (each runs once). Run the model in its mode and leave it as it was;
# take hooks off, even after an exception, which comes through.
#
# </div>


# %% exercise="10.1"
def child_means(model, x):
    """运行一次 model(x)，返回 {子模块的名字: 输出的均值}。

    Run model(x) once and return {child's name: mean of its output}.
    """
    ### BEGIN SOLUTION
    means, handles = {}, []

    def note(name, module, args, output):
        means[name] = output.mean().item()

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(note, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means
    ### END SOLUTION


# %% check="10.1"
check("10.1", child_means)

# %% [markdown]
# ## 10.3 梯度到达的次序 · The order in which gradients arrive
#
# <div lang="zh">
#
# 同一个 `out`，交叉熵损失。前向传播已经结束，现在才给 ResNet-50 的每个参数挂张量钩子，记下梯度的均值：张量钩子到反向传播才触发，这时挂也来得及。
#
# **先猜**：谁第一，谁最后？正好是参数表倒过来吗？
#
# </div>
# <div lang="en">
#
# The same `out`, with cross-entropy. Forward is over; only now every parameter of the ResNet-50 gets a tensor hook that notes the
# mean of its gradient. Tensor hooks fire in backward, so this is early enough.
#
# **Guess**: who is first, who last? Is it just the list of parameters upside down?
#
# </div>

# %% tags=["E11"]
arrived = []


def note(name, grad):
    arrived.append((name, grad.mean().item()))


handles = [param.register_hook(partial(note, name)) for name, param in resnet.named_parameters()]
F.cross_entropy(out, labels[:4]).backward()
for handle in handles:
    handle.remove()

for name, mean in [*arrived[:5], ("...", 0.0), *arrived[-4:]]:
    print(f"{name:23}" + ("" if name == "..." else f"{round(mean, 2) + 0:.2f}"))
names = [name for name, _ in resnet.named_parameters()]
print(f"{len(arrived)} of {len(names)} parameters")
print("the list of parameters upside down:", [name for name, _ in arrived] == names[::-1])

# %% [markdown]
# <div lang="zh">
#
# 层的次序倒过来，层里却不一定：`bn3.weight` 先于 `bn3.bias`。`fc.bias` 的均值总是 0：交叉熵的梯度正负相消。
#
# </div>
# <div lang="en">
#
# Layers come in reverse, but inside a layer not always: `bn3.weight` before `bn3.bias`. The mean at `fc.bias` is always 0: with
# cross-entropy, plus and minus cancel.
#
# </div>
#
# ### 练习 10.2：按次序记下梯度 · Exercise 10.2: Gradients in order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `gradient_means(model, loss)`：前向传播已经结束，挂钩子、调用一次 `loss.backward()`、取下钩子；返回 `(name, mean)` 的列表，按到达的次序，均值取自**这一次**的梯度，是 Python 的数。跳过冻结的参数；`.grad` 照常累加，有的原来还是 `None`；不建新的计算图。
#
# </div>
# <div lang="en">
#
# Write `gradient_means(model, loss)`: forward is over. Attach hooks, call `loss.backward()` once, take them off. Return a list
# of `(name, mean)` in order of arrival, each the mean of **this** pass's gradient, a Python number. Skip frozen parameters;
# `.grad` accumulates as ever; some are still `None`. Build no new graph.
#
# </div>


# %% exercise="10.2"
def gradient_means(model, loss):
    """调用 loss.backward()，按到达的次序返回 [(参数名, 梯度的均值), ...]。

    Call loss.backward() and return [(parameter's name, mean of its gradient), ...] in order of arrival.
    """
    ### BEGIN SOLUTION
    arrived, handles = [], []

    def note(name, grad):
        arrived.append((name, grad.mean().item()))

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(partial(note, name)))
    try:
        loss.backward()
    finally:
        for handle in handles:
            handle.remove()
    return arrived
    ### END SOLUTION


# %% check="10.2"
check("10.2", gradient_means)

# %% [markdown]
# ## 10.4 听诊器 · A stethoscope
#
# <div lang="zh">
#
# 现在把两种钩子合在一起。每一步，对 4 个块的激活各记 3 个数：等于 0 的比例、`nan` 的比例，还有这个输出的梯度有多大，用 `grad.abs().mean()`（直接取均值，正负会相消）。
#
# 梯度用 7.8 节的办法：在前向钩子里给输出挂张量钩子。**先猜**：健康的 A，三样各是多少？
#
# </div>
# <div lang="en">
#
# Both kinds of hooks together now. At each step, 3 numbers for the activation of each of the 4 blocks: the share that is 0, the share of
# `nan`, and how large the gradient of this output is, as `grad.abs().mean()` (in a plain mean, plus and minus cancel).
#
# The gradient comes as in section 7.8, by a tensor hook set inside a forward hook. **Guess**: what are the three in A, the healthy run?
#
# </div>


# %%
BLOCKS = ["block1", "block2", "block3", "block4"]


@contextmanager
def checkup(model):
    """Yield a dictionary: (what, block) -> one number per step."""
    seen, handles = defaultdict(list), []

    def note(block, module, args, output):
        seen["zeros", block].append((output == 0).float().mean().item())
        seen["nan", block].append(output.isnan().float().mean().item())
        output.register_hook(lambda grad: seen["gradient", block].append(grad.abs().mean().item()))

    try:
        for block in BLOCKS:
            relu = model.get_submodule(f"{block}.relu")
            handles.append(relu.register_forward_hook(partial(note, block)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %%
def plot(run, losses, seen):
    _, axes = plt.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
    axes[0].plot(losses, color="black")
    axes[0].set(title=f"run {run}: loss", ylim=(-0.1, 2.2))
    for ax, what in zip(axes[1:], ("zeros", "nan", "gradient"), strict=True):
        for block, colour in zip(BLOCKS, ("#08306b", "#2171b5", "#6baed6", "#d94801"), strict=True):
            ax.plot(seen[what, block], color=colour, label=block, lw=2)
        ax.set(title=f"share of {what}", ylim=(-0.05, 1.05))
    axes[3].set_yscale("symlog", linthresh=1e-9)
    axes[3].set(title="mean |gradient|", ylim=(-3e-10, 1e-2))
    axes[3].legend(fontsize=7, loc="lower right", ncols=2)
    for ax in axes:
        ax.set(xlabel="step", xlim=(0, 29))


runs = {}
for run in options:
    model = make(run)
    with checkup(model) as seen:
        runs[run] = (train(model, **options[run]), seen)
losses, seen = runs["A"]
print("zeros, last step:", [f"{seen['zeros', block][-1]:.1f}" for block in BLOCKS])
plot("A", losses, seen)

# %% [markdown]
# <div lang="zh">
#
# 健康的样子：ReLU 让大约一半是 0，没有 `nan`，各块的梯度相差不大，损失下降时一起变小。
#
# </div>
# <div lang="en">
#
# Health looks like this: ReLU makes about half of the values 0, no `nan`, gradients of similar size in all blocks, shrinking together as the loss falls.
#
# </div>
#
# ## 10.5 第一个 nan · The first nan
#
# <div lang="zh">
#
# D 的 `block1` 开头多一层 `contrast`：减均值，除以标准差。第 10 步来了一张全黑的图，只此一次。**先猜**：从哪一步起有 `nan`，会好吗？哪一层第一个造出 `nan`：没训练的模型看黑图，训练完的看正常图？
#
# </div>
# <div lang="en">
#
# D's `block1` begins with a layer `contrast`: minus the mean, divided by the standard deviation. At step 10 a black picture comes, only once. **Guess**: from
# which step on is there `nan`, and does it heal? Which layer makes the first one: before training, on the black picture; afterwards, on clean ones?
#
# </div>

# %%
losses, seen = runs["D"]
plot("D", losses, seen)
print("steps with nan in block1:", [step for step, share in enumerate(seen["nan", "block1"]) if share])


def look(name, module, args, output):
    before, after = args[0].isnan().any().item(), output.isnan().any().item()
    print(f"   {name:16} nan in the input: {before!s:5}  in the output: {after}")


dark = images.clone()
dark[3] = 0
for title, net, x in (("untrained, black picture", make("D"), dark), ("after the run", model, images)):
    print(title)
    names = ("block1.contrast", "block1.conv", "block1.bn", "block1.relu")
    handles = [net.get_submodule(n).register_forward_hook(partial(look, n)) for n in names]
    net(x)
    for handle in handles:
        handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 黑图的标准差是 0，0 除以 0 得 `nan`。一步之后，所有权重都是 `nan`，凶手看上去就成了 `block1.conv`：要查，就在出事的那一步查。
#
# </div>
# <div lang="en">
#
# A black picture has a standard deviation of 0, and 0 by 0 is `nan`. One step later all weights are `nan`, and `block1.conv`
# looks guilty: look when it happens.
#
# </div>
#
# ### 练习 10.3：谁造出了第一个 nan · Exercise 10.3: Who makes the first nan
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `first_nan(model, x)`：运行一次 `model(x)`，返回名字：没有子模块的模块里，按**运行**的次序，第一个输入没有 `nan`、输出却有的；没有就返回 `None`。每个模块只有一个输入，不会就地改写；有的运行两次。模型在原来的模式下运行，保持原样；最后取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write `first_nan(model, x)`: run `model(x)` once. Of modules without children, in order of **running** (some twice, none in
# place), return the name of the first with no `nan` in its one input but some in its output, else `None`. Leave the
# model and its mode alone; remove hooks, after exceptions too.
#
# </div>


# %% exercise="10.3"
def first_nan(model, x):
    """返回第一个造出 nan 的模块的名字；没有则返回 None。

    Return the name of the first module that makes a nan; None where none does.
    """
    ### BEGIN SOLUTION
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None
    ### END SOLUTION


# %% check="10.3"
check("10.3", first_nan)

# %% [markdown]
# ## 10.6 消失的梯度 · Vanishing gradients
#
# <div lang="zh">
#
# B 没有 `nan`，激活里也没有零，损失却不动。它用 sigmoid，又没有批归一化。**先猜**：B 的梯度从 `block4` 走到 `block1`，还剩多少？只把批归一化还给它，够不够？
#
# 下面列出训练一开始，梯度就不到 `block4` 的 1/100 的块。图里的梯度用对数刻度。
#
# </div>
# <div lang="en">
#
# B has no `nan` and no zeros, yet its loss does not move. It uses sigmoid, without batch normalisation. **Guess**: on the way from `block4` to
# `block1`, how much of B's gradient is left? Is it enough to give it batch normalisation back?
#
# Listed below: blocks whose gradient is below 1/100 of that of `block4` at the very first step. The plot of gradients has a logarithmic scale.
#
# </div>

# %%
normed = make("A")
for block in BLOCKS:
    normed.get_submodule(block).relu = nn.Sigmoid()
with checkup(normed) as seen:
    train(normed)

for title, found in {"A": runs["A"][1], "B": runs["B"][1], "B with batch norm": seen}.items():
    first = {block: found["gradient", block][0] for block in BLOCKS}
    print(f"{title:18} below 1/100:", [block for block in BLOCKS if first[block] < first["block4"] / 100])
plot("B", *runs["B"])

# %% [markdown]
# <div lang="zh">
#
# sigmoid 的斜率最多 0.25（2.9 节），每过一块都要乘一次；批归一化把信号放大回来。
#
# </div>
# <div lang="en">
#
# Sigmoid's slope is at most 0.25 (section 2.9), once per block; batch normalisation enlarges the signal again.
#
# </div>
#
# ### 练习 10.4：梯度在哪里消失 · Exercise 10.4: Where gradients vanish
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 写 `vanishing(model, x, target, ratio)`：损失是 `F.cross_entropy(model(x), target)`，反向传播一次。每个子模块（`named_children()`）的输出都有梯度，大小为 `grad.abs().mean()`；返回名字的列表，按运行的次序：大小小于**最后运行**那个的 `ratio` 倍。有的 ReLU 是就地的。除了 `.grad`，模型要保持原样，在它原来的模式下运行；最后取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write `vanishing(model, x, target, ratio)`: one backward pass of `F.cross_entropy(model(x), target)`. Every child
# (`named_children()`) has a gradient at its output, of size `grad.abs().mean()`. Return a list of names, in order of running:
# those with a size below `ratio` times that of the child that ran **last**. Some ReLUs are in-place. Leave the model
# and its mode alone, but for `.grad`; take hooks off, even after an exception.
#
# </div>


# %% exercise="10.4"
def vanishing(model, x, target, ratio):
    """返回输出的梯度太小的子模块的名字，按运行的次序。

    Return the names of the children whose output's gradient is too small, in the order in which they ran.
    """
    ### BEGIN SOLUTION
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()
    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]
    ### END SOLUTION


# %% check="10.4"
check("10.4", vanishing)

# %% [markdown]
# ## 10.7 实例：死掉的 ReLU · Worked example: dead ReLUs
#
# <div lang="zh">
#
# 剩下 C：也没有批归一化，损失和 B 一样停在 1.8。听诊器一放就分出来了：先看图，再看最后一步，然后换掉嫌疑最大的学习率，只换它，再跑一次。
#
# **先猜**：C 的激活里有多少是零？`block1` 的梯度和 B 的一样小吗？
#
# </div>
# <div lang="en">
#
# C is left: no batch normalisation either, and a loss that stays at 1.8 as B's does. The stethoscope tells them apart: first the plot, then the last step; finally we change the chief suspect, the learning
# rate, and nothing else.
#
# **Guess**: how many of C's activations are zero? Is the gradient at `block1` as small as B's?
#
# </div>


# %%
def describe(title, losses, seen):
    zeros = [seen["zeros", block][-1] for block in BLOCKS]
    print(title, "loss has fallen:", losses[-1] < losses[0] - 0.3)
    print("   all activations are 0:   ", all(share == 1 for share in zeros))
    print("   gradient at block1 is 0: ", seen["gradient", "block1"][-1] == 0)


plot("C", *runs["C"])
gentle = make("C")
with checkup(gentle) as seen:
    losses = train(gentle, rate=0.003)
describe("C, rate 0.1:  ", *runs["C"])
describe("C, rate 0.003:", losses, seen)

# %% [markdown]
# <div lang="zh">
#
# 学习率 0.1 几步就把权重推得太远，ReLU 的输入再没有一个是正的：输出是 0，斜率也是 0。B 的梯度很小；C 的只到 `block4`，再往前恰好是 0，没有什么可学。
#
# </div>
# <div lang="en">
#
# A rate of 0.1 pushed the weights so far that no input of a ReLU is positive: output 0, slope 0. B's gradients were tiny; C's reach `block4` and are exactly 0 before it: nothing to learn from.
#
# </div>
#
# ## 10.8 所有梯度，一个范数 · One norm of all gradients
#
# <div lang="zh">
#
# 治 C 要减小学习率。若是偶尔有几步梯度太大，就裁剪：`clip_grad_norm_` 用的是所有梯度合起来的**一个**范数。**先猜**：给每个参数挂一个张量钩子，各裁各的（练习 03.2），结果一样吗？
#
# </div>
# <div lang="en">
#
# C needs a smaller rate. Where only a few steps have gradients far too large, one clips: `clip_grad_norm_` takes **one** norm of all gradients together. **Guess**: a tensor hook on every parameter, each clipping its own (exercise 03.2): is
# that the same?
#
# </div>

# %%
a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([a, b], lr=1.0)


def backward():
    optimizer.zero_grad()
    ((a * torch.tensor([3.0, 4.0])).sum() + 12 * b.sum()).backward()


def report(title):
    print(f"{title:18}", [round(value, 2) for p in (a, b) for value in p.grad.tolist()])


backward()
report("as they are:")
torch.nn.utils.clip_grad_norm_([a, b], max_norm=6.5)
report("clip_grad_norm_:")
own = [p.register_hook(lambda grad: grad * min(1, 6.5 / grad.norm().item())) for p in (a, b)]
backward()
report("each by its own:")
for handle in own:
    handle.remove()


# %%
def before_step(optimizer, args, kwargs):
    grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
    print("before the step:  ", [grad.tolist() for grad in grads], "a is", a.tolist())


handle = optimizer.register_step_pre_hook(before_step)
backward()
print("backward is over")
optimizer.step()
print("after the step:    a is", a.tolist())
handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 各裁各的，方向就变了。要等梯度到齐、加好，再一起缩小：优化器自己有钩子，`step()` 开始时触发。合起来的范数是 $\sqrt{9+16+144}=13$，所以上面每个梯度都减半。
#
# </div>
# <div lang="en">
#
# Each by its own turns the direction. One must wait until all gradients are there and added up: the optimizer has hooks itself, which fire as
# `step()` begins. The norm of all is $\sqrt{9+16+144}=13$, so above each gradient was halved.
#
# </div>
#
# ### 练习 10.5：用钩子裁剪 · Exercise 10.5: Clip through a hook
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 写 `clip_before_step(optimizer, max_norm)`：从此这个优化器每次 `step()` 之前，和 `clip_grad_norm_` 一样裁剪它的所有参数（可以直接调用它）。有的 `.grad` 是 `None`，不要去填；参数可能分几组，后来加的组也算。返回句柄：`remove()` 之后不再裁剪。
#
# </div>
# <div lang="en">
#
# Write `clip_before_step(optimizer, max_norm)`: before each future `step()` of this optimizer, clip all its parameters
# as `clip_grad_norm_` does (you may call it). Some `.grad` stay `None`; there may be several groups, some added later.
# Return the handle; after `remove()` nothing is clipped.
#
# </div>


# %% exercise="10.5"
def clip_before_step(optimizer, max_norm):
    """每次 step() 之前，按所有梯度的总范数裁剪；返回句柄。

    Before every step(), clip by the norm of all gradients together; return the handle.
    """

    ### BEGIN SOLUTION
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        grads = [p.grad for p in params if p.grad is not None]
        total = sum(grad.norm() ** 2 for grad in grads) ** 0.5
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)
    ### END SOLUTION


# %% check="10.5"
check("10.5", clip_before_step)

# %% [markdown]
# ## 10.9 小结 · Recap
#
# <div lang="zh">
#
# 1. 损失说有病，钩子说病在哪里。
# 2. 在钩子里当场算成一个数：不占内存，也不怕就地改写。
# 3. `nan` 要在出事的那一步找：第一个输入干净、输出不干净的模块。
# 4. 看梯度的大小用 `grad.abs().mean()`，层与层之间比。
# 5. 要看全部梯度才能做的事，放进优化器的 `step()` 之前。
#
# </div>
# <div lang="en">
#
# 1. The loss says that a run is ill, hooks say where.
# 2. Compute a number inside the hook: no memory held, no harm from changes in place.
# 3. Look for `nan` at the step where it happens: the first module whose input is clean and whose output is not.
# 4. The size of a gradient is `grad.abs().mean()`, compared from layer to layer.
# 5. What needs all gradients together belongs before the `step()` of the optimizer.
#
# </div>

# %% [markdown]
# ## 10.10 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么不先把输出留着，最后再算均值？</summary>后面的就地操作会改写它；留着还占内存。</details>
# <details><summary>2. 两次训练的损失都不动，怎样分辨梯度消失和死掉的 ReLU？</summary>看激活里 0 的比例；前者的梯度很小，后者恰好是 0。</details>
# <details><summary>3. 为什么张量钩子做不了 <code>clip_grad_norm_</code> 的事？</summary>它只看到一个梯度，而总范数要等全部到齐。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why not keep the outputs and compute their means at the end?</summary>A later operation in place overwrites them; they hold memory.</details>
# <details><summary>2. Two runs stand still. How do you tell vanishing gradients from dead ReLUs?</summary>By the share of 0 among the activations; the gradients are tiny in the one, exactly 0 in the other.</details>
# <details><summary>3. Why can a tensor hook not do what <code>clip_grad_norm_</code> does?</summary>It sees one gradient, and the norm of all needs them all.</details>
# </div>

# %% [markdown]
# ## 10.11 真实世界里 · In the wild
#
# <div lang="zh">
#
# `wandb.watch` 在训练时记录每个参数梯度的直方图，靠的就是张量钩子（在它的源码里搜索 `_hook_variable_gradient_stats`）。要找反向传播里的 `nan`，搜索 `detect_anomaly`。下面是你的进度。
#
# </div>
# <div lang="en">
#
# `wandb.watch` records histograms of every parameter's gradient by means of tensor hooks (search its source for `_hook_variable_gradient_stats`). For a `nan` made in backward, search for `detect_anomaly`. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
