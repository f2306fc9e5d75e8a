# %% tags=["setup"]
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

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
from hookedu.shapes import CLASSES, Shapes, SmallCNN, load_model

LanguageToggle()

# %% [markdown]
# ## 11.1 它从没学过「在哪里」 · It never learnt where
#
# <div lang="zh">
#
# `SmallCNN` 学会了认 6 种形状。训练时它只知道类别，从没见过一个框；每张图里也只有一个形状。
#
# 下面把两张图各取一半，拼成一张：左边十字，右边三角形，还有几条干扰的线。
#
# **先猜一猜**：它会说是哪一类？只凭这些，它能不能指出十字在哪里、三角形在哪里？
#
# </div>
# <div lang="en">
#
# `SmallCNN` has learnt to name 6 shapes. In training it was told the class and nothing else, never a box, and each picture held one shape only.
#
# Here we join the halves of two pictures: a cross on the left, a triangle on the right, and some lines to distract.
#
# **Guess first**: which class will it name? And can it point at the cross, and at the triangle?
#
# </div>

# %% tags=["E24"]
model, shapes = load_model(), Shapes(60, seed=11)
left, right = shapes[46], shapes[35]
both = torch.cat([left.image[:, :, :32], right.image[:, :, 32:]], dim=2)[None]

logits = model(both)[0].tolist()
for name, logit in sorted(zip(CLASSES, logits, strict=True), key=lambda pair: -pair[1]):
    print(f"{name:9}{logit:6.1f}")
fig, ax = plt.subplots(figsize=(2.4, 2.4))
ax.imshow(both[0].permute(1, 2, 0))
ax.set_axis_off()

# %% [markdown]
# ## 11.2 第一步：特征图和梯度 · Step one: maps and gradient
#
# <div lang="zh">
#
# 十字第一，三角形第二，其余的都低得多。可是它看的是哪里？
#
# 最后一块 `block4` 输出 64 张 8×8 的特征图，每张都还知道「在哪里」。哪些通道支持十字？问梯度：十字的 logit 对每张图的每一处有多敏感。
#
# 一个前向钩子就够了：它留下特征图，再在 `output` 上挂一个张量钩子，等梯度来（第 07 课）。**先猜**：同一个通道里，64 处的梯度差多少？
#
# </div>
# <div lang="en">
#
# The cross comes first, the triangle second, the others far below. But where did the net look?
#
# Its last block, `block4`, puts out 64 feature maps of 8×8, which still know where. Which speak for the cross? Ask the gradient
# of its logit at each place of each map.
#
# One forward hook keeps the maps and puts a tensor hook on `output` (lesson 07). **Guess**: how much do the gradients differ over
# the 64 places of one channel?
#
# </div>

# %% tags=["E24"]
seen = {}


def keep(module, args, output):
    seen["maps"] = output.detach()
    output.register_hook(lambda grad: seen.update(grads=grad))


with model.block4.register_forward_hook(keep):
    logits = model(both)
logits[0, CLASSES.index("cross")].backward()

maps, grads = seen["maps"], seen["grads"]
print("maps: ", tuple(maps.shape), " grads:", tuple(grads.shape))
print("channel 0, largest minus smallest gradient:", (grads[0, 0].max() - grads[0, 0].min()).item())
weights = grads.mean(dim=(2, 3))
print("weights:", tuple(weights.shape), f" from {weights.min():.3f} to {weights.max():.3f}")
head = model.head.weight[CLASSES.index("cross")]
print("the head's own weights, divided by 64:", torch.allclose(weights[0], head / 64))

# %% [markdown]
# ### 练习 11.1：每个通道的权重 · Exercise 11.1: A weight for each channel
#
# ●● · 8 min
#
# <div lang="zh">
#
# 完全一样：`block4` 后面是全局平均池化和一个线性层，所以权重就是线性层的权重除以 64。别的网络没有这么巧，于是取**平均**。
#
# 写 `channel_weights(model, layer, images, labels)`：返回 `N×C` 的权重。第 `i` 张图用它自己的 `logits[i, labels[i]]`；
# 对 `layer` 输出的梯度，在高和宽上取平均。最后不留下钩子。
#
# </div>
# <div lang="en">
#
# No difference at all: after `block4` come a global average pool and one linear layer, so a weight is the linear layer's, divided by 64. Other nets are less obliging,
# hence the **average**.
#
# Write `channel_weights(model, layer, images, labels)`: it returns weights, `N×C`. Picture `i` is asked about its own `logits[i, labels[i]]`;
# average the gradient of what `layer` puts out over height and width. Leave no hook behind.
#
# </div>


