# %% tags=["setup"]
from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from hookedu import LanguageToggle, TrainingPanel, check, guess, hint, progress, solution
from hookedu.models.shapes import Patient, Shapes, SmallCNN

LanguageToggle()

# %% [markdown]
# ## 10.1 五次训练 · Five runs
#
# <div lang="zh">
#
# 训练出了毛病，损失往往第一个告诉你，可它只是一个数，说不出毛病在哪一层。这里有五次训练，数据是第 09 课的小图，每张图上一个形状，共 6 类。我们只用 30 张图，让网络把它们背下来：连一小批图都背不下来的网络，多半是哪里坏了。正式训练之前，人们常做这项检查。
#
# A 是健康的；B、C、D 各有改动，下面看得到；E 是同事拿来的，里面有什么，我们不知道。优化器都是带动量的 SGD，学习率 0.1，只有 C 是 1.0；D 在第 10 步收到一张全黑的图。
#
# 下面只打印损失。单看这些数，能分出谁病了吗？B 和 C 得的是同一种病吗？
#
# </div>
# <div lang="en">
#
# When training goes wrong, the loss is usually the first to tell you, but it is a single number and cannot say which layer is at fault. Here are five runs, on the small pictures of lesson 09 with one shape in each, of 6 classes. We let the network learn just 30 pictures by heart: if it cannot memorise a small batch, something is probably broken. People run this check before real training.
#
# A is healthy; B, C and D have been changed, as you see below; E comes from a colleague, and we do not know what is inside. All use SGD with momentum at a rate of 0.1, only C has 1.0. At step 10, D receives a picture that is all black.
#
# Below, only losses are printed. Can you tell from these numbers who is ill? Do B and C have the same illness?
#
# </div>

# %% picture="data"
batch = [Shapes(30, seed=1)[i] for i in range(30)]
pictures = torch.stack([sample.image for sample in batch])
labels = torch.tensor([sample.label for sample in batch])
images = F.avg_pool2d(pictures, 2)  # 32×32, to be quick
plt.figure(figsize=(9, 1.6), layout="constrained")
plt.imshow(torch.cat(list(pictures[:6]), dim=2).permute(1, 2, 0))
_ = plt.axis("off")
# %%
BLOCKS = ["block1", "block2", "block3", "block4"]  # each with conv, bn, relu; then avgpool, head


class Contrast(nn.Module):
    """Give every picture mean 0 and standard deviation 1."""

    def forward(self, x):
        return (x - x.mean((1, 2, 3), keepdim=True)) / x.std((1, 2, 3), keepdim=True)


def make(run):
    torch.manual_seed(0)
    model = Patient() if run == "E" else SmallCNN()
    for block in map(model.get_submodule, BLOCKS):
        if run == "B":
            block.bn, block.relu = nn.Identity(), nn.Sigmoid()
        if run == "C" and block in (model.block3, model.block4):
            block.bn = nn.Identity()
    if run == "D":
        layers = OrderedDict(contrast=Contrast(), **dict(model.block1.named_children()))
        model.block1 = nn.Sequential(layers)
    return model


