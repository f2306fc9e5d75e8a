# %% tags=["setup"]
import io
import tempfile
from collections import Counter, defaultdict
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.cbook import get_sample_data
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from torchvision.models import alexnet, resnet18
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names
from torchvision.transforms import v2
from torchvision.utils import make_grid

from hookedu import LanguageToggle, LayerPicker, check, hint, plot_feature_maps, progress, solution
from hookedu.models.shapes import Shapes, load_model

LanguageToggle()

# %% [markdown]
# ## 9.1 不见了的负数 · The negatives that vanished
#
# <div lang="zh">
#
# AlexNet 的第一层是卷积，它的特征图（每个通道一张）有正有负。钩子留下 `output.detach()`，画出来看看。
#
# 输入是 Grace Hopper 的照片，缩到 `224` 再归一化。权重是随机的，种子固定：这里用不着训练好的。
#
# **先猜一猜**：`detach()` 留下的特征图里，负数占多少？
#
# </div>
# <div lang="en">
#
# AlexNet begins with a convolution, whose feature maps (one for each channel) hold positive and negative numbers. A hook keeps
# `output.detach()`, and we draw that.
#
# A photograph of Grace Hopper goes in, resized to `224` and normalised. The weights are random, with a fixed seed:
# trained ones are not needed here.
#
# **Guess first**: what share of the feature maps kept by `detach()` is negative?
#
# </div>

# %%
photo = plt.imread(get_sample_data("grace_hopper.jpg", asfileobj=False)).copy()
resize = v2.Compose([v2.ToImage(), v2.Resize(224), v2.CenterCrop(224)])
normalise = v2.Compose(
    [
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ]
)
x = normalise(resize(photo))[None]
torch.manual_seed(0)
model = alexnet().eval()

print("x:", tuple(x.shape))
print(model.features[:2])
fig, ax = plt.subplots(figsize=(2.6, 2.6))
ax.imshow(resize(photo).permute(1, 2, 0))
ax.set_axis_off()

# %% tags=["F14"]
seen = {}


def keep(module, args, output):
    seen["detach()"] = output.detach()
    seen["detach().clone()"] = output.detach().clone()


with model.features[0].register_forward_hook(keep), torch.no_grad():
    model(x)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.6))
for ax, (way, maps) in zip(axes, seen.items(), strict=True):
    negative = (maps < 0).float().mean()
    print(f"{way:16}  smallest {maps.min():5.2f}  negative {negative:3.0%}  _version {maps._version}")
    plot_feature_maps(maps, tiles=16, title=way, ax=ax)

# %% [markdown] tags=["F14"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `detach()` 与 `output` 共用内存（3.8 节）：下一层 `ReLU(inplace=True)` 把负数就地改成 `0`（`_version` 是 `1`），不会报错。要留住那一刻，用 `output.detach().clone()`。
#
# </div>
# <div lang="en">
#
# `detach()` shares memory with `output` (section 3.8): the next layer, `ReLU(inplace=True)`, turned negatives into `0` (`_version` is `1`), without an error.
# To keep the moment, take `output.detach().clone()`.
#
# </div>
# </div>
#
# ## 9.2 五个卷积，五组特征图 · Five convolutions, five groups
#
# <div lang="zh">
#
# 给 AlexNet 的 5 个卷积都挂上钩子，按卷积核的形状 `tuple(module.weight.shape)` 分组。标准答案：把所有 `inplace` 改成 `False`，再运行一遍。
#
# **先猜**：`detach()` 留下的，有几组是对的？
#
# </div>
# <div lang="en">
#
# We hook all 5 convolutions of AlexNet and group what they give out by the kernel's shape, `tuple(module.weight.shape)`.
# The truth comes from a run with every `inplace` set to `False`.
#
# **Guess**: how many groups kept by `detach()` are right?
#
# </div>


# %% tags=["E19"]
def keep(module, args, output):
    shape = tuple(module.weight.shape)
    groups[shape].append((output.detach(), output.detach().clone()))


runs = {}
for inplace in (False, True):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = inplace
    groups = runs[inplace] = defaultdict(list)
    convs = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    handles = [conv.register_forward_hook(keep) for conv in convs]
    with torch.no_grad():
        model(x)
    for handle in handles:
        handle.remove()

