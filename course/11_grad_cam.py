# %% tags=["setup"]
import copy

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from hookedu import (
    LanguageToggle,
    check,
    hint,
    list_hooks,
    progress,
    record,
    solution,
)
from hookedu.models.shapes import CLASSES, Shapes, SmallCNN, load_model

LanguageToggle()

# %% [markdown]
# ## 11.1 它从没学过「在哪里」 · It never learnt where
#
# <div lang="zh">
#
# `SmallCNN` 就是第 10 课训练的那种网络：4 块卷积，一个全局平均池化，一个线性层。它给 6 种形状各打一个分，softmax 之前的分数叫 **logit**；
# logit 最大的那一类，就是它的回答。
#
# 这次我们载入训练好的权重，网络在 eval 模式。先看看它有哪些模块，一张 64×64 的图走到每一步成了什么形状。
#
# </div>
# <div lang="en">
#
# `SmallCNN` is the kind of net that lesson 10 trained: 4 blocks of convolutions, a global average pool, a linear layer. It gives each of 6 shapes
# a score. A score before the softmax is called a **logit**, and the class with the largest logit is the answer.
#
# This time we load trained weights, and the net is in eval mode. First look at its modules, and at what a picture of 64×64 becomes at each step.
#
# </div>

# %%
model, shapes = load_model(), Shapes(60, seed=11)
left, right = shapes[46], shapes[35]

x = left.image[None]
for name, child in model.named_children():
    x = child(x.flatten(1) if name == "head" else x)
    parts = child if name.startswith("block") else [child]
    print(f"{name:9}{tuple(x.shape)!s:17}", *(type(part).__name__ for part in parts))

# %% [markdown]
# <div lang="zh">
#
# 训练时它只知道类别，从没见过一个框；每张图里也只有一个形状。
#
# 现在把两张图各取一半，拼成一张：左边十字，右边三角形，还有几条干扰的线。
#
# **先猜一猜**：哪一类的 logit 最大？只凭这些，它能不能指出十字在哪里、三角形在哪里？
#
# </div>
# <div lang="en">
#
# In training it was told the class and nothing else, never a box, and each picture held one shape only.
#
# Now we join the halves of two pictures: a cross on the left, a triangle on the right, and some lines to distract.
#
# **Guess first**: which class gets the largest logit? And can the net point at the cross, and at the triangle?
#
# </div>

# %% tags=["E24"]
both = torch.cat([left.image[:, :, :32], right.image[:, :, 32:]], dim=2)[None]

logits = model(both)[0].tolist()
for name, logit in sorted(zip(CLASSES, logits, strict=True), key=lambda pair: -pair[1]):
    print(f"{name:9}{logit:6.1f}")
fig, ax = plt.subplots(figsize=(2.4, 2.4))
ax.imshow(both[0].permute(1, 2, 0))
ax.set_axis_off()

# %% [markdown]
# <div lang="zh">
#
# 十字第一，三角形第二，其余的都低得多。可是它看的是哪里？
#
# </div>
# <div lang="en">
#
# The cross comes first, the triangle second, the others far below. But where did the net look?
#
# </div>
#
# ## 11.2 第一步：特征图和梯度 · Step one: maps and gradient
#
# <div lang="zh">
#
# `block4` 输出 64 张 8×8 的特征图，每张都还知道「在哪里」。哪些通道支持十字？问梯度：十字的 logit 对每一处有多敏感。
#
# 一个前向钩子留下特征图，再在 `output` 上挂一个张量钩子，等梯度来（7.8 节）。**先猜**：同一个通道里，64 处的梯度差多少？
#
# </div>
# <div lang="en">
#
# `block4` puts out 64 feature maps of 8×8, which still know where. Which speak for the cross? Ask the gradient of its logit at each place.
#
# A forward hook keeps the maps and puts a tensor hook on `output` (section 7.8). **Guess**: how much do the gradients differ over
# the 64 places of one channel?
#
# </div>