# %% exercise="11.1"
def channel_weights(model, layer, images, labels):
    """返回 N×C：每张图的 logit 对每个通道的平均梯度。

    Return N×C: the average gradient of each picture's logit for each channel.
    """
    ### BEGIN SOLUTION
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return seen["grads"].mean(dim=(2, 3))
    ### END SOLUTION


# %% check="11.1"
check("11.1", channel_weights)

# %% [markdown]
# ## 11.3 第二步：相加、截断、放大 · Step two: add, cut, enlarge
#
# <div lang="zh">
#
# **Grad-CAM** 就是加权和，去掉负的部分，再放大到图像的大小：
#
# $L = \mathrm{ReLU}(\sum_c w_c A_c)$
#
# 其中 $A_c$ 是通道 $c$ 的特征图，$w_c$ 是它的权重。**先猜**：问十字时，`ReLU` 之前，三角形那里大于 0 还是小于 0？
#
# </div>
# <div lang="en">
#
# **Grad-CAM** is the weighted sum without its negative part, brought to the size of the picture:
#
# $L = \mathrm{ReLU}(\sum_c w_c A_c)$
#
# Here $A_c$ is the feature map of channel $c$ and $w_c$ its weight. **Guess**: ask about the cross, and before the `ReLU`, is the sum above or below 0 at the triangle?
#
# </div>

# %% tags=["E24"]
sums = {}
for name in ("cross", "triangle"):
    with model.block4.register_forward_hook(keep):
        logits = model(both)
    logits[0, CLASSES.index(name)].backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    sums[name] = (weights * seen["maps"]).sum(dim=1, keepdim=True)
    for shape, (x0, y0, x1, y1) in (("cross", left.box), ("triangle", right.box)):
        value = sums[name][0, 0, (y0 + y1) // 16, (x0 + x1) // 16]  # 8 pixels are one place of the map
        print(f"asked about the {name}: {value:5.2f} in the middle of the {shape}")

fig, axes = plt.subplots(1, 3, figsize=(7.2, 2.4))
for ax, name in zip(axes, (None, "cross", "triangle"), strict=True):
    ax.imshow(both[0].permute(1, 2, 0))
    if name:
        cam = F.interpolate(sums[name].relu(), size=(64, 64), mode="bilinear")
        ax.imshow(cam[0, 0], cmap="inferno", alpha=0.6)
    ax.set_title(name or "picture")
    ax.set_axis_off()

# %% [markdown]
# <div lang="zh">
#
# 同一张图，同一批特征图，只换了问题，图就移到了另一边。它从没学过「在哪里」，却知道。
# 问十字时，三角形那里小于零：那些通道反对十字。`ReLU` 去掉的就是这些。
#
# 要当心放大的写法：`F.interpolate` 默认是最近邻（`mode="nearest"`），得到的是 8×8 的方块；`align_corners=True` 会把图拉向四边。
#
# </div>
# <div lang="en">
#
# One picture, one set of maps: only the question changed, and the light moved to the other side. It never learnt where, and yet it knows.
# Ask about the cross, and the sum at the triangle is below zero: those channels speak against it. `ReLU` cuts that off.
#
# Mind how you enlarge: by default `F.interpolate` takes the nearest neighbour (`mode="nearest"`) and makes 8×8 blocks;
# `align_corners=True` pulls the map towards the borders.
#
# </div>

# %% [markdown]
# ### 练习 11.2：Grad-CAM · Exercise 11.2: Grad-CAM
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写 `grad_cam(model, layer, images, labels)`：返回 `N×H×W`，与 `images` 同样高、同样宽。次序：加权和、`relu()`、双线性放大。值保持原样，不缩放到 0 到 1；
# 不连着计算图，不留下钩子。
#
# </div>
# <div lang="en">
#
# Write `grad_cam(model, layer, images, labels)`: it returns `N×H×W`, as high and wide as `images`. The order: weighted sum, `relu()`, bilinear
# enlarging. Keep the values as they are, not scaled to 0 to 1; hold no graph and leave no hook behind.
#
# </div>


# %% exercise="11.2"
def grad_cam(model, layer, images, labels):
    """返回 N×H×W 的 Grad-CAM，每张图用 labels 里自己的类。

    Return Grad-CAM as N×H×W, for each picture's own class in labels.
    """
    ### BEGIN SOLUTION
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]
    ### END SOLUTION


