# %% tags=["setup"]
import warnings
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
# 训练出了毛病，损失往往第一个告诉你。可是损失只是一个数，说不出毛病在哪一层。
#
# 这里有五次训练，数据是第 09 课的小图，每张图上一个形状，共 6 类。我们只用 30 张图，让网络把它们背下来，因为连一小批图都背不下来的网络，多半是哪里坏了。正式训练之前，人们常做这项检查。
#
# 五次训练里，A 是健康的。B、C、D 各有改动，下面看得到。E 是同事拿来的，里面有什么，我们不知道。优化器都是带动量的 SGD，学习率 0.1，只有 C 是 1.0。另外，D 在第 10 步会收到一张全黑的图。
#
# 下面只打印损失。单看这些数，你能分出谁病了吗？B 和 C 得的是同一种病吗？
#
# </div>
# <div lang="en">
#
# When training goes wrong, the loss is usually the first to tell you. But it is a single number, so it cannot say which
# layer is at fault.
#
# Here are five runs on the small pictures of lesson 09, each of which shows one shape of 6 classes. We let the network
# memorise just 30 pictures, because a network that cannot even memorise a small batch is probably broken. People run
# this check before they train in earnest.
#
# Run A is healthy. B, C and D have been changed, as you can see below, and E comes from a colleague, so we do not know
# what is inside. All five use SGD with momentum and a learning rate of 0.1, except for C, whose rate is 1.0. And at
# step 10, D receives a picture that is all black.
#
# For now we print nothing but losses. Can you tell from these numbers which runs are in trouble? And do B and C suffer
# from the same illness?
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
BLOCKS = ["block1", "block2", "block3", "block4"]  # each: conv, bn, relu (pool); then avgpool, head


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


options = {"A": {}, "B": {}, "C": {"rate": 1.0}, "D": {"black": 10}, "E": {}}
for run in options:
    losses = train(make(run), **options[run])
    print(f"run {run}: loss {losses[0]:.1f} at first, {losses[-1]:.1f} at last")

# %% [markdown]
# <div lang="zh">
#
# D 的损失成了 `nan`。B 和 C 都停在 1.8 左右，等于在 6 类里瞎猜（$\ln 6$），好像得了同一种病。E 和 A 一样好，降到了 0.0，好像也是健康的。后面用钩子往里面一看，就会发现这两个印象都是错的。
#
# </div>
# <div lang="en">
#
# The loss of D has become `nan`. The losses of B and C both end near 1.8. This is $\ln 6$, the loss of guessing among 6
# classes, so both runs seem to have the same illness. The loss of E falls to 0.0, as that of A does, so E seems to be
# as healthy. Both impressions will turn out to be wrong once we use hooks to look inside.
#
# </div>
#
# ## 10.2 每个子模块一个数 · One number per child
#
# <div lang="zh">
#
# 一层的输出是一大堆数，化成一个数（例如均值）才看得过来。这个数该在钩子里当场算，还是把输出留下来，以后再算？
#
# 我们在没有训练过的 ResNet-50 上试一试。每个子模块挂一个前向钩子，按名字记下输出的均值，同时把输出张量本身留在 `kept` 里。等前向传播结束，再用 `kept` 里的张量算一遍均值。两次的均值会一样吗？**先猜。**
#
# </div>
# <div lang="en">
#
# A layer returns far too many numbers to read, so we reduce them to a single one, such as their mean. The hook can
# compute this mean at once. Or it can keep the output, so that we can compute it later. Does it matter which?
#
# Let us try both ways on an untrained ResNet-50. Every child gets a forward hook, which records the mean of the output
# under the name of the child, and also keeps the output tensor itself, in `kept`. After the forward pass we compute the
# means once more, now from the tensors in `kept`. Will they all be the same as before? **Guess first.**
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
# 两次的均值不全一样。`bn1` 后面的 `relu` 是就地的，它改写了 `bn1` 的输出，均值就从 0.00 变成了 0.36。`detach()` 只去掉计算图，内存还是同一块。如果在钩子里当场算成一个数，就不怕改写，也几乎不占内存。
#
# 模型在 GPU 上时，这样做有代价，因为 `.item()` 要等 GPU 算完。如果要的数很多，可以先留成 0 维张量，一步结束再读。
#
# </div>
# <div lang="en">
#
# The means do not all agree. The `relu` behind `bn1` works in place, so it overwrote the output of `bn1`, whose mean
# rose from 0.00 to 0.36. `detach()` drops the graph but keeps the same memory, so it does not help. A number computed
# inside the hook cannot be overwritten, and it takes hardly any memory.
#
# On a GPU, however, `.item()` waits until the GPU is done. If you want many numbers, keep 0-dimensional tensors and
# read them at the end of the step.
#
# </div>
#
# ### 练习 10.1：子模块的均值 · Exercise 10.1: Means of the children
#
# ●● · 6 min
#
# <div lang="zh">
#
# 这样一张均值的表，换一个模型也用得着，所以把它写成函数。写 `child_means(model, x)`：运行一次 `model(x)`，返回一个字典，从子模块的名字对应到它输出的均值。
#
# - 均值是 Python 的数，按子模块运行的次序排（每个只运行一次）。
# - 模型在它原来的模式（训练或评估）下运行，除此之外不要动它：仪器不该改变它测量的东西。
# - 出了异常也要取下钩子，异常照常传出去。
#
# </div>
# <div lang="en">
#
# You will need such tables for other models too, so write a function, `child_means(model, x)`, which runs `model(x)`
# once and returns a dictionary from each child's name to the mean of its output.
#
# - Run the model in its present mode, training or evaluation, and otherwise leave it alone, because an instrument
#   should not change what it measures.
# - Remove your hooks even after an exception, which goes on to the caller, so that the next run starts clean.
# - List the children in the order in which they ran (each runs once), each mean as a Python number.
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
# 看过激活，接着看梯度：它们按什么次序到达各个参数？我们接着用上面那个 `out`，给它接上交叉熵损失。前向传播已经结束，现在才给 ResNet-50 的每个参数挂张量钩子，不过还来得及，因为参数的钩子到反向传播时才触发。
#
# 反向传播从最后一层走到第一层，那么整个次序会不会正好是参数表反过来？**先猜**，再看哪个参数的梯度最先到，哪个最后到。
#
# </div>
# <div lang="en">
#
# So far we have looked at activations. Now we turn to the gradients: in which order do they reach the parameters? We
# take the `out` of the last section and compute its cross-entropy loss. By now the forward pass is over, but it is not
# too late to put a tensor hook on every parameter of the ResNet-50, because the hooks of a parameter fire only in the
# backward pass.
#
# The backward pass goes through the layers from the last to the first. So will the order be simply the list of
# parameters, reversed? **Guess first**, and then see which parameter's gradient arrives first, and which one last.
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
    print(f"{name:23}" + ("" if name == "..." else f"{round(mean, 12) + 0:8.1e}"))