# %% tags=["E24"]
seen, cross = {}, CLASSES.index("cross")


def keep(module, args, output):
    seen["maps"] = output.detach().clone()
    output.register_hook(lambda grad: seen.update(grads=grad))


with model.block4.register_forward_hook(keep):
    logits = model(both)
logits[0, cross].backward()

maps, grads = seen["maps"], seen["grads"]
print("maps: ", tuple(maps.shape), " grads:", tuple(grads.shape))
spread = grads.amax(dim=(2, 3)) - grads.amin(dim=(2, 3))
print("largest minus smallest gradient, in the worst channel:", spread.max().item())
weights = grads.mean(dim=(2, 3))
print("weights:", tuple(weights.shape), f" from {weights.min():.3f} to {weights.max():.3f}")
print("the head's own weights, divided by 64:", torch.allclose(weights[0], model.head.weight[cross] / 64))

# %% [markdown]
# <div lang="zh">
#
# 一点不差。`block4` 后面先对 64 处取平均，再是线性层，所以每处的梯度都是线性层的权重除以 64。别的网络没有这么巧，于是取**平均**，这就是通道的**权重**。
#
# </div>
# <div lang="en">
#
# Not at all. After `block4` comes an average over 64 places, then a linear layer: the gradient at each place is the linear layer's weight divided by 64.
# Other nets are less obliging, hence the **average**: it is the channel's **weight**.
#
# </div>
#
# ## 11.3 从哪个数出发 · Which number to start from
#
# <div lang="zh">
#
# 反向传播从一个数出发：为什么是 logit？一批图又要几次？**先猜**：把两张图的 logit 加起来，只做一次，两张图的梯度会不会混在一起？
#
# </div>
# <div lang="en">
#
# Backward starts from one number. Why the logit? And how many passes for many pictures? **Guess**: add two pictures' logits and run once.
# Do their gradients mix?
#
# </div>

# %% tags=["E24"]
z = model(both).detach()[0].requires_grad_()
loss = F.cross_entropy(z, torch.tensor(cross))
print(f"{'gradient of':12}", *(f"{name:>8}" for name in CLASSES))
for name, number in {"logit": z[cross], "probability": z.softmax(0)[cross], "loss": loss}.items():
    (grad,) = torch.autograd.grad(number, z)
    print(f"{name:12}", *(f"{round(g, 2) + 0:8.2f}" for g in grad.tolist()))

images, labels = torch.stack([left.image, right.image]), torch.tensor([left.label, right.label])
for net in (model, copy.deepcopy(model).train()):
    with net.block3.register_forward_hook(keep):  # at block4 the gradient depends on the class alone
        logits = net(images)
    own = logits.gather(1, labels[:, None])
    own.sum().backward()
    together = seen["grads"]
    mode = "train" if net.training else "eval"
    print(f"{mode} mode: logits {tuple(logits.shape)}, each its own {tuple(own.shape)}")
    for i in range(2):
        with net.block3.register_forward_hook(keep):
            logits = net(images[i : i + 1])
        logits[0, labels[i]].backward()
        same = torch.allclose(seen["grads"][0], together[i], atol=1e-5)
        print(f"    picture {i} alone, the same gradient: {same}")

