# %% tags=["setup"]
from collections import Counter, defaultdict
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names
from torchvision.utils import make_grid

from hookedu import LanguageToggle, LayerPicker, check, guess, hint, progress, solution
from hookedu.models.shapes import Shapes, load_model

LanguageToggle()

# %% [markdown]
# ## 9.1 不见了的负数 · The negatives that vanished
#
# <div lang="zh">
#
# 一个网络在图片里看到了什么？AlexNet 的第一层是卷积，它为每个通道算出一张**特征图**。那是排成网格的许多数，在这一层里有正有负，说的是这个通道对图片的哪些地方有反应，反应有多强。这一课，我们用钩子把特征图取出来，画出来，再学怎样评判它们。
#
# 我们的输入是 Grace Hopper 的一张照片。AlexNet 通常用边长 `224` 的正方形图片来训练，所以我们把照片也缩放、裁剪成这样大，再归一化。
#
# 开头我们只问怎样把特征图里的数留住，还不问它们是什么意思。这用不着训练好的网络，所以这里的权重是随机的，种子固定。训练好的网络到 9.4 节再用。
#
# </div>
# <div lang="en">
#
# What does a network see in a picture? AlexNet begins with a convolution, which computes a **feature map** for each of
# its channels. A feature map is a grid of numbers, in this layer positive in some places and negative in others. It
# shows where in the picture the channel responds, and how strongly. In this lesson we take feature maps out of networks
# with hooks, draw them, and learn how to judge them.
#
# As input we take a photograph of Grace Hopper. AlexNet is usually trained on square pictures, `224` pixels wide and
# high, so we resize and crop the photograph to this size, and normalise it.
#
# At first we only ask how to keep the numbers of a map, and not yet what they mean. You need no trained network for
# that, so the weights here are random, with a fixed seed. A trained network follows in section 9.4.
#
# </div>

# %% picture="photo"
from matplotlib.cbook import get_sample_data
from torchvision.models import alexnet
from torchvision.transforms import v2

photo = plt.imread(get_sample_data("grace_hopper.jpg", asfileobj=False)).copy()
photo = v2.Compose([v2.ToImage(), v2.Resize(224), v2.CenterCrop(224)])(photo)
normalise = v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
x = normalise(photo / 255)[None]
torch.manual_seed(0)
model = alexnet().eval()
print("x:", tuple(x.shape))
print(model.features[:2])
plt.figure(figsize=(2.6, 2.6))
plt.imshow(photo.permute(1, 2, 0))
_ = plt.axis("off")

# %% [markdown]
# <div lang="zh">
#
# 你想把一个输出留到以后再看，钩子该怎样留它？我们试三种看上去差不多的办法。第一个卷积上的前向钩子把同一个输出留下三份，分别用 `detach()`、`detach().cpu()` 和 `detach().clone()`。等整个模型运行完，我们再来看这三份。
#
# 怎么知道一份有没有走样？看负数就行。随机的卷积给出的数，大约有一半是负的，而接着运行的 ReLU 会把负数变成 `0`。所以运行完以后，哪一份里没有负数，哪一份就被改写过。那么留下的这三份里，哪几份里还有负数？**先猜。**
#
# </div>
# <div lang="en">
#
# A hook sees an output while the model is still running, but you want to look at this output later. How should your
# hook keep it? Let us try three ways that look much the same. A forward hook on the first convolution keeps the same
# output with `detach()`, with `detach().cpu()` and with `detach().clone()`. We let the whole model run, and only then
# look at all three.
#
# How can we tell whether a version is still what it was? By its negative numbers. About half of the numbers that a
# random convolution returns are negative, and the ReLU that runs next turns negative numbers into `0`. So if a version
# has no negative numbers when the run is over, it has been overwritten. Which of the three versions still hold negative
# numbers then? **Guess first.**
#
# </div>

# %%
guess("09.a")

# %% tags=["F14"]
seen = {}


def keep(module, args, output):
    print("while the hook runs, _version", output._version)
    seen["detach()"] = output.detach()
    seen["detach().cpu()"] = output.detach().cpu()
    seen["detach().clone()"] = output.detach().clone()


with model.features[0].register_forward_hook(keep), torch.no_grad():
    model(x)
for way, maps in seen.items():
    negative = (maps < 0).float().mean()
    print(f"{way:16}  smallest {maps.min():5.2f}  negative {negative:3.0%}", end="")
    print(f"  _version {maps._version}")

# %% picture="two_ways"
from hookedu import plot_feature_maps

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2))
for ax, way in zip(axes, ("detach()", "detach().clone()"), strict=True):
    plot_feature_maps(seen[way], tiles=9, title=way, ax=ax)

# %% [markdown] tags=["F14"]
# <div lang="zh">
#
# 前两份里一个负数也没有，只有 `clone()` 留住了输出当时的样子。
#
# 为什么？`detach()` 剪断的是计算图，它给出的张量仍和 `output` 在同一块内存里（3.8 节）。接着运行的是 `ReLU(inplace=True)`，它就在这块内存里把负数改成 `0`，我们留下的那份也就跟着变了。
#
# `cpu()` 为什么也帮不上忙？张量不在 CPU 上时，例如在 GPU 上，它才会复制，拷贝谁也改写不了。而我们的张量本来就在 CPU 上。所以在 GPU 上对的代码，换一台机器就可能错。
#
# </div>
# <div lang="en">
#
# Only `clone()` kept the output as it was when the hook ran. The other two versions have no negative numbers left.
#
# Why? `detach()` cuts its result off from the graph, but the result stays in the memory of `output` (section 3.8). The
# next layer, `ReLU(inplace=True)`, turns the negatives into `0` right there. So what we kept has changed, too.
#
# Why does `cpu()` not help? If a tensor is not on the CPU, for example on a GPU, `cpu()` copies it, and no layer
# overwrites the copy. But our tensor was on the CPU already, so nothing was copied. This is why code that keeps the
# right numbers on a GPU may keep wrong ones elsewhere.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `detach()` 和 `cpu()` 都不是备份。`detach()` 得到的张量和输出在同一块内存里；张量本来就在 CPU 上时，`cpu()` 也不复制。
#
# 出了错也不会有异常，能看出来的只有两点：负数不见了，`_version` 从 `0` 变成了 `1`。要留住那一刻的数，就在钩子里写 `output.detach().clone()`。
#
# </div>
# <div lang="en">
#
# Neither `detach()` nor `cpu()` makes a backup. What `detach()` returns shares its memory with the output. `cpu()`
# copies nothing either if the tensor is on the CPU already.
#
# No exception is raised, and only two signs show that the numbers changed: the negatives are missing, and `_version` is
# `1` instead of `0`. To keep the numbers of that moment, write `output.detach().clone()` inside the hook.
#
# </div>
# </div>