# %% check="11.2"
check("11.2", grad_cam)

# %% [markdown]
# ## 11.4 好看不算证据 · Pretty is no proof
#
# <div lang="zh">
#
# 一张图说明不了什么。**指点游戏**给出一个数：图上最高的那一点，在不在框里？对很多没见过的图数一数，就是命中率。
#
# 我们的图是画出来的，框分毫不差。`sample.box` 是 `x0, y0, x1, y1`：`x` 向右，`y` 向下，`x0` 和 `y0` 在框里，`x1` 和 `y1` 已经在框外，
# 所以 `image[:, y0:y1, x0:x1]` 就是形状。
#
# **先猜**：什么都不看，永远指着正中间，能命中多少？
#
# </div>
# <div lang="en">
#
# One picture proves nothing. The **pointing game** gives a number: does the map's highest point lie in the box? Count over many unseen pictures: that is the hit rate.
#
# Our pictures are drawn, so boxes are exact. `sample.box` is `x0, y0, x1, y1`: `x` goes right, `y` down; `x0` and `y0` lie in the box,
# `x1` and `y1` outside, so `image[:, y0:y1, x0:x1]` is the shape.
#
# **Guess**: how often does somebody hit who always points at the middle?
#
# </div>

# %% tags=["E24"]
unseen = next(iter(DataLoader(Shapes(500, seed=12), batch_size=500)))
x0, y0, x1, y1 = unseen.box.T
print("images:", tuple(unseen.image.shape), " boxes:", tuple(unseen.box.shape))
print("the first box:", unseen.box[0].tolist(), "around a", CLASSES[unseen.label[0]])
middle = (x0 <= 32) & (32 < x1) & (y0 <= 32) & (32 < y1)
print(f"always the middle: {middle.float().mean():.2f}")
with torch.no_grad():
    named = model(unseen.image).argmax(dim=1) == unseen.label
print(f"named rightly:     {named.float().mean():.2f}")

# %% [markdown]
# ### 练习 11.3：指点游戏 · Exercise 11.3: The pointing game
#
# ●● · 8 min
#
# <div lang="zh">
#
# 写 `hit_rate(cams, boxes)`：`cams` 是 `N×H×W`，`boxes` 是 `N×4`，返回最高点落在框里的比例，从 0 到 1。
# 检查用的图比高更宽：`x` 和 `y` 弄反了会露馅。
#
# </div>
# <div lang="en">
#
# Write `hit_rate(cams, boxes)`: `cams` is `N×H×W` and `boxes` is `N×4`. Return the share, from 0 to 1, of maps whose highest point lies in the box.
# The check uses maps that are wider than high, where a swapped `x` and `y` cannot hide.
#
# </div>


# %% exercise="11.3"
def hit_rate(cams, boxes):
    """返回最高点落在框里的比例。

    Return the share of maps whose highest point lies in the box.
    """
    ### BEGIN SOLUTION
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean().item()
    ### END SOLUTION


# %% check="11.3"
check("11.3", hit_rate)

# %% [markdown]
# ## 11.5 五百张没见过的图 · Five hundred unseen pictures
#
# <div lang="zh">
#
# 11.2 节说过：对这个网络，权重就是 `head.weight / 64`。于是连反向传播都不需要，一个前向钩子就能给出全部的图。这叫 CAM，是 Grad-CAM 的前身。
#
# **先猜**：没见过一个框的网络，命中率是多少？随机权重的网络呢？它的特征图也会亮，只是什么都没学过。
#
# </div>
# <div lang="en">
#
# Section 11.2 found that this net's weights are `head.weight / 64`. So not even backward is needed: one forward hook gives all the maps. This is CAM, which came before Grad-CAM.
#
# **Guess**: what is the hit rate of a net that has never seen a box? And of one with random weights? Its maps light up as well, but it has learnt nothing.
#
# </div>