# %% [markdown]
# <div lang="zh">
#
# logit 只问十字自己。概率把三角形也拉了进来，接近 1 时梯度就快没了；损失的符号是反的。
# eval 模式下图和图互不影响，和的梯度就是各自的梯度：一次就够。train 模式下 BatchNorm 会把它们混起来。
# `gather(1, labels[:, None])` 逐图取出自己的 logit。
#
# </div>
# <div lang="en">
#
# The logit asks about the cross alone. A probability drags the triangle in, and near 1 its gradient fades; the loss has the sign reversed.
# In eval mode pictures do not touch: one pass from the sum serves all. In train mode BatchNorm mixes them. `gather(1, labels[:, None])` takes each one's logit.
#
# </div>
#
# ### 练习 11.1：每个通道的权重 · Exercise 11.1: A weight for each channel
#
# ●● · 8 min
#
# <div lang="zh">
#
# 写 `channel_weights(model, layer, images, labels)`，`layer` 是其中一个模块：返回 `N×C`，是 `logits[i, labels[i]]` 对 `layer` 输出的梯度在高和宽上的平均。不留下钩子，模型的模式（`training`）照旧，`.grad` 可以变。
#
# </div>
# <div lang="en">
#
# Write `channel_weights(model, layer, images, labels)` for a module `layer`: return `N×C`, the gradient of `logits[i, labels[i]]` at its output, averaged over height and width. Leave no hook; `training` stays, `.grad` may change.
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
# ## 11.4 第二步：相加、截断 · Step two: add and cut
#
# <div lang="zh">
#
# **Grad-CAM** 的全名是 gradient-weighted class activation mapping，梯度加权的类激活图。特征图按权重相加，再去掉负的部分：
#
# $L = \mathrm{ReLU}(\sum_c w_c A_c)$
#
# $A_c$ 是通道 $c$ 的特征图，$w_c$ 是它的权重。$L$ 有 8×8 格，前 4 列是左半边，后 4 列是右半边。
# **先猜**：问十字时，`ReLU` 之前，右半边（三角形）加起来大于 0 还是小于 0？
#
# </div>
# <div lang="en">
#
# **Grad-CAM** stands for gradient-weighted class activation mapping. The feature maps are added with their weights, and the negative part is cut off:
#
# $L = \mathrm{ReLU}(\sum_c w_c A_c)$
#
# $A_c$ is the feature map of channel $c$, $w_c$ its weight. $L$ has 8×8 places: the first 4 columns are the left half, the last 4 the right.
# **Guess**: ask about the cross. Before the `ReLU`, does the right half (the triangle) add up to more than 0, or less?
#
# </div>

# %% tags=["E24"]
fig, axes = plt.subplots(1, 3, figsize=(7.2, 2.4))
for ax, name in zip(axes, ("picture", "cross", "triangle"), strict=True):
    ax.imshow(both[0].permute(1, 2, 0))
    ax.set_title(name)
    ax.set_axis_off()
    if name == "picture":
        continue
    with model.block4.register_forward_hook(keep):
        logits = model(both)
    logits[0, CLASSES.index(name)].backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    total = (weights * seen["maps"]).sum(dim=1)[0]
    halves = total[:, :4].sum(), total[:, 4:].sum()
    print(f"asked about the {name:9} left half {halves[0]:5.1f}   right half {halves[1]:5.1f}")
    ax.imshow(total.relu(), cmap="inferno", alpha=0.6, extent=(0, 64, 64, 0))

# %% [markdown]
# <div lang="zh">
#
# 同一张图，同一批特征图，只换了问题，光就移到了另一边。它从没学过「在哪里」，却知道。
# 问十字时，三角形那一半小于 0：那些通道反对十字。`ReLU` 去掉的就是这些。
#
# </div>
# <div lang="en">
#
# One picture, one set of maps: only the question changed, and the light moved to the other side. It never learnt where, and yet it knows.
# Ask about the cross, and the triangle's half is below 0: those channels speak against it. `ReLU` cuts that off.
#
# </div>
#
# ## 11.5 第三步：放大 · Step three: enlarge
#
# <div lang="zh">
#
# 8×8 的图还要放大到 64×64。先在一行 4 个数上试 `F.interpolate`。**先猜**：不写 `mode` 会怎样？
#
# </div>
# <div lang="en">
#
# A map of 8×8 is still to be enlarged to 64×64. Try `F.interpolate` on one row of 4 numbers. **Guess**: what happens without `mode`?
#
# </div>