for shape, [(detached, cloned)] in runs[True].items():  # one call in each group
    [(_, truth)] = runs[False][shape]
    right = f"detach() {torch.equal(detached, truth)!s:5}  clone() {torch.equal(cloned, truth)}"
    print(f"{shape!s:18} maps {tuple(cloned.shape)!s:18} right: {right}")

# %% [markdown]
# <div lang="zh">
#
# 一组也不对：每个卷积后面都紧跟就地 ReLU。
#
# </div>
# <div lang="en">
#
# Not one was right: an in-place ReLU follows each convolution.
#
# </div>
#
# ### 练习 09.1：不怕就地操作 · Exercise 09.1: Immune to in-place operations
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `conv_groups(model, x)`：照模型原来的模式运行一次 `model(x)`（不是副本），返回字典：卷积核的形状 → 列表，按运行的次序，每次调用一项，是那一刻的输出，不连计算图。只看运行了的 `nn.Conv2d`，不论藏得多深，模型自己也算。
#
# 键是元组，`dtype` 不变。不许改动模型，`training` 也不许变；钩子都要取下，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write `conv_groups(model, x)`: run `model(x)` once (no copy, in its own mode) and return a dictionary from kernel shapes to lists, one entry per call in the order of running:
# the output of that moment, without its graph. Only each `nn.Conv2d` that runs, however deep, and also the model itself.
#
# Keys are tuples; `dtype` stays. Don't change the model, `training` included; take off all hooks, even after an exception.
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
# 看起来，把 `inplace` 都关掉就不用 `clone()` 了。试试 ResNet 的一个块：它的 `relu` 已经设成 `inplace=False`。块的最后几步是 `bn2`，然后 `out += identity`（加上块的输入），然后又是 `relu`。
#
# **先猜**：`detach()` 留下的，哪一层是错的？每层报告几次？
#
# </div>
# <div lang="en">
#
# With every `inplace` off, `clone()` seems needless. Try a block of ResNet whose `relu` has `inplace=False`. It ends in `bn2`, then
# `out += identity` (which adds the block's input), then `relu` again.
#
# **Guess**: for which layer is what `detach()` kept wrong? How often does each layer report?
#
# </div>

# %% tags=["F15", "F27"]
torch.manual_seed(0)
block, calls, seen = resnet18().layer1[0].eval(), Counter(), {}
block.relu.inplace = False


def keep(name, module, args, output):
    calls[name] += 1
    seen[name] = output.detach(), output.detach().clone()


handles = [child.register_forward_hook(partial(keep, name)) for name, child in block.named_children()]
identity = torch.randn(1, 64, 8, 8)
out = block(identity)
for handle in handles:
    handle.remove()

for name, (detached, cloned) in seen.items():
    print(f"{name:5}  calls {calls[name]}  detach() still right: {torch.equal(detached, cloned)}")
detached, cloned = seen["bn2"]
print("bn2 as kept by detach() equals bn2 + identity:", torch.equal(detached, cloned + identity))

# %% [markdown] tags=["F15", "F27"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `+=` 也是就地操作，而且写在 `forward` 里，没有开关可关。管用的只有 `clone()`。
#
# </div>
# <div lang="en">
#
# `+=` works in place too; it stands in `forward`, where there is no switch. Only `clone()` helps.
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
# 又是 5.7 节：一个块只有一个 `relu`，运行 2 次，`seen["relu"]` 只剩后一次。每次都要，就用列表。
#
# </div>
# <div lang="en">
#
# Section 5.7 again: the block has a single `relu`, which runs 2 times; `seen["relu"]` holds only the later one. To keep each, use a list.
#
# </div>
# </div>

