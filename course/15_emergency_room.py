# %% tags=["setup"]
import math
from collections import defaultdict
from contextlib import contextmanager
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from hookedu import (
    LanguageToggle,
    TrainingPanel,
    check,
    guess,
    hint,
    list_hooks,
    progress,
    solution,
)
from hookedu.models.ward import FAULTS, HEALTHY, admit, train

LanguageToggle()

# %% [markdown]
# ## 15.1 十一份病历 · Eleven runs
#
# <div lang="zh">
#
# 第 10 课里，你有时间慢慢检查五次训练。这一课，你在急诊室里上班。一个病人就是一个小网络，带着它的优化器和几十批数据。它也许是健康的，也许有十种故障中的一种，要由你查出来。
#
# 你用 `admit(seed, fault)` 收治病人。`patient.build()` 给出它的网络和优化器 `(model, optimizer)`，初始值每次都一样。数据在 `patient.data` 里。
#
# 如果不写 `fault`，就由 `seed` 来抽，抽到什么，谁也不告诉你。最后一节的病人就是这样来的，身上没有标签。
#
# 我们先收治有标签的，每种一个，用 `train` 来训练。它就是人人都写的训练循环，返回每一步的损失。每一步的数据，网络都没有见过。
#
# 现在只印第一步的损失和最后 5 步的平均。**先猜一猜**：只凭这两个数，你能看出哪几个病人有病？
#
# </div>
# <div lang="en">
#
# In lesson 10 you had time to examine five runs. Here you work in the emergency room. A patient is a small network with
# its optimizer and a few dozen batches of data. It may be healthy, or it may have one of ten faults, and you are to
# find out which.
#
# You take in a patient with `admit(seed, fault)`. Its batches are in `patient.data`, and `patient.build()` returns its
# network and optimizer, `(model, optimizer)`, always with the same initial values.
#
# If you leave `fault` out, `seed` draws it, and nobody tells you what was drawn. Your last patient comes in that way,
# without a label.
#
# We begin with labelled patients, one of each kind. We train them with `train`, the training loop that everybody
# writes, which returns the loss of each step. The data of every step are new to the network.
#
# Many people watch only the loss, and for now so do we: we print that of the first step, and the mean of the last 5.
# **Guess first**: for which patients do these two numbers tell that something is wrong?
#
# </div>

# %%
guess("15.a")

# %%
late = {}
for fault in (HEALTHY, *FAULTS):
    patient = admit(2, fault)
    losses = train(*patient.build(), patient.data)
    late[fault] = sum(losses[-5:]) / 5
    # At a rate that is too high, what comes out differs from processor to processor.
    last = "above 2" if late[fault] > 2 else f"{late[fault]:.1f}"
    print(f"{fault:16} loss {losses[0]:7.1f} at first, {last:>7} at last")

# %% [markdown]
# <div lang="zh">
#
# `frozen_layer`、`detached_branch`、`norm_in_eval`、`forgotten_hook` 的损失，和健康的一样降了下去。只看损失，你会放这四个病人回家。其余的病人学得没有这么好，可是从损失里看不出得的是什么病。
#
# 要看到网络里面，就得有仪表。我们自己用钩子来做，一次做一件，每做好一件，就先用在最需要它的病人身上。
#
# </div>
# <div lang="en">
#
# The losses of `frozen_layer`, `detached_branch`, `norm_in_eval` and `forgotten_hook` come down just as the healthy
# one's does. Going by the loss alone, you would send these four patients home. The other patients do less well, but
# their loss does not say what is wrong.
#
# To look inside we need instruments. We build them from hooks, one at a time, and try each on the patient who needs
# it most.
#
# </div>
#
# ## 15.2 第一件：每一层的梯度 · First instrument: gradients of every layer
#
# <div lang="zh">
#
# 第一个病人是 `vanishing`。它的梯度会消失，我们想看看是在哪里消失的。
#
# 这要在每个线性层的输出上挂钩子，可是层还没有运行，就还没有输出。所以先在层上挂一个前向钩子，它一拿到输出，就在输出上挂一个张量钩子。等反向传播走到那里，张量钩子便记下梯度的范数。
#
# **先猜一猜**：从最后一层往前看，梯度是到某一层突然没有的，还是一层一层小下去的？
#
# </div>
# <div lang="en">
#
# Our first patient is `vanishing`. Its gradients vanish, and we want to see where.
#
# For this we have to reach the output of each linear layer, and there is no such output before the layer runs. So we
# put a forward hook on the layer. It receives the output and sets a tensor hook on it, and when backward gets there,
# the tensor hook notes the norm of the gradient.
#
# **Guess first**: going from the last layer to the first, is the gradient suddenly gone at some layer, or does it
# shrink layer by layer?
#
# </div>

# %%
guess("15.b")


# %%
def gradient_norms(patient):
    """Return the norm of the gradient at the output of each linear layer, in the first step."""
    model, optimizer = patient.build()
    norms, handles = {}, []

    def look(name, module, args, output):
        output.register_hook(lambda grad: norms.update({name: grad.norm().item()}))

    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            handles.append(module.register_forward_hook(partial(look, name)))
    train(model, optimizer, patient.data[:1])
    for handle in handles:
        handle.remove()
    return norms


for name, norm in gradient_norms(admit(2, "vanishing")).items():
    print(f"{name:16} {norm:.0e}")

# %% [markdown]
# <div lang="zh">
#
# 梯度是一层一层小下去的，可见不是某一层单独的错。每往前一层，梯度大约只剩三分之一到五分之一；印出来的只有一位数字，所以这只是个大概。
#
# 我们看的是损失对每一层**输出**的梯度，而不是参数的 `.grad`。这样更有用，因为没有参数的层也有这样的梯度。
#
# </div>
# <div lang="en">
#
# The gradient shrinks layer by layer, so no single layer is to blame. Each of them makes it smaller by a factor of
# about three to five. (With one printed digit, we can tell this only roughly.)
#
# Why do we measure the gradient with respect to the **output** of a layer, and not the `.grad` of its parameters? It is
# more useful, because layers without parameters have such a gradient as well.
#
# </div>

# %% [markdown]
# ### 练习 15.1：仪表盘 · Exercise 15.1: An instrument panel
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 上面的函数只看一步。现在要一组一直接着的仪表：你照常训练，完了再查每次调用时每一层的激活和梯度各有多大。
#
# 写上下文管理器 `instruments(model)`，用法是 `with instruments(model) as rows:`。在它里面，每调用一次 `model`，列表 `rows` 就多一个字典。用层的名字去查，得到列表 `[activation, gradient]`，即激活和梯度的范数，都是 Python 的数。
#
# - 「层」是没有子模块的模块。运行了才记，按运行的次序。一次调用里，每层至多运行一次。
# - 激活的范数，这一层一运行完就要有。
# - 梯度是损失对这一层输出的梯度。它到反向传播时才来，也可能永远不来；来之前写 `None`。
# - 在 `no_grad` 里，或者几次调用共用一次反向传播时，读数都要对。
# - 就地的 ReLU 不能弄坏读数；它前面那层的输出不是视图。
# - 结束时取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# The function above reads only one step. Now we want instruments that stay on for a whole run: you train as usual, and
# then look up how large each layer's activation and gradient were in each call.
#
# Write a context manager `instruments(model)`, used as `with instruments(model) as rows:`. Each call of `model` adds a
# dictionary to the list `rows`. Under the name of each layer it holds a list `[activation, gradient]`, the norms of
# both as Python numbers.
#
# - A layer is a module without children. List those that ran, in the order of running. In one call, no layer runs
#   twice.
# - The norm of the activation must be there as soon as the layer has run.
# - The gradient is that of the loss with respect to the layer's output. It comes only in backward, and perhaps never,
#   so put `None` until then.
# - The readings must be right under `no_grad`, too, and when one backward covers several calls.
# - In-place ReLUs overwrite the previous layer's output (never a view), and must not spoil the readings.
# - Take the hooks off at the end, even after an exception.
#
# </div>