# %% tags=["E24"]
row = torch.tensor([[[-1.0, 1, 0, 0]]])
ways = {
    "no mode": F.interpolate(row.relu(), size=8),
    "nearest": F.interpolate(row.relu(), size=8, mode="nearest"),
    "linear": F.interpolate(row.relu(), size=8, mode="linear"),
    "linear, align_corners=True": F.interpolate(row.relu(), size=8, mode="linear", align_corners=True),
    "linear, relu() afterwards": F.interpolate(row, size=8, mode="linear").relu(),
}
for name, values in ways.items():
    print(f"{name:27}", *(f"{v:.2f}" for v in values.flatten()))
maps = torch.ones(2, 1, 8, 8)
print("bilinear:", tuple(maps.shape), "to", tuple(F.interpolate(maps, size=(64, 64), mode="bilinear").shape))

# %% [markdown]
# <div lang="zh">
#
# 默认是最近邻 `nearest`，图成了方块。`linear` 的高峰还在原处；`align_corners=True` 的偏到一边。
# 放大之后才 `relu()`，负数已经渗进邻格：0.75 成了 0.50。图像用 `bilinear`：横竖各做一次 `linear`；它只收 `N×C×H×W`，
# 通道那一维要留着。
#
# </div>
# <div lang="en">
#
# The default, `nearest`, makes blocks. With `linear` the peak stays, with `align_corners=True` it leans to one side.
# With `relu()` afterwards, the negative number has leaked into its neighbour: 0.75 became 0.50. For pictures there is `bilinear`,
# `linear` both ways. It takes `N×C×H×W`: keep the channel.
#
# </div>
#
# ### 练习 11.2：Grad-CAM · Exercise 11.2: Grad-CAM
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写 `grad_cam(model, layer, images, labels)`：返回 `N×H×W`，和 `images` 同样高、同样宽。次序是加权和、`relu()`、双线性放大。值不缩放；
# 不连着计算图，不留下钩子，`training` 照旧，`.grad` 可以变。`layer` 不一定是 ReLU，它的输出之后还可能被就地改写。
#
# </div>
# <div lang="en">
#
# Write `grad_cam(model, layer, images, labels)`: return `N×H×W`, sized like `images`: weighted sum, `relu()`, bilinear enlarging. Don't scale; no graph or hook; `training` stays, `.grad` may change. `layer` need not be a ReLU; its output may be overwritten later.
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
        seen["maps"] = output.detach().clone()
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
# ## 11.6 好看不算证据 · Pretty is no proof
#
# <div lang="zh">
#
# 一张图说明不了什么。**指点游戏**给出一个数：热图上值最大的那一点，在不在框里？对很多没见过的图数一数，就是命中率。
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
# <div lang="zh">
#
# 永远指正中间，三张里能中一张。热图要比这好得多，才算数。
#
# </div>
# <div lang="en">
#
# Always pointing at the middle hits one picture in three. A heat map must do far better to count.
#
# </div>
#
# ### 练习 11.3：指点游戏 · Exercise 11.3: The pointing game
#
# ●● · 8 min
#
# <div lang="zh">
#
# 写 `hit_rate(cams, boxes)`：`cams` 是 `N×H×W`，`boxes` 是 `N×4`，返回最高点落在框里的比例，一个从 0 到 1 的数。
# 热图可以有负数。并列最高的几处，要么都在框里，要么都不在。检查时用的热图不是正方形：`x` 和 `y` 弄反了会露馅。
#
# </div>
# <div lang="en">
#
# Write `hit_rate(cams, boxes)`: `cams` is `N×H×W` and `boxes` is `N×4`. Return the share of maps whose highest point lies in the box, one number from 0 to 1.
# Maps may hold negative numbers. Where several points are highest, all lie in the box or none. The maps of the check are not square: a swapped `x` and `y` cannot hide.
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
# ## 11.7 五百张没见过的图 · Five hundred unseen pictures
#
# <div lang="zh">
#
# 11.2 节说过：对这个网络，权重就是 `head.weight / 64`。于是连反向传播都不需要，一个前向钩子就能给出全部的热图。这叫 CAM（class activation mapping），
# 是 Grad-CAM 的前身。
#
# **先猜**：没见过一个框的网络，命中率是多少？换上随机权重，什么都没学过的网络呢？
#
# </div>
# <div lang="en">
#
# Section 11.2 found that this net's weights are `head.weight / 64`. So not even backward is needed: one forward hook gives all the maps. This is CAM
# (class activation mapping), which came before Grad-CAM.
#
# **Guess**: what is the hit rate of a net that has never seen a box? And of one with random weights, which has learnt nothing?
#
# </div>