# %% [markdown]
# ## 9.4 同一把尺子 · One scale for all
#
# <div lang="zh">
#
# 随机权重的特征图没有意思，换一个训练过的小网络。`Shapes` 现场画出小图，每张有一个形状，共 6 类；`load_model()` 给出的网络能认出它们，它的 `block3` 给出 48 张特征图，画两遍：一遍每张图各用自己的尺子，一遍共用一把。
#
# **先猜**：最大值是 0.02 的那张，和最大值是 3.7 的那张，看上去一样亮吗？
#
# </div>
# <div lang="en">
#
# Maps of random weights mean little. Here is a small trained network: `Shapes` draws small pictures with one shape each, of 6 classes, and what `load_model()` gives recognises them. Its `block3` gives
# 48 feature maps. We draw them twice: each map on its own scale, then all on one.
#
# **Guess**: will the map whose largest value is 0.02 look as bright as that with 3.7?
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
for name, channel in (("dimmest", largest.argmin()), ("brightest", largest.argmax())):
    print(f"{name:9} ch {channel.item():2}  largest value {largest[channel]:.2f}")

fig, axes = plt.subplots(1, 3, figsize=(14, 4.6), width_ratios=(1, 2, 2))
axes[0].imshow(sample.image.permute(1, 2, 0))
axes[0].set_axis_off()
plot_feature_maps(maps, per_map=True, title="block3", ax=axes[1])
ax = plot_feature_maps(maps, title="block3, one scale", ax=axes[2])

# %% [markdown]
# <div lang="zh">
#
# 各用各的尺子，几乎没有反应的通道也满是花纹，看不出谁强谁弱。
#
# </div>
# <div lang="en">
#
# When each map has its own scale, a channel that hardly responds is full of patterns; strong and weak look alike.
#
# </div>
#
# ### 练习 09.2：一把尺子的网格 · Exercise 09.2: A grid with one scale
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `one_scale(maps, columns)`：`maps` 是 `(C, H, W)`，`columns` 不大于 `C`。返回一张图 `(height, width)`，每行 `columns` 张，从左到右、从上到下，之间不留缝。整层最小的数变成 0，最大的变成 1，相差再小也一样；末行空位填 0，全都一样时整张是 0。`maps` 和图都是 `float32`；不许改动 `maps`。
#
# </div>
# <div lang="en">
#
# Write `one_scale(maps, columns)`: `maps` is `(C, H, W)`, `columns` at most `C`. Return one picture `(height, width)`, `columns` maps a row, left to right, then down, no gaps.
# The layer's smallest number becomes 0, its largest 1, however close; unused places are 0; if all are equal, the whole picture is 0. `maps` and picture are `float32`. Leave `maps` as it is.
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
# 训练时想看特征图怎样变化，就把网格写进事件文件：`add_image(tag, picture, step)`。拼图可以用 torchvision 的 `make_grid`：`nrow` 是每行的张数，`scale_each=True` 就是各用各的尺子。
#
# 写了没有？用 `EventAccumulator` 读回来看。下面还把同一张小图写了 6 步。**先猜**：默认能读回几步？
#
# </div>
# <div lang="en">
#
# To see how maps change during training, write grids into an event file: `add_image(tag, picture, step)`. torchvision's `make_grid` lays them out:
# `nrow` is the number of maps in a row, `scale_each=True` gives each its own scale.
#
# Did it work? `EventAccumulator` reads them back. The cell also writes one small picture at 6 steps. **Guess**: how many steps come back by default?
#
# </div>

# %% tags=["E19"]
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for shape, [(_, maps)] in runs[True].items():
            grid = make_grid(maps[0, :, None], nrow=24, normalize=True, scale_each=True)
            writer.add_image("kernel_" + "x".join(map(str, shape)), grid, 100)
        for step in range(6):
            writer.add_image("small", torch.rand(8, 8), step, dataformats="HW")

    default = EventAccumulator(folder).Reload()
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()  # 0: keep all

for tag in reader.Tags()["images"]:
    events = reader.Images(tag)
    size = f"{events[0].height} by {events[0].width}"
    print(f"{tag:18}  steps {[event.step for event in events]}  {size} pixels")
print("small, read by default: steps", [event.step for event in default.Images("small")])
event = reader.Images("kernel_192x64x5x5")[0]
picture = plt.imread(io.BytesIO(event.encoded_image_string), format="png")
fig, ax = plt.subplots(figsize=(10, 3.6))
ax.imshow(picture)
ax.set_axis_off()