names = [name for name, _ in resnet.named_parameters()]
print(f"{len(arrived)} of {len(names)} parameters")
print("the list of parameters, reversed:", [name for name, _ in arrived] == names[::-1])

# %% [markdown]
# <div lang="zh">
#
# `fc` 的参数最先到，`conv1.weight` 最后到，因为反向传播从损失出发，走向输入。可见层的次序反过来了。可是一层之内没有这样的规矩，`bn3.weight` 就比 `bn3.bias` 先到，和参数表里一样。
#
# `fc` 的两个均值都是 0，却不是因为梯度小。对每一张图，交叉熵给 `fc` 各个输出的梯度有正有负，加起来互相抵消了。所以要看梯度有多大，得先取绝对值。
#
# </div>
# <div lang="en">
#
# The gradients of `fc` arrive first and that of `conv1.weight` arrives last, because the backward pass goes from the
# loss towards the input. So the layers come in reverse. Within a layer there is no such rule: `bn3.weight` arrives
# before `bn3.bias`, although it also stands before it in the list.
#
# Both means at `fc` are 0, but not because these gradients are small. For each picture, cross-entropy sends positive
# and negative gradients to the outputs of `fc`, and these cancel each other in a mean. So if you want to know how large
# a gradient is, take absolute values first.
#
# </div>