# %% [markdown]
# ## 9.2 五个卷积，五组特征图 · Five convolutions, five groups
#
# <div lang="zh">
#
# 输出被改写的，只有第一个卷积吗？AlexNet 一共有 5 个卷积，我们给每一个都挂上钩子。卷积每调用一次，钩子就留下两份输出，一份用 `detach()`，一份用 `clone()`。以后我们还要认得出哪个输出来自哪个卷积。好在五个卷积核的形状各不相同，所以就按形状 `tuple(module.weight.shape)` 给输出分组。
#
# 要知道哪一份对，先得有标准答案。我们先把所有的 `inplace` 都改成 `False` 运行一遍，这时没有哪个 ReLU 改写别人的输出，标准答案就从这里来。然后改回 `True`，用同样的权重和输入再运行一遍。五个卷积里，`detach()` 留下的有几个是对的？**先猜。**
#
# </div>
# <div lang="en">
#
# Is the first convolution the only one whose output gets overwritten? AlexNet has 5 convolutions, and we put a hook on
# each. At every call the hook keeps two versions of the output, one by `detach()` and one by `clone()`. Later we have
# to know which convolution an output came from. All five have kernels of different shapes, so we group the outputs by
# this shape, `tuple(module.weight.shape)`.
#
# To say which version is right, we need the true outputs to compare with. They come from a first run with every
# `inplace` set to `False`, in which no ReLU overwrites anything. Then we set every `inplace` back to `True` and run
# once more, with the same weights and the same input. For how many of the five convolutions will the version of
# `detach()` still be the true output? **Guess first.**
#
# </div>


# %% tags=["E19"]
def capture(inplace):
    groups = defaultdict(list)

    def keep(module, args, output):
        shape = tuple(module.weight.shape)
        groups[shape].append((output.detach(), output.detach().clone()))

    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = inplace
    convs = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    handles = [conv.register_forward_hook(keep) for conv in convs]
    with torch.no_grad():
        model(x)
    for handle in handles:
        handle.remove()
    return groups


# %%
guess("09.b")

# %% tags=["E19"]
truth, groups = capture(inplace=False), capture(inplace=True)
for shape, [(detached, cloned)] in groups.items():  # one call in each group
    [(_, true)] = truth[shape]
    right = f"detach() {torch.equal(detached, true)!s:5}  clone() {torch.equal(cloned, true)}"
    print(f"{shape!s:18} maps {tuple(cloned.shape)!s:18} right: {right}")

# %% [markdown]
# <div lang="zh">
#
# `detach()` 留下的五组全都不对，因为在 AlexNet 里，每个卷积后面都紧跟着一个就地的 ReLU。`clone()` 留下的五组则全对，因为拷贝有自己的内存，ReLU 碰不到。
#
# </div>
# <div lang="en">
#
# Not one of the five outputs kept by `detach()` is right, because in AlexNet an in-place ReLU follows each convolution
# and overwrites what it returned. The five outputs kept by `clone()` are all right, because a copy has memory of its
# own, which no ReLU touches.
#
# </div>

# %% [markdown]
# ### 练习 09.1：不怕就地操作 · Exercise 09.1: Immune to in-place operations
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 你已经知道怎样留住一张特征图，让后面的层改不了它。现在可以把整个模型的特征图一次收齐，像上面那样按卷积核的形状分组。
#
# 写 `conv_groups(model, x)`，它运行一次 `model(x)`，返回一个装着特征图的字典。字典的键是卷积核的形状（元组），值是一个列表，这种形状的卷积给出的输出都在里面。
#
# - 卷积每调用一次，就在它那个形状的列表里加一项，所以各项按运行的次序排。
# - 一项就是那一刻的输出，`dtype` 不变，也不连着计算图。
# - 只记运行了的 `nn.Conv2d`，不论藏得多深。模型自己也可能就是卷积，那它也算。
# - 别人还要接着用这个模型。所以运行的是它本身，不是副本，按它原来的模式，而且不许改动，包括 `training`。
# - 钩子都要取下，出了异常也一样。
#
# </div>
# <div lang="en">
#
# You know how to keep a feature map so that no later layer can spoil it. Now you can collect all the maps of a model in
# one run, grouped by kernel shape as above.
#
# Write `conv_groups(model, x)`, which runs `model(x)` once and returns the maps in a dictionary. Each key is the shape
# of a kernel (a tuple), and its value is a list of all outputs of convolutions with this shape.
#
# - An entry is the output as it was at that moment, with its `dtype` unchanged and without its graph.
# - A convolution may be called several times. Each call adds one entry to the list of its shape, so the entries stand
#   in the order of running.
# - Record every `nn.Conv2d` that runs, however deep it lies. If the model itself is a convolution, it counts too.
# - Others go on using the model. So run the model itself and not a copy, in the mode that it is in, and do not change
#   it, `training` included.
# - Remove all hooks, even after an exception, so that none fires later.
#
# </div>


# %% exercise="09.1"
def conv_groups(model, x):
    """返回 {卷积核的形状: [每次调用的输出]}，不怕之后的就地操作。

    Return {shape of the kernel: [output of each call]}, immune to later in-place operations.
    """
    ### BEGIN SOLUTION
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                handles.append(module.register_forward_hook(keep))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return dict(groups)
    ### END SOLUTION


# %% check="09.1"
check("09.1", conv_groups)

# %% [markdown]
# ## 9.3 关掉 inplace 就够了吗 · Is switching inplace off enough?
#
# <div lang="zh">
#
# 既然就地的 ReLU 是祸首，把每个 `inplace` 都设成 `False`，似乎就不用 `clone()` 了。是这样吗？我们在 ResNet 的一个块上试试，它的 `relu` 已经设成 `inplace=False`。
#
# 这个块依次运行 `conv1`、`bn1`、`relu`、`conv2`、`bn2`，然后用 `out += identity` 加上块的输入，最后再运行一次 `relu`。
#
# 每一层的输出我们留下两份，一份只用 `detach()`，另一份再加上 `clone()`。块运行完以后，两份如果不一样，就说明前一份被改写过。只用 `detach()` 的那份，有哪一层的错了吗？**先猜**，再看每一层的钩子各报告了几次。
#
# </div>
# <div lang="en">
#
# If in-place ReLUs are to blame, we should need no `clone()` once every `inplace` is `False`. Is that true? Let us try
# it on a block of ResNet whose `relu` has `inplace=False`.
#
# The block runs `conv1`, `bn1`, `relu`, `conv2` and `bn2`. Then it adds its own input with `out += identity`, and at
# the end it runs `relu` once more.
#
# From every layer we keep the output twice, once with `detach()` alone and once with `clone()` as well. If the two
# versions differ when the block has finished, something has overwritten the version without `clone()`. For which layer,
# if any, will they differ? **Guess first**, and then see how often the hook of each layer reports.
#
# </div>

# %% tags=["F15", "F27"]
from torchvision.models import resnet18

torch.manual_seed(0)
block, calls, seen = resnet18().layer1[0].eval(), Counter(), {}
block.relu.inplace = False


