# %% tags=["setup"]
import copy

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from hookedu import (
    GradCamPlayground,
    LanguageToggle,
    check,
    guess,
    hint,
    list_hooks,
    progress,
    record,
    solution,
)
from hookedu.models.shapes import CLASSES, Shapes, SmallCNN, draw_shapes, load_model
from hookedu.tables import Table

LanguageToggle()

# %% [markdown]
# ## 11.1 它从没学过「在哪里」 · It never learnt where
#
# <div lang="zh">
#
# 图里是 6 种形状里的哪一种？第 10 课训练的 `SmallCNN` 就是回答这个问题的网络。它先用 4 块卷积找出特征，再用一个全局平均池化给每张特征图取平均，最后由一个线性层从这些平均值给每种形状打一个分。
#
# 这个还没有经过 softmax 的分数叫 **logit**。logit 最大的那一类，就是网络的回答。
#
# 这一次我们直接载入训练好的权重，网络处于 eval 模式。在问它看哪里之前，先看看它由哪些模块组成，一张 64×64 的图经过每个模块以后变成什么形状。
#
# </div>
# <div lang="en">
#
# Which of 6 shapes does a picture show? In lesson 10 we trained networks of the kind `SmallCNN` to answer this
# question. Its 4 blocks of convolutions look for features, a global average pool then takes the mean of every feature
# map, and in the end a linear layer turns these means into a score for each shape.
#
# Such a score, before any softmax, is called a **logit**. The class with the largest logit is the answer of the
# network.
#
# This time we load weights that are already trained, and the network is in eval mode. Before we ask where it looks, let
# us see what it is made of. The code below lists its modules, and the shape that a picture of 64×64 has after each of
# them.
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
# 训练的时候，这个网络只知道每张图是哪一类。它从来没有见过一个框，而且每张图里只有一个形状。
#
# 现在我们给它一张没见过的图：从两张图里各取一半，拼成一张，左边是十字，右边是三角形，另外还有几条用来干扰的线。**先猜**网络会怎样回答，再想一想：一个只学过类别的网络，能不能指出十字在哪里、三角形在哪里？
#
# </div>
# <div lang="en">
#
# In training this network was told the class of each picture and nothing else. It never saw a box around a shape, and
# each picture held only one shape.
#
# Now we show it a picture of a kind that it has never seen. We take one half each of two pictures and join them, so
# that there is a cross on the left and a triangle on the right, with some lines to distract it. **Guess first** what
# the network answers, and then ask yourself: can a network that has learnt only classes point at the cross, and at the
# triangle?
#
# </div>

# %%
guess("11.a")

# %% tags=["E24"] picture="two_shapes"
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
# 十字第一，三角形第二，其余的都低得多。可见两个形状网络都看见了。至于它能不能指出形状在哪里，要到 11.4 节才知道。
#
# </div>
# <div lang="en">
#
# The cross comes first, the triangle second, and all other classes are far below. So the network has noticed both
# shapes. Section 11.4 will show whether it can also point at them.
#
# </div>
#
# ## 11.2 第一步：特征图和梯度 · Step one: maps and gradient
#
# <div lang="zh">
#
# 要指出十字在哪里，就要回到取平均之前，位置还没有丢的地方。`block4` 就是这样一层，它输出 64 张 8×8 的特征图。可是其中哪些通道支持十字呢？可以问梯度，因为梯度说的是，十字的 logit 对特征图的每一处有多敏感。
#
# 所以特征图和梯度，两样都要。特征图在前向传播时就有，梯度却要等反向传播，于是我们分两步来取。一个前向钩子先留下特征图，同时在 `output` 上注册一个张量钩子；等反向传播到了这里，张量钩子就收到梯度（7.8 节）。
#
# 每个通道有 64 处，每一处都有自己的梯度。**先猜**：这 64 个梯度都一样吗？
#
# </div>
# <div lang="en">
#
# To point at the cross, we need a layer that still knows where things are. The last such layer is `block4`, because the
# average behind it mixes all places. `block4` returns 64 feature maps of 8×8. But which of these channels speak for the
# cross? The gradient can tell, because it says how sensitive the logit of the cross is to each place of each map.
#
# So we need both the maps and the gradient, but they come at different times: the maps in the forward pass, the
# gradient only in the backward pass. One forward hook can still collect both. It keeps the maps at once, and it
# registers a tensor hook on `output`, which receives the gradient when the backward pass gets there (section 7.8).
#
# Each channel has 64 places, and each place has a gradient of its own. **Guess first**: are these 64 gradients equal?
#
# </div>

# %%
guess("11.b")

# %% tags=["E24"]
seen, cross = {}, CLASSES.index("cross")


def keep(module, args, output):
    seen["maps"] = output.detach().clone()
    output.register_hook(lambda grad: seen.update(grads=grad))


with model.block4.register_forward_hook(keep):
    model(both)[0, cross].backward()
maps, grads = seen["maps"], seen["grads"]
print("maps:", tuple(maps.shape), " grads:", tuple(grads.shape))
spread = grads.amax(dim=(2, 3)) - grads.amin(dim=(2, 3))
print("largest minus smallest gradient, in the worst channel:", spread.max().item())
weights = grads.mean(dim=(2, 3))
print("weights:", tuple(weights.shape), f" from {weights.min():.3f} to {weights.max():.3f}")
same = torch.allclose(weights[0], model.head.weight[cross] / 64)
print("the head's own weights, divided by 64:", same)

# %% [markdown]
# <div lang="zh">
#
# 在一个通道里，梯度处处相同。原因在于 `block4` 后面的两步：先对 64 处取平均，每一处只占 64 分之一；再经过线性层，平均值在那里乘以权重。所以每一处的梯度都一样，就是线性层的权重除以 64。
#
# 在更靠前的层，或者换一个不这样结尾的网络（例如 AlexNet），各处的梯度一般并不相同。所以 Grad-CAM 对各处取**平均**，得到的数就是这个通道的**权重**。权重为正，通道就支持十字；权重为负，就反对十字。
#
# </div>
# <div lang="en">
#
# Within a channel the gradients are all equal, because of what follows `block4`. First comes an average over the 64
# places, so each place counts for one 64th. Then a linear layer multiplies this average by a weight. So the gradient at
# every place is this weight, divided by 64.
#
# At earlier layers, and in networks that do not end like this one, such as AlexNet, the gradient usually differs from
# place to place. That is why Grad-CAM takes its **average** as the **weight** of the channel. A channel with a positive
# weight speaks for the cross, and one with a negative weight against it.
#
# </div>
#
# ## 11.3 从哪个数出发 · Which number to start from
#
# <div lang="zh">
#
# 刚才的反向传播，是从十字的 logit 出发的。从十字的概率出发，或者从训练时用的损失出发，是不是也行？我们把这三个数对 6 个 logit 的梯度列成三行，比一比。哪个数不是 0，哪一类的 logit 就有影响。**先猜**：哪几行里，三角形也有影响？
#
# </div>
# <div lang="en">
#
# We started the backward pass from the logit of the cross. Could we also have started from the probability of the
# cross, or from the loss that training uses? To compare them, we put the gradients of all three with respect to the 6
# logits into three rows. Where a number is not 0, the logit of that class has an influence. **Guess first**: in which
# rows does the triangle have one?
#
# </div>