# %% [markdown]
# <div lang="zh">
#
# 读取器默认每个标签只随机留 4 张。
#
# </div>
# <div lang="en">
#
# By default the reader keeps 4 pictures a tag, chosen at random.
#
# </div>
#
# ### 练习 09.3：写进去，读回来 · Exercise 09.3: Write and read back
#
# ●●● · 8 min
#
# <div lang="zh">
#
# `reader.Images(tag)` 的每一项有 `step`、`height`、`width`。先关上（`with`），再读（`Reload()`）。
#
# 写 `log_maps(folder, tag, pictures)`：`pictures` 是字典，步数 → 图 `(height, width)`，值在 0 到 1 之间。把它们写进 `folder`，再从里面读出 `tag` 的**所有**图，返回 `[(step, height, width), ...]`。`folder` 里可能已有上一次训练写的图，也要算上；同一步可能有两张，次序照 `Images(tag)` 的。
#
# </div>
# <div lang="en">
#
# Each item of `reader.Images(tag)` has `step`, `height` and `width`. Close the writer (`with`) before you
# `Reload()`.
#
# Write `log_maps(folder, tag, pictures)`: `pictures` maps steps to pictures `(height, width)` of values from 0 to 1. Write them into `folder`, then read **all** pictures under
# `tag` from it: `[(step, height, width), ...]`. `folder` may already hold some from an earlier run; they count too, and a step may occur twice. The order is that of `Images(tag)`.
#
# </div>