def keep(name, module, args, output):
    calls[name] += 1
    seen[name] = output.detach(), output.detach().clone()


children = block.named_children()
handles = [child.register_forward_hook(partial(keep, name)) for name, child in children]
identity = torch.randn(1, 64, 8, 8)
block(identity)
for handle in handles:
    handle.remove()

# %%
guess("09.c")

# %% tags=["F15", "F27"]
for name, (detached, cloned) in seen.items():
    print(f"{name:5}  calls {calls[name]}  detach() still right: {torch.equal(detached, cloned)}")
detached, cloned = seen["bn2"]
print("bn2 as kept by detach() equals bn2 + identity:", torch.equal(detached, cloned + identity))

# %% [markdown] tags=["F15", "F27"]
# <div lang="zh">
#
# 只有 `bn2` 的两份不一样。它运行完以后，`+=` 加上 `identity`，把和写进了同一块内存，所以 `detach()` 留下的已经不是 `bn2` 的输出，而是这个和。其他几层的两份都一样，因为没有谁再就地改它们的输出。
#
# 你注意到 `relu` 的钩子了吗？它报告了 2 次，因为这个块在两处调用同一个 `relu`；其他的各报告一次。
#
# </div>
# <div lang="en">
#
# Only for `bn2` do the two versions differ. After `bn2` had run, `+=` added `identity` and wrote the sum into the same
# memory. So what `detach()` kept of `bn2` is no longer its output but this sum. For the other layers the two versions
# are the same, because nothing changes their outputs in place.
#
# And did you notice the hook on `relu`? It reports 2 times, because the block calls the same `relu` in two places. The
# others report once each.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 关掉 `inplace` 并不等于安全。`+=` 也是就地操作，它写在 `forward` 里，没有开关可关。只有自己的一份拷贝才可靠，所以还是用 `clone()`。
#
# </div>
# <div lang="en">
#
# Even if you switch `inplace` off everywhere, an output may still be overwritten. `+=` works in place as well, and
# because it is written in the code of `forward`, there is no switch that turns it off. Only a copy of your own is
# safe, so use `clone()` all the same.
#
# </div>
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 一个模块可以运行几次（5.7 节）。这个块只有一个 `relu`，它运行 2 次，所以 `seen["relu"]` 里只剩后一次的输出，前一次的被盖掉了。如果每次的输出都要，就用列表来装。
#
# </div>
# <div lang="en">
#
# A module may run several times (section 5.7). The block has a single `relu`, and it runs 2 times. Each new output
# replaces the one before, so `seen["relu"]` holds only the last. To keep the output of every call, use a list.
#
# </div>
# </div>

# %% [markdown]
# ## 9.4 同一把尺子 · One scale for all
#
# <div lang="zh">
#
# 随机的权重没有学过什么，所以从这里起，我们换一个训练过的小网络。它看的小图由 `Shapes` 现场画出，每张图上有一个形状，一共 6 类。`load_model()` 给出的网络认得出这些形状。
#
# 这个网络的特征图该怎样画？要把数画成颜色，先得定下哪个数最暗，哪个数最亮，这就是尺子的两端。
#
# 我们比较两种画法。`block3` 的 ReLU 有 48 张特征图，我们把其中 12 张画成两行。在上面一行，每张图各用自己的尺子，从它的最小值到最大值。在下面一行，所有的图共用一把，从 0 到整层的最大值。
#
# 红框里是整层最亮的和最暗的那两张。你先想一想：在上面一行里，最大值只有 0.02 的那张，最亮的地方看起来会比最大值是 3.70 的那张暗吗？
#
# </div>
# <div lang="en">
#
# Random weights have learned nothing, so from here on we use a small trained network. Its pictures are drawn by
# `Shapes`: each of them shows one shape, out of 6 classes. The network from `load_model()` has learned to recognise
# these shapes.
#
# How should we draw the maps of this network? To turn numbers into colours, we first have to decide which number gets
# the darkest colour and which the brightest. These two numbers are the ends of a scale.
#
# We compare two ways. The ReLU of `block3` has 48 maps, and we draw 12 of them in two rows. In the upper row each map
# has a scale of its own, from its smallest value to its largest. In the lower row all maps share one scale, from 0 to
# the largest value of the layer.
#
# Red frames mark the brightest map of the layer and the dimmest. The largest value of the one is 3.70, of the other
# just 0.02. What do you expect in the upper row: will the brightest place of the map with 0.02 look dimmer?
#
# </div>

# %%
data = Shapes(60, seed=11)
net, sample, seen = load_model(), data[0], {}


def keep(module, args, output):
    seen["block3"] = output.detach().clone()


with net.block3.relu.register_forward_hook(keep), torch.no_grad():
    net(sample.image[None])
maps = seen["block3"][0]
largest = maps.amax((1, 2))
ends = {"dimmest": largest.argmin().item(), "brightest": largest.argmax().item()}
for name, channel in ends.items():
    print(f"{name:9}  ch {channel}  largest value {largest[channel]:.2f}")

# %% picture="scales"
fig, axes = plt.subplots(2, 12, figsize=(12, 2.5), layout="constrained")
for column, channel in enumerate(range(12, 24)):
    axes[0, column].imshow(maps[channel])
    axes[1, column].imshow(maps[channel], vmin=0, vmax=maps.max())
    axes[0, column].set_title(f"ch {channel}", fontsize=9)
    for ax in axes[:, column]:
        ax.set(xticks=[], yticks=[])
        if channel in ends.values():
            ax.spines[:].set(color="red", linewidth=3)
for ax, scale in zip(axes[:, 0], ("own scale", "one scale"), strict=True):
    ax.set_ylabel(scale)
for channel in ends.values():
    own, one = (ax.images[0].norm(largest[channel].item()) for ax in axes[:, channel - 12])
    print(f"brightness of ch {channel} at its brightest: own scale {own:.2f}, one scale {one:.2f}")

# %% [markdown]
# <div lang="zh">
#
# 不会。在上面一行里，两个红框里最亮的地方一样亮，因为每张图的最大值都画成黄色，亮度都是 1。只有下面一行画出了 0.02 那张本来的样子：整张都是暗的。
#
# 用哪种尺子，要看你想知道什么。想比较通道，就用同一把尺子，这样同一种颜色在哪张图上都是同一个数。想看清一张图自己的花纹，可以单独给它一把，但要说明，因为它的亮暗不能再和别的图比。`plot_feature_maps` 默认整层共用一把，写上 `per_map=True` 就每张各用一把。
#
# </div>
# <div lang="en">
#
# No, in the upper row the brightest places in both red frames are equally bright. There each map has a scale of its
# own, so its largest value is drawn in yellow, with brightness 1, however small that value is. To see that the map with
# 0.02 is really dark all over, you have to look at the lower row.
#
# Which scale to use depends on what you want to know. To compare channels, use one scale for all, because then a colour
# stands for the same number in every map. To study the pattern within a single map, you may give it a scale of its
# own, but then say so, because its brightness can no longer be compared with that of other maps.
#
# The function `plot_feature_maps` can do both. It uses one scale for the whole layer by default, and one for each map
# with `per_map=True`.
#
# </div>