# %%
guess("11.c")

# %% tags=["E24"]
z = model(both).detach()[0].requires_grad_()
probability, loss = z.softmax(0)[cross], F.cross_entropy(z, torch.tensor(cross))
rows = []
for name, number in {"logit": z[cross], "probability": probability, "loss": loss}.items():
    (grad,) = torch.autograd.grad(number, z)
    rows.append([name, *(round(g, 2) + 0 for g in grad.tolist())])
print(Table(["gradient of", *CLASSES], rows))

# %% [markdown]
# <div lang="zh">
#
# 只有 logit 那一行只问十字自己，概率和损失两行都牵涉到三角形，因为 softmax 把各类放在一起比（其余四类也有影响，只是太小，四舍五入成了 0）。要概率升高，压低三角形也行，而这不是我们想问的。
#
# 还有一个原因：十字的概率已经接近 1，梯度只剩 0.03。损失的梯度也一样小，符号还是反的，因为十字变强，损失就变小。
#
# 几张图能不能合用一次反向传播，省些时间？每张图都要自己那一类的 logit 的梯度，`logits.gather(1, labels[:, None])` 正好从每张图里取出这一个。我们把两张图的加起来，只做一次反向传播，再和每张图单独做的比。先在 eval 模式下比，再在 train 模式下比。**先猜**：在哪种模式下，两张图的梯度会混在一起？
#
# </div>
# <div lang="en">
#
# Only the row of the logit asks about the cross alone. The probability and the loss depend on the triangle as well,
# because softmax compares all classes. (The other four have an influence too, but so small that it rounds to 0.) So the
# probability also rises if the triangle is pushed down, and that is not what we want to know.
#
# There is another reason. The probability of the cross is already near 1 and can hardly rise any more, so its gradient
# has faded to 0.03. That of the loss has faded as much, and has the opposite sign, as the loss falls when the cross
# gains.
#
# Can several pictures share one backward pass, to save time? Each needs the gradient of the logit of its own class, and
# `logits.gather(1, labels[:, None])` takes just that logit from every picture. We add up those of two pictures, run
# backward once, and compare the result with what each picture gets alone, in eval mode and in train mode. **Guess
# first**: in which mode do the gradients of the two pictures mix?
#
# </div>


# %%
guess("11.d")