# %% tags=["E24"]
torch.manual_seed(0)
nets = {"trained": model, "random weights": SmallCNN().eval()}
fig, axes = plt.subplots(2, 6, figsize=(9, 3.2))
for (name, net), panels in zip(nets.items(), axes, strict=True):
    with torch.no_grad(), net.block4.register_forward_hook(lambda m, a, output: seen.update(maps=output)):
        net(unseen.image)
        weights = net.head.weight[unseen.label] / 64
        cam = (weights[:, :, None, None] * seen["maps"]).sum(dim=1, keepdim=True).relu()
    cam = F.interpolate(cam, size=(64, 64), mode="bilinear")[:, 0]
    place = cam.flatten(1).argmax(dim=1)
    y, x = place // 64, place % 64
    hits = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    dark = (cam.amax(dim=(1, 2)) == 0).sum()
    print(f"{name:15} hit rate {hits.float().mean():.2f}; maps that are 0 everywhere: {dark}")
    for i, ax in enumerate(panels):
        ax.imshow(unseen.image[i].permute(1, 2, 0))
        ax.imshow(cam[i], cmap="inferno", alpha=0.6)
        ax.set_axis_off()
    panels[0].set_title(name, loc="left")
print(f"always the middle, for comparison: {middle.float().mean():.2f}")

# %% [markdown]
# <div lang="zh">
#
# 训练过的网络几乎张张命中。随机权重的热图要么亮在别处，要么一处都不亮：命中率比永远指正中间还低。这是必做的**合理性检查**。
# 要是换上随机权重，热图几乎不变，它画的就不是网络学到的东西。
#
# </div>
# <div lang="en">
#
# The trained net hits nearly every time. The random one lights up elsewhere, or nowhere, and hits less often than the middle. This **sanity check** is a must.
# If random weights hardly change a map, it does not show what the net has learnt.
#
# </div>
#
# ## 11.8 关掉再看 · Switch it off and see
#
# <div lang="zh">
#
# 梯度是预言：权重大的通道要紧。真的吗？做个实验：前向钩子把一个通道设为 0，返回新的输出（5.6 节），看 logit 降多少。
#
# </div>
# <div lang="en">
#
# A gradient is a forecast: channels of large weight matter. Is it true? The experiment: a forward hook sets one channel to 0 and returns the new output (section 5.6). How far does the logit fall?
#
# </div>

# %% [markdown]
# ### 练习 11.4：关掉一个通道 · Exercise 11.4: Switch a channel off
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `channel_effect(model, layer, channel, images, labels)`：返回一个 `N` 个数的张量，每张图的 `logits[i, labels[i]]` 降了多少，也就是原来的值减去关掉 `channel` 之后的值。
#
# `output` 不要就地改；参数、它们的 `.grad` 和 `training` 不碰；不留下钩子。`layer` 后面不一定是 ReLU。
#
# </div>
# <div lang="en">
#
# Write `channel_effect(model, layer, channel, images, labels)`: it returns a tensor of `N` numbers, how far each picture's `logits[i, labels[i]]` falls: its usual value, minus its value with `channel` off.
#
# Don't change `output` in place, leave the parameters, their `.grad` and `training` alone, and leave no hook behind. No ReLU need follow `layer`.
#
# </div>