# %% [markdown]
# ### 练习 09.2：一把尺子的网格 · Exercise 09.2: A grid with one scale
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 想一眼比较一层的所有通道，可以把它们的特征图拼成一张大图，全部用同一把尺子。这样一来，图上哪里更亮，哪里的值就更大。
#
# 写 `one_scale(maps, columns)`，像铺瓷砖那样拼出这张图。`maps` 是一层的特征图，形状是 `(C, H, W)`；`columns` 说一行放几张，它不大于 `C`。返回的是一张图，形状是 `(height, width)`。它该有多大，从张数和每张的大小就算得出来。
#
# - 每行放 `columns` 张，从左到右，再从上到下，中间不留缝。末行若没有放满，空位填 0。
# - 整层最小的数变成 0，最大的变成 1，哪怕两者相差很小。如果所有的数都相等，就没有什么可拉开的，整张图是 0。
# - `maps` 和返回的图都是 `float32`。你只是画图，所以不要改动 `maps`。
#
# </div>
# <div lang="en">
#
# Sometimes you want to compare all channels of a layer at a glance. For that, you put their maps side by side into one
# large picture, all on the same scale. Then whatever is brighter in this picture really has a larger value.
#
# Write `one_scale(maps, columns)`, which puts the maps together like tiles. `maps` holds the maps of the layer and has
# the shape `(C, H, W)`, and `columns` says how many of them stand in a row, at most `C`. What you return is one picture
# of shape `(height, width)`. You can work out its size from the number of maps and the size of each.
#
# - The smallest number of the whole layer becomes 0 and the largest 1, however close they are. If all numbers are
#   equal, there is nothing to stretch, and the whole picture is 0.
# - Each row holds `columns` maps, from left to right and then down, without gaps. If the last row is not full, its
#   unused places are 0.
# - `maps` and the picture are `float32`. You only draw the maps, so do not change `maps`.
#
# </div>


# %% exercise="09.2"
def one_scale(maps, columns):
    """把 (C, H, W) 的特征图拼成一张图，全部用同一把 0 到 1 的尺子。

    Tile maps of (C, H, W) into one picture, all on the same scale from 0 to 1.
    """
    ### BEGIN SOLUTION
    low, high = maps.min(), maps.max()
    scaled = (maps - low) / (high - low) if high > low else torch.zeros_like(maps)
    channels, height, width = maps.shape
    rows = -(-channels // columns)  # rounded up
    tiles = torch.zeros(rows * columns, height, width)
    tiles[:channels] = scaled
    tiles = tiles.reshape(rows, columns, height, width)
    return tiles.permute(0, 2, 1, 3).reshape(rows * height, columns * width)
    ### END SOLUTION


# %% check="09.2"
check("09.2", one_scale)

# %% [markdown]
# ## 9.5 写进 TensorBoard，再读回来 · Into TensorBoard and back
#
# <div lang="zh">
#
# 训练的时候，权重在变，特征图也就不断变化。想看它怎样变，就隔一阵写下一张图，以后再放在一起看。
#
# TensorBoard 把这些图存在事件文件里：`add_image(tag, picture, step)` 写下一张图，还有它是第几步的。各步用同一个标签，这些图就归在一起。
#
# 一次只写一张图，一层却有许多特征图，所以先要拼成一张网格，这由 torchvision 的 `make_grid` 来做，`nrow` 是每行的张数。`normalize=True` 把数拉到 0 到 1 之间。再加上 `scale_each=True`，每张图就分开来拉，也就是各用各的尺子。
#
# 下面给 9.2 节的五组各写一张网格，拼的是前 12 张特征图，写在第 100 步。要是一个标签有好几步，又会怎样？为了看这一点，我们再写一个标签，它有 6 步，每步一张小图。
#
# </div>
# <div lang="en">
#
# Feature maps change during training, because the weights change. To watch this, you write a picture of the maps from
# time to time, and look at all these pictures later.
#
# TensorBoard keeps such pictures in an event file: `add_image(tag, picture, step)` writes one picture and the step at
# which it was made. If all steps use the same tag, their pictures are filed together.
#
# One call writes one picture, but a layer has many maps, so we first lay them out as a single picture. torchvision's
# `make_grid` does this, with `nrow` maps in a row. With `normalize=True` it stretches the numbers to the range from 0
# to 1. If you add `scale_each=True`, it stretches each map by itself, so each gets its own scale.
#
# Let us do this for the five groups of section 9.2. From each group we lay out the first 12 maps as a grid, and write
# the grid at step 100. What happens to a tag with several steps? To see that, we write one more tag, with a small
# picture at each of 6 steps.
#
# </div>

# %% tags=["E19"]
import tempfile

temporary = tempfile.TemporaryDirectory()
folder = temporary.name
with SummaryWriter(folder) as writer:
    for shape, [(_, maps)] in groups.items():
        grid = make_grid(maps[0, :12, None], nrow=6, normalize=True, scale_each=True)
        writer.add_image("kernel_" + "x".join(map(str, shape)), grid, 100)
    for step in range(6):
        writer.add_image("small", torch.rand(8, 8), step, dataformats="HW")

# %% [markdown]
# <div lang="zh">
#
# 图写对了没有，读回来一看就知道。`EventAccumulator` 用来读一个文件夹里的事件文件，不过要调用 `Reload()` 之后，它才有内容。小图一共写了 6 步，默认读得回几步？**先猜。**
#
# </div>
# <div lang="en">
#
# Were the pictures written correctly? To see that, we read them back with an `EventAccumulator`. It reads the event
# files of a folder, and it stays empty until you call `Reload()`.
#
# We wrote a small picture at each of 6 steps. How many of these come back if we change no setting? **Guess first.**
#
# </div>

# %%
guess("09.d")

# %% tags=["E19"]
reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()  # 0: keep all
for tag in reader.Tags()["images"]:
    events = reader.Images(tag)
    size = f"{events[0].height} by {events[0].width}"
    print(f"{tag:18}  steps {[event.step for event in events]}  {size} pixels")
default = EventAccumulator(folder).Reload()
print("small, read by default: steps", [event.step for event in default.Images("small")])

# %% picture="grid"
import io

event = reader.Images("kernel_64x3x11x11")[0]
plt.figure(figsize=(8, 2.8))
plt.imshow(plt.imread(io.BytesIO(event.encoded_image_string), format="png"))
_ = plt.axis("off")

# %% [markdown]
# <div lang="zh">
#
# 默认只读回 4 步，因为读取器为了省内存，给每个标签最多留 4 张图。最后一张一定留着，前面的随机挑；随机数的种子是固定的，所以每次读到的都一样。写上 `size_guidance={"images": 0}`，就全部读回。
#
# 特征图写对了吗？从读回来的那张图看，写对了：卷积核虽然是随机的，照片的轮廓却还在。
#
# </div>
# <div lang="en">
#
# By default only 4 steps come back, because the reader, to save memory, keeps at most 4 for each tag. It always keeps
# the last. It chooses the others at random, but with a fixed seed, so every reading gives the same. With
# `size_guidance={"images": 0}` all come back.
#
# Were the maps written correctly? The picture that we read back says yes: even with random kernels it shows the
# photograph's outlines.
#
# </div>
#
# ### 练习 09.3：写进去，读回来 · Exercise 09.3: Write and read back
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写进去的图，要读得回来才有用，所以我们要一个函数，写完就读，告诉你文件里有什么。
#
# 写 `log_maps(folder, tag, pictures)`。字典 `pictures` 的键是步数，值是图 `(height, width)`，图里的数在 0 到 1 之间。函数把图写进去，再把读回来的放在列表 `[(step, height, width), ...]` 里返回。
#
# - 先把图写进 `folder`，写完关上（`with`），再读出（`Reload()`）`tag` 的**所有**图。
# - `folder` 里可能已有上一次训练写的图，它们也算，所以同一步可能有两张。
# - 次序照 `reader.Images(tag)` 的。它的每一项都有 `step`、`height` 和 `width`。
#
# </div>
# <div lang="en">
#
# A picture in a file is useful only if you can read it back. So we want a function that writes pictures, then reads the
# file and tells you what is there.
#
# Write `log_maps(folder, tag, pictures)`, where `pictures` is a dictionary from steps to pictures `(height, width)`
# with values from 0 to 1. It writes them and returns what it has read back, in a list `[(step, height, width), ...]`.
#
# - Write the pictures into `folder` and close the writer (`with`). Only then read (`Reload()`) **all** pictures of
#   `tag`.
# - `folder` may hold pictures of an earlier run. These count too, so a step may occur twice.
# - Keep the order of `reader.Images(tag)`. Each item has `step`, `height` and `width`.
#
# </div>


# %% exercise="09.3"
def log_maps(folder, tag, pictures):
    """把 {步数: 图} 写进 folder，再读出 tag 的所有图：[(step, height, width), ...]。

    Write {step: picture} into folder, then read all pictures under tag:
    [(step, height, width), ...].
    """
    ### BEGIN SOLUTION
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]
    ### END SOLUTION