# %%
def train(model, rate=0.1, black=None, steps=30, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for step in range(steps):
        x = images.clone()
        if step == black:
            x[3] = 0  # once, a picture arrives all black
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
options = {"A": {}, "B": {}, "C": {"rate": 1.0}, "D": {"black": 10}, "E": {}}
for run in options:
    losses = train(make(run), **options[run])
    print(f"run {run}: loss {losses[0]:.1f} at first, {losses[-1]:.1f} at last")

# %% [markdown]
# <div lang="zh">
#
# D 的损失成了 `nan`。B 和 C 都停在 1.8 左右，等于在 6 类里瞎猜（$\ln 6$），好像得了同一种病；E 和 A 一样好，降到了 0.0。后面会看到，这两个印象都是错的。要往里面看，就用钩子。
#
# </div>
# <div lang="en">
#
# The loss of D has become `nan`. B and C end near 1.8, as good as guessing among 6 classes ($\ln 6$), and seem to have the same illness; E is as good as A and falls to 0.0. We shall see that both impressions are wrong. Hooks let us look inside.
#
# </div>
#
# ## 10.2 每个子模块一个数 · One number per child
#
# <div lang="zh">
#
# 先在没有训练过的 ResNet-50 上练手：给每个子模块挂一个前向钩子，按名字记下输出的均值，同时把输出张量本身留在 `kept` 里。等前向传播结束，再用 `kept` 里的张量算一遍均值。**先猜。**
#
# </div>
# <div lang="en">
#
# We practise on an untrained ResNet-50: a forward hook on every child notes the mean of its output by name, and also keeps the output tensor itself, in `kept`. When forward is over, we compute the means again from the tensors in `kept`. **Guess first.**
#
# </div>

# %%
guess("10.a")

# %% tags=["E10"]
torch.manual_seed(0)
resnet = torchvision.models.resnet50().double()  # float64: the same digits on every machine
means, kept = {}, {}


def note(name, module, args, output):
    means[name] = output.mean().item()
    kept[name] = output.detach()


children = dict(resnet.named_children())
handles = [child.register_forward_hook(partial(note, name)) for name, child in children.items()]
out = resnet(pictures[:4].double())
for handle in handles:
    handle.remove()

for name, mean in means.items():
    later = kept[name].mean().item()  # below, + 0 makes 0.0 of -0.0
    changed = "" if later == mean else f"  from kept: {later:.2f}"
    print(f"{name:8} {round(mean, 2) + 0:5.2f}", changed)

# %% [markdown]
# <div lang="zh">
#
# 不全一样：`bn1` 后面的 `relu` 是就地的，它改写了 `bn1` 的输出，均值从 0.00 变成 0.36。`detach()` 只去掉计算图，内存还是同一块。在钩子里当场算成一个数，就不怕改写，也几乎不占内存。模型在 GPU 上时，`.item()` 要等 GPU 算完；数很多，就先留成 0 维张量，一步结束再读。
#
# </div>
# <div lang="en">
#
# Not all: the `relu` behind `bn1` works in place and overwrote the output of `bn1`, whose mean went from 0.00 to 0.36. `detach()` drops the graph but keeps the same memory. A number computed inside the hook cannot be overwritten and takes hardly any memory. On a GPU, `.item()` has to wait for it: if you want many numbers, keep 0-dimensional tensors and read them at the end of the step.
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
# output, a Python number, in the order in which they ran (each runs once). Run the model in the mode that it is in, and leave it as it was;
# remove the hooks even after an exception, which goes on to the caller.
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
# 接着看梯度。还是上面那个 `out`，接交叉熵损失。前向传播已经结束，现在才给 ResNet-50 的每个参数挂张量钩子：参数的钩子到反向传播时才触发，所以还来得及。**先猜**，再看哪个参数的梯度最先到，哪个最后到。
#
# </div>
# <div lang="en">
#
# Now the gradients. The same `out`, followed by cross-entropy. Forward is over, and only now does every parameter of the ResNet-50 get a tensor hook: the hooks of a parameter fire in backward, so we are not too late. **Guess first**, and then see which parameter's gradient arrives first, and which last.
#
# </div>

# %%
guess("10.b")

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
print("the list of parameters, reversed:", [name for name, _ in arrived] == names[::-1])

# %% [markdown]
# <div lang="zh">
#
# `fc` 的参数最先到，`conv1.weight` 最后到：层的次序反过来了。可一层之内没有这样的规矩，`bn3.weight` 就比 `bn3.bias` 先到。`fc.bias` 的均值是 0.00，因为交叉熵对一张图各个 logit 的梯度，正负相消。所以看梯度的大小，要先取绝对值。
#
# </div>
# <div lang="en">
#
# The parameters of `fc` come first and `conv1.weight` last: layers arrive in reverse. Within a layer there is no such rule: `bn3.weight` arrives before `bn3.bias`. The mean at `fc.bias` is 0.00 because the gradients of cross-entropy with respect to the logits of a picture cancel, plus against minus. To see how large a gradient is, take absolute values first.
#
# </div>
#
# ### 练习 10.2：按次序记下梯度 · Exercise 10.2: Gradients in order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `gradient_means(model, loss)`：前向传播已经结束；你要挂上钩子，调用一次 `loss.backward()`，再取下钩子。返回 `(name, mean)` 的列表，按梯度到达的次序；均值取自**这一次**的梯度，是 Python 的数。冻结的参数跳过；`.grad` 照常累加，有的在这之前还是 `None`；不建新的计算图。
#
# </div>
# <div lang="en">
#
# Write `gradient_means(model, loss)`: the forward pass is over. Attach hooks, call `loss.backward()` once and take them off
# again. Return a list of `(name, mean)` in the order in which gradients arrive; each mean is that of **this** pass's
# gradient, a Python number. Skip frozen parameters. `.grad` accumulates as usual, and some are still `None` before. Build
# no new graph.
#
# </div>


# %% exercise="10.2"
def gradient_means(model, loss):
    """调用 loss.backward()，按到达的次序返回 [(参数名, 梯度的均值), ...]。

    Call loss.backward(); return [(parameter, mean of its gradient), ...] in order of arrival.
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
# 现在把两种钩子合成一个工具。每一步，对 4 个块的激活各记三个数：多少是 0，多少是 `nan`，损失对它的梯度有多大，即 `grad.abs().mean()`。梯度用 7.8 节的办法取得：在前向钩子里给输出挂张量钩子。
#
# 五次训练都用它再跑一遍，画成一张图，每次一行，损失和梯度用对数刻度。
#
# 健康的 A 是什么样子？看图时给每一行写下诊断：哪里不对，从哪一步起，在哪一块？
#
# </div>
# <div lang="en">
#
# Now we put both kinds of hooks into one tool. At every step it notes three numbers for the activation of each of the 4 blocks: which share of it is 0, which share is `nan`, and how large the gradient of the loss with respect to it is, as `grad.abs().mean()`. The gradient is obtained as in section 7.8: a forward hook sets a tensor hook on the output.
#
# All five runs go through it once more, and one figure shows them, a row for each, with loss and gradients on a logarithmic scale.
#
# What does the healthy A look like? Write down a diagnosis for every row: what is wrong, from which step on, in which block?
#
# </div>


# %%
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
COLOURS = "#08306b", "#2171b5", "#6baed6", "#d94801"
TITLES = "loss", "share of 0", "share of nan", "mean |gradient|"


def plot(diagnoses):
    """Draw one row per run: its loss, the three numbers of each block, and a diagnosis."""
    size = (11, 1.3 * len(diagnoses) + 0.6)
    _, rows = plt.subplots(len(diagnoses), 4, figsize=size, layout="constrained", sharex=True)
    for row, (run, says) in zip(rows, diagnoses.items(), strict=True):
        losses, seen = runs[run]
        row[0].semilogy(losses, color="black")
        row[0].set(ylim=(5e-4, 60), yticks=[0.001, 0.1, 10], ylabel=f"run {run}")
        for ax, what in zip(row[1:], ("zeros", "nan", "gradient"), strict=True):
            for block, colour in zip(BLOCKS, COLOURS, strict=True):
                ax.plot(seen[what, block], color=colour, label=block, lw=2)
            ax.set(xlim=(0, 29), ylim=(-0.05, 1.05))
        row[3].set_yscale("symlog", linthresh=1e-9)
        row[3].set(ylim=(-3e-10, 1), yticks=[0, 1e-8, 1e-4, 1])
        row[3].set_ylabel(says, rotation=0, ha="left", va="center", labelpad=10)
        row[3].yaxis.set_label_position("right")
    for top, bottom, title in zip(rows[0], rows[-1], TITLES, strict=True):
        top.set_title(title, fontsize=10)
        bottom.set_xlabel("step")
    rows[0][1].legend(fontsize=7, loc="upper right", ncols=2)


# %% picture="five_runs"
runs = {}
for run in options:
    model = make(run)
    with checkup(model) as seen:
        runs[run] = train(model, **options[run]), seen
plot(dict.fromkeys(options, ""))

# %% [markdown]
# <div lang="zh">
#
# A 是健康的样子：大约一半的激活是 0，没有 `nan`；4 个块的梯度相差不到 10 倍，随着损失一起变小。其余四行各不相同：B 的四条梯度线隔得很远，C 有两个块的激活全变成了 0，D 满是 `nan`，E 少了两条线。
#
# </div>
# <div lang="en">
#
# A shows what health looks like: about half of the activations are 0, there is no `nan`, and the gradients of the 4 blocks differ by less than a factor of 10 and shrink with the loss. The other rows differ, each in its own way: in B the lines of the gradients are far apart, in C all activations of two blocks become 0, D is full of `nan`, and in E two lines are missing.
#
# </div>
#
# ## 10.5 D：第一个 nan · D: the first nan
#
# <div lang="zh">
#
# D 的 `block1` 开头多了一层 `contrast`：减去均值，除以标准差，后面是卷积、批归一化、ReLU。30 张图里有一张是黑的。**先猜**，再看下一步的图都正常时，`nan` 会不会消失。
#
# </div>
# <div lang="en">
#
# The `block1` of D begins with a layer `contrast`: minus the mean, divided by the standard deviation, followed by convolution, batch normalisation and ReLU. One of 30 pictures is black. **Guess first**, and then see whether the `nan` goes away when all pictures of the next step are fine.
#
# </div>


# %%
guess("10.c")


# %% tags=["F43"]
def look(name, module, args, output):
    share = [tensor.isnan().float().mean().item() for tensor in (args[0], output)]
    print(f"   {name:16} share of nan: {share[0]:.3f} in, {share[1]:.3f} out")


dark = images.clone()
dark[3] = 0
trained = make("D")
train(trained, black=10)
for title, net, x in (("black picture", make("D"), dark), ("after the run", trained, images)):
    print(title)
    layers = {name: net.block1.get_submodule(name) for name in ("contrast", "conv", "bn", "relu")}
    handles = [layer.register_forward_hook(partial(look, name)) for name, layer in layers.items()]
    net(x)
    for handle in handles:
        handle.remove()

# %% [markdown] tags=["F43"]
# <div lang="zh">
#
# 黑图的标准差是 0，0 除以 0 得 `nan`，所以 `contrast` 的输出有 30 分之 1，即 0.033，是 `nan`。卷积把每张图分开算，比例不变；`bn` 的均值取自整批图，所以全成了 `nan`。损失和梯度也是 `nan`，一步之后权重也是，再也好不了。那时再看，干净的图进了 `conv`，出来全是 `nan`，它就成了替罪羊。
#
# </div>
# <div lang="en">
#
# The black picture has a standard deviation of 0, and 0 divided by 0 is `nan`; so 1 in 30, or 0.033, of what `contrast` returns is `nan`. The convolution treats each picture by itself, and the share stays; `bn` takes its mean over the batch, and everything becomes `nan`. So do the loss, the gradients and, one step later, all weights: nothing heals. Whoever looks then sees clean pictures enter `conv` and only `nan` come out, and blames it.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 训练时，一个坏样本会经过 `BatchNorm` 传给整批。查 `nan` 要在它第一次出现的那一步查。
#
# </div>
# <div lang="en">
#
# In training, one bad sample reaches the whole batch through `BatchNorm`. Look for `nan` at the step where it appears first.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 10.3：谁造出了第一个 nan · Exercise 10.3: Who makes the first nan
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `first_nan(model, x)`：运行一次 `model(x)`，只看没有子模块的模块，按它们**运行**的次序，找出第一个输入里没有 `nan`、输出里却有的，返回它的名字；一个也没有，就返回 `None`。每个模块只有一个输入，不会就地改写它；有的模块运行两次。模型在原来的模式下运行，保持原样；最后取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write `first_nan(model, x)`: run `model(x)` once and look at the modules without children, in the order in which they
# **run**. Return the name of the first one that has no `nan` in its input but some in its output, or `None` if there is no
# such module. Each has a single input, which it does not change in place; some run twice. Leave the model and its mode as
# they are, and remove your hooks, even after an exception.
#
# </div>
#
# <div lang="zh">
#
# 真实的模型里，模块可能有几个输入，收发元组，或者就地改写输入：那就在前向前置钩子里，趁它还没运行，检查所有输入。
#
# </div>
# <div lang="en">
#
# In real models, a module may have several inputs, take and return tuples, or overwrite its input in place: then check all inputs in a forward pre-hook, before it runs.
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
# ## 10.6 B：消失的梯度 · B: vanishing gradients
#
# <div lang="zh">
#
# B 没有 `nan`，激活里也没有 0，损失却一动不动。它去掉了批归一化，ReLU 换成了 sigmoid。sigmoid 的斜率最多 0.25（2.9 节），三个块就是 64 倍。B 的梯度从 `block4` 走到 `block1`，缩小的也是这么多吗？**先猜**，再运行下面两个单元。
#
# </div>
# <div lang="en">
#
# B has no `nan` and no activation of 0, yet its loss does not move. It has lost its batch normalisation, and sigmoid has replaced ReLU. The slope of sigmoid is at most 0.25 (section 2.9), which makes a factor of 64 over three blocks. Is that by how much the gradient of B shrinks from `block4` to `block1`? **Guess first**, and then run the two cells below.
#
# </div>


# %%
def fall(first):
    """Say by which factor the gradient of block4 is larger than those of the others, at step 0."""
    sizes = [first["gradient", block] for block in BLOCKS]
    return [f"{sizes[3][0] / size[0]:.0f}" if size else "none" for size in sizes[:3]]


def variant(bn=None, relu=None):
    model = make("A")
    for block in map(model.get_submodule, BLOCKS):
        block.bn, block.relu = bn() if bn else block.bn, relu() if relu else block.relu
    with checkup(model) as seen:
        losses = train(model)
    return losses, seen


# %%
guess("10.d")

# %%
shown = dict(runs)
shown["ReLU without BatchNorm"] = variant(bn=nn.Identity)
shown["sigmoid with BatchNorm"] = variant(relu=nn.Sigmoid)
print(" block1 block2 block3   loss at last")
for title, (losses, seen) in shown.items():
    print(f"{''.join(f'{x:>7}' for x in fall(seen))}   {losses[-1]:<12.1f}   {title}")

# %% [markdown]
# <div lang="zh">
#
# 远不止 64：B 的梯度走到 `block1`，缩小了大约 4000 倍。最后两行把原因拆开：只去掉批归一化，已经缩小 122 倍，损失也没有降，因为默认的初始权重偏小；只换 sigmoid，是 14 倍，训练慢些，但学得动。两样合起来才到几千倍。连 A 也有 6 倍：前面的图更大，梯度摊到了更多像素上。所以我们说，比最后一块小 100 倍以上才叫消失：五次训练里，是 B 的 `block1` 和 `block2`。E 的 `none` 是另一回事。
#
# 再用 Adam 训练 B，它把梯度除以梯度自己的大小，学习率是 0.003。**先猜**，再看 300 步之后损失降了没有。
#
# </div>
# <div lang="en">
#
# Far more than 64: by `block1`, the gradient of B has shrunk about 4000 times. The last two rows take the causes apart. Without batch normalisation alone it shrinks 122 times, because the default initial weights are small, and the loss does not fall either; with sigmoid alone 14 times, which is slow but learns. Only together do they reach thousands. Even A has 6: earlier maps are larger and spread the gradient over more pixels. So let us speak of vanishing beyond a factor of 100: of the five runs, that is `block1` and `block2` of B. The `none` of E is another matter.
#
# Now B under Adam, which divides the gradient by its own size, at a rate of 0.003. **Guess first**, and then see whether the loss has fallen after 300 steps.
#
# </div>

# %%
guess("10.e")

# %% tags=["F45"]
for name, rate, options_ in (("SGD", 0.1, {"momentum": 0.9}), ("Adam", 0.003, {})):
    model = make("B")
    weight = model.block1.conv.weight
    before = weight.detach().clone()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=rate, **options_)
    losses = train(model, steps=1, optimizer=optimizer)
    moved, grad = (weight - before).abs().max().item(), weight.grad.abs().max().item()
    losses += train(model, steps=299, optimizer=optimizer)
    print(f"{name:4}  largest gradient {grad:.0e}, largest move {moved:.0e}")
    print("      loss at steps 0, 99, 199, 299:", [f"{losses[n]:.1f}" for n in (0, 99, 199, 299)])

# %% [markdown] tags=["F45"]
# <div lang="zh">
#
# Adam 的第一步和学习率一样大，这里是 0.003，哪怕梯度只有百万分之几；要小到它的 `eps`（默认 1e-8）附近，步子才会变小。SGD 的步子只有它的几千分之一。同一个 B，SGD 走 300 步也学不动，Adam 却学会了。
#
# </div>
# <div lang="en">
#
# The first step of Adam is as large as the rate, here 0.003, though the gradient is a few millionths; only for gradients near its `eps` (1e-8 by default) does it become smaller. The step of SGD is thousands of times smaller. The same B learns nothing in 300 steps of SGD, and learns under Adam.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# Adam 会把消失的梯度藏起来：损失降了，前面几块的梯度一开始还是那么小。要看梯度本身，别只看损失。
#
# </div>
# <div lang="en">
#
# Adam hides vanishing gradients: the loss falls although the gradients of the first blocks are as small as ever at the start. Look at the gradients, not at the loss alone.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 10.4：梯度在哪里消失 · Exercise 10.4: Where gradients vanish
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 写 `vanishing(model, x, target, ratio)`：损失是 `F.cross_entropy(model(x), target)`，反向传播一次。每个子模块（`named_children()`）的输出都有一个梯度，它的大小按 `grad.abs().mean()` 算。谁的梯度小于**最后运行**那个的 `ratio` 倍，就列出谁的名字，按运行的次序，返回这个列表。有的 ReLU 是就地的。除了 `.grad`，模型要保持原样，在它原来的模式下运行；最后取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write `vanishing(model, x, target, ratio)`: run one backward pass from `F.cross_entropy(model(x), target)`. Every child
# (`named_children()`) has a gradient at its output, whose size is `grad.abs().mean()`. Return a list of the names of those
# with a size below `ratio` times that of the child that ran **last**, in the order in which they ran. Some ReLUs work in
# place. Leave the model and its mode as they are, except for `.grad`, and take your hooks off, even after an exception.
#
# </div>


# %% exercise="10.4"
def vanishing(model, x, target, ratio):
    """返回输出的梯度太小的子模块的名字，按运行的次序。

    Return the names of the children whose output's gradient is too small, in order of running.
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
# ## 10.7 C：死掉的 ReLU · C: dead ReLUs
#
# <div lang="zh">
#
# C 的 `block3` 和 `block4` 没有批归一化，学习率是 1.0。它最后的损失和 B 一样在 1.8 左右，听诊器听到的却不同。下面只把嫌疑最大的学习率换掉，再训练一次。**先猜。**
#
# </div>
# <div lang="en">
#
# C has no batch normalisation in `block3` and `block4`, and a rate of 1.0. Its last loss is near 1.8 like that of B, but the stethoscope hears something else. Below we change only the chief suspect, the rate, and train again. **Guess first.**
#
# </div>


# %%
guess("10.f")


# %%
def describe(title, losses, seen):
    zeros = [f"{seen['zeros', block][-1]:.1f}" for block in BLOCKS]
    print(f"{title:13} highest loss {max(losses):4.1f}, last {losses[-1]:.1f}")
    print(f"   share of 0 by block: {zeros}")
    print(f"   gradient at block1 is exactly 0: {seen['gradient', 'block1'][-1] == 0}")


gentle = make("C")
with checkup(gentle) as seen:
    losses = train(gentle, rate=0.1)
describe("B", *runs["B"])
describe("C", *runs["C"])
describe("C, rate 0.1", losses, seen)

# %% [markdown]
# <div lang="zh">
#
# 梯度恰好是 0。学习率太大，几步就把 `block3` 和 `block4` 的权重推得太远（损失冲到了 16），它们的 ReLU 再没有一个输入是正的：输出是 0，斜率是 0，梯度到此为止。B 的梯度很小，但还活着；C 的是 0，什么优化器都无从下手，只能从头再来，用小一些的学习率。
#
# </div>
# <div lang="en">
#
# It is exactly 0. Within a few steps the large rate pushed the weights of `block3` and `block4` so far (the loss rose to 16) that no input of their ReLUs is positive: the output is 0, the slope is 0, and the gradient ends there. Those of B are tiny but alive; those of C leave any optimizer with nothing to work on, and one has to start again, with a smaller rate.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 想看着它们死去吗？`TrainingPanel` 也靠钩子，训练到哪里就画到哪里：一行一层，一列一步。指着哪一步（鼠标或方向键），就说出那一步的数。那两个块，是从第几步起死的？
#
# </div>
# <div lang="en">
#
# Would you like to watch them die? `TrainingPanel` works with hooks, too, and draws while the model trains, a row per layer and a column per step. Point at a step, with the mouse or the arrow keys, and its numbers are said. From which step on are the two blocks dead?
#
# </div>

# %% picture="dying"
dying = make("C")
optimizer = torch.optim.SGD(dying.parameters(), lr=1.0, momentum=0.9)
panel = TrainingPanel(dying, optimizer)
with panel:
    train(dying, optimizer=optimizer)
panel

# %% [markdown]
# <div lang="zh">
#
# 从第 8 步起。第 4 步更新得最猛，更新比例里那一列最亮；到了第 8 步，`block3` 和 `block4` 的 ReLU 没有一个单元为正，最后一个 ReLU 之前的梯度全是黑的，也就是恰好为 0。权重却还在动：那是动量的余势，越来越小。
#
# </div>
# <div lang="en">
#
# From step 8 on. The largest updates come at step 4, the bright column in their strip. By step 8 no unit in the ReLUs of `block3` and `block4` is positive, and before the last ReLU all gradients are black, which means exactly 0. The weights still move all the same: they are carried on by what is left of the momentum, less and less.
#
# </div>
#
# ## 10.8 E：没有标签的病人 · E: the patient without a label
#
# <div lang="zh">
#
# E 的损失和 A 一样好，可它少了两条梯度线。先自己下诊断：这个模型里发生了什么？损失为什么还会降？再运行下面的单元格，打开答案。
#
# </div>
# <div lang="en">
#
# E has the loss of A but lacks two lines of gradients. Make your own diagnosis first: what goes on in this model, and why does its loss fall? Then run the cell below and open the answer.
#
# </div>

# %%
patient = make("E")
before = {name: param.detach().clone() for name, param in patient.named_parameters()}
train(patient)
for name, param in patient.named_parameters():
    moved = (param - before[name]).abs().max().item()
    print(f"{name:20} .grad is None: {param.grad is None!s:5}  moved: {moved > 0}")

# %% [markdown]
# <div lang="zh">
#
# <details><summary>答案</summary>
#
# `forward` 里，有人在 `block2` 之后写了 `.detach()`，计算图断了：前两块的梯度不是很小，也不是 0，而是根本没有，所以 `.grad` 是 `None`，权重一步也没动。没有学过的前两块也能给出分得开 30 张图的特征，后面的层就把它们背了下来。只看损失，永远发现不了。打开 `Patient` 的源代码看一看。
#
# </details>
#
# </div>
# <div lang="en">
#
# <details><summary>Answer</summary>
#
# In `forward`, somebody wrote `.detach()` after `block2`, and the graph is cut: the gradients of the first two blocks are neither tiny nor 0, there are none; `.grad` is `None`, and the weights have not moved. Even untrained, these blocks give features that tell 30 pictures apart, and the layers behind them learned these by heart. The loss alone would never show it. Have a look at the source of `Patient`.
#
# </details>
#
# </div>

# %% picture="five_diagnoses"
plot(
    {
        "A": "healthy",
        "B": "vanishing gradients:\nsmall from step 0",
        "C": "dead ReLUs:\nall 0, gradient exactly 0",
        "D": "nan from one picture,\nspread by batch norm",
        "E": "cut graph:\nno gradient before block3",
    }
)

# %% [markdown]
# <div lang="zh">
#
# 同一张图，写上了诊断。四种病，四种样子：梯度很小，恰好是 0，是 `nan`，根本没有。
#
# </div>
# <div lang="en">
#
# The same figure with the diagnoses written in. Four illnesses look four ways: gradients that are tiny, exactly 0, `nan`, or not there at all.
#
# </div>
#
# ## 10.9 所有梯度，一个范数 · One norm of all gradients
#
# <div lang="zh">
#
# 学习率合适，也可能偶尔有一步的梯度特别大，这时就裁剪：`clip_grad_norm_` 把所有参数的梯度合起来算**一个**范数，太大就一起按比例缩小。下面 `a` 的梯度是 `[3, 4]`，`b` 的是 `[12]`，上限 6.5。先用 `clip_grad_norm_`，再给每个参数挂一个张量钩子，各裁各的（练习 03.2）。**先猜。**
#
# </div>
# <div lang="en">
#
# Even with a good rate, a single step may have very large gradients. One clips them: `clip_grad_norm_` computes **one** norm of the gradients of all parameters, and if it is too large, scales all by the same factor. Below, the gradient of `a` is `[3, 4]`, that of `b` is `[12]`, and the limit is 6.5. First comes `clip_grad_norm_`, then a tensor hook on every parameter, each clipping its own (exercise 03.2). **Guess first.**
#
# </div>

# %%
a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([a, b], lr=1.0)


def backward():
    optimizer.zero_grad()
    ((a * torch.tensor([3.0, 4.0])).sum() + 12 * b.sum()).backward()


def report(title):
    print(title, [round(value, 2) for p in (a, b) for value in p.grad.tolist()])


# %%
guess("10.g")

# %%
backward()
report("as they are:")
torch.nn.utils.clip_grad_norm_([a, b], max_norm=6.5)
report("clip_grad_norm_:")
own = [p.register_hook(lambda grad: grad * min(1, 6.5 / grad.norm().item())) for p in (a, b)]
backward()
report("each by its own:")
for handle in own:
    handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 两种结果不一样。合起来的范数是 $\sqrt{9+16+144}=13$，所以 `clip_grad_norm_` 把每个梯度减半；各裁各的，`a` 的范数是 5，没有动，`b` 缩到 6.5，方向变了。总范数要等所有梯度都到齐、加好才算得出来，而张量钩子只看到一个。优化器也有钩子：`register_step_pre_hook` 挂上的函数，在 `step()` 开始时触发。
#
# </div>
# <div lang="en">
#
# The two results differ. The norm of all is $\sqrt{9+16+144}=13$, so `clip_grad_norm_` halves every gradient; each by itself, `a` with its norm of 5 is left alone and `b` becomes 6.5: the direction has changed. The norm of all can be computed only when all gradients have arrived and been added up, and a tensor hook sees only one. Optimizers have hooks, too: a function registered with `register_step_pre_hook` fires as `step()` begins.
#
# </div>


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
# 混合精度训练里，`GradScaler` 先把损失放大，免得很小的梯度在 float16 里变成 0，走步之前再缩回来。下面放大 1024 倍，真正的梯度是 2。**先猜**，再看优化器的钩子看到多少。
#
# </div>
# <div lang="en">
#
# In mixed precision, `GradScaler` multiplies the loss so that small gradients do not become 0 in float16, and divides again before the step. Below, the scale is 1024 and the true gradient is 2. **Guess first**, and then see what the hook of the optimizer finds.
#
# </div>

# %%
guess("10.h")

# %% tags=["F44"]
seen = []
for fused in (False, True):
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    w.register_hook(lambda grad: seen.append(grad.item()))
    optimizer.register_step_pre_hook(lambda *_: seen.append(w.grad.item()))
    scaler.scale(2 * w.sum()).backward()
    scaler.step(optimizer)
print("tensor hook:                         ", seen[0])
print("step pre-hook:                       ", seen[1])
print("step pre-hook, optimizer with fused: ", seen[3])

# %% [markdown] tags=["F44"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 用了 `GradScaler`，张量钩子看到的梯度是放大过的，这里是 2048 而不是 2；`step()` 之前的钩子看到的才是真的（`fused=True` 的优化器除外：它在 `step()` 里面才缩回来）。要在别处裁剪，先调用 `scaler.unscale_(optimizer)`。
#
# </div>
# <div lang="en">
#
# Under a `GradScaler`, tensor hooks see gradients that have been scaled up, here 2048 instead of 2; the hook before `step()` sees the true ones (but not with an optimizer of `fused=True`, which divides inside `step()`). To clip elsewhere, call `scaler.unscale_(optimizer)` first.
#
# </div>
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
# Write `clip_before_step(optimizer, max_norm)`: from now on, before each `step()` of this optimizer, clip all its parameters
# as `clip_grad_norm_` does (you may call it). Where a `.grad` is `None`, leave it so. There may be several groups, and
# those that are added later count too. Return the handle; after its `remove()` nothing is clipped any more.
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
# ## 10.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 损失说得出有没有毛病，说不出毛病在哪一层；有时它连有毛病也说不出来。
# 2. 在钩子里当场把张量算成一个数：几乎不占内存，也不怕后来的就地改写。
# 3. `nan` 要在它第一次出现的那一步查：找第一个输入干净、输出不干净的模块。
# 4. 梯度的大小用 `grad.abs().mean()`，在层与层之间比较：很小、恰好是 0、是 `nan`、根本没有，是四种不同的病。
# 5. 要等所有梯度到齐才能做的事，放进优化器 `step()` 之前的钩子。
#
# </div>
# <div lang="en">
#
# 1. The loss may tell that something is wrong, but not in which layer; sometimes it does not even tell that.
# 2. Turn a tensor into a number inside the hook: it takes hardly any memory, and no later change in place can spoil it.
# 3. Look for `nan` at the step where it appears first: find the first module whose input is clean and whose output is not.
# 4. Measure a gradient by `grad.abs().mean()` and compare layers: tiny, exactly 0, `nan` and none at all are four different illnesses.
# 5. What needs all gradients together belongs into the hook before the `step()` of the optimizer.
#
# </div>

# %% [markdown]
# ## 10.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么不先把输出留着，最后再算均值？</summary>后面的就地操作可能改写它，那时算出来的就是别的数；留着还占内存。</details>
# <details><summary>2. 两次训练的损失都停着不动，怎样分辨梯度消失和死掉的 ReLU？</summary>看激活里 0 的比例和前面几块的梯度：梯度消失时激活并不全是 0，梯度很小但不是 0；ReLU 死掉时，激活全是 0，它前面的梯度恰好是 0。</details>
# <details><summary>3. 为什么张量钩子做不了 <code>clip_grad_norm_</code> 的事？</summary>它触发时只有一个梯度，而总范数要等所有参数的梯度都到齐、加好。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why not keep the outputs and compute their means at the end?</summary>A later operation in place may overwrite them, and the mean would be that of something else; and they hold memory.</details>
# <details><summary>2. The losses of two runs stand still. How do you tell vanishing gradients from dead ReLUs?</summary>By the share of 0 among the activations and by the gradients of the first blocks: with vanishing gradients the activations are not all 0, and the gradients are tiny but not 0; with dead ReLUs the activations are all 0, and the gradients before them are exactly 0.</details>
# <details><summary>3. Why can a tensor hook not do what <code>clip_grad_norm_</code> does?</summary>When it fires there is one gradient, but the norm of all needs the gradients of all parameters, arrived and added up.</details>
# </div>

# %% [markdown]
# ## 10.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# `wandb.watch` 在训练时给每个参数的梯度记直方图，靠的就是张量钩子，在它的源代码里可以搜到 `_hook_variable_gradient_stats`。如果 `nan` 是在反向传播里才出现的，前向钩子找不到它，可以搜索 `detect_anomaly`：它会指出是哪个函数的反向计算第一个给出了 `nan`，代价是训练慢很多。下面是你的进度。
#
# </div>
# <div lang="en">
#
# `wandb.watch` records histograms of every parameter's gradient during training by means of tensor hooks; search its source for `_hook_variable_gradient_stats`. When a `nan` appears only in backward, no forward hook finds it; search for `detect_anomaly`, which names the function whose backward computation returned the first `nan`, and makes training much slower. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