# %% [markdown]
# ### 练习 10.2：按次序记下梯度 · Exercise 10.2: Gradients in order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 第二件仪器用来看梯度。它要说出一次反向传播里，哪些参数收到了梯度，谁先谁后，均值各是多少。
#
# 写 `gradient_means(model, loss)`。调用它的时候，前向传播已经结束。它先挂上钩子，调用一次 `loss.backward()`，再取下钩子，返回 `(name, mean)` 的列表，按梯度到达的次序排。
#
# - 均值是 Python 的数，取自**这一次**的梯度。
# - 冻结的参数跳过，它们收不到梯度。
# - `.grad` 照常累加，有的在这之前还是 `None`。
# - 没有人要对梯度再求导，所以不建新的计算图。
#
# </div>
# <div lang="en">
#
# The second instrument is for gradients. When a model does not learn, you want to know which of its parameters receive
# a gradient at all, in which order, and with which mean.
#
# Write `gradient_means(model, loss)`, which records this for one backward pass. When it is called, the forward pass is
# over. It attaches hooks, calls `loss.backward()` once, and takes the hooks off again. It returns a list of
# `(name, mean)` in the order in which the gradients arrive.
#
# - Each mean is a Python number and belongs to the gradient of **this** pass alone, because earlier passes may have
#   left something in `.grad`.
# - Let `.grad` accumulate as usual, so that your function does not disturb the training. For some parameters it is
#   still `None` before the pass.
# - Skip frozen parameters, because they receive no gradient.
# - Build no new computation graph, because nobody is going to differentiate the gradients.
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
# 前向钩子看得到激活，张量钩子看得到梯度，现在把两种钩子合成一个工具。每训练一步，它就对 4 个块各记三个数，每个数看的是一种毛病：
#
# - 激活里有多少是 0，看 ReLU 是不是都不响应了；
# - 激活里有多少是 `nan`；
# - 损失对激活的梯度有多大，即 `grad.abs().mean()`，看梯度是不是消失了。它用 7.8 节的办法取得：在前向钩子里给输出挂张量钩子。
#
# 从 A 到 E，五次训练都用这个听诊器再跑一遍。结果画成一张图，每次训练占一行，损失和梯度用对数刻度。
#
# 先看健康的 A，再拿其余各行和它比。给每一行写下诊断：哪里不对，从哪一步起，在哪一块？
#
# </div>
# <div lang="en">
#
# To find out what is wrong with a run, we want to see its activations and its gradients side by side. A forward hook
# can look at the first and a tensor hook at the second, so we combine both in one tool. At every step it records three
# numbers for each of the 4 blocks, each for another kind of trouble:
#
# - the share of the activation that is 0, which shows whether ReLUs have fallen silent;
# - the share of it that is `nan`;
# - the size of the gradient of the loss with respect to it, `grad.abs().mean()`, which shows whether the gradient
#   vanishes. As in section 7.8, a forward hook sets a tensor hook on the output to get it.
#
# With this stethoscope we listen to all five runs, A to E, once more. The figure has a row for each run, with loss and
# gradients on a logarithmic scale.
#
# Begin with A, the healthy run, and compare every other row with it. Write down a diagnosis for each: what is wrong,
# from which step on, and in which block?
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
# 先看 A，它是健康的样子：大约一半的激活是 0，因为批归一化让 ReLU 的输入以 0 为中心，ReLU 又去掉了负的一半；没有 `nan`；4 个块的梯度相差不到 10 倍，最后随着损失一起变小。
#
# 其余四行都和 A 不一样，而且各有各的不一样。B 的四条梯度线隔得很远，不像 A 的那样挤在一起。C 有两个块的激活后来全是 0。D 到处都成了 `nan`。E 的图上找不到其中两条线。下面一行一行地查原因。
#
# </div>
# <div lang="en">
#
# Row A shows what a healthy run looks like. About half of the activations are 0, because batch normalisation centres
# the input of ReLU, which cuts off the negative half. None is `nan`. The gradients of the 4 blocks differ by less than
# a factor of 10, and in the end they become small, as the loss does.
#
# Each of the other rows differs from A in its own way. In B, the gradient lines lie far apart. In C, all activations of
# two blocks become 0. In D, everything becomes `nan`. In E, two lines are missing.
#
# </div>
#
# ## 10.5 D：第一个 nan · D: the first nan
#
# <div lang="zh">
#
# 我们从 D 看起，因为 `nan` 的源头查得出来。D 的 `block1` 开头多了一层 `contrast`，它把每张图减去均值，再除以标准差；后面照旧是卷积、批归一化、ReLU。30 张图里有一张是黑的，`block1` 的输出里，会有多大一份是 `nan`？**先猜**，再看后来的图都正常时，`nan` 会不会消失。
#
# </div>
# <div lang="en">
#
# We begin with D, because a `nan` can be traced to its origin. The `block1` of D starts with an additional layer,
# `contrast`, which subtracts the mean of a picture and divides by its standard deviation. Convolution, batch
# normalisation and ReLU follow as usual. Suppose that one of the 30 pictures is black. Which share of the output of
# `block1` will be `nan`? **Guess first**, and then see whether the `nan` goes away when all later pictures are fine.
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
# 黑图的像素都相等，减去均值得 0，标准差也是 0，而 0 除以 0 得 `nan`，所以 `contrast` 的输出有 30 分之 1，即 0.033，是 `nan`。卷积把每张图分开算，比例不变。到了 `bn`，每个通道的均值取自整批图，而黑图让每个通道里都有 `nan`，所以均值全是 `nan`，于是所有的数都成了 `nan`。
#
# 损失和梯度都由这些数算出，所以也是 `nan`。优化器再从权重里减去 `nan`，走一步之后权重也是 `nan`，所以后来的图都正常，模型也好不了。要是那时才来看，就会看到干净的图进了 `conv`，出来的全是 `nan`，于是错怪了 `conv`，其实第一个 `nan` 出自 `contrast`。
#
# </div>
# <div lang="en">
#
# In the black picture all pixels are equal. When their mean is subtracted, 0 is left, and their standard deviation is 0
# as well. So `contrast` divides 0 by 0, which gives `nan`. That is why 1 in 30, or 0.033, of its output is `nan`. The
# convolution treats each picture by itself, so the share stays the same. But `bn` averages each channel over the whole
# batch, and the black picture brings `nan` into every channel, so everything becomes `nan`.
#
# The loss and the gradients are computed from these numbers, so they are `nan` as well. The optimizer then subtracts
# `nan` from the weights, and so they become `nan`. That is why the model does not recover, although all later pictures
# are fine. If you look only then, you see clean pictures enter `conv` and nothing but `nan` come out. You blame `conv`,
# although the first `nan` came from `contrast`.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 训练时，一个坏样本会经过 `BatchNorm` 传给整批。所以要查 `nan` 的来源，就在它第一次出现的那一步查。
#
# </div>
# <div lang="en">
#
# In training, a single bad sample spreads to the whole batch through `BatchNorm`. So look for the origin of a `nan` at
# the step where it first appears.
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
# 损失只说得出有 `nan`，是哪个模块造出来的呢？按运行的次序看过去，第一个输入还干净、输出却不干净的模块就是。
#
# 写 `first_nan(model, x)`，它运行一次 `model(x)`，把这个模块找出来。只看没有子模块的模块，按它们**运行**的次序，找第一个输入里没有 `nan`、输出里却有的，返回它的名字。一个也没有，就返回 `None`。
#
# - 每个模块只有一个输入，不会就地改写它；但容器的 `forward` 后来可能就地改写模块的输出，例如 `out += identity`。
# - 有的模块运行两次。
# - 模型在原来的模式下运行，不要动它。
# - 最后取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# The loss tells you that there is a `nan`, but to repair the model you must know which module made it. It is the first
# to run whose input was clean but whose output is not.
#
# Write `first_nan(model, x)`, which runs `model(x)` once. It looks only at modules without children, in the order in
# which they **run**. It returns the name of the first one that has no `nan` in its input but some in its output, or
# `None` if there is none.
#
# - Each module has a single input and does not change it in place. But the `forward` of a container may change a
#   module's output in place later, for example by `out += identity`.
# - Some modules run twice, and each run counts.
# - Run the model in its present mode and otherwise leave it alone, as an instrument should.
# - Remove your hooks even after an exception, so that the next run starts clean.
#
# </div>
#
# <div lang="zh">
#
# 真实的模型更复杂，模块可能有几个输入，收发元组，或者就地改写输入。遇到这样的模型，就要在前向前置钩子里，趁模块还没运行，检查所有的输入。
#
# </div>
# <div lang="en">
#
# Real modules may have several inputs, take and return tuples, or overwrite an input in place. Then check all inputs in
# a forward pre-hook, before the module runs.
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
# B 没有 `nan`，激活里也没有 0，损失却几乎不动。这个模型有两处改动：去掉了批归一化，ReLU 换成了 sigmoid。sigmoid 的斜率最多 0.25（2.9 节），反向传播每过一个块，就让梯度乘以一次这样的斜率。单看斜率，走过三个块，梯度至少缩小 64 倍。B 的梯度从 `block4` 走到 `block1`，是缩小 64 倍左右吗？**先猜**，再运行下面两个单元格。
#
# </div>
# <div lang="en">
#
# In run B, no activation is `nan` and none is 0, and yet the loss hardly moves. Two things were changed in this model:
# its batch normalisation was removed, and its ReLUs were replaced by sigmoids. The slope of sigmoid is at most 0.25
# (section 2.9), and the backward pass multiplies the gradient by such a slope in every block. So by the slopes alone
# the gradient shrinks at least 64 times over three blocks. Is this about how much the gradient of B shrinks from
# `block4` to `block1`? **Guess first**, and then run the two cells below.
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
# 远不止：B 的梯度从 `block4` 走到 `block1`，已经缩小了大约 4000 倍。
#
# 原因有两个，最后两行把它们分开来看。只去掉批归一化，梯度缩小 122 倍，因为默认的初始权重偏小，这时损失也没有降。只换 sigmoid，缩小 14 倍，训练慢些，但学得动。两样合在一起，才到几千倍。
#
# 不过梯度变小未必就是病，健康的 A 也缩小了 6 倍，主要因为最大池化只把梯度交给四个像素里的一个。所以比最后一块小 100 倍以上，才叫消失。第 0 步，五次训练里只有 B 的 `block1` 和 `block2` 这样。E 那一行写着 `none`，那是另一种病，留到 10.8 节再说。
#
# 换成 Adam，救得了 B 吗？Adam 会把梯度除以梯度自己的大小，所以梯度再小，它应该也不怕。我们用 Adam 再训练 B，学习率是 0.003。它的第一步会让 `block1` 的权重动多少？**先猜**，再看 300 步之后损失降了没有。
#
# </div>
# <div lang="en">
#
# It shrinks far more: at `block1`, the gradient of B is about 4000 times smaller than at `block4`.
#
# The last two rows separate the causes. If we only remove batch normalisation, the gradient shrinks 122 times, because
# the default initial weights are small, and the loss does not fall. If we only use sigmoid, it shrinks 14 times, and
# the model learns slowly. Only both together reach thousands.
#
# Even in the healthy A the gradient shrinks 6 times, mostly because max pooling hands it to one pixel in four. So we
# call a gradient vanishing only if it is over 100 times smaller than the last block's. At step 0, of the five runs,
# only B has any, at `block1` and `block2`. E's `none` is another illness (section 10.8).
#
# Would Adam save B? It divides a gradient by its own size, so a tiny one should do no harm. We train B with Adam at a
# rate of 0.003. How far will the first step move the weights of `block1`? **Guess first**, and then see the loss after
# 300 steps.
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
# Adam 的第一步和学习率一样大，这里是 0.003，哪怕梯度只有百万分之几，因为梯度除以自己的大小，就只剩下正负号。SGD 却拿学习率乘以梯度，第一步就只有 Adam 的几千分之一。正因为如此，同一个 B，SGD 走 300 步也学不动，Adam 却学会了。
#
# 只有梯度小到 Adam 的 `eps`（默认 1e-8）附近，这第一步才会变小，因为做除法之前，Adam 给除数加上了它。
#
# </div>
# <div lang="en">
#
# The first step of Adam is as large as its learning rate, here 0.003, although the gradient is only a few millionths.
# The reason is that Adam divides the gradient by its own size, and then only the sign is left. SGD multiplies the
# gradient by the learning rate instead, so its first step is thousands of times smaller. That is why network B, which
# learns nothing in 300 steps of SGD, does learn under Adam.
#
# This first step is smaller only if a gradient comes near Adam's `eps` (1e-8 by default), because Adam adds this number
# to the size before it divides.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# Adam 会把消失的梯度藏起来：损失照样下降，可是训练刚开始时，前面几块的梯度和用 SGD 时一样小。所以要看梯度本身，别只看损失。
#
# </div>
# <div lang="en">
#
# Adam hides vanishing gradients: the loss falls, although at the start the gradients of the first blocks are just as
# tiny. So look at the gradients themselves, not at the loss alone.
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
# 层数一多，看图就不如直接列出名字。写 `vanishing(model, x, target, ratio)`，找出梯度快要消失的那些层。
#
# 损失是 `F.cross_entropy(model(x), target)`，从它反向传播一次。这样，每个子模块（`named_children()`）的输出都有一个梯度，它的大小按 `grad.abs().mean()` 算。拿**最后运行**的那个子模块作标准：哪个子模块的梯度小于它的 `ratio` 倍，就列出哪个的名字。返回这个列表，按运行的次序排。
#
# - 有的 ReLU 是就地的，会改写前一个子模块的输出。那个子模块要看的，仍是它自己的输出的梯度，也就是 ReLU 之前的。
# - 模型在它原来的模式下运行；除了 `.grad`，什么也不要动。
# - 最后取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# With many layers, a figure has more lines than you can read, and a list of names is easier. Write
# `vanishing(model, x, target, ratio)`, which finds the layers where almost nothing of the gradient is left.
#
# Run one backward pass from the loss `F.cross_entropy(model(x), target)`. Every child (`named_children()`) then has a
# gradient at its output, and the size of that gradient is `grad.abs().mean()`. A size is small only in comparison, so
# the child that ran **last** sets the standard. Find the children whose size is below `ratio` times that of the last
# one, and return a list of their names in the order in which they ran.
#
# - Some ReLUs work in place and overwrite the output of the child before them. What counts for that child is still the
#   gradient at its own output, in front of the ReLU.
# - Run the model in its present mode and change nothing but `.grad`, because you only want to examine it.
# - Remove your hooks even after an exception, so that the next run starts clean.
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
# C 的 `block3` 和 `block4` 没有批归一化，学习率是 1.0。它最后的损失和 B 一样在 1.8 左右，可是听诊器听到的不一样。为了弄清原因，我们只换掉嫌疑最大的学习率（它是别的训练的十倍），再训练一次。在原来的 C 里，`block1` 最后的梯度有多大？**先猜。**
#
# </div>
# <div lang="en">
#
# In run C, `block3` and `block4` have no batch normalisation, and the learning rate is 1.0. The last loss is near 1.8,
# like that of B, but the stethoscope shows something else. To find the cause, we change only the chief suspect, the
# learning rate, which is ten times that of the other runs, and train once more. In the original run C, how large is the
# last gradient at `block1`? **Guess first.**
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
# C 的第一块梯度恰好是 0。学习率太大，几步就把权重推得太远，损失一度冲到了 16。不久以后，`block3` 的 ReLU 就再没有一个输入是正的：输出是 0，斜率也是 0，梯度乘以斜率，也就到此为止。`block4` 收到的全是 0，又没有偏置，给出的也全是 0。
#
# B 和 C 的不同就在这里。B 的梯度很小，但还活着，Adam 就用得上。C 的梯度是 0，只有 `head` 的偏置还有梯度，优化器几乎无从下手。这时通常只能换一个小一些的学习率，从头再来。这个办法在这里管用：学习率换成 0.1，损失就降到了 0.3。
#
# C 的权重也许还会动，但那不是在学习，因为没有梯度告诉它们往哪里走，靠的是动量的余势或者权重衰减。
#
# </div>
# <div lang="en">
#
# The gradient at the first block of C is exactly 0. Within a few steps, the large learning rate pushed the weights so
# far that the loss rose to 16. Soon afterwards no input of the ReLU in `block3` was positive any more. Then the output
# is 0 and so is the slope. The gradient is multiplied by the slope, so it ends there. `block4` receives only zeros and
# has no bias, so it returns only zeros as well.
#
# This is how C differs from B. The gradients of B are tiny but alive, and Adam could make use of them. In C the
# optimizer has almost nothing to work on, because only the bias of `head` still has a gradient. Usually you then have
# to start again, with a smaller learning rate. Here that helps: at a rate of 0.1, the loss falls to 0.3.
#
# The weights of C may still move, but that is not learning, because no gradient tells them where to go. They are moved
# by what is left of the momentum, or by weight decay.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 上面的数说得出 ReLU 死了，却说不出是什么时候死的。`TrainingPanel` 把每一步都记下来，它也靠钩子。每种数画成一张色带图，一行是一层，一列是一步，颜色说的是那一层在那一步的数有多大。用鼠标或方向键指着哪一步，它就说出那一步的数。请你找一找：`block3` 和 `block4` 是从第几步起死的？
#
# </div>
# <div lang="en">
#
# The numbers above say that the ReLUs are dead, but not when they died. To find out, we use `TrainingPanel`, which
# takes notes at every step and works with hooks, too. It draws a strip for each kind of number. A strip has a row per
# layer and a column per step, and the colour at each place shows how large the number of that layer was at that step.
# Point at a step, with the mouse or the arrow keys, and the panel tells you the numbers. From which step on are
# `block3` and `block4` dead?
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
# 这两个块从第 8 步起就死了。到了这一步，`block3` 和 `block4` 的 ReLU 没有一个单元为正，斜率为 0，梯度就过不去。所以最后一个 ReLU 之前的梯度恰好为 0，在面板里是黑的。没有梯度，前面的权重就不再学习，这些单元也就一直死着。
#
# 更新得最猛的，却是前面的第 4 步：在更新比例里，那一列最亮。死了以后，权重还在动，不过动得越来越少，那是动量的余势。
#
# </div>
# <div lang="en">
#
# The two blocks are dead from step 8 on. By then, no unit in the ReLUs of `block3` and `block4` is positive. Where the
# input of a ReLU is not positive, its slope is 0, so no gradient gets through. That is why all gradients before the
# last ReLU are exactly 0, and the panel shows them in black. Without a gradient the weights before it no longer learn,
# so the units stay dead.
#
# The largest updates came earlier, at step 4: in the strip of the update ratios, this column is the brightest. After
# step 8 the weights still move, though less and less, because what is left of the momentum carries them on.
#
# </div>
#
# ## 10.8 E：没有标签的病人 · E: the patient without a label
#
# <div lang="zh">
#
# E 最难诊断，因为它的损失和 A 的一样好，图里却少了两条梯度线。请你先自己下诊断：这个模型里发生了什么，损失为什么还会降？然后运行下面的单元格，再打开答案。
#
# </div>
# <div lang="en">
#
# E is the hardest patient, because its loss looks just like that of A. In the figure, however, the gradients of two
# blocks have no line. Make your own diagnosis first: what goes on in this model, and why does its loss fall all the
# same? Then run the cell below and open the answer.
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
# 在 `forward` 里，有人在 `block2` 之后写了 `.detach()`，计算图就断了，反向传播走不到前两块。所以它们的梯度不是很小，也不是 0，而是根本没有：`.grad` 是 `None`，权重一步也没动。
#
# 那损失为什么还会降？前两块虽然没有学过，给出的特征还是张张不同。后面的块和 `head` 有了这些就够了，它们背下了这 30 张图的特征各属于哪一类。于是损失照样下降，只看损失，永远发现不了有一半的块没有在学。想看那一行，就打开 `Patient` 的源代码。
#
# </details>
#
# </div>
# <div lang="en">
#
# <details><summary>Answer</summary>
#
# In `forward`, somebody wrote `.detach()` after `block2`, and that cuts the graph. The backward pass ends at the cut
# and never reaches the first two blocks. So their gradients are neither tiny nor 0: there are none. `.grad` is `None`,
# and the weights have not moved.
#
# Why does the loss fall, then? The first two blocks have learned nothing, but the features that they give still differ
# from one picture to the next. That is enough for the later blocks and `head`, which learned by heart the class that
# goes with the features of each of the 30 pictures. So the loss falls as if all were well, and from the loss alone you
# would never notice that half of the blocks do not learn. To see where the `.detach()` stands, open the source of
# `Patient`.
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
# 还是刚才那张图，只是写上了诊断。四种病有四种样子：梯度很小，恰好是 0，是 `nan`，或者根本没有。
#
# </div>
# <div lang="en">
#
# Here is the same figure with the diagnoses written in. The four illnesses show in four different ways: the gradients
# are tiny, exactly 0, `nan`, or not there at all.
#
# </div>
#
# ## 10.9 所有梯度，一个范数 · One norm of all gradients
#
# <div lang="zh">
#
# 学习率合适，也可能偶尔有一步的梯度特别大，这时可以裁剪。`clip_grad_norm_` 把所有参数的梯度合起来算**一个**范数，如果太大，就一起按比例缩小。
#
# 张量钩子也做得到吗？下面 `a` 的梯度是 `[3, 4]`，`b` 的是 `[12]`，两个合起来的范数，上限是 6.5。先用 `clip_grad_norm_` 裁一次；再给每个参数挂一个张量钩子，它只知道一个梯度，只好各裁各的（练习 03.2）。各裁各的时候，`b` 的梯度是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# Even with a good learning rate, one step may meet gradients so large that it goes much too far. The usual remedy is to
# clip them. `clip_grad_norm_` computes **one** norm of the gradients of all parameters, and if this norm is too large,
# it scales all of them by the same factor.
#
# Could tensor hooks do the same? Below, the gradient of `a` is `[3, 4]` and that of `b` is `[12]`. The limit is 6.5,
# for the norm of both together. First we let `clip_grad_norm_` clip them. Then we put a tensor hook on every parameter.
# A tensor hook knows only one gradient, so each hook clips its own gradient to the limit (exercise 03.2). What will the
# gradient of `b` be in this second case? **Guess first.**
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
# 两种结果不一样。合起来的范数是 $\sqrt{9+16+144}=13$，正好是上限 6.5 的两倍，所以 `clip_grad_norm_` 把所有梯度都减半，方向不变。各裁各的时候，`a` 的范数是 5，没有超过上限，不用动，`b` 却从 12 缩到 6.5，方向就变了，这一步也就走偏了。
#
# 张量钩子为什么做不好？总范数要等所有梯度都到齐才算得出来，而张量钩子只看到其中一个。好在优化器也有钩子：`register_step_pre_hook` 挂上的函数，在 `step()` 开始时触发，那时梯度都到齐了。
#
# </div>
# <div lang="en">
#
# The two results differ. The norm of all gradients together is $\sqrt{9+16+144}=13$, which is twice the limit of 6.5.
# So `clip_grad_norm_` halves all of them, and the direction stays the same. If each gradient is clipped by itself, `a`
# with its norm of 5 is below the limit and is left alone, while `b` shrinks from 12 to 6.5. So the direction has
# changed, and the step no longer follows the gradient.
#
# Why can tensor hooks not do better? The total norm can be computed only when all gradients have arrived and been added
# up, but a tensor hook sees only one of them. Fortunately, optimizers have hooks, too: a function registered with
# `register_step_pre_hook` is called as `step()` begins, when all gradients are there.
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
# 裁剪要看真正的梯度，而在混合精度训练里，看到的未必是真的。混合精度就是一部分计算改用更短的类型，例如 float16。这样往往更快，可是很小的梯度在 float16 里会变成 0，所以 `GradScaler` 先把损失放大，走步之前再把梯度缩回来。下面放大 1024 倍，真正的梯度是 2。张量钩子看到的梯度是多少？**先猜**，再看优化器的钩子看到多少。
#
# </div>
# <div lang="en">
#
# Clipping needs the true gradients, but in mixed precision you do not always see them. Mixed precision means that part
# of the computation uses a shorter type, such as float16. This is often faster, but in float16 very small gradients
# would become 0. To prevent this, `GradScaler` multiplies the loss by a scale, which makes all gradients larger, and
# before the step it divides the gradients by the same scale again. Below, the scale is 1024 and the true gradient is 2.
# Which gradient will a tensor hook see? **Guess first**, and then see what the hook of the optimizer finds.
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
# 用了 `GradScaler`，损失是放大以后才反向传播的，所以张量钩子看到的梯度也放大过，这里是 2048 而不是 2。`step()` 之前它会把梯度缩回来，所以 `step()` 的前置钩子看到的是原来大小的梯度 2。
#
# `fused=True` 的优化器不一样：它在 `step()` 里面才缩回来，所以连 `step()` 的前置钩子看到的也还是 2048。遇到这样的优化器，或者想在钩子以外的地方裁剪，就先调用 `scaler.unscale_(optimizer)`，让梯度变回原来的大小。
#
# </div>
# <div lang="en">
#
# With a `GradScaler`, tensor hooks run while gradients are still multiplied by the scale: here they see 2048 instead of
# 2. The scaler divides before `step()`, so a step pre-hook sees the true 2.
#
# An optimizer with `fused=True` is different. It divides only inside `step()`, so even a step pre-hook still sees 2048.
# In that case, or if you want to clip elsewhere, call `scaler.unscale_(optimizer)` first.
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
# 训练循环里的裁剪容易漏写，不如交给优化器的钩子。写 `clip_before_step(optimizer, max_norm)`，调用一次以后，这个优化器每次 `step()` 之前都会裁剪它的所有参数，裁法和 `clip_grad_norm_` 一样（可以直接调用它）。返回句柄，`remove()` 之后就不再裁剪。
#
# - 有的 `.grad` 是 `None`：那里没有东西可裁，不要去填。
# - 参数可能分几组，后来加的组也算。
#
# </div>
# <div lang="en">
#
# Clipping is easily forgotten in a training loop, so let a hook of the optimizer take care of it. Write
# `clip_before_step(optimizer, max_norm)`. After this one call, all parameters of the optimizer are clipped before each
# `step()`, as `clip_grad_norm_` does it (you may call that function). Return the handle, so that clipping can be
# switched off: after `remove()`, nothing is clipped any more.
#
# - The parameters may be in several groups, and groups that are added later count too, because all gradients are
#   measured together.
# - Some parameters may have a `.grad` of `None`. There is nothing to clip there, so leave it `None`.
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
# 1. The loss may tell you that something is wrong, but not in which layer, and sometimes it does not even tell you that.
# 2. Turn a tensor into a number inside the hook: the number takes hardly any memory, and no later change in place can spoil it.
# 3. Trace a `nan` at the step where it first appears, and find the first module whose input is clean and whose output is not.
# 4. Measure the size of a gradient by `grad.abs().mean()` and compare it between layers: tiny, exactly 0, `nan` and not there at all are four different illnesses.
# 5. Whatever has to wait for all gradients belongs in a hook that runs before the `step()` of the optimizer.
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
# <details><summary>1. Why not keep the outputs and compute their means at the end?</summary>A later operation in place may overwrite the outputs, and then you get the mean of something else; besides, outputs that you keep hold memory.</details>
# <details><summary>2. The losses of two runs stand still. How do you tell vanishing gradients from dead ReLUs?</summary>Look at the share of 0 among the activations and at the gradients of the first blocks. With vanishing gradients, the activations are not all 0, and the gradients are tiny but not 0. With dead ReLUs, the activations are all 0, and the gradients before them are exactly 0.</details>
# <details><summary>3. Why can a tensor hook not do what <code>clip_grad_norm_</code> does?</summary>When the hook fires, it has a single gradient. The total norm needs the gradients of all parameters, after they have arrived and been added up.</details>
# </div>