# %% exercise="09.3"
def log_maps(folder, tag, pictures):
    """把 {步数: 图} 写进 folder，再读出 tag 的所有图：[(step, height, width), ...]。

    Write {step: picture} into folder, then read all pictures under tag: [(step, height, width), ...].
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
# ReLU 之后，一个通道如果对**所有**图、**所有**位置都是 0，它就死了：输出是 0，它的卷积核得到的梯度也是 0，再也学不动。
#
# 让训练好的网络走一步错的：标签错开一位，学习率 0.1。**先猜**：只看一张图和看 60 张图，数出来的一样多吗？
#
# </div>
# <div lang="en">
#
# After a ReLU, a channel that is 0 for **all** pictures at **all** places is dead: it gives 0, its kernel's gradient is 0, and it learns no more.
#
# We let the trained network take one bad step: labels off by one, a learning rate of 0.1. **Guess**: does one picture show as many dead channels as 60 do?
#
# </div>

# %%
hurt, kept = load_model(), []
batch = next(iter(DataLoader(Shapes(64, seed=3), batch_size=64)))
F.cross_entropy(hurt(batch.image), (batch.label + 1) % 6).backward()
torch.optim.SGD(hurt.parameters(), lr=0.1).step()


def keep(module, args, output):
    kept.append(output.detach().clone())


for name, network in (("trained", net), ("hurt", hurt)):
    kept.clear()
    with network.block4.relu.register_forward_hook(keep), torch.no_grad():
        for batch in DataLoader(data, batch_size=20):
            network(batch.image)
    maps = torch.cat(kept)
    first, everywhere = maps[0].amax((1, 2)) == 0, maps.amax((0, 2, 3)) == 0
    print(f"{name:7}  {len(maps)} pictures, {maps.shape[1]} channels")
    print(f"         0 all over picture 0: {first.sum():2}  0 all over every picture: {everywhere.sum():2}")

hurt.zero_grad()
F.cross_entropy(hurt(batch.image), batch.label).backward()
of = hurt.block4.conv.weight.grad.abs().amax((1, 2, 3))
print(f"largest gradient of a kernel: dead {of[everywhere].max():.2f}, others {of[~everywhere].max():.2f}")

# %% [markdown]
# <div lang="zh">
#
# 在一张图上沉默，不等于死了。
#
# </div>
# <div lang="en">
#
# To be silent on one picture is not to be dead.
#
# </div>
#
# ### 练习 09.4：找出死掉的通道 · Exercise 09.4: Find the dead channels
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `dead_channels(model, relu, batches)`：`relu` 是 `model` 里的一个 ReLU，列表 `batches` 里的每一批都单独送进 `model` 运行一次。返回列表，从小到大，是所有批、所有图、所有位置都等于 0 的通道的编号。一次运行里 `relu` 可能被调用几次，大小也可能不同，输出都算；之后可能有就地操作；很弱但不为 0 的通道是活的。取下钩子，出了异常也一样；模型不变。
#
# </div>
# <div lang="en">
#
# Write `dead_channels(model, relu, batches)`: `relu` is a ReLU inside `model`; run `model` once on each of the list `batches`. Return the ascending list of the
# channels that are 0 everywhere in all batches. `relu` may run several times per batch, on any size: each output counts; in-place operations may follow.
# A weak channel that is not 0 lives. Remove the hook, even after exceptions; don't change the model.
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
# torchvision 的 `create_feature_extractor` 不用钩子：它照着 `forward` 重写一个新模型，直接返回你点名的那些层，后面用不到的就删掉。它按调用起名：`relu` 的第二次调用叫 `relu_1`。
#
# **先猜**：`features.0` 的最小值，只点它一个，和连 `features.3` 一起点，会一样吗？
#
# </div>
# <div lang="en">
#
# `create_feature_extractor` of torchvision uses no hooks: it rewrites `forward` as a new model that returns the layers you name; what comes later and is not needed is dropped.
# It names calls: the second one of `relu` is `relu_1`.
#
# **Guess**: will the smallest value of `features.0` be the same whether you name it alone or together with `features.3`?
#
# </div>

# %%
for names in (["features.0"], ["features.0", "features.3"]):
    extractor = create_feature_extractor(model, names)
    with torch.no_grad():
        found = extractor(x)
    print(f"asked for {names}: smallest of features.0 {found['features.0'].min():.2f}")

print("nodes of the ResNet block:", get_graph_node_names(block)[1])  # [1]: in eval mode

# %% [markdown]
# <div lang="zh">
#
# 一起点名时，`features.1` 的就地 ReLU 也留在新模型里，又改写了 `features.0`。
#
# </div>
# <div lang="en">
#
# Named together, the in-place ReLU `features.1` stays in the new model and overwrites `features.0` again.
#
# </div>
#
# ### 练习 09.5：与提取器对账 · Exercise 09.5: Compare with the extractor
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 写 `disagreement(model, x, names)`：用钩子取各层当时的输出，用**一个**提取器取同样的 `names`（都是只运行一次的模块），返回字典：名字 → 两者最大的绝对差，一个数（单个数的张量也行），不取整。不是 0，就说明提取器给的被改写过。模型运行几次都可以：它不改写 `x`，各层模式相同。不许改动模型，不留钩子。
#
# </div>
# <div lang="en">
#
# Write `disagreement(model, x, names)`: take each layer's output of the moment with hooks, the same `names` (modules that each run once) with **one** extractor; return a
# dictionary from names to the largest absolute difference, a number (or tensor of one), not rounded. What is not 0 was overwritten there. The model may run often, never changes `x`, has one mode
# throughout. Don't change it, leave no hooks.
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
# 现在来评判特征图。`Shapes` 知道形状在哪里：把每个形状的掩码缩小到 `block3` 的 16×16，数一数每个通道的激活有多大一份落在形状上。形状占图的 9%：不看形状的通道，也就得 9% 左右；少得多的，是在避开形状。
#
# 下面的 `LayerPicker` 看的是同一个模型，已选好 `block3.relu`：找到最好的那个通道，再换几张图。
#
# </div>
# <div lang="en">
#
# Now to judge maps. `Shapes` knows where each shape is: we shrink its mask to the 16×16 of `block3` and ask what share of a channel's activation falls
# on the shape. Shapes cover 9% of the pictures: a channel that ignores them would get about 9%; one with far less avoids them.
#
# The `LayerPicker` below shows the same model, with `block3.relu` chosen: find the best channel, try other pictures.
#
# </div>

# %%
everything, seen = next(iter(DataLoader(data, batch_size=len(data)))), []
with net.block3.relu.register_forward_hook(lambda m, args, output: seen.append(output.detach().clone())):
    with torch.no_grad():
        net(everything.image)
on_shape = F.adaptive_max_pool2d(everything.mask[:, None].float(), 16)
share = (seen[0] * on_shape).sum((0, 2, 3)) / seen[0].sum((0, 2, 3))
best, worst = share.argmax().item(), share.argmin().item()
print(f"covered by shapes: {on_shape.mean():.0%}")
print(f"ch {best}: {share[best]:.0%} of its activation on the shape; ch {worst}: {share[worst]:.0%}")

fig, axes = plt.subplots(3, 6, figsize=(10, 5.2), layout="constrained")
top = seen[0][:6, [best, worst]].amax((0, 2, 3))
for column, (picture, maps) in enumerate(zip(everything.image[:6], seen[0][:6], strict=True)):
    axes[0, column].imshow(picture.permute(1, 2, 0))
    axes[1, column].imshow(maps[best], vmin=0, vmax=top[0])
    axes[2, column].imshow(maps[worst], vmin=0, vmax=top[1])
for ax, label in zip(axes[:, 0], ("picture", f"ch {best}", f"ch {worst}"), strict=True):
    ax.set_ylabel(label)
_ = [ax.set(xticks=[], yticks=[]) for ax in axes.flat]

# %%
picker = LayerPicker(net, sample.image[None], images={str(n): data[n].image for n in range(1, 4)})
picker.value = "block3.relu"
picker

# %% [markdown]
# ## 9.9 小结 · Recap
#
# <div lang="zh">
#
# 1. `detach()` 防不住就地操作；留特征图要 `output.detach().clone()`。
# 2. 关掉 `inplace` 不够：`out += identity` 也是就地的。
# 3. 比较通道，整层用一把尺子；各用各的，要说明。
# 4. 事件文件：关上再读，默认每个标签只读回 4 张。
# 5. 死通道要在许多图上判断；提取器也会被改写。
#
# </div>
# <div lang="en">
#
# 1. `detach()` is no protection from in-place operations; keep maps with `output.detach().clone()`.
# 2. Switching `inplace` off is not enough: `out += identity` is in place too.
# 3. To compare channels, use one scale a layer; say so if each has its own.
# 4. Event files: close before reading; by default 4 pictures a tag come back.
# 5. Judge dead channels on many pictures; extractors get overwritten too.
#
# </div>

# %% [markdown]
# ## 9.10 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 怎样一眼看出留下的卷积输出被改写过？</summary>一个负数也没有；<code>_version</code> 大于 0。</details>
# <details><summary>2. 每张图各用一把尺子，会骗你什么？</summary>几乎没有反应的通道，看上去和最强的一样亮。</details>
# <details><summary>3. 一个通道在一张图上全是 0，它死了吗？</summary>不一定：要对所有图、所有位置都是 0 才算。</details>
# </div>
# <div lang="en">
# <details><summary>1. How do you see at a glance that a kept convolution's output was overwritten?</summary>It has no negative number; <code>_version</code> is above 0.</details>
# <details><summary>2. How does a scale for each map deceive you?</summary>A channel that hardly responds looks as bright as the strongest.</details>
# <details><summary>3. A channel is 0 all over one picture. Is it dead?</summary>Not necessarily: only if it is 0 at all places of all pictures.</details>
# </div>

# %% [markdown]
# ## 9.11 真实世界里 · In the wild
#
# <div lang="zh">
#
# `timm` 的模型用 `features_only=True` 交出各级特征图，检测和分割模型都靠它；其中一种做法就是前向钩子（搜索 `FeatureHookNet`）。
#
# 最后看 AlexNet 第一层的 64 个核：训练好的是边缘和色块，随机的是噪声。这台机器上有哪种，`pretrained` 会说。再下面是你的进度。
#
# </div>
# <div lang="en">
#
# Models of `timm` hand out the feature maps of each stage with `features_only=True`, on which detection and segmentation rely; one of the ways
# inside uses forward hooks (search for `FeatureHookNet`).
#
# Last, the 64 kernels of AlexNet's first layer: edges and blobs of colour when trained, noise when random. `pretrained` says which this machine has. Then your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
from hookedu import pretrained

kernels = make_grid(pretrained(alexnet).features[0].weight.detach(), nrow=16, padding=1, normalize=True)
plt.figure(figsize=(8, 2.2))
plt.imshow(kernels.permute(1, 2, 0))
plt.axis("off")
plt.show()
progress()