# %% exercise="11.4"
def channel_effect(model, layer, channel, images, labels):
    """返回每张图的 logit 在关掉 channel 之后下降多少。

    Return how far each picture's logit falls when channel is switched off.
    """
    ### BEGIN SOLUTION
    before = model(images)

    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    with layer.register_forward_hook(off):
        after = model(images)
    return (before - after).gather(1, labels[:, None])[:, 0]
    ### END SOLUTION


# %% check="11.4"
check("11.4", channel_effect)

# %% [markdown]
# ## 11.9 实例：预言与实验 · Worked example: forecast and experiment
#
# <div lang="zh">
#
# 先看预言：对拼起来的图问十字，通道 $c$ 的贡献是 $w_c$ 乘以 $A_c$ 各处之和。再预言一遍，
# 这次不取平均，逐处用梯度乘 $A_c$。然后逐个关掉通道，量一量。在 `block4` 做，也在更靠前的 `block2` 做。
#
# **先猜**：两种预言和实验的相关系数（1 是步调一致，0 是毫不相干）各是多少？
#
# </div>
# <div lang="en">
#
# First the forecast: on the joined picture, asked about the cross, channel $c$ contributes $w_c$ times the sum of $A_c$ over all places. A second forecast takes no average:
# gradient times $A_c$, place by place. Then we switch each channel off and measure, at `block4` and, earlier in the net, at `block2`.
#
# **Guess**: how well does each forecast correlate with the experiment (1 is perfect, 0 is not at all)?
#
# </div>

# %% tags=["E24"]
for name in ("block2", "block4"):
    layer = model.get_submodule(name)
    with layer.register_forward_hook(keep):
        before = model(both)[0, cross]
    before.backward()
    grads, maps = seen["grads"][0], seen["maps"][0]
    averaged, by_place = grads.mean(dim=(1, 2)) * maps.sum(dim=(1, 2)), (grads * maps).sum(dim=(1, 2))
    measured = torch.zeros(len(maps))
    for channel in range(len(maps)):
        mask = torch.arange(len(maps)) != channel
        with torch.no_grad(), layer.register_forward_hook(lambda m, a, output: output * mask[:, None, None]):
            measured[channel] = before - model(both)[0, cross]
    alike = torch.corrcoef(torch.stack([averaged, by_place, measured]))[2]
    print(f"{name}: correlation {alike[0]:.2f} with one weight a channel, {alike[1]:.2f} place by place")

best, worst = measured.argmax().item(), measured.argmin().item()
print(f"without channel {best} the cross falls by {measured[best]:.1f}")
print(f"without channel {worst} it rises by {-measured[worst]:.1f}")
fig, axes = plt.subplots(1, 2, figsize=(5, 2.4))
for ax, channel in zip(axes, (best, worst), strict=True):
    ax.imshow(maps[channel])
    ax.set_title(f"block4, channel {channel}")
    ax.set_axis_off()

# %% [markdown]
# <div lang="zh">
#
# `block4` 之后一切都是线性的，预言和实验步调一致。左边的通道亮在十字上，支持它；右边的亮在三角形上，反对十字。
#
# 在 `block2`，各处的梯度不一样：平均成一个权重，预言就几乎没用了；逐处相乘，还算准。Grad-CAM 一个通道只有一个权重，所以用最后的卷积块。
#
# </div>
# <div lang="en">
#
# After `block4` all is linear, and forecast and experiment agree. The left channel is bright on the cross and speaks for it; the right one is bright on
# the triangle, and speaks against the cross.
#
# At `block2` the gradient differs from place to place: one average weight forecasts next to nothing, place by place the forecast still holds.
# Grad-CAM has one weight a channel, so it takes the last block of convolutions.
#
# </div>