# %% check="09.3"
check("09.3", log_maps)

# %% [markdown]
# ## 9.6 死掉的通道 · Dead channels
#
# <div lang="zh">
#
# ReLU 把负数变成 0。如果一个通道在**所有**图上、**所有**位置都是 0，我们就说它死了，因为它不给后面的层任何信息。更糟的是，ReLU 在这些地方的导数是 0，所以这个通道的卷积核得到的梯度也是 0。
#
# 要看到死掉的通道，先得把网络弄坏一点。我们让训练好的网络走错一大步，这一步的标签全部错开一位，学习率是 0.1。走完的网络就叫 `hurt`。
#
# 然后在 `block4` 的 ReLU 上数沉默的通道，也就是处处是 0 的通道，先只看一张图，再看全部 60 张。哪一种数法数出来的多？**先猜。**
#
# </div>
# <div lang="en">
#
# A ReLU turns negative numbers into 0. If a channel is 0 for **all** pictures at **all** places, we call it dead,
# because it tells the later layers nothing. What is worse, a ReLU has a derivative of 0 at these places, so the kernel
# of the channel gets a gradient of 0.
#
# To see some dead channels, we have to do damage to a network first. We let the trained network take one very bad step,
# in which all labels are off by one and the learning rate is 0.1, and call the result `hurt`.
#
# Then we count the silent channels at the ReLU of `block4`, that is, those that are 0 at all places. We count in two
# ways, first with one picture and then with all 60. Which way will find more? **Guess first.**
#
# </div>


# %%
def train_step(network, batch, shift, rate):
    labels = (batch.label + shift) % 6
    network.zero_grad()
    F.cross_entropy(network(batch.image), labels).backward()
    torch.optim.SGD(network.parameters(), lr=rate).step()


def largest_values(network):
    """Return the largest value of each channel in each of the 60 pictures."""
    kept = []
    with network.block4.relu.register_forward_hook(
        lambda module, args, output: kept.append(output.detach().amax((2, 3)))
    ):
        network(everything.image)
    return kept[0]


# %%
guess("09.e")

# %%
everything = next(iter(DataLoader(data, batch_size=60)))
batch = next(iter(DataLoader(Shapes(64, seed=3), batch_size=64)))
hurt = load_model()
train_step(hurt, batch, shift=1, rate=0.1)
for name, network in (("trained", net), ("hurt", hurt)):
    largest = largest_values(network)
    print(f"{name:7}  channels: {largest.shape[1]}", end="")
    print(f"  0 all over picture 0: {(largest[0] == 0).sum():2}", end="")
    print(f"  0 all over every picture: {(largest == 0).all(0).sum():2}")

# %% [markdown]
# <div lang="zh">
#
# 在一张图上沉默的有 42 个通道，在 60 张图上都沉默的却只有 24 个；其余的没有死，它们对别的图有反应，只是对那一张没有。而在训练好的网络里，这一层一个死的也没有。
#
# 人们常说，死掉的通道再也学不动了。我们来试一试：让 `hurt` 用正确的标签再走一步，学习率 0.01。走完以后，死掉的通道里会有醒过来的吗？**先猜**，再看它们的卷积核变了没有。
#
# </div>
# <div lang="en">
#
# On one picture 42 channels are silent, but only 24 are silent on all 60. The others are not dead: they respond to
# other pictures, and just had nothing to say about this one. In the trained network, this layer has no dead channel.
#
# It is often said that a dead channel can never learn again. Is that so? We let `hurt` take one more step, now with the
# right labels and a learning rate of 0.01. Will any of the dead channels wake up? **Guess first**, and then see whether
# their kernels have changed.
#
# </div>

# %%
guess("09.f")

# %%
dead = (largest_values(hurt) == 0).all(0)
before = hurt.block4.conv.weight.detach().clone()
train_step(hurt, everything, shift=0, rate=0.01)
gradient = hurt.block4.conv.weight.grad.abs().amax((1, 2, 3))
print(f"largest gradient of a kernel: dead {gradient[dead].max():.2f}", end="")
print(f", others {gradient[~dead].max():.2f}")
same = torch.equal(hurt.block4.conv.weight[dead], before[dead])
print("kernels of dead channels as before:", same)
print("dead channels that woke up:", (largest_values(hurt)[:, dead] > 0).any(0).sum().item())