# %% [markdown]
# ## 10.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# 这一课的仪器，真实的工具里也有。`wandb.watch` 就在训练时给每个参数的梯度记直方图，梯度是它用张量钩子取得的。
#
# 有一种 `nan`，练习 10.3 的 `first_nan` 找不到：它到反向传播时才出现，而前向钩子看不到那里。遇到这种情况，可以用 `torch.autograd.detect_anomaly`，它会指出是哪个函数的反向计算第一个给出了 `nan`。不过它要记下每个运算是在哪里调用的，还要检查每一步反向计算的结果，训练就慢了，查完就关掉。
#
# 下面的损失是 0，前向传播看上去正常，到了反向传播才出现 `nan`。再往下是你的进度。
#
# </div>
# <div lang="en">
#
# Instruments like those of this lesson are built into real tools. One of them is `wandb.watch`, which records
# histograms of every parameter's gradient during training, and gets these gradients from tensor hooks.
#
# There is a kind of `nan` that `first_nan` of exercise 10.3 cannot find: one that appears only in the backward pass,
# where no forward hook looks. For this case there is `torch.autograd.detect_anomaly`, which names the function whose
# backward computation returned the first `nan`. Because it notes where each operation was called and checks the result
# of each backward computation, it slows training down, so switch it off when you have found the culprit.
#
# Below, the loss is 0, so the forward pass looks fine, and only backward makes a `nan`. After that you see your
# progress.
#
# </div>

# %%
x = torch.zeros(1, requires_grad=True)
loss = (0 * x.sqrt()).sum()  # in backward, 0 meets the slope of the square root, which is inf at 0
print("loss:", loss.item())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that detect_anomaly is slow, and that it saw no forward pass
    with torch.autograd.detect_anomaly():
        try:
            loss.backward()
        except RuntimeError as error:
            print("RuntimeError:", error)

# %% tags=["nbval-ignore-output"]
progress()