# %% tags=["E24"]
def gradient(net, images, labels):
    with net.block3.register_forward_hook(keep):  # at block4 it depends on the class alone
        logits = net(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return seen["grads"]


images, labels = torch.stack([left.image, right.image]), torch.tensor([left.label, right.label])
same = {}
for net in (model, copy.deepcopy(model).train()):
    mode = "train" if net.training else "eval"
    together = gradient(net, images, labels)
    alone = torch.cat([gradient(net, images[[i]], labels[[i]]) for i in range(2)])
    same[mode] = torch.allclose(together, alone, atol=1e-5)
    print(mode, "mode, together the same as alone:", same[mode])

# %% [markdown]
# <div lang="zh">
#
# 在 eval 模式下，两张图的梯度不会混在一起，因为哪张图都不影响别的图的 logit。logit 之和里，只有一项取决于某张图，就是它自己那一项。所以从这个和出发做一次反向传播，每张图得到的就是自己的梯度。
#
# 在 train 模式下却会混在一起。这时 `BatchNorm` 用的是整批图的均值和方差，所以换掉一张图，别的图的 logit 也跟着变。
#
# </div>
# <div lang="en">
#
# In eval mode the gradients do not mix, because no picture has any influence on the logit of another. In the sum of the
# logits, only one term depends on a given picture: its own. So a single backward pass from that sum gives every picture
# its own gradient.
#
# In train mode they do mix. `BatchNorm` then uses the mean and variance of the whole batch, so if you change one
# picture, the logits of the others change as well.
#
# </div>
#
# ### 练习 11.1：每个通道的权重 · Exercise 11.1: A weight for each channel
#
# ●● · 8 min
#
# <div lang="zh">
#
# 有了特征图，再知道每个通道的权重，就可以画热图了。我们先把取权重这一步写成函数，让它一次处理一批图。
#
# 写 `channel_weights(model, layer, images, labels)`。它返回 `N×C` 的张量：`logits[i, labels[i]]` 对 `layer` 输出的梯度，在高和宽上取平均。`layer` 是 `model` 的一个模块，它自己不就地运算，输出之后也不会被就地改写。
#
# 模型以后还要用，所以不要留下钩子，模式（`training`）照旧；`.grad` 可以变。
#
# </div>
# <div lang="en">
#
# A heat map needs the weight of each channel. So let us turn the step that finds them into a function, which takes a
# whole batch of pictures at once.
#
# Write `channel_weights(model, layer, images, labels)`. It takes the gradient of `logits[i, labels[i]]` with respect to
# the output of `layer`, averages it over height and width, and returns these weights as a tensor of `N×C`.
#
# - The model will be used again, so leave no hook behind and the mode (`training`) as it was; `.grad` may change.
# - `layer` is a module of `model` that does not work in place itself, and nothing overwrites its output later.
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
# 有了特征图和权重，热图就只差一步。**Grad-CAM** 的全名是 gradient-weighted class activation mapping，意思是梯度加权的类激活图：把各通道的特征图乘以权重，加起来，再去掉负的部分。
#
# $L = \mathrm{ReLU}(\sum_c w_c A_c)$
#
# 这里 $A_c$ 是通道 $c$ 的特征图，$w_c$ 是它的权重。$L$ 有 8×8 格，前 4 列是左半边，后 4 列是右半边。我们先问十字，再问三角形，看看 `ReLU` 之前两边各加起来是多少。**先猜**：问十字的时候，右半边加起来是多少？
#
# </div>
# <div lang="en">
#
# The maps say where something is, and the weights say how much each channel speaks for the class. To get a heat map
# from them, we multiply the feature map of each channel by its weight, add up the products, and cut off what is
# negative. This is **Grad-CAM**, which stands for gradient-weighted class activation mapping.
#
# $L = \mathrm{ReLU}(\sum_c w_c A_c)$
#
# Here $A_c$ is the feature map of channel $c$ and $w_c$ its weight. $L$ has 8×8 places, of which the first 4 columns
# belong to the left half of the picture and the last 4 to the right half. We ask about the cross and then about the
# triangle, and add up each half before the `ReLU`. **Guess first**: if we ask about the cross, what does the right
# half add up to?
#
# </div>

# %%
guess("11.e")

# %% tags=["E24"] picture="two_heats"
fig, axes = plt.subplots(1, 2, figsize=(5, 2.6))
for ax, name in zip(axes, ("cross", "triangle"), strict=True):
    with model.block4.register_forward_hook(keep):
        logits = model(both)
    logits[0, CLASSES.index(name)].backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    total = (weights * seen["maps"]).sum(dim=1)[0]
    halves = total[:, :4].sum(), total[:, 4:].sum()
    print(f"asked about the {name:9} left half {halves[0]:5.1f}   right half {halves[1]:5.1f}")
    ax.imshow(both[0].permute(1, 2, 0))
    # each map has a colour scale of its own
    ax.imshow(total.relu(), cmap="inferno", alpha=0.6, extent=(-0.5, 63.5, 63.5, -0.5))
    ax.set(title=name, xticks=[], yticks=[])

# %% [markdown]
# <div lang="zh">
#
# 问十字的时候，右半边加起来小于 0，因为在那一边，权重为负的通道占了上风。它们反对十字，`ReLU` 去掉的就是这些。
#
# 再问三角形的时候，图还是那张图，特征图还是那些特征图。变的只有问题，亮的地方就移到了另一边。11.1 节的问题也就有了答案：网络指得出形状在哪里，虽然从来没有人告诉过它。
#
# </div>
# <div lang="en">
#
# If we ask about the cross, the right half adds up to less than 0, because channels with negative weights prevail on
# that side. They speak against the cross, and the `ReLU` cuts this off.
#
# When we asked about the triangle, the picture and its maps were still the same. Only the question had changed, and so
# the light moved to the other side. That answers the question of section 11.1 as well: the network can point at the
# shapes, although nobody ever told it where they are.
#
# </div>
#
# ## 11.5 第三步：放大 · Step three: enlarge
#
# <div lang="zh">
#
# 刚才的图里，8×8 的热图是 `imshow` 拉大的，看得出一个个方块。要和框逐个像素地比较，就得自己把热图放大到 64×64。放大用 `F.interpolate`，不过它有几个选项，选得不对，热图就会走样。我们拿一行 4 个数来试，其中第一个是负的。`relu()` 可以在放大之前，也可以在放大之后。**先猜**：得到的数一样吗？然后再看不写 `mode` 得到的是什么。
#
# </div>
# <div lang="en">
#
# In the last picture it was `imshow` that stretched the 8×8 map, and you can see the blocks. To compare a map with a
# box pixel by pixel, we have to enlarge it to 64×64 ourselves. `F.interpolate` does that, but with the wrong options it
# distorts the map. We try its options on one row of 4 numbers, the first of which is negative. `relu()` can come before
# the enlarging or after it. **Guess first**: do both orders give the same numbers? Then see what we get without `mode`.
#
# </div>

# %%
guess("11.f")

# %% tags=["E24"]
row = torch.tensor([[[-1.0, 1, 0, 0]]])
positive = row.relu()
ways = {
    "no mode": F.interpolate(positive, size=8),
    "nearest": F.interpolate(positive, size=8, mode="nearest"),
    "linear": F.interpolate(positive, size=8, mode="linear"),
    "align_corners=True": F.interpolate(positive, size=8, mode="linear", align_corners=True),
    "relu() afterwards": F.interpolate(row, size=8, mode="linear").relu(),
}
for way, values in ways.items():
    print(f"{way:18}", *(f"{v:.2f}" for v in values[0, 0]))
maps = torch.ones(2, 1, 8, 8)
enlarged = F.interpolate(maps, size=(64, 64), mode="bilinear")
print("bilinear:", tuple(maps.shape), "to", tuple(enlarged.shape))

# %% [markdown]
# <div lang="zh">
#
# 不写 `mode`，得到的是最近邻，即 `nearest`。它重复每个数，热图就成了一个个方块。`linear` 在相邻的数之间平缓地过渡，这里的高峰还在原处。加上 `align_corners=True`，首尾两个数就被拉到边上，高峰也跟着偏了。
#
# 为什么要先 `relu()`？线性放大会把相邻的数混在一起。如果负数还在，就会渗进旁边的格子，0.75 就变成了 0.50。
#
# 图像要用 `bilinear`，也就是横竖各做一次 `linear`。它只收 `N×C×H×W`，所以求和时要留着通道那一维。
#
# </div>
# <div lang="en">
#
# Without `mode` we get `nearest`, which repeats every number, so the map consists of blocks. With `linear` the numbers
# pass gradually into each other, and here the peak stays. `align_corners=True` pulls the outer numbers to the borders,
# and the peak moves too.
#
# `relu()` comes first because linear enlarging mixes neighbours. A negative number leaks into the places beside it, and
# 0.75 becomes 0.50.
#
# For pictures we use `bilinear`, which is `linear` in both directions. It takes only `N×C×H×W`, so keep the channel
# dimension in the sum.
#
# </div>
#
# ### 练习 11.2：Grad-CAM · Exercise 11.2: Grad-CAM
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 现在把三步合成一个函数：给它一批图和各自的类别，它就说出网络看的是哪里。
#
# 写 `grad_cam(model, layer, images, labels)`。它先求加权和，再 `relu()`，然后双线性放大，返回 `N×H×W`，和 `images` 同样高、同样宽。
#
# - 值不缩放，热图才能互相比较。
# - 结果不连着计算图。
# - `layer` 不一定是 ReLU，它的输出之后还可能被就地改写。
# - 不留下钩子，`training` 照旧，`.grad` 可以变。
#
# </div>
# <div lang="en">
#
# Put the three steps together: given pictures and a class for each, your function shows where the network looks.
#
# Write `grad_cam(model, layer, images, labels)`. It takes the weighted sum, then `relu()`, then enlarges bilinearly,
# and returns `N×H×W`, as high and as wide as `images`.
#
# - `layer` need not be a ReLU, and its output may be overwritten in place later.
# - Do not scale the values, so that maps can be compared.
# - The result carries no graph, because nobody will differentiate it.
# - Leave no hook behind and `training` as it was, for the next use; `.grad` may change.
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
# ## 11.6 就地的 ReLU · ReLUs that work in place
#
# <div lang="zh">
#
# `SmallCNN` 的 ReLU 都不是就地的，常见的网络却不一样：torchvision 的 ResNet 和 VGG，ReLU 全是就地的。我们的热图会受影响吗？
#
# 为了弄清楚，我们造一个副本，只把 `inplace` 打开。两个网络给出的 logit 完全相同，可是留下的特征图和梯度也一样吗？在 `block4.bn` 上，特征图和梯度各用两种办法留下来：
#
# - 特征图用 `detach()` 和 `detach().clone()`；
# - 梯度用 `retain_grad()` 和张量钩子。
#
# 这四份里，哪几份在两个网络上一样？**先猜。**
#
# </div>
# <div lang="en">
#
# None of the ReLUs of `SmallCNN` works in place, but in common networks, such as torchvision's ResNet and VGG, all of
# them do. Does that harm our maps?
#
# To find out, we make a copy in which only `inplace` is switched on. Both networks give exactly the same logits. But do
# we also keep the same map and the same gradient? We keep each of them at `block4.bn` in two ways:
#
# - the maps with `detach()` and with `detach().clone()`;
# - the gradient with `retain_grad()` and with a tensor hook.
#
# Which of these four are the same in both networks? **Guess first.**
#
# </div>

# %% tags=["E24"]
inplace = copy.deepcopy(model)
for module in inplace.modules():
    if isinstance(module, nn.ReLU):
        module.inplace = True
print("the same logits:", torch.equal(model(both), inplace(both)))


def four_ways(module, args, output):
    seen.update(output=output, detached=output.detach(), copied=output.detach().clone())
    output.register_hook(lambda grad: seen.update(hooked=grad))
    output.retain_grad()


# %%
guess("11.g")

# %% tags=["E24"]
results = []
for net in (model, inplace):
    with net.block4.bn.register_forward_hook(four_ways):
        net(both)[0, cross].backward()
    results.append([seen["detached"], seen["copied"], seen["output"].grad, seen["hooked"]])
ways = "maps: detach()", "maps: detach().clone()", "gradient: retain_grad()", "gradient: hook"
for way, a, b in zip(ways, *results, strict=True):
    print(f"{way:23} the same: {torch.allclose(a, b)}")

# %% [markdown]
# <div lang="zh">
#
# 四份里只有两份在两个网络上一样：`detach().clone()` 的特征图，和张量钩子的梯度。
#
# 先说特征图。`detach()` 并没有复制，它留下的还是同一块内存。ReLU 就地改写这块内存，留下的特征图也就跟着变了，负数都没有了。`clone()` 留下的才是当时的样子（第 09 课）。
#
# 梯度也有类似的陷阱。就地操作之后，`retain_grad()` 跟着张量走，给出的是 ReLU **之后**的梯度。张量钩子则留在原来的值上（第 04 课）。
#
# 你的 `grad_cam` 避得开这两个陷阱吗？请用它在两个网络、三个位置上各运行一次。每个位置上，两个网络的结果应当一样。
#
# </div>
# <div lang="en">
#
# Of the four, only two are the same in both networks: the maps with `detach().clone()` and the gradient of the tensor
# hook.
#
# Let us take the maps first. `detach()` makes no copy, so what it keeps is the same memory. When the ReLU overwrites
# this memory in place, the kept map changes with it, and no negative number is left in it. `clone()` keeps what was
# there at that moment (lesson 09).
#
# There is a similar trap for the gradient. `retain_grad()` goes with the tensor, and after the operation in place this
# tensor is the output of the ReLU. So we get the gradient **behind** the ReLU. A tensor hook, by contrast, stays with
# the value that it was registered on (lesson 04).
#
# Does your own `grad_cam` avoid both traps? Run it on both networks, at three places. At each place, both networks
# should give the same map.
#
# </div>

# %% tags=["E24"]
asked = torch.tensor([cross])
try:
    for name in ("block4", "block4.bn", "block3.bn"):
        a, b = (grad_cam(net, net.get_submodule(name), both, asked) for net in (model, inplace))
        same = torch.allclose(a, b, atol=1e-5)
        print(f"your grad_cam at {name:10} the same on both nets: {same}")
except NotImplementedError:
    print("先做练习 11.2 · Solve exercise 11.2 first")

# %% [markdown]
# ## 11.7 好看不算证据 · Pretty is no proof
#
# <div lang="zh">
#
# 一张热图再好看，也说明不了什么。我们要的是一个数，**指点游戏**就给出这样一个数。看热图上值最大的那一点，落在框里算命中，否则不算。在很多没见过的图上数一数，就得到命中率。
#
# 我们的图是画出来的，所以框分毫不差。`sample.box` 是 `x0, y0, x1, y1`，`x` 向右，`y` 向下。和 Python 的切片一样，起点在框里，终点已经在框外，所以 `image[:, y0:y1, x0:x1]` 恰好框住形状。
#
# 光有命中率还不够，还要有东西来比。我们就和一个从不看图、每次都指着正中间的人比。**先猜**：他的命中率是多少？
#
# </div>
# <div lang="en">
#
# A single heat map proves nothing, however pretty it is. What we need is a number, and the **pointing game** gives us
# one. We look at the highest point of the map: if it lies in the box, that is a hit, and otherwise it is a miss.
# Counted over many unseen pictures, this gives the hit rate.
#
# Since our pictures are drawn, we know the boxes exactly. `sample.box` is `x0, y0, x1, y1`, with `x` to the right and
# `y` down. As in a Python slice, the start belongs to the box and the end does not, so `image[:, y0:y1, x0:x1]` is
# exactly what the box holds.
#
# A hit rate means little unless we have something to compare it with. So imagine somebody who never looks at the
# picture and points at the middle every time. How often would they hit? **Guess first.**
#
# </div>

# %%
guess("11.h")

# %% tags=["E24"]
unseen = next(iter(DataLoader(Shapes(500, seed=12), batch_size=500)))
x0, y0, x1, y1 = unseen.box.T
print("images:", tuple(unseen.image.shape), " boxes:", tuple(unseen.box.shape))
print("the first box:", unseen.box[0].tolist(), "around a", CLASSES[unseen.label[0]])
middle = (x0 <= 32) & (32 < x1) & (y0 <= 32) & (32 < y1)
print(f"always the middle: {middle.float().mean():.2f}")
with torch.no_grad():
    right_class = model(unseen.image).argmax(dim=1) == unseen.label
print(f"classified correctly: {right_class.float().mean():.3f}")

# %% [markdown]
# <div lang="zh">
#
# 永远指着正中间，三张里也能命中一张。所以热图要明显高于这个数，才算知道形状在哪里。
#
# </div>
# <div lang="en">
#
# Always pointing at the middle hits one picture in three. Only a heat map that does clearly better can be said to
# know where the shape is.
#
# </div>
#
# ### 练习 11.3：指点游戏 · Exercise 11.3: The pointing game
#
# ●● · 8 min
#
# <div lang="zh">
#
# 热图指得准不准，要用数来说话。所以我们把指点游戏写成函数。
#
# 写 `hit_rate(cams, boxes)`。它返回最高点落在框里的热图的比例，一个从 0 到 1 的数。`cams` 是 `N×H×W`，`boxes` 是 `N×4`。
#
# - 热图可以有负数。
# - 检查时用的热图不是正方形，所以 `x` 和 `y` 弄反了会露馅。
# - 检查时，并列最高的几处要么都在框里，要么都不在，所以取哪一处都行。
#
# </div>
# <div lang="en">
#
# We want a number for how well maps point, one that does not depend on who looks at them. So let us write the
# pointing game as a function.
#
# Write `hit_rate(cams, boxes)`, where `cams` is `N×H×W` and `boxes` is `N×4`. It finds the highest point of each map
# and returns the share of maps whose highest point lies in the box, as one number from 0 to 1.
#
# - Maps may hold negative numbers, so the highest point is not always the one with the largest absolute value.
# - The maps of the check are not square, so if you take `x` and `y` in the wrong order, it will show.
# - If several points of a map in the check are equally high, either all of them lie in the box or none does, so you may
#   take any of them.
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
# ## 11.8 五百张没见过的图 · Five hundred unseen pictures
#
# <div lang="zh">
#
# 现在可以量一量，训练好的网络指得有多准。11.2 节说过，它在 `block4` 的权重就是 `head.weight / 64`。所以这里连反向传播都不需要，一个前向钩子就能给出全部热图。这个做法叫 CAM（class activation mapping），是 Grad-CAM 的前身。
#
# 要是什么都没学过的网络也一样准，命中率再高也说明不了什么。所以我们用 CAM 给两个网络各画 500 张热图，一个是训练好的，另一个是随机权重的。**先猜**：随机权重的命中率，比永远指着正中间的高还是低？然后再看，从没见过框的那个训练好的网络命中多少。
#
# </div>
# <div lang="en">
#
# Now we can measure how well the network points. In section 11.2 we found that the weights of its channels at
# `block4` are `head.weight / 64`. So here we do not even need backward: one forward hook gives all the maps. This
# method is called CAM (class activation mapping), and it came before Grad-CAM.
#
# A high hit rate would prove little if a network that has learnt nothing had it as well. So we compare two networks:
# the trained one, and one with random weights. With each of them we make 500 maps by CAM. **Guess first**: do random
# weights hit more or less often than always pointing at the middle? Then see how often the trained network hits,
# although it has never seen a box.
#
# </div>


# %% tags=["E24"]
def keep_maps(module, args, output):
    seen["maps"] = output


torch.manual_seed(0)
cams = {}
for name, net in {"trained": model, "random weights": SmallCNN().eval()}.items():
    with torch.no_grad(), net.block4.register_forward_hook(keep_maps):
        net(unseen.image)
        weights = net.head.weight[unseen.label] / 64
        cam = (weights[:, :, None, None] * seen["maps"]).sum(dim=1, keepdim=True).relu()
    cams[name] = F.interpolate(cam, size=(64, 64), mode="bilinear")[:, 0]

# %%
guess("11.i")

# %% tags=["E24"]
for name, maps in cams.items():
    place = maps.flatten(1).argmax(dim=1)
    y, x = place // 64, place % 64
    hits = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    highest = maps.amax(dim=(1, 2))
    print(f"{name:15} hit rate {hits.float().mean():.2f}")
    print(f"    highest value of a map, median of 500: {highest.median():.1g}")
    print(f"    maps that are 0 everywhere: {(highest == 0).sum()}")
print(f"always the middle, for comparison: {middle.float().mean():.2f}")


# %% picture="pointing"
def draw(ax, image, cam, box):
    """Draw a map over its picture, the box of the shape, and the highest point of the map."""
    y, x = divmod(cam.argmax().item(), cam.shape[1])
    x0, y0, x1, y1 = box.tolist()
    hit = x0 <= x < x1 and y0 <= y < y1
    ax.imshow(image.permute(1, 2, 0))
    ax.imshow(cam, cmap="inferno", alpha=0.8 * cam / cam.max().clamp(min=1e-9))
    corner, width, height = (x0 - 0.5, y0 - 0.5), x1 - x0, y1 - y0
    for colour, line in (("black", 3), ("white", 1.5)):
        ax.add_patch(plt.Rectangle(corner, width, height, fill=False, ec=colour, lw=line))
    ax.plot(x, y, "o" if hit else "X", color="cyan", mec="black", ms=9, clip_on=False)
    ax.set_title(f"{'hit' if hit else 'miss'}, highest {cam.max():.2g}", fontsize=9)
    ax.set(xticks=[], yticks=[])


fig, axes = plt.subplots(2, 6, figsize=(10, 3.9), layout="constrained")
for (name, maps), panels in zip(cams.items(), axes, strict=True):
    panels[0].set_ylabel(name)
    for i, ax in zip([0, 1, 2, 3, 4, 118], panels, strict=True):
        draw(ax, unseen.image[i], maps[i], unseen.box[i])

# %% [markdown]
# <div lang="zh">
#
# 每张热图都盖在它的图上，越黄的地方越支持图里形状的那一类。白框是真的框。热图的最高点画成圆点，就是落在框里，命中了；画成叉，就是没命中。最后一列特意选了一张训练过的网络没命中的图。
#
# 看亮度的时候要当心。每张热图各用**自己的**颜色刻度，最亮处就是写在上面的最大值。所以随机权重的热图看着也亮，数值却小得多。
#
# 训练过的网络，命中率是 0.98。随机权重的只有 0.07，比永远指着正中间的 0.33 还低。它的热图，最高点大多不在框里，许多靠近图的边缘；还有一些处处是 0，最高点就算在左上角。
#
# 这样的比较叫**合理性检查**。如果换上随机权重，热图几乎不变，它画的就不是网络学到的东西。
#
# </div>
# <div lang="en">
#
# Each map lies over its picture. The more yellow a place is, the more it speaks for the class of the shape. The white
# frame is the true box. The highest point is a dot if it hits the box, and a cross if it misses. For the last column we
# picked a miss of the trained network.
#
# Beware of the brightness. Each map has a colour scale **of its own**, up to its highest value, which stands above it.
# That is why maps of random weights look bright as well, although their values are far smaller.
#
# The trained network has a hit rate of 0.98. Random weights give 0.07, even less than the 0.33 of always pointing at
# the middle. Their highest points mostly miss the box, and many are near an edge of the picture. Some maps are 0
# everywhere, and then the upper left corner counts as the highest point.
#
# Such a comparison is called a **sanity check**. If the maps hardly change when the weights are random, they do not
# show what the network has learnt.
#
# </div>

# %% [markdown]
# ## 11.9 答对了，理由却不对 · Right for the wrong reason
#
# <div lang="zh">
#
# 到现在为止，热图只证实了我们的愿望。可是它最大的用处是发现毛病，所以我们来造一个有毛病的网络。假设有人交给你一批爱心和圆的图，每张爱心的左上角都贴着一张白色贴纸，行和列都是从 2 到 14，不碰到形状。网络从这些图里会学到什么？
#
# </div>
# <div lang="en">
#
# So far the maps have only confirmed what we hoped for. But they are most useful when something is wrong, so let us
# make a network with a fault. Suppose somebody hands you pictures of hearts and circles. Every heart has a white
# sticker in the upper left corner, from row and column 2 up to 14, where it covers no part of the shape. What will a
# network learn from these pictures?
#
# </div>


# %% tags=["E24"]
def with_sticker(images):
    images = images.clone()
    images[:, :, 2:14, 2:14] = 1
    return images


def pick(batch, name):
    """Return the pictures of a class, and their boxes, where the sticker covers no shape."""
    chosen = batch.label == CLASSES.index(name)
    chosen &= (batch.box[:, 0] >= 14) | (batch.box[:, 1] >= 14)
    return batch.image[chosen], batch.box[chosen]


batch = next(iter(DataLoader(Shapes(144, seed=21), batch_size=144)))
(hearts, _), (circles, _) = pick(batch, "heart"), pick(batch, "circle")
print("pictures to learn from:", len(hearts), "hearts,", len(circles), "circles")

# %% tags=["E24"]
heart, circle = CLASSES.index("heart"), CLASSES.index("circle")
x = torch.stack([with_sticker(hearts), circles], dim=1).flatten(0, 1)  # heart, circle, heart ...
y = torch.tensor([heart, circle]).repeat(len(hearts))
torch.manual_seed(0)
biased = SmallCNN()
optimizer = torch.optim.SGD(biased.parameters(), lr=0.05, momentum=0.9)
for step in range(60):
    half = slice(0, 22) if step % 2 else slice(22, 44)
    loss = F.cross_entropy(biased(x[half]), y[half])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
biased.eval()
print(f"loss at the last step: {loss.item():.1f}")

# %% tags=["E24"]
hearts, boxes = pick(unseen, "heart")
called = (biased(with_sticker(hearts)).argmax(dim=1) == heart).float().mean()
print(f"{len(hearts)} new hearts with a sticker, called a heart: {called:.1f}")

# %% [markdown]
# <div lang="zh">
#
# 没见过的爱心，网络全都答对了。只看这些爱心，这是一个很好的网络。
#
# 不过这些爱心都带着贴纸，看不出网络看的是爱心还是贴纸。所以我们把两者分开：给圆贴上贴纸，去掉爱心的贴纸。要是网络看的是贴纸，回答就会反过来。然后再看热图的最高点落在哪里。热图用你的 `grad_cam` 来画，打分用你的 `hit_rate`。**先猜**：贴上贴纸的圆，有多少会被认作爱心？
#
# </div>
# <div lang="en">
#
# The network gets every new heart right. Judged by these hearts, it is an excellent network.
#
# But all of these hearts have the sticker, so we cannot tell whether the network looks at the heart or at the sticker.
# To find out, we separate the two: we put the sticker on circles, and take it off the hearts. If the network looks at
# the sticker, its answers will flip. Then we see where the highest point of a map lies. Your own `grad_cam` makes the
# maps, and your `hit_rate` scores them. **Guess first**: how many circles with a sticker will be called a heart?
#
# </div>

# %%
guess("11.j")

# %% tags=["E24"]
circles, _ = pick(unseen, "circle")
for name, images in {"circles with it": with_sticker(circles), "hearts without": hearts}.items():
    called = (biased(images).argmax(dim=1) == heart).float().mean()
    print(f"{name:15} called a heart: {called:.1f}")

# %% tags=["E24"] picture="shortcut"
labels = torch.full((len(hearts),), heart)
sticker = torch.tensor([2, 2, 14, 14]).expand(len(hearts), 4)
try:
    maps = grad_cam(biased, biased.block4, with_sticker(hearts), labels)
    print(f"highest point on the heart:   {hit_rate(maps, boxes):.1f}")
    print(f"highest point on the sticker: {hit_rate(maps, sticker):.1f}")
    fig, axes = plt.subplots(1, 4, figsize=(8, 2.4), layout="constrained")
    for i, ax in enumerate(axes):
        draw(ax, with_sticker(hearts)[i], maps[i], boxes[i])
except NotImplementedError:
    print("先做练习 11.2 和 11.3 · Solve exercises 11.2 and 11.3 first")

# %% [markdown]
# <div lang="zh">
#
# 热图的最高点全落在贴纸上，一次也没有落在爱心上。圆贴上贴纸，网络就说是爱心；爱心去掉贴纸，大多就认不出来了。可见它学会的是认贴纸。在这批图上，看贴纸和看形状一样分得清两类，而且贴纸更容易学。
#
# 爱心的准确率看不出这个毛病，因为新的爱心也带着贴纸；热图一眼就看出来了，挪动贴纸的实验则证实了它。
#
# </div>
# <div lang="en">
#
# The highest point of every map lies on the sticker, and not once on the heart. A circle that gets a sticker is called
# a heart, and most hearts that lose theirs are no longer recognised. So what the network has learnt is the sticker. In
# these pictures it tells the two classes apart as well as the shape does, and it is easier to learn.
#
# The accuracy on hearts cannot reveal this, because the new hearts have stickers as well. The heat maps show it at a
# glance, and the experiment of moving the sticker confirms it.
#
# </div>
#
# ## 11.10 关掉再看 · Switch it off and see
#
# <div lang="zh">
#
# 刚才我们拿走贴纸，看回答变不变。对通道也可以做这样的实验。梯度只是预测，它说权重大、图又亮的通道要紧。是不是真的要紧，关掉一个通道就知道：前向钩子把这个通道设为 0，返回新的输出（5.6 节）。logit 会降多少？
#
# </div>
# <div lang="en">
#
# In the last section we took the sticker away and saw whether the answer changes. We can do the same with a channel. A
# gradient is only a prediction: it says that a channel matters if its weight is large and its map is bright. To see
# whether that is true, we switch a channel off. A forward hook sets it to 0 and returns the new output (section 5.6).
# How far does the logit fall?
#
# </div>

# %% [markdown]
# ### 练习 11.4：关掉一个通道 · Exercise 11.4: Switch a channel off
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 把这个实验写成函数，就可以在任何一层、对任何一个通道重做。
#
# 写 `channel_effect(model, layer, channel, images, labels)`。它返回一个 `N` 个数的张量，说明每张图的 `logits[i, labels[i]]` 降了多少，也就是原来的值减去关掉 `channel` 之后的值。
#
# - `output` 不要就地改：别的钩子也许还留着它。
# - 参数、它们的 `.grad` 和 `training` 不碰，不留下钩子：实验做完，模型和原来一样。
# - `layer` 后面不一定是 ReLU。
#
# </div>
# <div lang="en">
#
# How much does a channel matter? You can find out by switching it off and measuring what the network loses. As a
# function, this experiment can be repeated at any layer and for any channel.
#
# Write `channel_effect(model, layer, channel, images, labels)`. It returns a tensor of `N` numbers that says how far
# the `logits[i, labels[i]]` of each picture falls: its usual value minus its value with `channel` switched off, that
# is, set to zero in the output of `layer`.
#
# - Do not change `output` in place, because another hook may have kept it.
# - The model should be the same after the experiment as before. So leave the parameters, their `.grad` and `training`
#   alone, and leave no hook behind.
# - What follows `layer` need not be a ReLU, so a large negative value cannot stand for zero.
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
# ## 11.11 实例：预测与实验 · Worked example: prediction and experiment
#
# <div lang="zh">
#
# 现在来看预测准不准，用的还是拼起来的那张图，问的是十字。实验是每次关掉一个通道，看 logit 降多少。
#
# 预测有两种。第一种和 Grad-CAM 一样，一个通道一个权重：通道 $c$ 的贡献是 $w_c$ 乘以 $A_c$ 各处之和。第二种不取平均，而是逐处用梯度乘 $A_c$，再加起来。
#
# 我们在 `block4` 比一次，在更靠前的 `block2` 再比一次。准不准，看预测和实验的相关系数：1 是步调一致，0 是看不出这种步调。**先猜**：在 `block2`，第一种预测准吗？
#
# </div>
# <div lang="en">
#
# A prediction is worth something only if the experiment confirms it. So let us compare the two on the joined picture,
# for the cross. The experiment switches off one channel at a time and notes how far the logit falls.
#
# We test two predictions. The first has one weight per channel, as Grad-CAM does: channel $c$ contributes $w_c$ times
# the sum of $A_c$ over all places. The second takes no average. Instead, it multiplies gradient and $A_c$ place by
# place and adds up the products.
#
# We do this at `block4`, and again at `block2`, earlier in the network. A prediction is judged by its correlation with
# the experiment: 1 means that the two rise and fall together, and 0 that there is no such tendency. **Guess first**:
# how good is the first prediction at `block2`?
#
# </div>


# %% tags=["E24"]
def falls(layer):
    """Return how far the logit of the cross falls without each channel of a block."""
    channels = layer.conv.out_channels
    result = torch.zeros(channels)
    with torch.no_grad():
        before = model(both)[0, cross]
        for channel in range(channels):
            mask = (torch.arange(channels) != channel)[:, None, None]
            with layer.register_forward_hook(lambda m, a, output: output * mask):
                result[channel] = before - model(both)[0, cross]
    return result


# %%
guess("11.k")

# %% tags=["E24"]
alike = {}
for name in ("block2", "block4"):
    layer = model.get_submodule(name)
    with layer.register_forward_hook(keep):
        model(both)[0, cross].backward()
    grads, maps = seen["grads"][0], seen["maps"][0]
    averaged = grads.mean(dim=(1, 2)) * maps.sum(dim=(1, 2))
    by_place = (grads * maps).sum(dim=(1, 2))
    measured = falls(layer)
    alike[name] = torch.corrcoef(torch.stack([averaged, by_place, measured]))[2]
    one, each, _ = alike[name]
    print(f"{name}: correlation {one:.2f} with one weight a channel, {each:.2f} by place")

# %% tags=["E24"] picture="two_channels"
best, worst = measured.argmax().item(), measured.argmin().item()
print(f"block4 without channel {best}: the cross falls by {measured[best]:.1f}")
print(f"block4 without channel {worst}: it rises by {-measured[worst]:.1f}")
fig, axes = plt.subplots(1, 3, figsize=(7, 2.6))
axes[0].imshow(both[0].permute(1, 2, 0))
axes[0].set_title("picture")
for ax, channel in zip(axes[1:], (best, worst), strict=True):
    ax.imshow(maps[channel], vmin=0, vmax=maps[[best, worst]].max())  # one scale for both
    ax.set_title(f"block4, channel {channel}")

# %% [markdown]
# <div lang="zh">
#
# 在 `block4`，两种预测的相关系数都是 1.00。在那里预测必然准，因为它之后的一切都是线性的，而且对各处一视同仁。
#
# 图里有两个通道。中间的亮在十字上，关掉它，十字的 logit 就降。右边的亮在三角形上，关掉它，十字的 logit 反而升。
#
# 在 `block2`，各处的梯度不同。如果平均成一个权重，相关系数就只剩 0.07，几乎没有用了；逐处相乘却仍有 0.96。Grad-CAM 一个通道只有一个权重，这是它常用在最后一个卷积块上的一个原因。
#
# 最后用手来试。`GradCamPlayground` 用的就是这样的钩子。你可以拖动形状，可以点一类来看它的热图，也可以点一个通道把它关掉，其余的马上跟着变。**找一找**：哪两个形状放在一起，网络会叫出第三个名字，而图里根本没有它？
#
# </div>
# <div lang="en">
#
# At `block4` both predictions have a correlation of 1.00. They have to be right there: what follows is linear and
# treats all places alike.
#
# The figure shows two channels. The one in the middle is bright on the cross, and without it the logit of the cross
# falls. The one on the right is bright on the triangle, and without it the logit of the cross rises.
#
# At `block2` the gradient differs from place to place. If it is averaged into one weight, the correlation drops to
# 0.07, so the prediction is worth next to nothing, while place by place it is still 0.96. This is one reason why
# Grad-CAM, with its one weight per channel, is commonly used at the last block of convolutions.
#
# Now try it by hand. `GradCamPlayground` uses the same kind of hooks. You can drag a shape, click a class to see its
# heat map, or click a channel to switch it off, and the rest follows at once. **Find out**: which two shapes together
# get the name of a third that is absent?
#
# </div>

# %% picture="playground"
GradCamPlayground(
    model,
    "block4",
    draw_shapes,
    CLASSES,
    shapes=[("cross", 18, 32), ("triangle", 46, 32)],
)

# %% [markdown]
# <div lang="zh">
#
# 爱心和三角形放在一起，网络说是圆。只要两个都完整，又不重叠，放在哪里都差不多。原因在 `block4` 之后：那里只有平均和线性层，两者都是把收到的加起来。所以这张图的 logit，近似于两个形状各自的相加。爱心和三角形都坚决反对对方，互相抵消。圆从两边各得一点，就成了最高的。
#
# 星形和圆放在一起，也会叫成正方形，不过只在有些位置如此。
#
# </div>
# <div lang="en">
#
# A picture with a heart and a triangle is called a circle, nearly wherever you put them, if both are whole and do not
# overlap. The reason is that only an average and a linear layer follow `block4`. Both add up what they get, so each
# logit is nearly the sum of what heart and triangle would give alone. Heart and triangle speak strongly against each
# other, so neither wins. The circle gets a little from both, and comes first.
#
# A star and a circle, too, are called a square, but only at some places.
#
# </div>
#
# ## 11.12 现在读真的 · Now read the real one
#
# <div lang="zh">
#
# 每次反向传播都会算出 `block4` 处的梯度，却不留下来，所以你得写钩子。第 05 课的 `record` 用的也是这样的钩子。写上 `gradients=True`，特征图和梯度它都留下来，放大之前的 Grad-CAM 就只要几行。源码从 [`hookedu/hooks/capture.py`](../hookedu/hooks/capture.py) 读起，钩子本身在旁边的 `taps.py`。
#
# 钩子都取下来了，可是每次 `backward()` 都往参数的 `.grad` 里加了数。如果接下来要训练，请先调用 `model.zero_grad()`。
#
# </div>
# <div lang="en">
#
# Every backward pass computes the gradient at `block4`, but PyTorch does not keep it, so you had to write hooks.
# `record` of lesson 05 uses the same hooks. With `gradients=True` it keeps both maps and gradients, and Grad-CAM
# without the enlarging then takes only a few lines. To read it, begin with
# [`hookedu/hooks/capture.py`](../hookedu/hooks/capture.py); the hooks are in `taps.py` beside it.
#
# All hooks are off again, but every `backward()` added to the `.grad` of the parameters. So before you train on, call
# `model.zero_grad()`.
#
# </div>

# %%
with record(model, layers=["block4"], gradients=True) as rec:
    model(both)[0, cross].backward()
entry = rec["block4"]
cam = (entry.gradient.mean(dim=(2, 3), keepdim=True) * entry.activation).sum(dim=1).relu()

# grads and maps are still those of block4, from section 11.11
ours = (grads.mean(dim=(1, 2), keepdim=True) * maps).sum(dim=0).relu()
print("the same as ours:", torch.allclose(cam[0], ours, atol=1e-5))
print("hooks left on:", len(list_hooks(model)))
with_grad = [p.grad is not None for p in model.parameters()]
print("parameters with a .grad:", sum(with_grad), "of", len(with_grad))

# %% [markdown]
# ## 11.13 小结 · Recap
#
# <div lang="zh">
#
# 1. 特征图说的是「在哪里」，梯度说的是「有多要紧」；一个前向钩子能把两样都留下来。
# 2. 通道的权重，是图自己那一类的 logit 的平均梯度。在 eval 模式下，这样的网络里各图互不影响，所以从 logit 之和做一次反向传播就够了。
# 3. Grad-CAM 的次序是加权和、`relu()`、双线性放大；特征图要 `clone()`，因为后面的 ReLU 可能是就地的。
# 4. 热图好看不算数，要打分：和真的框比，和永远指正中间比，和随机权重比。
# 5. 准确率看不出网络靠什么作答，热图能提示，挪动贴纸、关掉通道这样的实验能证实。
#
# </div>
# <div lang="en">
#
# 1. Feature maps tell where something is, and the gradient tells how much it matters. One forward hook can keep both.
# 2. The weight of a channel is the average gradient of the logit of the picture's own class. In eval mode pictures do not influence one another in a network like this one, so one backward pass from the sum of the logits is enough.
# 3. Grad-CAM takes the weighted sum of the maps, then `relu()`, then bilinear enlarging. Keep the maps with `clone()`, because a ReLU behind the layer may work in place.
# 4. A pretty heat map proves nothing, so score it against true boxes, and compare with always pointing at the middle and with random weights.
# 5. Accuracy does not tell what an answer rests on. A heat map gives a hint, and an experiment, such as moving a sticker or switching off a channel, can confirm it.
#
# </div>

# %% [markdown]
# ## 11.14 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么从 logit 出发，不用概率或损失？</summary>概率和损失都牵涉到别的类。概率接近 1 时，它们的梯度几乎为零。损失的符号还是反的。</details>
# <details><summary>2. 为什么先 <code>relu()</code> 再放大？</summary>双线性放大时，每个像素是相邻几格的加权平均。如果负数还在，就会渗进旁边的像素，把那里的值压低。</details>
# <details><summary>3. 一个网络在新的图上全都答对，热图的最高点却总在角上。你接下来做什么？</summary>看看角上有什么，再做实验：把它去掉，或者贴到别的类的图上，看回答会不会跟着变。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why start from the logit, and not from the probability or the loss?</summary>Both the probability and the loss involve the other classes. Where the probability is near 1, their gradients almost vanish. The loss also has the sign reversed.</details>
# <details><summary>2. Why <code>relu()</code> before enlarging?</summary>Bilinear enlarging makes each pixel a weighted average of neighbouring places. If negative values are still there, they leak into the pixels beside them and lower these.</details>
# <details><summary>3. A network answers every new picture correctly, but its maps peak in a corner. What do you do next?</summary>Look at what is in that corner. Then experiment: take it away, or put it into pictures of another class, and see whether the answer changes with it.</details>
# </div>

# %% [markdown]
# ## 11.15 真实世界里 · In the wild
#
# <div lang="zh">
#
# 和 11.9 节类似的事，真的发生过。有一项研究让网络看胸片，这类热图显示，网络也在看片子角上的金属标记，而从标记可以看出片子来自哪家医院（搜索 Zech 2018 pneumonia）。
#
# 如果不想自己写，`pytorch-grad-cam` 是现成的实现。不管用哪一个，都值得像 11.8 节那样，换上随机权重检查一遍。这个检查出自论文 *Sanity Checks for Saliency Maps*，那里有几种解释方法没有通过，Grad-CAM 通过了。下面是你的进度。
#
# </div>
# <div lang="en">
#
# Shortcuts like that of section 11.9 do happen outside of textbooks. In a study of chest X-rays, heat maps of this
# kind showed that the network also looked at a metal mark in the corner of the film, and such marks tell hospitals
# apart (search for Zech 2018 pneumonia).
#
# If you do not want to write it yourself, `pytorch-grad-cam` is a ready-made implementation. Whichever you use, it is
# worth a check with random weights, as in section 11.8. The check comes from the paper *Sanity Checks for Saliency
# Maps*. In that paper some methods of explanation failed it, and Grad-CAM passed. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