# %% exercise="15.1"
@contextmanager
def instruments(model):
    """每调用一次 model，rows 多一个 {层: [激活的范数, 梯度的范数或 None]}。

    Each call of model adds {layer: [norm of activation, norm of gradient or None]} to rows.
    """
    ### BEGIN SOLUTION
    rows, handles = [], []

    def note(name, module, args, output):
        entry = rows[-1][name] = [output.norm().item(), None]
        if output.requires_grad:
            output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))

    try:
        handles.append(model.register_forward_pre_hook(lambda model, args: rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()
    ### END SOLUTION


# %% check="15.1"
check("15.1", instruments)

# %% [markdown]
# ## 15.3 第二件：从不为正的单元 · Second instrument: units that are never positive
#
# <div lang="zh">
#
# ReLU 输出许多零，这很正常。要紧的是，有没有哪个单元对**每一个**样本都输出零。（在卷积层里，一个单元指的是一个通道。）
#
# 这样的单元情况不妙。它只输出零，它自己的权重得到的梯度也就是零，所以除非前面的层变了，它很难再活过来。
#
# 第二个病人是 `dying_relus`。我们数一数，在整个训练里，它有多少单元从来没有为正；旁边再检查一个健康的，好做比较。
#
# 一个单元一个单元地看很费事，只数激活里的零行不行？这要看多少个零才算正常。**先猜一猜**：如果每个单元都有为正的时候，激活里零会占多少？只凭这个比例，你看得出有多少单元从来没有为正吗？
#
# </div>
# <div lang="en">
#
# It is normal for a ReLU to put out many zeros. What matters is whether one of its units is zero for **every** sample.
# (In a convolution, a unit means a channel.)
#
# Such a unit is in a bad way. It puts out nothing but zeros, so the gradient of its own weights is zero as well. That
# is why it will hardly recover unless the layers before it change.
#
# Our second patient has `dying_relus`. We count how many of its units are never positive in the whole run, and examine
# a healthy patient beside it, to compare.
#
# To look at every unit takes some effort. Would it be enough to count the zeros among the activations? That depends on
# how many zeros are normal. **Guess first**: if every unit is positive at some time, what share of the activations is
# zero? And could you tell from this share how many units are never positive?
#
# </div>


# %%
def relus(patient):
    """Return which units of each ReLU were ever positive, and its shares of zeros, step by step."""
    model, optimizer = patient.build()
    alive, zeros, handles = {}, defaultdict(list), []

    def look(name, module, args, output):
        positive = (output > 0).transpose(0, 1).flatten(1).any(1)  # one truth value per unit
        alive[name] = positive | alive.get(name, False)
        zeros[name].append((output == 0).float().mean().item())

    for name, module in model.named_modules():
        if isinstance(module, nn.ReLU):
            handles.append(module.register_forward_hook(partial(look, name)))
    train(model, optimizer, patient.data)
    for handle in handles:
        handle.remove()
    return alive, zeros


# %%
guess("15.c")

# %%
for patient in (admit(3, HEALTHY), admit(2, "dying_relus")):
    print(patient.fault)
    alive, zeros = relus(patient)
    for name, units in alive.items():
        share = sum(zeros[name]) / len(zeros[name])
        print(f"  {name:20} never positive: {(~units).sum()} of {len(units)}; zeros: {share:.1f}")

# %% [markdown]
# <div lang="zh">
#
# 数零和数死掉的单元不是一回事。在这个健康的网络里，激活有一半左右是零，可是每个单元都有为正的时候。换一个健康的病人，也许会有几个单元从不为正。
#
# 零的比例甚至会把死掉的单元藏起来。假设一半单元死了，另一半总是为正，那么零的比例就是 0.5，看上去很健康。比例到了 1.0 当然可疑，可是你不能等到那时。要分清死的和活的，就得一个单元一个单元地看。
#
# </div>
# <div lang="en">
#
# Counting zeros is not the same as counting dead units. In this healthy network about half of the activations are
# zero, and yet each of its units is positive at some time. In other healthy patients, a few units may never be.
#
# The share of zeros can even hide the dead. Suppose that half of the units are dead and the others are always
# positive. Then the share is 0.5, which looks like health. A share of 1.0 is suspicious, of course, but you cannot
# wait for that. To tell the dead from the living, you have to look at each unit.
#
# </div>

# %% [markdown]
# ## 15.4 第三件：一步走多远 · Third instrument: how far a step goes
#
# <div lang="zh">
#
# 梯度大，参数不一定动得多；梯度小，参数也不一定动得少。两者之间还隔着学习率、动量和优化器自己的缩放。所以我们直接去量参数动了多少。
#
# 怎么量呢？优化器走一步之前和之后，各有一种钩子。我们让两个钩子各留一份权重，前后一减，就知道它动了多少。
#
# 动得多不多，还要看权重本来有多大。所以我们再用移动的范数除以移动之前权重的范数，把结果叫做**更新比例**。
#
# 下面量四个病人的第一个权重。**先猜一猜**：健康的病人一步移动多少，是自身的万分之几、百分之几，还是几成？另外三个病人，哪几个和它不同？
#
# </div>
# <div lang="en">
#
# You might think that a large gradient moves a parameter far and a small one hardly at all. This need not be so,
# because the learning rate, momentum and the scaling of the optimizer come in between. So let us measure the move
# itself.
#
# An optimizer has hooks that run before and after its step. We let each of the two keep a copy of a weight, and the
# difference of the copies is the move.
#
# Whether a move is large depends on how large the weight is. So we divide the norm of the move by the norm of the
# weight before the step, and call the result the **update ratio**.
#
# Below we measure the first weight of four patients. **Guess first**: in one step of the healthy patient, does this
# weight move by some ten-thousandths of its size, by some hundredths, or by some tenths? And which of the other three
# differ from that?
#
# </div>

# %%
guess("15.d")


# %%
def first_ratio(patient):
    """Return the update ratio of the first weight in the first step."""
    model, optimizer = patient.build()
    weight, kept = next(model.parameters()), []
    pre = optimizer.register_step_pre_hook(lambda *_: kept.append(weight.detach().clone()))
    post = optimizer.register_step_post_hook(lambda *_: kept.append(weight.detach().clone()))
    with pre, post:
        train(model, optimizer, patient.data[:1])
    before, after = kept
    return ((after - before).norm() / before.norm()).item()


for fault in (HEALTHY, "rate_too_high", "vanishing", "forgotten_hook"):
    print(f"{fault:16} {first_ratio(admit(2, fault)):.0e}")

# %% [markdown]
# <div lang="zh">
#
# 在这里，健康病人的第一个权重，一步移动的还不到自身大小的千分之一。我们就拿这个数和别的病人比。学习率太高的病人，同一个权重一步就移动了约两成。
#
# 梯度消失的病人正好相反。传到第一个权重的梯度太小，几乎推不动它，所以它差不多停在原处。
#
# 最后一个病人 `forgotten_hook` 的第一个权重也几乎不动，损失却和健康的一样好。请先记住这个病人。
#
# </div>
# <div lang="en">
#
# In the healthy patient, the first weight moves by less than a thousandth of its size in one step here. This is what we
# compare the others with. In the patient whose learning rate is too high, the same weight moves by about two tenths of
# its size.
#
# In the patient with vanishing gradients it is the other way round. So little gradient reaches the first weight that
# hardly anything moves it, and it stays almost where it was.
#
# The first weight of the last patient, `forgotten_hook`, hardly moves either. Yet its loss is as good as that of the
# healthy one. Keep this patient in mind.
#
# </div>

# %% [markdown]
# ### 练习 15.2：更新比例 · Exercise 15.2: Update ratios
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 刚才只量了一个权重的一步。如果每个参数、每一步都这样量，就看得出哪几层没有在学。
#
# 请写上下文管理器 `update_ratios(model, optimizer)`，用法是 `with update_ratios(model, optimizer) as steps:`。在它里面，每次 `optimizer.step()` 给列表 `steps` 加一个字典。用参数的名字去查，得到它的更新比例：和上面一样，是移动的范数除以移动之前的范数，写成 Python 的数。
#
# - `model.named_parameters()` 的名字要全部列出，不在优化器里的也要列：被人漏掉的参数，正是我们要找的。
# - 有的参数移动之前范数是 0，那就没有比例，写 `None`。
# - 两步之间，别的代码可能改过参数。那不是优化器移动的，不要算进去。
# - 后来还可能有参数加进优化器，它们的比例也要对。
# - 结束时取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# So far we have measured one weight in one step. If you measure every parameter in every step, you can see which layers
# do not learn.
#
# Write a context manager `update_ratios(model, optimizer)` that does this, to be used as
# `with update_ratios(model, optimizer) as steps:`. Each `optimizer.step()` adds a dictionary to the list `steps`, and
# there the update ratio of each parameter stands under its name. As before, this is the norm of the move divided by the
# norm of the parameter before the move. It should be a Python number.
#
# - List every name of `model.named_parameters()`, also of parameters that the optimizer does not have. One that was
#   left out by mistake is just what we want to find.
# - If the norm before the move was 0, there is nothing to divide by, so put `None`.
# - Between two steps, other code may change the parameters. The optimizer did not make that move, so do not count it.
# - Parameters may be added to the optimizer later, and their ratios must be right as well.
# - Take the hooks off at the end, even after an exception.
#
# </div>


# %% exercise="15.2"
@contextmanager
def update_ratios(model, optimizer):
    """每次 optimizer.step()，steps 多一个 {参数名: 移动的范数 / 移动之前的范数，或 None}。

    Each optimizer.step() adds {parameter: norm of its move / norm before, or None} to steps.
    """
    ### BEGIN SOLUTION
    steps, before = [], {}

    def begin(optimizer, args, kwargs):
        before.update((name, param.detach().clone()) for name, param in model.named_parameters())

    def end(optimizer, args, kwargs):
        ratios = {}
        for name, param in model.named_parameters():
            size, moved = before[name].norm().item(), (param - before[name]).norm().item()
            ratios[name] = moved / size if size else None
        steps.append(ratios)

    with optimizer.register_step_pre_hook(begin), optimizer.register_step_post_hook(end):
        yield steps
    ### END SOLUTION


# %% check="15.2"
check("15.2", update_ratios)

# %% [markdown]
# ## 15.5 第四件：nan 从哪里来 · Fourth instrument: where a nan comes from
#
# <div lang="zh">
#
# 病人 `bad_sample` 的数据里有一条坏了，从某一步起，损失成了 `nan`。坏的是哪一条呢？
#
# 这可以让前向钩子去查。它看得到哪一层最先输出 `nan` 或 `inf`，也看得到是在哪几个样本里。所以我们就看 `nan` 或 `inf` 第一次出现的那一步，一层一层地数坏了的样本。
#
# **先猜一猜**：假设开头只有一个样本是坏的，再往后几层，还是只有一个吗？
#
# </div>
# <div lang="en">
#
# In the data of the patient `bad_sample`, one piece is broken, and from some step on the loss is `nan`. You would like
# to know which piece it was.
#
# A forward hook can find out, because it sees which layer is the first to put out `nan` or `inf`, and in which samples.
# So we take the step in which that first happens, and count the bad samples layer by layer.
#
# Is there any time to lose? **Guess first**: suppose that only one sample is bad to begin with. Is it still only one
# some layers later?
#
# </div>

# %%
guess("15.e")

# %%
patient = admit(1, "bad_sample")
model, optimizer = patient.build()
bad, handles = [], []


def look(name, module, args, output):
    samples = (~output.isfinite()).flatten(1).any(1)
    if samples.any() and len(bad) < 5:  # the first layers to see any
        kind = type(module).__name__
        bad.append(f"{name:16} {kind:12} {samples.sum()} of {len(samples)} samples")


for name, module in model.named_modules():
    if not list(module.children()):
        handles.append(module.register_forward_hook(partial(look, name)))
losses = train(model, optimizer, patient.data)
for handle in handles:
    handle.remove()
print(*bad, sep="\n")
steps = [step for step, loss in enumerate(losses) if loss != loss]
print(f"loss is nan in {len(steps)} of {len(losses)} steps, from step {steps[0]} on")

# %% [markdown]
# <div lang="zh">
#
# 第一层的输出里，只有一个样本是坏的。可是批归一化要用整批数据来算均值，所以只过一层，整批样本就全坏了。接着，反向传播和优化器把 `nan` 带进权重，从此每一步都是 `nan`。
#
# 所以在这里，一定要看得及时。哪怕只晚一步，甚至只晚一层，从激活里就再也看不出坏的是哪一条数据了。
#
# </div>
# <div lang="en">
#
# After the first layer only one sample is bad. But batch normalisation computes its mean over the whole batch, so one
# layer later all samples are bad. Backward and the optimizer step then carry the `nan` into the weights, and from
# there on every step is `nan` as well.
#
# So you have to look in time here. One step later, or even one layer later, the activations no longer tell which piece
# of data was broken.
#
# </div>

# %% [markdown]
# ### 练习 15.3：nan 的来源 · Exercise 15.3: The source of a nan
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 刚才看到，只晚一层，样本就全坏了，再也分不出是哪一个起的头。所以 `nan` 在哪里冒头，就要在哪里抓住它。
#
# 请写一个抓住它的函数 `nan_source(model, x)`。它运行一次 `model(x)`，返回 `(name, sample)`：哪一层最先输出了坏的数，又是在哪个样本里。
#
# - `name` 是这一层在模型里的完整名字。「最先」按运行的次序算，「坏的数」指 `nan` 或 `inf`，只看没有子模块的层。
# - `sample` 是这一层的输出里第一个坏样本的编号，写成 Python 的整数。输出的第 0 维是样本，后面还有一维或几维。
# - 输出全都有限，就返回 `None`。
# - 只看输出：就算 `x` 本身是坏的，要找的还是输出最先坏的那一层。
# - 参数和模式都要保持原样，只有批归一化存着的统计量可以变。
# - 钩子要取下，出了异常也一样。
#
# </div>
# <div lang="en">
#
# We have just seen that one layer later all samples are bad, and you can no longer find the one that caused it. So
# catch a `nan` where it first appears.
#
# Write `nan_source(model, x)`, which runs `model(x)` once and returns `(name, sample)`. Read this pair as a finding: in
# this layer and in this sample, the first bad number came out.
#
# - `name` is the full name of the layer that is the first, in the order of running, to put out `nan` or `inf`. Only
#   modules without children count.
# - `sample` is the index of the first bad sample in the output of that layer, as a Python integer. Dimension 0 of an
#   output counts the samples, and one or more dimensions follow.
# - If all outputs are finite, there is nothing to report, so return `None`.
# - Look at outputs only. Even if `x` itself is bad, you want the first layer whose output is bad.
# - You only examine, so leave parameters and modes as they are. Only the stored statistics of batch normalisation may
#   change.
# - Take the hooks off, even after an exception.
#
# </div>


# %% exercise="15.3"
def nan_source(model, x):
    """运行一次 model(x)，返回最先输出 nan 或 inf 的 (层, 样本)；没有就返回 None。

    Run model(x) once; return (layer, sample) of the first nan or inf; None if there is none.
    """
    ### BEGIN SOLUTION
    found, handles = [], []

    def look(name, module, args, output):
        bad = ~output.isfinite().flatten(1).all(dim=1)
        if bad.any():
            found.append((name, bad.nonzero()[0].item()))

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


# %% check="15.3"
check("15.3", nan_source)

# %% [markdown]
# ## 15.6 一块仪表盘 · The panel
#
# <div lang="zh">
#
# 四件仪表分开用太麻烦，所以 `TrainingPanel(model, optimizer)` 把它们合成一块仪表盘。你把训练循环写在 `with panel:` 里，模型训练的时候，彩色的条带会跟着变长：每行是一层，每列是一步。结束时，钩子全部取下。
#
# 条带告诉你该看哪里。想知道某一步的数，就用鼠标或方向键指着那一步。
#
# 如果还想看损失，就在循环里加一句 `panel.note(loss)`，仪表盘上便多一条损失曲线。
#
# </div>
# <div lang="en">
#
# Nobody wants to carry four separate instruments to every patient, so `TrainingPanel(model, optimizer)` puts them on
# one panel. Write your training loop inside `with panel:`. While the model trains, coloured strips grow, with a row per
# layer and a column per step. At the end all hooks are off.
#
# The strips show where to look. To see the numbers of a step, point at it with the mouse or the arrow keys.
#
# You may want to see the loss beside the strips. Then call `panel.note(loss)` in the loop, and the panel shows its
# curve as well.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 有时候你还想拿这些数来计算，例如找出整个训练里最大的更新比例。那就用 `panel.rows`，每一步的每一层在里面都有一行。一行先说明它属于哪一步（`step`）、哪一层（`layer`），再给出仪表的读数：
#
# - `mean` 和 `std`，激活的均值和标准差；
# - `gradient`，梯度的范数；
# - `ratio`，这一层的全部参数合在一起的更新比例；
# - `dead`，一个 ReLU 的单元里，这一批从不为正的占几成。
#
# 另外，`panel.source` 记着第一个 `nan` 或 `inf`。
#
# 下面的病人是 `detached_branch`。它的网络里有一段分成左右两支，其中一支断开了。**先猜一猜**：断开的那一支，激活、梯度、更新比例各是什么样子？
#
# </div>
# <div lang="en">
#
# Sometimes you want to compute with the numbers, for example to find the largest update ratio of the whole run. For
# this there is `panel.rows`, which has a row for every layer in every step. A row first says which `step` and which
# `layer` it belongs to, and then gives the readings of the instruments:
#
# - `mean` and `std` of the activations;
# - `gradient`, the norm of the gradient;
# - `ratio`, the update ratio of all parameters of the layer together;
# - `dead`, the share of a ReLU's units that are never positive in this batch.
#
# In addition, `panel.source` holds the first `nan` or `inf`.
#
# Our patient is `detached_branch`. Part of its network consists of a left and a right branch, and one of them is cut
# off. What would give it away on the panel? **Guess first**: how do the activations, gradients and update ratios of
# that branch look?
#
# </div>

# %%
guess("15.f")

# %% picture="panel"
patient = admit(3, "detached_branch")
model, optimizer = patient.build()
panel = TrainingPanel(model, optimizer)
with panel:
    losses = train(model, optimizer, patient.data)
print(f"loss {losses[0]:.1f} at first, {losses[-1]:.1f} at last")
panel

# %% [markdown]
# <div lang="zh">
#
# 断开的是 `right` 那一支。只看一步的前向传播，你发现不了它，因为它的激活和别的层差不多大。
#
# 看了梯度才知道。梯度到不了这一支，所以图上那里是灰色的。没有梯度，参数就不动，更新比例恰好是 0，图上是黑色的。
#
# 损失照样降，因为别的层都在学。
#
# </div>
# <div lang="en">
#
# The branch that is cut off is the one called `right`. You could not have found it by the forward pass of one step,
# because its activations are about as large as those of other layers.
#
# The gradients give it away. None arrive in this branch, so their strip is grey there. Without a gradient the
# parameters do not move, so their update ratios are exactly 0, shown in black.
#
# The loss comes down all the same, because all other layers learn.
#
# </div>

# %% [markdown]
# ## 15.7 查房 · Rounds
#
# <div lang="zh">
#
# 每种故障，四件仪表各会说些什么？我们让所有病人都到仪表盘下走一遍，每人印一行。各列的意思如下：
#
# - `first/last` 看梯度往回走时变小还是变大：第一步里，最前一层的梯度是最后一层的几倍。
# - `ratio` 看第一步让参数动了多远：各层的更新比例里，最大的是多少（15.4 节量的只是第一个权重）。
# - `none` 和 `still` 看整个训练：有几层没有梯度，有几层的参数从来不动。
# - `dead` 看最后一步：每个 ReLU 有几成单元从不为正，印出最大的一个（没有 ReLU 就是 `-`）。
# - `nan` 说的是，第一个 `nan` 或 `inf` 出现在第几步。
#
# **先猜一猜**：哪几种故障在这张表里一眼看得出？哪几个病人，每个数都和健康的差不多？
#
# </div>
# <div lang="en">
#
# What would the four instruments have told us about each of the faults? To find out, we put every patient under the
# panel and print one line for each. The columns mean:
#
# - `first/last` shows whether gradients shrink or grow on their way back. It is the gradient of the first layer divided
#   by that of the last, in the first step.
# - `ratio` shows how far the first step moves the parameters. It is the largest update ratio of any layer (section 15.4
#   took the first weight alone).
# - `none` and `still` look at the whole run: how many layers have no gradient, and how many have parameters that never
#   move.
# - `dead` looks at the last step. For each ReLU we take the share of units that are never positive, and print the
#   largest share (`-` without ReLUs).
# - `nan` is the step in which the first `nan` or `inf` appears.
#
# **Guess first**: which faults show at a glance? And for which patients does every number look much like the healthy
# one's?
#
# </div>


# %%
def examine(fault, seed=2):
    """Train a patient under the panel, and return the panel."""
    patient = admit(seed, fault)
    model, optimizer = patient.build()
    with TrainingPanel(model, optimizer) as panel:
        panel.losses = train(model, optimizer, patient.data)
    return panel


panels = {fault: examine(fault) for fault in (HEALTHY, *FAULTS)}

# %%
guess("15.g")


# %%
def at_start(panel):
    """Return the readings of the first step, in the order of running, of layers with a gradient."""
    return [row for row in panel.rows if row.step == 0 and row.gradient is not None]


def line(panel):
    rows, start = panel.rows, at_start(panel)
    layers = {row.layer for row in rows}
    moved = {row.layer for row in rows if row.ratio is None or row.ratio > 0}
    dead = [row.dead for row in rows if row.step == rows[-1].step and row.dead is not None]
    dead = f"{max(dead):.1f}" if dead else "-"
    return (
        f"{start[0].gradient / start[-1].gradient:9.0e}"
        f"{max(row.ratio or 0 for row in start):8.0e}"
        f"{len(layers - {row.layer for row in rows if row.gradient is not None}):6}"
        f"{len(layers - moved):7}{dead:>7}"
        f"{panel.source.step if panel.source else '-':>5}"
    )


print(f"{'':16}{'first/last':>10}{'ratio':>7}{'none':>6}{'still':>7}{'dead':>7}{'nan':>5}")
for fault, panel in panels.items():
    print(f"{fault:16}{line(panel)}")

# %% [markdown]
# <div lang="zh">
#
# 大多数故障一眼就看得出。`vanishing` 的梯度往回走，越走越小，所以 `first/last` 很小。`exploding` 的梯度越走越大，所以 `first/last` 很大；这样的梯度让更新也大得过头，很快就出了 `nan`。
#
# 学习率太高，更新也会太大。可是 `rate_too_high` 怪不到梯度头上，这在表里看得出来：它的 `first/last` 是正常的。
#
# </div>
# <div lang="en">
#
# Most faults show at a glance. In `vanishing` the gradients become smaller on their way back to the first layer, so
# `first/last` is small. In `exploding` they become larger, and `first/last` is large. Such gradients then make its
# updates too large, and soon there is a `nan`.
#
# A learning rate that is too high makes the updates too large as well. But in `rate_too_high` the gradients are not to
# blame, and you can see that in the table: `first/last` is normal.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 有两个病人各有一层不动，要看梯度才分得开。`frozen_layer` 的那一层收到了梯度，却还是不动。`detached_branch` 的那一层没有梯度，想动也动不了；紧跟着的激活函数也没有梯度。
#
# 还有两个病人，各有一列不对劲。`dying_relus` 有死掉的单元。`bad_sample` 有 `nan`，别的数都正常。
#
# 剩下三个病人。`shuffled_labels` 和 `norm_in_eval` 的数都像健康的。`forgotten_hook` 这次像轻一点的梯度消失；换一个钩子，表里也可能什么都看不出。
#
# 这三种故障各要一件别的仪表，我们在 15.8 节末尾再加。现在先比较容易混淆的几种。
#
# </div>
# <div lang="en">
#
# Two patients have a layer that stands still. How do we tell them apart? By the gradient. In `frozen_layer` a gradient
# reaches this layer, and yet the layer does not move. In `detached_branch` no gradient gets there, so nothing could
# move it. The activation function right behind it gets none either.
#
# For two more, one column stands out. `dying_relus` has units that are dead. `bad_sample` has a `nan`, while all its
# other numbers are normal.
#
# Three patients remain, and here the table is of little help. In `shuffled_labels` and `norm_in_eval`, you find numbers
# like the healthy one's. And `forgotten_hook` would mislead you: this time it looks like mild vanishing, but another
# hook may not show in the table at all.
#
# So for each of these three we need another instrument, which we add at the end of section 15.8. Before that, we
# compare the faults that are easily confused.
#
# </div>

# %% [markdown]
# ## 15.8 容易混淆的 · Look-alikes
#
# <div lang="zh">
#
# `vanishing`、`frozen_layer`、`detached_branch` 三个病人都有学不动的层。怎样分清它们？我们在每个病人身上，找出第一步里更新比例最小的那一层来看。**先猜一猜**：谁的那一层，梯度大小正常？
#
# </div>
# <div lang="en">
#
# The patients `vanishing`, `frozen_layer` and `detached_branch` all have layers that do not learn. To tell them
# apart, we take from each the layer with the smallest update ratio in the first step. **Guess first**: in which of
# them does that layer get a gradient of normal size?
#
# </div>

# %%
guess("15.h")

# %%
for fault in ("vanishing", "frozen_layer", "detached_branch"):
    rows = [row for row in panels[fault].rows if row.step == 0 and row.ratio is not None]
    row = min(rows, key=lambda row: row.ratio)
    gradient = "none" if row.gradient is None else f"{row.gradient:.0e}"
    print(f"{fault:16} {row.layer:16} gradient {gradient:6} update ratio {row.ratio:.0e}")

# %% [markdown]
# <div lang="zh">
#
# 把梯度和移动放在一起看，就能下诊断。如果两样都很小，就是梯度消失。如果梯度正常，这一层却不动，就是冻结：要么它的 `requires_grad` 是 `False`，要么优化器里没有它。如果既没有梯度，也不动，就是断开。
#
# </div>
# <div lang="en">
#
# Read the gradient and the move together, and you have the diagnosis. If both are tiny, the gradient vanishes. If the
# gradient is normal but the layer does not move, the layer is frozen: its `requires_grad` is `False`, or it was left
# out of the optimizer. If there is neither gradient nor move, the layer is detached.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 这里有一个陷阱。假设**第一层**是用 `requires_grad=False` 冻结的，那么到它为止，没有什么需要梯度。autograd 就不给它的输出算梯度，于是它看上去像是断开的。紧跟在它后面、也被冻结的几层，看上去也是这样。遇到这种情况，就去看参数的 `requires_grad`。
#
# 上面印出来的层 `0.0` 也是第一层，却有梯度。它是另一种冻结：没有放进优化器。
#
# 没有梯度也不一定是病。最前面的层要是没有参数，就没有梯度，可它是健康的。
#
# 用的是哪种优化器，也有关系，因为 Adam 会放大很小的梯度。用 Adam 的时候，就算梯度消失，更新比例往往也不小，你得去看梯度本身（第 10 课）。
#
# 下面的代码把这个陷阱演示一遍：第一层先照常运行，再冻结起来运行，打印的是它的输出要不要梯度。
#
# </div>
# <div lang="en">
#
# There is a trap. Suppose that the **first** layer is frozen by `requires_grad=False`. Then nothing up to this layer
# requires a gradient, so autograd computes none for its output, and the layer looks as if it were detached. Further
# layers that are frozen right behind it look the same. In this case, read `requires_grad` of the parameters.
#
# The layer `0.0` printed above is a first layer too, and yet it has a gradient. It was frozen in the other way: it was
# left out of the optimizer.
#
# Nor is every missing gradient a fault. If the network begins with a layer that has no parameters, this layer has no
# gradient, and yet it is healthy.
#
# The optimizer matters as well, because Adam magnifies small gradients. With Adam, even where gradients vanish, the
# update ratios are therefore usually not small. Then you have to look at the gradients themselves (lesson 10).
#
# The cell below shows the trap. It prints whether the output of a first layer requires a gradient, first as usual and
# then with the layer frozen.
#
# </div>

# %%
for requires_grad in (True, False):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net[0].requires_grad_(requires_grad)
    with net[0].register_forward_hook(lambda module, args, output: print(output.requires_grad)):
        net(torch.ones(1, 3))

# %% [markdown]
# <div lang="zh">
#
# `exploding` 和 `rate_too_high` 也容易混淆，因为两个病人的损失都冲了上去。前一个病在网络，后一个病在优化器。**先猜一猜**：要在什么时候看，才分得开？
#
# </div>
# <div lang="en">
#
# `exploding` and `rate_too_high` are easily confused as well, because the losses of both patients shoot up. Yet they
# need different treatment: in the first the fault lies in the network, in the second it lies in the optimizer. **Guess
# first**: when do you have to look to tell them apart?
#
# </div>

# %%
guess("15.i")

# %%
for fault in (HEALTHY, "exploding", "rate_too_high"):
    panel, start = panels[fault], at_start(panels[fault])
    ratio = max(row.ratio or 0 for row in start)
    grows = start[0].gradient / start[-1].gradient
    print(f"{fault:14} loss {panel.losses[0]:6.1f}, after one step {panel.losses[1]:.0e}")
    print(f"{'':14} gradient first/last {grows:.0e}, largest ratio {ratio:.0e}")

# %% [markdown]
# <div lang="zh">
#
# 要分清这两个病人，就在走第一步之前看。那时 `rate_too_high` 的损失和梯度都还正常，和健康的一样，因为把它弄坏的正是第一步。`exploding` 却一开始就病了：它的梯度越靠近输入越大，这个病人的损失也已经大得离谱。
#
# 这两样里，梯度比损失可靠。如果网络里用的是 tanh，就算梯度爆炸，损失也可能看起来正常。
#
# 单看更新比例，分不开这两个病人，因为它在两个病人身上都很大。只有梯度之比正常的时候，更新比例太大才说明是学习率的错。
#
# </div>
# <div lang="en">
#
# You have to look before the first step. At that time `rate_too_high` still has a normal loss and normal gradients,
# just like the healthy patient, because it is the step that ruins it. But `exploding` is ill from the start: its
# gradients grow towards the input, and the loss of this patient is already far too large.
#
# Of these two signs, trust the gradients rather than the loss. In a network with tanh, the loss may look normal even
# though the gradients explode.
#
# What about the update ratio? It is large for both, because a step may become too large either way: through the
# gradients or through the learning rate. So the ratio by itself does not tell the two apart. Only if the quotient of
# the gradients is normal does it point to the learning rate.
#
# </div>
#
# <div lang="zh">
#
# 再来比较 `shuffled_labels` 和健康的病人。这个网络本身没有病，只是标签被打乱了。**先猜一猜**：在第一步里，激活、梯度、更新比例这三样，从哪一样看得出来？
#
# </div>
# <div lang="en">
#
# Next we compare `shuffled_labels` with the healthy patient. Nothing is wrong with this network; only the labels have
# been shuffled. Can you notice that early? **Guess first**: in the first step, which of activations, gradients and
# update ratios shows it?
#
# </div>

# %%
guess("15.j")

# %%
classes = max(labels.max().item() for _, labels in admit(2, HEALTHY).data) + 1
for fault in (HEALTHY, "shuffled_labels"):
    panel, start = panels[fault], at_start(panels[fault])
    late = sum(panel.losses[-5:]) / 5
    ratio = max(row.ratio or 0 for row in start)
    print(f"{fault:16} gradient {start[0].gradient:.2f}, ratio {ratio:.2f}")
    print(f"{'':16} last loss {late:.1f}, guessing would give {math.log(classes):.1f}")

# %% [markdown]
# <div lang="zh">
#
# 在第一步里，三样都看不出来。这时网络还什么都没有学，对的标签也不比打乱的更合它的输出。所以这个病人的梯度和更新比例，也就是上面印出来的，都和健康的几乎一样。激活更不用说：前向传播根本不看标签。
#
# 训练下去，病就露出来了，因为网络什么也学不到。它的损失停在 $\ln C$ 附近，而从 $C$ 个类别里瞎猜，损失就是这么大。不过，别的病也会让网络学不到东西，所以要先排除其他所有的病，才轮到怀疑数据。
#
# 注意，这里的损失是在**没见过**的数据上量的。如果拿同一批数据反复训练，就算标签是打乱的，网络也背得下来。
#
# </div>
# <div lang="en">
#
# In the first step, none of the three shows it. The network has learnt nothing yet, so right labels fit its output no
# better than shuffled ones. Its gradient and its update ratio, printed above, are therefore nearly those of the healthy
# patient. The activations do not depend on the labels at all in this step.
#
# The fault comes out in training, because the network learns nothing. Its loss stays near $\ln C$, which is what
# guessing gives with $C$ classes. But other faults may keep a network from learning, too. So suspect the data only
# after you have excluded everything else.
#
# Note that this loss is measured on **new** data. A network that is trained on one batch again and again can learn even
# shuffled labels by heart.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 最后两种故障 `norm_in_eval` 和 `forgotten_hook` 藏得最深。先看前一种。
#
# 在训练模式下，批归一化先把每个通道的均值变成 0，标准差变成约 1；然后乘以 `weight`，加上 `bias`，这两个开始时是 1 和 0。到了评估模式，它改用存着的统计量，均值和标准差就都可能不对了。
#
# 你也可以直接看 `module.training`，但是只能看归一化层的。别的模块处于评估模式，不一定有病。
#
# 后一种故障，是有人挂了一个钩子，忘了取下来。别人挂在模块和参数上的钩子，`list_hooks`（第 08 课）都列得出来。
#
# **先猜一猜**：模型上有钩子，就是病了吗？
#
# </div>
# <div lang="en">
#
# The last two faults, `norm_in_eval` and `forgotten_hook`, are the hardest to see. Let us begin with the first.
#
# In training mode, batch normalisation brings every channel to mean 0 and standard deviation about 1. Then it
# multiplies by `weight` and adds `bias`, which are 1 and 0 at first. In evaluation mode it uses stored statistics
# instead, and so both mean and standard deviation may be off.
#
# You can also read `module.training`, but read it only of normalisation layers. Other modules may be in evaluation mode
# without harm.
#
# The second fault is a hook that somebody forgot to take off. You can find such hooks by `list_hooks` (lesson 08),
# which lists the hooks that others put on modules and parameters.
#
# **Guess first**: if there is a hook on a model, is something wrong with the model?
#
# </div>

# %%
guess("15.k")

# %%
for fault in (HEALTHY, "norm_in_eval"):
    model = admit(1, fault).build()[0]
    for row in examine(fault, seed=1).rows:
        if row.step == 0 and isinstance(model.get_submodule(row.layer), nn.BatchNorm2d):
            print(f"{fault:13} {row.layer:14} mean {abs(row.mean):.1f}, std {row.std:.1f}")
for fault in (HEALTHY, "forgotten_hook"):
    hooks = [list_hooks(admit(seed, fault).build()[0]) for seed in range(40)]
    names = sorted({hook.function for some in hooks for hook in some})
    print(f"{fault:15} {sum(map(bool, hooks))} of {len(hooks)} patients have a hook: {names}")

# %% [markdown]
# <div lang="zh">
#
# 两层归一化里，只有 `embed.level` 在评估模式。
#
# 有钩子不一定有病。健康的病人身上也有钩子，它们只看不改。这里凭名字就认得出坏的，别处的名字却帮不上忙，所以要看钩子**做了什么**。
#
# 有一个办法：造两个模型，把其中一个的钩子全部取下，再用第一批数据比较两个的损失和梯度。`build()` 给出的初始值每次都一样，所以钩子只要改动了这批数据的损失或梯度，就一定查得出来。
#
# </div>
# <div lang="en">
#
# Of the two normalisation layers, only `embed.level` has numbers that are off, so this is the one in evaluation mode.
#
# A hook by itself is no fault. Healthy patients carry hooks as well, which look and change nothing. Here the names give
# the bad ones away. Elsewhere names will not help, so find out what a hook **does**.
#
# For this, make two models by `build()`, which always gives the same initial values, and take all hooks off one of
# them. Then compare the loss and the gradients of both for the first batch. If a hook changes any of these, the test
# always finds it.
#
# </div>
#
# <div lang="zh">
#
# 还有一个问题：多大才算太大？这要看是什么网络，所以要自己量。收治一打健康的病人，看每个数在什么范围。每种故障也这样量，门槛就放在两个范围之间。
#
# 门槛要和同一种数比。下面最大的更新比例取自所有的步，15.7 节的 `ratio` 却只看第一步。
#
# </div>
# <div lang="en">
#
# One question is still open: how large is too large? That depends on the network, so measure it. Admit a dozen healthy
# patients, and see the range of each number. Do the same with each fault, and put your threshold between the two
# ranges.
#
# A threshold fits only the kind of number it came from. The largest ratio below is over all steps, while the `ratio` of
# section 15.7 is of the first step.
#
# </div>

# %%
healthy = [examine(HEALTHY, seed) for seed in range(12)]
numbers = {
    "gradient first/last": [at_start(p)[0].gradient / at_start(p)[-1].gradient for p in healthy],
    "largest ratio": [max(row.ratio for row in p.rows if row.ratio is not None) for p in healthy],
    "last loss": [sum(p.losses[-5:]) / 5 for p in healthy],
}
for name, values in numbers.items():
    print(f"healthy, {name:20} {min(values):.2f} to {max(values):.2f}")

# %% [markdown]
# ### 练习 15.4：给训练下诊断 · Exercise 15.4: Diagnose a run
#
# ●●●●● · 40 min
#
# <div lang="zh">
#
# 现在你是医生，病人身上没有标签。请把这一课学到的合起来，写一个会自己下诊断的函数。`diagnose_run(build, data)` 返回 `HEALTHY` 或 `FAULTS` 里的一个名字。
#
# - `build()` 给出 `(model, optimizer)`，初始值每次都一样。
# - `data` 是 `(x, y)` 的列表，每步一批，损失是 `F.cross_entropy(model(x), y)`。
# - 你可以训练，训练几次也行；`train`、`TrainingPanel` 和前面三个练习都可以用。
# - 不要改 `data`，自己挂上的钩子都要取下。
# - 随机数发生器的状态要和原来一样，所以也不要用 `torch.manual_seed`。
#
# 评分用的是你的函数没有见过的病人。要得满分：
#
# - 九成的回答要对，每种故障至少要认出一次。
# - 三个健康的病人，至多冤枉一个。
# - 同一个病人再来一遍，回答要一样。
#
# 评一次通常要十秒左右。如果每个病人你都训练几次，就更久。
#
# </div>
# <div lang="en">
#
# Now you are the doctor, and your patients have no labels. Put together what you have learnt in this lesson, and write
# a function `diagnose_run(build, data)` that makes the diagnosis by itself. It returns `HEALTHY` or one of the names in
# `FAULTS`.
#
# - `build()` gives `(model, optimizer)`, always with the same initial values.
# - `data` is a list of `(x, y)`, a batch per step, and the loss is `F.cross_entropy(model(x), y)`.
# - You may train, even several times, and use `train`, `TrainingPanel` and the three exercises above.
# - Do not change `data`, and take your own hooks off.
# - Leave the random number generator in the state in which you found it, so no `torch.manual_seed` either.
#
# Your function is scored on patients that it has never seen. What it takes for full marks:
#
# - Nine in ten answers must be right, and each fault must be recognised at least once.
# - At most one of three healthy patients may be called ill.
# - If the same patient is shown again, the answer must be the same.
#
# Scoring usually takes some ten seconds, and longer if you train each patient several times.
#
# </div>


# %% exercise="15.4"
def diagnose_run(build, data):
    """训练 build() 给出的模型，返回诊断：HEALTHY 或 FAULTS 里的一个名字。

    Train the model that build() gives; return the diagnosis: HEALTHY or one of the names in FAULTS.
    """
    ### BEGIN SOLUTION

    def first_pass(model):
        inputs, labels = data[0]
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    # A hook that only looks may stay: one is at fault if loss or gradients differ without it.
    (hooked, _), (bare, _) = build(), build()
    for hook in list_hooks(bare):
        hook.remove()
    if not all(map(torch.allclose, first_pass(hooked), first_pass(bare))):
        return "forgotten_hook"

    model, optimizer = build()
    layers = [m for m in model.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    relus = [m for m in model.modules() if isinstance(m, nn.ReLU)]
    grads, moves, alive, old = defaultdict(list), defaultdict(list), defaultdict(list), {}
    broken, unlike = [], [0.0]

    def watch_layer(module, args, output):
        if not output.isfinite().all():
            broken.append(module)
        if output.requires_grad:
            output.register_hook(lambda grad: grads[module].append(grad.norm().item()))

    def watch_norm(module, args, output):
        by_batch = F.batch_norm(args[0], None, None, module.weight, module.bias, training=True)
        unlike.append((output - by_batch).abs().mean().item())

    def watch_relu(module, args, output):
        alive[module].append((output > 0).transpose(0, 1).flatten(1).any(1))

    def before_step(*args):
        old.update((m, m.weight.detach().clone()) for m in layers)

    def after_step(*args):
        for m in layers:
            moves[m].append(((m.weight.detach() - old[m]).norm() / old[m].norm()).item())

    pairs = [(layers, watch_layer), (norms, watch_norm), (relus, watch_relu)]
    handles = [m.register_forward_hook(hook) for modules, hook in pairs for m in modules]
    handles += [
        optimizer.register_step_pre_hook(before_step),
        optimizer.register_step_post_hook(after_step),
    ]
    try:
        losses = train(model, optimizer, data)
    finally:
        for handle in handles:
            handle.remove()

    start = [grads[m][0] for m in layers if grads[m]]  # before any update, so no rate is to blame
    moved = zip(*(moves[m][:8] for m in layers), strict=True)
    early = max(sorted(step)[len(step) // 2] for step in moved)
    dead = [1 - torch.stack(a[len(a) // 2 :]).any(0).float().mean().item() for a in alive.values()]
    guessing = math.log(len(torch.cat([labels for _, labels in data]).unique()))
    if max(unlike) > 0.05:  # a normalisation does not use this batch's mean and spread
        return "norm_in_eval"
    if start[0] > 15 * min(start):
        return "exploding"
    if early > 0.2:  # a healthy step moves most layers by a few hundredths at most
        return "rate_too_high"
    if broken:  # though gradients and updates were of ordinary size
        return "bad_sample"
    if any(m.weight.requires_grad and m.weight.grad is None for m in layers):
        return "detached_branch"
    if any(max(moves[m]) == 0 and (m.weight.grad is None or m.weight.grad.any()) for m in layers):
        return "frozen_layer"  # does not move, though it is not for want of a gradient
    if start[0] < start[-1] / 50:
        return "vanishing"
    if max(dead, default=0) > 0.6:
        return "dying_relus"
    return "shuffled_labels" if sum(losses[-8:]) / 8 > 0.85 * guessing else HEALTHY
    ### END SOLUTION


# %% check="15.4"
check("15.4", diagnose_run)

# %% [markdown]
# ## 15.9 没有标签的病人 · The patient without a label
#
# <div lang="zh">
#
# 收治最后一个病人的时候，没有写 `fault`。它的损失很好，看起来可以回家了。请先看仪表盘，写下你的诊断：病在哪一层，是什么病？然后再打开答案。你的 `diagnose_run` 又怎么说？
#
# </div>
# <div lang="en">
#
# Your last patient comes in without a `fault`. Its loss is fine, and it looks ready to go home. Read the panel first
# and write down your diagnosis: which layer is at fault, and what is wrong with it? Then open the answer. And what does
# your `diagnose_run` say?
#
# </div>

# %% tags=["E30"] picture="unknown"
patient = admit(1059)
model, optimizer = patient.build()
panel = TrainingPanel(model, optimizer)
with panel:
    losses = train(model, optimizer, patient.data)
print(f"loss {losses[0]:.1f} at first, {sum(losses[-5:]) / 5:.1f} at last")
for row in at_start(panel):
    ratio = "" if row.ratio is None else f"   ratio {row.ratio:.0e}"
    print(f"{row.layer:18} gradient {row.gradient:.0e}   std {row.std:.1f}{ratio}")
panel

# %% [markdown]
# <div lang="zh">
#
# <details><summary>答案</summary>
#
# 梯度不是一层一层小下去的。在 `hidden2.mix` 前面，它一下子小了约一百倍，再往前的梯度也都跟着小。所以这不是梯度消失，而是有什么东西在那里动了手。激活一切正常，所以病不在前向传播里。
#
# 前面各层的更新比例，也比 `hidden2` 的小约一百倍。这些层几乎没有学；损失照样降，靠的是后面的层。
#
# 下面的 `list_hooks` 找到了原因：有一个反向钩子把梯度缩小了。取下它，前面的梯度就回来了，损失也明显低了。
#
# 这个病人是用 SGD 训练的。如果换成 Adam，小梯度又会被放大（第 10 课），那时能让钩子露馅的，也许就只有梯度了。
#
# </details>
#
# </div>
# <div lang="en">
#
# <details><summary>Answer</summary>
#
# The gradient does not shrink layer by layer. Just before `hidden2.mix` it falls about a hundredfold, and all
# gradients further in front are smaller by as much. So this is not vanishing: something interferes at that place. The
# activations are normal, so the fault is not in the forward pass.
#
# The update ratios of the layers in front are about a hundred times smaller than those of `hidden2`, too. These layers
# hardly learn, and the loss comes down thanks to the later ones.
#
# Below, `list_hooks` finds the cause: a backward hook that shrinks gradients. Take it off, and the gradients in front
# come back, and the loss is clearly lower.
#
# This patient is trained by SGD. Adam would magnify the small gradients again (lesson 10), and then only the
# gradients might give the hook away.
#
# </details>
#
# </div>

# %% tags=["E30"]
model, optimizer = patient.build()
for hook in list_hooks(model):
    print(f"{hook.path}: {hook.kind}, {hook.function}")
    hook.remove()
with TrainingPanel(model, optimizer) as healed:
    losses_healed = train(model, optimizer, patient.data)
first = at_start(panel)[0], at_start(healed)[0]
ill, well = (f"{row.gradient:.0e}" for row in first)
print(f"gradient at {first[0].layer}: {ill} with the hook, {well} without")
ill, well = (sum(run[-5:]) / 5 for run in (losses, losses_healed))
print(f"loss at last: {ill:.1f} with the hook, {well:.1f} without")
print("the label was:", patient.fault)

# %% [markdown]
# ## 15.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 损失好，不等于每一层都在学；损失坏，也看不出是什么病。
# 2. 梯度消失，是梯度一层一层小下去。断开的一支没有梯度。冻结的层有梯度，却一动不动。不过，一层如果是用 `requires_grad=False` 冻结的，前面又没有要学的层，它就没有梯度，因为 autograd 在那里用不着梯度。
# 3. 死掉的 ReLU 要一个单元一个单元地找：对任何样本都不为正的才算。
# 4. 更新比例量的是参数到底动了多少，所以学习率太高，第一步就看得出。
# 5. `nan` 要在它出现的那一步、那一层抓住，因为训练时批归一化会把它传给整批。
#
# </div>
# <div lang="en">
#
# 1. A good loss does not mean that every layer learns, and a bad loss does not tell what is wrong.
# 2. Vanishing gradients shrink layer by layer. A detached branch has no gradient. A frozen layer has a gradient and
#    still does not move. But a layer frozen by `requires_grad=False` has no gradient if nothing before it is trained,
#    because autograd does not need one there.
# 3. To find dead ReLUs, look at each unit: it is dead only if it is positive for no sample at all.
# 4. Update ratios measure how far the parameters really move, so too high a learning rate shows in the very first step.
# 5. Catch a `nan` in the step and the layer in which it appears, because in training batch normalisation spreads it
#    over the whole batch.
#
# </div>

# %% [markdown]
# ## 15.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 一层的参数一动不动，要看什么才知道是冻结还是断开？</summary>看损失对它输出的梯度：冻结的层有梯度，断开的没有。如果它前面没有要学的层，就看参数的 <code>requires_grad</code>。</details>
# <details><summary>2. 为什么 <code>exploding</code> 和 <code>rate_too_high</code> 要在第一步就分开？</summary><code>exploding</code> 的梯度，一步还没走就已经越靠近输入越大；<code>rate_too_high</code> 那时还正常，走了一步才坏。</details>
# <details><summary>3. 所有仪表都正常，损失却停在 ln <i>C</i>，先怀疑什么？</summary>先怀疑标签。标签打乱了，开头的仪表全都正常，只是网络学不到东西。</details>
# </div>
# <div lang="en">
# <details><summary>1. The parameters of a layer do not move at all. What tells you whether it is frozen or detached?</summary>Look at the gradient with respect to its output: a frozen layer has one, and a detached layer has none. If nothing before it is trained, look at <code>requires_grad</code> of its parameters instead.</details>
# <details><summary>2. Why must <code>exploding</code> and <code>rate_too_high</code> be told apart in the first step?</summary>In <code>exploding</code> the gradients grow towards the input before any step is made. In <code>rate_too_high</code> they are still normal then, and it is the step that ruins the network.</details>
# <details><summary>3. All instruments read normal, but the loss stays at ln <i>C</i>. What do you suspect first?</summary>Suspect the labels first. If they are shuffled, all instruments read normal at the start, but the network learns nothing.</details>
# </div>

# %% [markdown]
# ## 15.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# Andrej Karpathy 在 makemore 课的第三讲里也看更新比例，他的经验是千分之一上下。我们在 15.7 节量到的数要大得多，主要是因为只取了比例最大的那一层。在那里的健康病人身上，那是最后一层，别的层在第一步里就和他说的差不多。另外，他说的是训练稳定以后，我们看的是第一步。
#
# 这样的数，有现成的工具替你存。`wandb.watch` 存梯度的直方图，你要的话，也存参数的；TensorBoard 则是你写什么，它就存什么。
#
# `nan` 也可能是在反向传播里产生的。要找它，可以用 PyTorch 的 `torch.autograd.detect_anomaly`。
#
# 很大的模型也会得这一课里的病。OPT-175B 的训练日志是公开的，里面满是损失的尖峰和训练的发散。下面是你的进度。
#
# </div>
# <div lang="en">
#
# Andrej Karpathy watches update ratios in the third of his makemore lectures, and his rule of thumb is about a
# thousandth. Why does our table of section 15.7 have far larger numbers? Above all because it shows only the layer with
# the largest ratio. In the healthy patient there, that is the last layer, and the others are close to his rule even in
# the first step. Besides, his rule is meant for training that has settled.
#
# There are tools that store such numbers for you. `wandb.watch` keeps histograms of gradients, and of parameters if you
# ask for them, while TensorBoard keeps whatever you write to it.
#
# A `nan` may also arise in backward. To find that, PyTorch has `torch.autograd.detect_anomaly`.
#
# Very large models have the illnesses of this lesson as well. The logbook of OPT-175B has been published, and it is
# full of spikes of the loss and of runs that diverge. Below you see your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