# %% tags=["E24"]
torch.manual_seed(0)
nets, cams = {"trained": model, "random weights": SmallCNN().eval()}, {}
for name, net in nets.items():
    with torch.no_grad(), net.block4.register_forward_hook(lambda m, a, output: seen.update(maps=output)):
        net(unseen.image)
        cam = torch.einsum("nc,nchw->nhw", net.head.weight[unseen.label] / 64, seen["maps"]).relu()
    cams[name] = F.interpolate(cam[:, None], size=(64, 64), mode="bilinear")[:, 0]
    place = cams[name].flatten(1).argmax(dim=1)
    y, x = place // 64, place % 64
    hits = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    print(f"{name:15} hit rate {hits.float().mean():.2f}")
print(f"always the middle, for comparison: {middle.float().mean():.2f}")

# %% tags=["E24"]
fig, axes = plt.subplots(2, 6, figsize=(9, 3.2))
for row, (name, cam) in zip(axes, cams.items(), strict=True):
    for i, ax in enumerate(row):
        ax.imshow(unseen.image[i].permute(1, 2, 0))
        ax.imshow(cam[i], cmap="inferno", alpha=0.6)
        ax.set_axis_off()
    row[0].set_title(name, loc="left")

# %% [markdown]
# ## 11.6 关掉再看 · Switch it off and see
#
# <div lang="zh">
#
# 换上随机权重，图就散了，命中率也没了。这是必做的**合理性检查**：有些解释方法换上随机权重，图几乎不变，可见它画的只是图像的边缘，和网络无关。
#
# 梯度是预言：权重大的通道要紧。是真的吗？做个实验：用前向钩子把一个通道设为 0（返回新的输出，第 05 课），看 logit 降多少。
#
# </div>
# <div lang="en">
#
# With random weights the maps fall apart, and so does the hit rate. This **sanity check** is a must: some methods hardly change their picture when the weights are random. They
# draw the edges of the image, not the net.
#
# A gradient is a forecast: channels of large weight matter. Is it true? Here is the experiment: a forward hook sets one channel to 0 (it returns a new output, lesson 05). How far
# does the logit fall?
#
# </div>

# %% [markdown]
# ### 练习 11.4：关掉一个通道 · Exercise 11.4: Switch a channel off
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `channel_effect(model, layer, channel, images, labels)`：返回 `N` 个数：每张图的 `logits[i, labels[i]]` 下降了多少：照旧的减去关掉 `channel` 之后的。
# `output` 不要就地改；参数不碰；不留下钩子。
#
# </div>
# <div lang="en">
#
# Write `channel_effect(model, layer, channel, images, labels)`: it returns `N` numbers, how far each picture's `logits[i, labels[i]]` falls: as it is, minus what it is with `channel` off.
# Don't change `output` in place, leave the parameters alone, and leave no hook behind.
#
# </div>


# %% exercise="11.4"
def channel_effect(model, layer, channel, images, labels):
    """返回每张图的 logit 在关掉 channel 之后下降多少。

    Return how far each picture's logit falls when channel is switched off.
    """

    ### BEGIN SOLUTION
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images)
    with layer.register_forward_hook(off):
        after = model(images)
    return (before - after).gather(1, labels[:, None])[:, 0]
    ### END SOLUTION


# %% check="11.4"
check("11.4", channel_effect)

# %% [markdown]
# ## 11.7 实例：预言与实验 · Worked example: forecast and experiment
#
# <div lang="zh">
#
# 先看预言：对拼起来的那张图问十字，通道 `c` 的贡献是 $w_c$ 乘以 $A_c$ 各处之和。再逐个关掉 64 个通道，量一量。**先猜**：两者差多少？
#
# </div>
# <div lang="en">
#
# First the forecast: on the joined picture, asked about the cross, channel `c` contributes $w_c$ times the sum of $A_c$ over all places. Then we switch off each of the 64 channels and
# measure. **Guess**: how far apart are the two?
#
# </div>

# %% tags=["E24"]
cross = CLASSES.index("cross")
forecast = model.head.weight[cross].detach() / 64 * maps[0].sum(dim=(1, 2))
measured = torch.zeros(64)
with torch.no_grad():
    before = model(both)[0, cross]
    for channel in range(64):
        mask = torch.arange(64) != channel
        with model.block4.register_forward_hook(lambda m, a, output: output * mask[:, None, None]):
            measured[channel] = before - model(both)[0, cross]