# %% [markdown]
# <div lang="zh">
#
# 死通道的卷积核一点没变，因为它们的梯度是 0。可是有 7 个通道醒了，这是怎么回事？前面的层从活着的通道得到梯度，还在学，送进来的数就变了。同样的卷积核和 BatchNorm，这时交给 ReLU 的就不再全是负数。
#
# 所以「死」说的只是眼下：梯度改不动这个通道的卷积核，前面的层却可能把它救活。换几张图，它也可能醒来。
#
# 卷积核也未必永远不动，因为优化器的权重衰减也会改动梯度为 0 的权重（7.10 节）。
#
# </div>
# <div lang="en">
#
# The kernels of the dead channels have not changed, because their gradients are 0, and yet 7 of the channels woke up.
# How is that possible? The earlier layers still get gradients through the channels that are alive. So they learn, and
# now send different numbers. From these the same kernel and the same BatchNorm compute values that are no longer all
# negative, and the ReLU lets the positive ones through.
#
# So "dead" describes only the present. Gradients no longer move the kernel of such a channel, but the channel may come
# back to life when earlier layers change, and other pictures may wake it as well.
#
# Nor does the kernel have to stay as it is for ever: the weight decay of an optimizer also moves weights whose gradient
# is 0 (section 7.10).
#
# </div>

# %% [markdown]
# ### 练习 09.4：找出死掉的通道 · Exercise 09.4: Find the dead channels
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 一层里有没有死掉的通道，损失不会告诉你，钩子却查得出来。只看一批图还不够，因为在这批图上沉默的通道，换一批也许就有反应。
#
# 写 `dead_channels(model, relu, batches)`，它看过许多批才下判断。列表 `batches` 里的每一批，它都单独送进 `model` 运行一次，同时看着 `relu`，也就是 `model` 里的一个 ReLU。一个通道在所有批、所有图、所有位置都等于 0，才算死了。返回死通道的编号，放在一个列表里，从小到大。
#
# - 运行一批时，`relu` 可能被调用几次，特征图的大小也可能不同（都是 `float32`）。每次的输出都算。
# - `relu` 之后可能有就地操作，不能让它影响结果。
# - 很弱但不为 0 的通道（哪怕只有 `1e-38`）是活的，因为它还学得动。
# - 取下钩子，出了异常也一样；不许改动模型。
#
# </div>
# <div lang="en">
#
# The loss does not tell you whether a layer has dead channels, but a hook can find out. It has to see more than one
# batch for that, because a channel that is silent on one batch may respond to the next.
#
# Write `dead_channels(model, relu, batches)`, which looks at many batches before it judges. It runs `model` once on
# each batch of the list `batches`, each by itself. Meanwhile it watches `relu`, which is a ReLU inside `model`. A
# channel is dead if it is 0 in all batches, all pictures and all places. Return the numbers of the dead channels in a
# list, in ascending order.
#
# - A weak channel that is not 0 is alive, even at `1e-38`, because it can still learn.
# - While one batch runs, `relu` may be called several times, and its maps may differ in size (all are `float32`). Each
#   of its outputs counts.
# - In-place operations may follow the `relu`. Do not let them affect the result.
# - Others go on using the model. So do not change it, and remove the hook, even after an exception.
#
# </div>


# %% exercise="09.4"
def dead_channels(model, relu, batches):
    """返回列表：relu 的输出里，对所有批都处处为 0 的通道编号。

    Return the channels of relu's output that are 0 everywhere in all batches.
    """
    ### BEGIN SOLUTION
    largest = []

    def keep(module, args, output):
        largest.append(output.detach().amax((0, 2, 3)))

    with relu.register_forward_hook(keep), torch.no_grad():
        for batch in batches:
            model(batch)
    return (torch.stack(largest).amax(0) == 0).nonzero().flatten().tolist()
    ### END SOLUTION


# %% check="09.4"
check("09.4", dead_channels)

# %% [markdown]
# ## 9.7 另一条路也会踩坑 · The other way has the same trap
#
# <div lang="zh">
#
# 不用钩子也能取特征图，办法是 torchvision 的 `create_feature_extractor`。你点名要哪几层，它就另写出一个新模型，直接返回这些层的输出。为此它要跟踪模型的 `forward`，记下依次调用了哪些层，后面用不到的层就删掉。
#
# 点名时，一个名字指的是一次**调用**，例如 `relu` 的第二次调用叫 `relu_1`。
#
# 走这条路，就踩不到 9.1 节的坑了吗？我们在 AlexNet 上试两次：先只点名第一个卷积 `features.0`，再连第二个卷积 `features.3` 一起点名。两次都看 `features.0` 的最小值，因为从它就看得出负数还在不在。哪一次的 `features.0` 里有负数？**先猜。**
#
# </div>
# <div lang="en">
#
# You can also get feature maps without hooks, with `create_feature_extractor` from torchvision. You name the layers
# that you want, and it writes a new model that returns their outputs. To do so, it traces the `forward` of the original
# model, that is, it notes which layers are called, and in which order. Later layers that are not needed for these
# outputs are dropped.
#
# A name stands for one **call** of a layer. If `relu` is called more than once, for example, its second call has the
# name `relu_1`.
#
# Does this way avoid the trap of section 9.1? We try it twice on AlexNet. First we name only the first convolution,
# `features.0`, and then the second, `features.3`, as well. Both times we look at the smallest value of `features.0`,
# because it shows whether the negative numbers are still there. In which of the two cases are they? **Guess first.**
#
# </div>

# %%
guess("09.g")

# %%
smallest = []
for names in (["features.0"], ["features.0", "features.3"]):
    extractor = create_feature_extractor(model, names)
    with torch.no_grad():
        found = extractor(x)
    smallest.append(found["features.0"].min().item())
    print(f"asked for {names}: smallest of features.0 {smallest[-1]:.2f}")

print("nodes of the ResNet block:", get_graph_node_names(block)[1])  # [1]: in eval mode

# %% [markdown]
# <div lang="zh">
#
# 只点名 `features.0` 时，负数都在，因为后面的层全被删掉了，没有谁来改写它。
#
# 把 `features.3` 也点了名，新模型就要一直算到那里，不得不留下中间那个就地的 ReLU。它和在原来的模型里一样，把 `features.0` 的输出改写了。
#
# 新模型有自己的 `forward`，那么它也有自己的层吗？我们在原来的模型上留两个钩子，一个在卷积 `features.0` 上，一个在装着它的容器 `features` 上。提取器运行时，哪个钩子触发？**先猜**，再看建造提取器时触发的又是哪个。
#
# </div>
# <div lang="en">
#
# If only `features.0` is named, the negative numbers are still there. All later layers have been dropped, so nothing
# can overwrite the output of `features.0`.
#
# If you ask for `features.3` as well, the new model has to run all the layers up to this one, and so it must keep the
# in-place ReLU in between. This ReLU overwrites the output of `features.0`, just as it does in the original model.
#
# The new model has a `forward` of its own. Does it also have layers of its own? To find out, we put two hooks on the
# original model, one on the convolution `features.0` and one on its container `features`. Which hook fires when the
# extractor runs? **Guess first**, and then see which hook fires while the extractor is built.
#
# </div>