# %% [markdown]
# ## 11.10 现在读真的 · Now read the real one
#
# <div lang="zh">
#
# `record`（[`hookedu/hooks/capture.py`](../hookedu/hooks/capture.py)）用同样的钩子留下特征图和梯度，放大之前的 Grad-CAM 只要 4 行。
# 钩子都取下来了；留在模型上的，是每次 `backward()` 往参数的 `.grad` 里加的数。要接着训练，先 `model.zero_grad()`。
#
# </div>
# <div lang="en">
#
# `record` ([`hookedu/hooks/capture.py`](../hookedu/hooks/capture.py)) keeps maps and gradient with the same hooks. Grad-CAM, before the enlarging, takes 4 lines.
# The hooks come off. What stays on the model is what each `backward()` added to the parameters' `.grad`: call `model.zero_grad()` before you train on.
#
# </div>

# %%
with record(model, layers=["block4"], gradients=True) as rec:
    model(both)[0, cross].backward()
entry = rec["block4"]
cam = (entry.gradient.mean(dim=(2, 3), keepdim=True) * entry.activation).sum(dim=1).relu()

# grads and maps are still those of block4, from section 11.9
ours = (grads.mean(dim=(1, 2), keepdim=True) * maps).sum(dim=0).relu()
print("the same as ours:", torch.allclose(cam[0], ours, atol=1e-5))
print("hooks left on:", len(list_hooks(model)))
parameters = list(model.parameters())
print("parameters with a .grad:", sum(p.grad is not None for p in parameters), "of", len(parameters))

# %% [markdown]
# ## 11.11 小结 · Recap
#
# <div lang="zh">
#
# 1. 特征图知道「在哪里」，梯度知道「有多要紧」；两者都来自一个前向钩子。
# 2. 权重是每张图自己那个 logit 的平均梯度；eval 模式下把各图的 logit 加起来，一次反向传播就够。
# 3. Grad-CAM：加权和，`relu()`，双线性放大。
# 4. 热图要打分：和真的框比，和瞎猜中间比，和随机权重比。
# 5. 关掉一个通道是实验：不用相信任何公式，也能看出预言错在哪里。
#
# </div>
# <div lang="en">
#
# 1. Feature maps know where, the gradient how much it matters; one forward hook gives both.
# 2. A weight is the average gradient of a picture's own logit; in eval mode one backward pass from the sum serves all.
# 3. Grad-CAM: weighted sum, `relu()`, bilinear enlarging.
# 4. Score a heat map against true boxes, a guess at the middle, and random weights.
# 5. Switching a channel off is an experiment: it needs no formula, and shows where a forecast fails.
#
# </div>

# %% [markdown]
# ## 11.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么用 logit，不用概率或损失？</summary>概率混进了别的类，接近 1 时梯度几乎为零；损失的符号是反的。</details>
# <details><summary>2. 为什么先 <code>relu()</code> 再放大？</summary>否则负数会渗进相邻的像素。</details>
# <details><summary>3. 随机权重的网络给出了同样的热图，说明什么？</summary>这种解释和学到的东西无关，不能信。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why the logit, and not the probability or the loss?</summary>A probability mixes in the other classes, and near 1 its gradient fades; the loss has the sign reversed.</details>
# <details><summary>2. Why <code>relu()</code> before enlarging?</summary>Else negative values leak into the pixels beside them.</details>
# <details><summary>3. A net with random weights gives the same map. What does that tell you?</summary>The explanation has nothing to do with what was learnt: do not trust it.</details>
# </div>

# %% [markdown]
# ## 11.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 在一项胸片研究里，这类热图显示，网络也在看片子角上的金属标记（搜索 Zech 2018 pneumonia）。热图是线索，不是证明。
# 现成的实现有 `pytorch-grad-cam`；随机权重的检查出自论文 *Sanity Checks for Saliency Maps*，那里有几种方法没有通过。下面是你的进度。
#
# </div>
# <div lang="en">
#
# In a study of chest X-rays, heat maps of this kind showed that the net also looked at a metal mark in the corner of the film (search for Zech 2018 pneumonia). A heat map is a clue, not a proof.
# A ready-made implementation is `pytorch-grad-cam`. The check with random weights is from the paper *Sanity Checks for Saliency Maps*, where some methods failed it. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