print("forecast and experiment agree:", torch.allclose(forecast, measured, atol=1e-4))
best, worst = measured.argmax().item(), measured.argmin().item()
print(f"without channel {best} the cross falls by {measured[best]:.1f}")
print(f"without channel {worst} it rises by {-measured[worst]:.1f}")
ax = plot_feature_maps(maps[:, [best, worst]], title=f"channel {best} (left) and {worst} (right)")
# %% [markdown]
# <div lang="zh">
#
# 一模一样，因为 `block4` 之后一切都是线性的。左边的通道亮在十字上，支持它；右边的亮在三角形上，反对十字。
# 在更早的层，后面还有 ReLU，预言只是近似：试试 `model.block2`。
#
# </div>
# <div lang="en">
#
# They are the same, because all is linear after `block4`. The channel on the left is bright on the cross and speaks for it; the one on the right is bright on the triangle, and speaks against the cross.
# In earlier layers a ReLU follows, and the forecast is an approximation: try `model.block2`.
#
# </div>
#
# ## 11.8 现在读真的 · Now read the real one
#
# <div lang="zh">
#
# `record` 同时留下特征图和梯度，用的也是前向钩子和张量钩子。于是 Grad-CAM 只要 3 行。
#
# </div>
# <div lang="en">
#
# `record` keeps maps and gradient together, with a forward hook and a tensor hook as well. Grad-CAM then takes 3 lines.
#
# </div>

# %%
with record(model, layers=["block4"], gradients=True) as rec:
    model(both)[0, cross].backward()
entry = rec["block4"]
cam = (entry.gradient.mean(dim=(2, 3), keepdim=True) * entry.activation).sum(dim=1).relu()

print("the same as ours:", torch.allclose(cam, sums["cross"][:, 0].relu(), atol=1e-5))
print("hooks left on:", len(list_hooks(model)))

# %% [markdown]
# ## 11.9 小结 · Recap
#
# <div lang="zh">
#
# 1. 特征图知道「在哪里」，梯度知道「有多要紧」；两者都来自一个前向钩子。
# 2. 权重是 logit 的梯度在高和宽上的平均；每张图用自己的类。
# 3. Grad-CAM：加权和，`relu()`，双线性放大。
# 4. 热图要打分：和真的框比，和瞎猜中间比，和随机权重比。
# 5. 关掉一个通道是实验，不用相信任何公式。
#
# </div>
# <div lang="en">
#
# 1. Feature maps know where, the gradient knows how much it matters; one forward hook gives both.
# 2. A weight is the gradient of the logit, averaged over height and width; each picture has its own class.
# 3. Grad-CAM: weighted sum, `relu()`, bilinear enlarging.
# 4. Score a heat map: against true boxes, against a guess at the middle, against random weights.
# 5. Switching a channel off is an experiment, which needs no formula to be believed.
#
# </div>

# %% [markdown]
# ## 11.10 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么用 logit，不用概率或损失？</summary>概率混进了别的类，接近 1 时梯度几乎为零；损失的符号是反的。</details>
# <details><summary>2. 为什么先 <code>relu()</code> 再放大？</summary>否则负数会渗进相邻的像素。</details>
# <details><summary>3. 随机权重的网络给出了同样的图，说明什么？</summary>这种解释和学到的东西无关，不能信。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why the logit, and not the probability or the loss?</summary>A probability mixes in the other classes, and near 1 its gradient fades; the loss has the sign reversed.</details>
# <details><summary>2. Why <code>relu()</code> before enlarging?</summary>Else negative values leak into the pixels beside them.</details>
# <details><summary>3. A net with random weights gives the same picture. What does that tell you?</summary>The explanation has nothing to do with what was learnt: do not trust it.</details>
# </div>

# %% [markdown]
# ## 11.11 真实世界里 · In the wild
#
# <div lang="zh">
#
# 医学影像的团队用 Grad-CAM 查出过走捷径的网络：它看的不是肺，而是片子角上的标记（搜索 shortcut learning 和 `pytorch-grad-cam`）。
# 随机权重的检查出自论文 *Sanity Checks for Saliency Maps*。下面是你的进度。
#
# </div>
# <div lang="en">
#
# With Grad-CAM, teams in medical imaging have caught nets that took a shortcut: they looked at a mark in the corner of the film instead of the lung (search for shortcut learning and `pytorch-grad-cam`).
# The check with random weights is from the paper *Sanity Checks for Saliency Maps*. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