# %%
guess("09.h")


# %% tags=["F42"]
def note(name, module, args, output):
    fired.append((name, type(output).__name__))


fired = []
conv, container = model.features[0], model.features
with (
    conv.register_forward_hook(partial(note, "features.0")),
    container.register_forward_hook(partial(note, "features")),
):
    extractor = create_feature_extractor(model, ["features.3"])
    print("while it is built:", fired)
    fired.clear()
    with torch.no_grad():
        extractor(x)
    print("while it runs:    ", fired)
print("the same convolution:", extractor.get_submodule("features.0") is model.features[0])

# %% [markdown] tags=["F42"]
# <div lang="zh">
#
# 提取器运行时，触发的是卷积上的钩子，因为提取器用的就是原来的卷积，是同一个对象，不是副本。容器的钩子不触发，因为新的 `forward` 绕过了容器，直接调用里面的层。
#
# 建造的时候，触发的却是容器的钩子，因为跟踪要走进容器，训练模式和评估模式各走一遍；遇到卷积只是记下，并不运行。这时钩子收到的是 `Proxy`，一个没有数据的占位符。
#
# </div>
# <div lang="en">
#
# When the extractor runs, the hook on the convolution fires, because the extractor did not make a copy of the
# convolution but uses the original one. The hook on the container does not fire, because the new `forward` bypasses
# the container and calls the layers inside it directly.
#
# While the extractor is built, it is the container's hook that fires. Tracing calls the container to find the layers
# inside it, once for training mode and once for evaluation mode, but it only notes the convolution and does not run it.
# What the hook receives there is a `Proxy`, a placeholder without data.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 提取器不是一个独立的模型，它和原来的模型共用模块。忘在原模型的层上的钩子，只要提取器也运行那一层，照样触发。训练提取器，也就是在训练原来的模型。
#
# 所以先取下原模型上的钩子。要独立的提取器，就再从 `copy.deepcopy(model)` 建造；先取后复制，因为模块的钩子也会复制过去（8.8 节）。
#
# </div>
# <div lang="en">
#
# An extractor is not an independent model: it shares its modules with the original. A hook that was forgotten on a
# layer of the original also fires when the extractor runs that layer. And if you train the extractor, you train the
# original.
#
# So take the hooks off the original first. If you need an independent extractor, build it from `copy.deepcopy(model)`
# after that, since a copy carries the hooks of modules along (section 8.8).
#
# </div>
# </div>

# %% [markdown]
# ### 练习 09.5：与提取器对账 · Exercise 09.5: Compare with the extractor
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 提取器给你的特征图，有没有被改写过？它自己不会说。好在一层刚运行完，钩子就可以留下一份拷贝，这份拷贝谁也改写不了。两边对一对账，就知道哪些图被改写了。
#
# 写 `disagreement(model, x, names)` 来对账。先用钩子取出 `names` 里各层当时的输出，再用**一个**提取器取同样的 `names`。返回一个字典，每个名字对应两边最大的绝对差。
#
# 这些模型不抽随机数，两边本来应该一样。差不是 0，提取器的那份就被改写过。例如上面的 AlexNet，一起取 `features.0` 和 `features.3`，差是 4.08 和 0。
#
# - 差是一个数（只有一个数的张量也行），不取整，再小的差也算。
# - `names` 里的模块，每个都只运行一次。
# - 模型你想运行几次都可以，因为它不改写 `x`，所有的层也都在同一种模式下。
# - 不许改动模型，也不许留下你的钩子。
#
# </div>
# <div lang="en">
#
# An extractor may give you feature maps that were overwritten, and it does not tell you. But a hook can copy a layer's
# output as soon as the layer has run, and nothing overwrites that copy. Compare the two, and you know which maps were
# overwritten.
#
# Write `disagreement(model, x, names)`. First use hooks to take the output of each layer in `names` right after the
# layer has run. Then take the same `names` with **one** extractor. Return a dictionary from each name to the largest
# absolute difference between the two.
#
# These models draw no random numbers, so the two should agree. If they differ, the extractor's version was overwritten.
# With the AlexNet above, `features.0` and `features.3` together give 4.08 and 0.
#
# - Each difference is a number (or a tensor that holds one number), not rounded, since tiny ones count.
# - Do not change the model, and leave none of your hooks on it.
# - Each module in `names` runs just once.
# - You may run the model any number of times: it never changes `x`, and all its layers are in one mode.
#
# </div>


# %% exercise="09.5"
def disagreement(model, x, names):
    """返回 {名字: 钩子留下的与提取器给出的最大绝对差}。

    Return {name: largest absolute difference between what hooks kept and what one extractor gives}.
    """
    ### BEGIN SOLUTION
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach().clone()

    for name in names:
        handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    found = create_feature_extractor(model, list(names))(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}
    ### END SOLUTION


# %% check="09.5"
check("09.5", disagreement)

# %% [markdown]
# ## 9.8 实例：哪张特征图在看形状 · Worked example: which map watches the shape
#
# <div lang="zh">
#
# 最后来评判特征图：哪个通道在看形状？`Shapes` 给得出每张图的掩码，形状上是 1，别处是 0。我们把掩码缩小到 `block3` 的 16×16，和特征图相乘，剩下的就是落在形状上的激活，再算它占这个通道全部激活的多大一份。
#
# 这一份大，就说明通道在看形状吗？还不能。缩小以后，掩码盖住图的 9%，不看形状的通道好像也就得 9%。可是形状多半在中间，一个通道要是常在中间有反应，就算什么形状也不看，也会得到更多。
#
# 所以要一个对照：给每张图配上**另一张图**的掩码，再算一遍。那里的形状多半在别处，所以真在看形状的通道，这一份就该掉下来。
#
# 最好的通道，有多大一份落在形状上？**先猜**，再看换了掩码以后还剩多少。
#
# </div>
# <div lang="en">
#
# Finally, let us judge the maps: which channel watches the shape? `Shapes` gives us a mask for each picture, which is 1
# on the shape and 0 elsewhere. We shrink the masks to the 16×16 of `block3` and multiply the maps by them. What is left
# is the activation on the shape, and we compute its share of the channel's whole activation.
#
# Does a large share prove that a channel watches the shape? Not yet. The shrunk masks cover 9% of the pictures, so 9%
# may seem to be what a channel gets if it ignores the shapes. But shapes tend to be near the middle, and a channel that
# often responds there gets more without looking at any shape.
#
# That is why we need a control: we compute the share again, but with the mask of **another picture**. There the shape
# is usually elsewhere, so for a channel that really watches the shape, the share must fall.
#
# How much of the best channel's activation is on the shape? **Guess first**, then see what is left with the other masks.
#
# </div>


# %%
guess("09.i")


# %%
def keep_maps(module, args, output):
    kept.append(output.detach().clone())


kept = []
with net.block3.relu.register_forward_hook(keep_maps), torch.no_grad():
    net(everything.image)
[maps] = kept
masks = F.adaptive_max_pool2d(everything.mask[:, None].float(), 16)
share = (maps * masks).sum((0, 2, 3)) / maps.sum((0, 2, 3))
control = (maps * masks.roll(1, 0)).sum((0, 2, 3)) / maps.sum((0, 2, 3))  # of another picture
best, worst = share.argmax().item(), share.argmin().item()
print(f"covered by masks: {masks.mean():.0%}")
for ch in (best, worst):
    print(f"ch {ch}: on the shape {share[ch]:3.0%}, on another picture's {control[ch]:3.0%}")

# %% picture="best_and_worst"
fig, axes = plt.subplots(3, 6, figsize=(9, 4.7), layout="constrained")
for column in range(6):
    axes[0, column].imshow(everything.image[column].permute(1, 2, 0))
    for row, ch in enumerate((best, worst), 1):
        axes[row, column].imshow(maps[column, ch], vmin=0, vmax=maps[:6, ch].max())
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
for ax, label in zip(axes[:, 0], ("picture", f"ch {best}", f"ch {worst}"), strict=True):
    ax.set_ylabel(label)

# %% [markdown]
# <div lang="zh">
#
# 最好的是通道 18。它的激活有 96% 落在形状上，换成另一张图的掩码，就只剩 16%，可见它真的跟着形状走。
#
# 最差的是通道 34。它的激活几乎从不落在自己那张图的形状上，换成别的图的掩码，反倒有 11% 落在里面，可见它在避开形状。
#
# 看图的时候要记住，每一行各用一把尺子，所以亮暗只能在同一行里比较。
#
# 下面的 `LayerPicker` 看的是同一个模型，已经选好 `block3.relu`。找到这两个通道，再换几张图，看它们亮的地方是不是还跟着形状走。
#
# </div>
# <div lang="en">
#
# The best channel is 18. Of its activation 96% falls on the shape, and only 16% on the mask of another picture, so it
# really follows the shape.
#
# The worst is channel 34. It hardly ever responds on the shape of its own picture, but 11% of its activation falls on
# the masks of other pictures. So it avoids shapes.
#
# Keep in mind that in the figure each row has a scale of its own, so brightness can be compared only within a row.
#
# The `LayerPicker` below shows the same model, with `block3.relu` chosen. Find these two channels in it, and see what
# they do with other pictures.
#
# </div>

# %% picture="channels"
picker = LayerPicker(net, sample.image[None], images={str(n): data[n].image for n in range(1, 4)})
picker.value = "block3.relu"
picker

# %% [markdown]
# ## 9.9 小结 · Recap
#
# <div lang="zh">
#
# 1. `detach()` 给出的张量和 `output` 共用内存，所以后面的就地操作也会改变它。要留住特征图，就在钩子里写 `output.detach().clone()`。
# 2. 关掉 `inplace` 还不够，因为 `out += identity` 也是就地的，又没有开关可关。
# 3. 要比较通道，整层就用一把尺子。如果每张图各用各的，就要说明。
# 4. 事件文件要先关上再读。默认每个标签最多读回 4 张图，最后一张总在里面。
# 5. 死通道要在许多图上判断，而且结论说的只是眼下。提取器给的特征图也会被就地操作改写，而且提取器还和原模型共用模块。
#
# </div>
# <div lang="en">
#
# 1. What `detach()` returns shares memory with `output`, so a later in-place operation changes it too. To keep feature maps, write `output.detach().clone()` inside the hook.
# 2. Switching `inplace` off is not enough, because `out += identity` works in place too and has no switch.
# 3. To compare channels, use one scale for the whole layer. If each map has a scale of its own, say so.
# 4. Close an event file before you read it. By default, at most 4 pictures for each tag come back, and the last one is always among them.
# 5. Judge dead channels on many pictures, and remember that the verdict holds only for the present. The maps from an extractor can be overwritten in place too. An extractor also shares its modules with the original.
#
# </div>

# %% [markdown]
# ## 9.10 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 怎样看出留下的卷积输出被改写过？</summary>卷积的输出通常有正有负，一个负数也没有就很可疑。也可以记下钩子运行时的 <code>_version</code>，如果后来变大了，就说明之后有过就地操作，里面的数多半变了。</details>
# <details><summary>2. 每张图各用一把尺子，会骗你什么？</summary>几乎没有反应的通道，看上去和最强的一样亮。</details>
# <details><summary>3. 一个通道在一张图上全是 0，它死了吗？</summary>不一定：要对所有图、所有位置都是 0 才算。就算是，前面的层变了，它也可能醒来。</details>
# </div>
# <div lang="en">
# <details><summary>1. How can you tell that a kept output of a convolution was overwritten?</summary>The output of a convolution usually has both signs, so it is suspicious if no number is negative. You can also note the <code>_version</code> when the hook runs. If it is larger later, an in-place operation came after, and most of these change the numbers.</details>
# <details><summary>2. How does a scale for each map deceive you?</summary>A channel that hardly responds looks as bright as the strongest one.</details>
# <details><summary>3. A channel is 0 all over one picture. Is it dead?</summary>Not necessarily: it is dead only if it is 0 at all places of all pictures. And even then it may wake up when the layers before it change.</details>
# </div>

# %% [markdown]
# ## 9.11 真实世界里 · In the wild
#
# <div lang="zh">
#
# 检测和分割都需要网络各级的特征图。所以 `timm` 里的大多数模型可以用 `features_only=True` 创建，这样的模型会返回每一级的特征图。它内部有几种取法，其中一种就用前向钩子，在 `FeatureHookNet` 这个类里。
#
# 最后看看 AlexNet 第一层的 64 个核。训练好的核里看得到边缘和色块，随机的核里只有噪声。这台机器上若有训练好的权重，`pretrained` 就用它，没有就用随机的，它会说用的是哪一种。再下面是你的进度。
#
# </div>
# <div lang="en">
#
# Detection and segmentation need the feature maps of several stages of a network. That is why most models of `timm`
# can be created with `features_only=True`, and then they return the feature maps of each stage. Inside, `timm` has
# several ways to get these maps. One of them is the class `FeatureHookNet`, and it uses forward hooks, just as you did
# in this lesson.
#
# To end the lesson, have a look at the 64 kernels of AlexNet's first layer. Kernels that were trained show edges and
# blobs of colour, while random ones show only noise. If trained weights are stored on this machine, `pretrained` uses
# them. Otherwise it uses random ones. Either way, it says which it used. Below that you see your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
from hookedu import pretrained

kernels = pretrained(alexnet).features[0].weight.detach()
plt.figure(figsize=(8, 2.2))
plt.imshow(make_grid(kernels, nrow=16, padding=1, normalize=True).permute(1, 2, 0))
plt.axis("off")
plt.show()
progress()
