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
# 第 10 课给五次训练看了病。这里是急诊室：`admit(seed, fault)` 收治一个病人，也就是一个小网络、它的优化器和几十批数据：`patient.build()` 给出 `(model, optimizer)`，每次都是同样的初始值，`patient.data` 是一批批数据。`fault` 是十种故障之一，或者健康；不写，就由 `seed` 来抽，谁也不告诉你。最后一节的病人就没有标签。
#
# 先看有标签的，每种一个。`train` 就是人人都写的训练循环，返回每一步的损失；每一步都是没有见过的数据。
#
# **先猜一猜**：下面只有第一步的损失，和最后 5 步的平均。哪几个病人，光看损失就知道病了？
#
# </div>
# <div lang="en">
#
# In lesson 10 you examined five runs. This is the emergency room: `admit(seed, fault)` takes in a patient, which is a small network with its optimizer and a few dozen batches of data: `patient.build()` gives `(model, optimizer)`, always with the same initial values, and `patient.data` the batches. `fault` is one of ten faults, or healthy; leave it out, and `seed` draws one and nobody tells you. The patient of the last section has no label.
#
# We begin with labels, one patient of each kind. `train` is the loop that everybody writes; it returns the loss of each step, and the data of every step are new.
#
# **Guess first**: below are only the loss of the first step and the mean of the last 5. For which patients do they tell that something is wrong?
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
# `frozen_layer`、`detached_branch`、`norm_in_eval`、`forgotten_hook` 和健康的一样降了下去，光看损失，你会放他们回家。另外几个不如它，可损失说不出是什么病。要往里面看，就得装仪表，仪表就用钩子来做。下面一件一件地装，每件先用在最需要它的病人身上。
#
# </div>
# <div lang="en">
#
# `frozen_layer`, `detached_branch`, `norm_in_eval` and `forgotten_hook` come down as the healthy one does, and by the loss alone you would send them home. The others do less well, but their loss does not tell what they have. To look inside we need instruments, and we make them of hooks. We build them one by one, and try each on the patient who needs it most.
#
# </div>
#
# ## 15.2 第一件：每一层的梯度 · First instrument: gradients of every layer
#
# <div lang="zh">
#
# 这个病人是 `vanishing`，梯度消失。前向钩子在每个线性层的输出上挂一个张量钩子，反向传播走到那里，就记下梯度的范数。
#
# **先猜一猜**：从最后一层往前，梯度是在某一层突然没有的，还是一层一层小下去的？
#
# </div>
# <div lang="en">
#
# This patient has `vanishing` gradients. A forward hook sets a tensor hook on the output of every linear layer, which notes the norm of the gradient in the backward pass.
#
# **Guess first**: from the last layer to the first, is the gradient suddenly gone at some layer, or does it shrink layer by layer?
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
# 一层一层小下去，每层小三到五倍（只印一位数字，看不大准）。
#
# 损失对这一层**输出**的梯度，比参数的 `.grad` 好用：没有参数的层也有。
#
# </div>
# <div lang="en">
#
# It shrinks layer by layer, each time by a factor of three to five (one printed digit blurs it).
#
# The gradient with respect to the **output** of a layer serves better than the `.grad` of parameters: layers without parameters have it too.
#
# </div>
#
# ### 练习 15.1：仪表盘 · Exercise 15.1: An instrument panel
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 写上下文管理器 `instruments(model)`：`with instruments(model) as rows:` 里，每调用一次 `model`，列表 `rows` 就多一个字典：层的名字 → `[activation, gradient]`，两个范数，都是 Python 的数；按运行的次序，只记没有子模块、而且运行了的层（一次调用里，每层至多运行一次）。激活的范数当场就有；梯度是损失对这一层输出的，到达之前（或者永远不到）是 `None`。有的调用在 `no_grad` 里；有的 ReLU 是就地的；几次调用可能共用一次反向传播。结束时取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write the context manager `instruments(model)`. Inside `with instruments(model) as rows:` each call of `model` adds a dictionary to the list `rows`. Its keys are the names of the layers without children that ran, in the order of running (none runs twice in a call); each value is a list `[activation, gradient]` of two norms, as Python numbers. That of the activation is there at once. The gradient is that of the loss with respect to the layer's output, and `None` until it arrives, if ever. Some calls are under `no_grad`; some ReLUs are in-place; one backward pass may cover several calls. At the end take the hooks off, even after an exception.
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
# ReLU 之后有零是常事。要紧的是，一个单元（卷积层的一个通道）是不是对**任何**样本都是零：那样它输出的全是零，自己的权重得到的梯度也是零；除非前面的层变了，它很难再活过来。病人是 `dying_relus`，旁边是一个健康的。
#
# **先猜一猜**：整个训练里，病人有多少单元一次也没有为正？这和「激活里零的比例」是一回事吗？
#
# </div>
# <div lang="en">
#
# Zeros behind a ReLU are nothing unusual. What matters is whether a unit (a channel of a convolution) is zero for **every** sample: then it puts out only zeros, the gradient of its own weights is zero, and unless the layers before it change it will hardly come back. The patient has `dying_relus`; beside it is a healthy one.
#
# **Guess first**: in the whole run, how many of the patient's units are not positive even once? Is that the same as the share of zeros among the activations?
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
# 不是一回事：健康的层也有很多零，一半左右，可这里每个单元总有为正的时候（别的健康病人身上，也许有几个从不为正）。比例到了 1.0 也让人起疑；可要是一半单元死了，另一半总是为正，它又是 0.5。一个单元一个单元地数，死的和活的才分得开。
#
# </div>
# <div lang="en">
#
# It is not the same: a healthy layer too has many zeros, about half, but here each unit is positive at some time (elsewhere a few may never be). A share of 1.0 is suspicious, yet with half the units dead and the others always positive it is 0.5 again. Counted by units, the dead stand apart from the living.
#
# </div>
#
# ## 15.4 第三件：一步走多远 · Third instrument: how far a step goes
#
# <div lang="zh">
#
# 梯度多大是一回事，参数动了多少是另一回事，中间隔着学习率、动量和优化器自己的缩放。所以直接量：走一步之前和之后，各有一种优化器的钩子。**更新比例**是移动的范数除以移动之前的范数。下面量每个病人的第一个权重。
#
# **先猜一猜**：健康的一步移动多少，万分之几、百分之几，还是几成？三个病人里谁和他不同？
#
# </div>
# <div lang="en">
#
# How large a gradient is and how far the parameters move are two things, with the learning rate, momentum and the scaling of the optimizer between them. So measure it: an optimizer has hooks before and after its step. The **update ratio** is the norm of the move divided by the norm before it. We take it for the first weight of each patient.
#
# **Guess first**: by how much does a healthy one move in a step, some ten-thousandths, some hundredths, or some tenths? Which of the other three differ?
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
# 健康的第一个权重动了不到千分之一；学习率太高，一步就是几成；梯度消失的几乎不动。最后一个也几乎不动，它的损失却和健康的一样好：记住它。
#
# </div>
# <div lang="en">
#
# The first weight of a healthy one moves by less than a thousandth here; with too high a learning rate it is some tenths in a single step; with vanishing gradients it hardly moves. The last one hardly moves either, although its loss is as good as that of the healthy one: keep it in mind.
#
# </div>
#
# ### 练习 15.2：更新比例 · Exercise 15.2: Update ratios
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写上下文管理器 `update_ratios(model, optimizer)`：`with update_ratios(model, optimizer) as steps:` 里，每次 `optimizer.step()` 给列表 `steps` 加一个字典。键是 `model.named_parameters()` 的全部名字（不在优化器里的也列）；值是移动的范数除以移动之前的范数，是 Python 的数；移动之前范数是 0 的，写 `None`。两步之间，别人可能改过参数；后来还可能有参数加进优化器。结束时取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write the context manager `update_ratios(model, optimizer)`. Inside `with update_ratios(model, optimizer) as steps:` each `optimizer.step()` adds to the list `steps` a dictionary with every name of `model.named_parameters()`, also those that the optimizer does not have. The value is the norm of the move divided by the norm before it, a Python number; `None` where the norm before was 0. Between two steps somebody may change parameters, and some may be given to the optimizer later. At the end take the hooks off, after an exception as well.
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
# `bad_sample`：有一条数据坏了，损失从某一步起成了 `nan`。前向钩子看得到哪一层最先输出了 `nan` 或 `inf`，还看得到是哪几个样本。下面在它第一次出现的那一步，逐层数坏了的样本。
#
# **先猜一猜**：坏的样本只有一个，再往后几层还是一个吗？
#
# </div>
# <div lang="en">
#
# `bad_sample`: one piece of data is broken, and from some step on the loss is `nan`. A forward hook sees which layer puts out `nan` or `inf` first, and in which samples. In the step in which it first appears, we count the bad samples layer by layer.
#
# **Guess first**: a single sample is bad. Is it still a single one some layers later?
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
# 第一层还只有一个样本是坏的；批归一化用整批算均值，一层之后就全坏了。反向传播和优化器再把 `nan` 带进权重，从此每一步都是 `nan`。所以晚一步，甚至晚一层去看，从激活里就看不出是哪一条数据了。
#
# </div>
# <div lang="en">
#
# In the first layer one sample is bad; batch normalisation takes its mean over the batch, and one layer later all are. Then backward and the step carry the `nan` into the weights, and every later step is `nan`. A step or even a layer later, activations no longer tell which piece of data it was.
#
# </div>
#
# ### 练习 15.3：nan 的来源 · Exercise 15.3: The source of a nan
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写 `nan_source(model, x)`：运行一次 `model(x)`，返回 `(name, sample)`：最先（按运行的次序）输出 `nan` 或 `inf` 的层，只看没有子模块的，名字是它在模型里的完整名字；以及它的输出里第一个坏的样本，是 Python 的整数。第 0 维是样本，后面还有一维或几维。全都有限就返回 `None`。不管 `x` 本身干不干净，问的都是输出。参数和模式不变（批归一化存着的统计量可以变）；取下钩子，出了异常也一样。
#
# </div>
# <div lang="en">
#
# Write `nan_source(model, x)`: run `model(x)` once and return `(name, sample)`: the first layer, in the order of running, that puts out `nan` or `inf`, among modules without children and by its full name in the model; and the first bad sample in its output, a Python integer. Dimension 0 is the sample, and one or more dimensions follow. Return `None` if all is finite. Whether or not `x` itself is clean, only outputs count. Parameters and modes stay as they are (stored statistics of batch normalisation may change); take hooks off, after an exception as well.
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
# 四件仪表合成一块：`TrainingPanel(model, optimizer)`。训练循环放进 `with panel:`，色带一边训练一边长出来，每行一层，每列一步；结束时钩子都取下。指着哪一步（鼠标或方向键），就说出那一步的数；循环里写一句 `panel.note(loss)`，最上面就多一条损失曲线。`panel.rows` 是全部的数，每层每步一行：`step`、`layer`，激活的 `mean`、`std`，`dead`（一个 ReLU 的单元，这一批里从不为正的占几成），`gradient`，`ratio`（一层的全部参数合在一起算）。`panel.source` 是第一个 `nan` 或 `inf`。
#
# 病人是 `detached_branch`，网络里有一段分成左右两支。**先猜一猜**：断开的那一支，激活、梯度、更新比例各是什么样子？
#
# </div>
# <div lang="en">
#
# `TrainingPanel(model, optimizer)` puts the four instruments on one panel. The training loop goes inside `with panel:`, and strips grow as it trains, a row per layer and a column per step; at the end all hooks are off. Point at a step, with the mouse or the arrow keys, and its numbers are said; `panel.note(loss)` in the loop adds the curve of the loss. `panel.rows` has a row per layer and step: `step`, `layer`, `mean` and `std` of activations, `dead` (the share of a ReLU's units that are never positive in this batch), `gradient`, and `ratio`, of all parameters of a layer together. `panel.source` is the first `nan` or `inf`.
#
# The patient has a `detached_branch`: part of its network consists of a left and a right branch. **Guess first**: how do activations, gradients and update ratios of the branch that is cut off look?
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
# `right` 那一支的激活和别的层差不多大，单看一步的前向传播，什么也看不出来。梯度是灰的：没有到达；更新比例是黑的：恰好是 0。损失照样降，因为别的层都在学。
#
# </div>
# <div lang="en">
#
# Activations in the `right` branch are about as large as elsewhere, so a single forward pass shows nothing. Its gradients are grey, since none arrive, its update ratios black, which is exactly 0. The loss comes down all the same, because all other layers learn.
#
# </div>
#
# ## 15.7 查房 · Rounds
#
# <div lang="zh">
#
# 现在每种故障过一遍仪表，每个病人压缩成一行。第一步里：`first/last`，最前和最后一层的梯度之比；`ratio`，各层里最大的更新比例（15.4 节量的只是第一个权重）。整个训练里：几层没有梯度（`none`），几层的参数从来不动（`still`）。最后一步里：`dead`，哪个 ReLU 从不为正的单元最多，占几成（没有 ReLU 就是 `-`）。`nan`：第一个 `nan` 或 `inf` 在第几步。
#
# **先猜一猜**：哪几种故障在这张表里一眼看得出？哪几种，每个数都和健康的差不多？
#
# </div>
# <div lang="en">
#
# Now every fault goes through the instruments, one line each. First step: `first/last`, the gradient of the first layer divided by that of the last; `ratio`, the largest update ratio of any layer (15.4 took the first weight alone). Whole run: how many layers have no gradient (`none`) or parameters that never move (`still`). Last step: `dead`, the largest share of units of a ReLU that are not positive (`-` without ReLUs). `nan`: the step of the first `nan` or `inf`.
#
# **Guess first**: which faults show at a glance? For which is every number much like that of the healthy one?
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
# 一眼看得出的：`vanishing` 的梯度之比很小，`exploding` 的很大（它的更新比例和 `nan` 是后果）；`rate_too_high` 的梯度之比正常，更新比例却很大；`frozen_layer` 有一层不动；`detached_branch` 也有一层，而且它和后面的激活函数都没有梯度；`dying_relus` 的单元；`bad_sample` 别的都正常，只有 `nan`。
#
# 这两个病人，`shuffled_labels` 和 `norm_in_eval`，数都像健康的；`forgotten_hook` 这次像轻一点的梯度消失，换一个钩子，也可能什么都不像。它们各要一件别的仪表，见 15.8 节末尾。先看容易混淆的。
#
# </div>
# <div lang="en">
#
# At a glance: the small quotient of `vanishing` and the large one of `exploding`, whose update ratio and `nan` follow from it; the large update ratio of `rate_too_high`, while its quotient is normal; a layer that stands still in `frozen_layer`, and one in `detached_branch` too, where it and the activation function behind it have no gradient; the units of `dying_relus`; and `bad_sample`, unusual only in its `nan`.
#
# The numbers of these two, `shuffled_labels` and `norm_in_eval`, are like the healthy one's. This time `forgotten_hook` looks like mild vanishing; with another hook it may look like nothing at all. Each needs another instrument, added at the end of section 15.8. First, the look-alikes.
#
# </div>
#
# ## 15.8 容易混淆的 · Look-alikes
#
# <div lang="zh">
#
# 三个病人都有学不动的层：`vanishing`、`frozen_layer`、`detached_branch`。下面取每个病人第一步里更新比例最小的那一层。**先猜一猜**：谁的那一层，梯度大小正常？
#
# </div>
# <div lang="en">
#
# Three patients have layers that do not learn: `vanishing`, `frozen_layer` and `detached_branch`. For each we take the layer with the smallest update ratio in the first step. **Guess first**: in which of them is its gradient of normal size?
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
# 梯度很小，动得也很小：消失。梯度正常，一动不动：冻结，`requires_grad` 是 `False`，或者优化器里没有它。没有梯度，也一动不动：断开。
#
# 有一个陷阱：**第一层**若是用 `requires_grad=False` 冻结的，它和它前面都没有要学的东西，autograd 就不给它的输出算梯度，样子和断开一样。这时看参数的 `requires_grad`。（上面的 `0.0` 也是第一层，却有梯度：它是没有放进优化器的那种。）排在最前、没有参数的层也没有梯度，那是健康的。还有 Adam：它会把很小的梯度放大，消失的梯度只在梯度里看得出，更新比例正常（第 10 课）。
#
# </div>
# <div lang="en">
#
# A tiny gradient and a tiny move: vanishing. A normal gradient and no move at all: frozen, with `requires_grad` `False` or left out of the optimizer. No gradient and no move: detached.
#
# There is a trap: if the **first** layer is frozen by `requires_grad=False`, nothing up to it requires a gradient, autograd computes none for its output, and it looks detached; then read `requires_grad` of its parameters. (The `0.0` above is a first layer too, but has a gradient: it was left out of the optimizer.) A layer at the very front without parameters has no gradient either, and is healthy. And Adam magnifies small gradients: vanishing ones then show in the gradients only, and update ratios are normal (lesson 10).
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
# 下一对：`exploding` 和 `rate_too_high`，这两个病人的损失都冲上去。前者病在网络，后者病在优化器。**先猜一猜**：要在什么时候看，才分得开？
#
# </div>
# <div lang="en">
#
# The next pair: `exploding` and `rate_too_high`, two patients whose losses shoot up. One has its illness in the network, the other in the optimizer. **Guess first**: at what time must one look to tell them apart?
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
# 在走第一步之前。这个 `exploding` 那时损失就大得离谱（激活函数是 tanh 的，损失可能看不出来），梯度越靠近输入越大；`rate_too_high` 那时一切正常，和健康的同一副样子，一步走完才坏。更新比例两个都大，单看它分不开：梯度之比正常而更新比例很大的，才是学习率的错。
#
# </div>
# <div lang="en">
#
# Before the first step. By then the loss of this `exploding` is far too large already (with tanh it may look normal), and its gradients grow towards the input; those of `rate_too_high` are as normal as the healthy one's, and it is the step that ruins it. The update ratio is large for both and does not tell them apart by itself: it is the learning rate only if the quotient of gradients is normal.
#
# </div>
#
# <div lang="zh">
#
# 再来一对：`shuffled_labels` 和健康的。标签被打乱了，网络本身没有病。**先猜一猜**：激活、梯度、更新比例里，哪个会说出来？
#
# </div>
# <div lang="en">
#
# Another pair: `shuffled_labels` and the healthy one. The labels have been shuffled, and nothing is wrong with the network. **Guess first**: which of activations, gradients and update ratios gives it away?
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
# 一个也不会：开头的数和健康的几乎一样（激活没有打印，上面的猜题比过），只是什么也没有学到，损失停在瞎猜的 $\ln C$ 附近，$C$ 是类别数。排除了其他所有的病，才轮到数据。损失是在**没见过**的数据上量的；同一批数据反复训练，打乱的标签也背得下来。
#
# </div>
# <div lang="en">
#
# None does: at first they are nearly the healthy one's (activations, not printed, were compared by the guess), but nothing is learnt, and the loss stays near the $\ln C$ of guessing, with $C$ classes. Suspect the data only when all else is excluded. This loss is measured on **new** data; trained on one batch again and again, a network can learn shuffled labels by heart.
#
# </div>
#
# <div lang="zh">
#
# 最后两种藏得最深。批归一化在训练模式下，把每个通道的均值变成 0、标准差变成约 1，再乘 `weight`、加 `bias`（开始时是 1 和 0）；在评估模式下用的是存着的统计量，就可能不对。直接看 `module.training` 也行，但只看归一化层：别的模块在评估模式，不一定有病。别人挂在模块和参数上的钩子，`list_hooks`（第 08 课）都列得出来。
#
# **先猜一猜**：模型上有钩子，就是病了吗？
#
# </div>
# <div lang="en">
#
# The last two hide best. In training mode, batch normalisation gives every channel mean 0 and standard deviation about 1, then multiplies by `weight` and adds `bias` (1 and 0 at first); in evaluation mode it uses stored statistics, and both may be off. `module.training` tells too, but ask normalisation layers only: others may be in evaluation mode without harm. Others' hooks on modules and parameters are listed by `list_hooks` (lesson 08).
#
# **Guess first**: is a model ill because there is a hook on it?
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
# 两层归一化里，只有 `embed.level` 在评估模式。钩子呢？有钩子不一定有病：健康的病人身上也有，只看不改。这里凭名字就认得出，别处的代码可不会这样起名，要看它**做了什么**。只要钩子在第一批数据上就起作用，有一个办法总能查出来：`build()` 每次给出同样的初始值，所以造两个一样的，把其中一个的钩子全部取下，用这批数据，比损失和梯度。
#
# </div>
# <div lang="en">
#
# Of the two normalisations only `embed.level` is in evaluation mode. And hooks? Not every patient with one is ill: healthy ones carry hooks as well, which look and change nothing. Here the names give them away, but elsewhere names will not: see what a hook **does**. There is a test for any hook that acts on the first batch already: `build()` always gives the same initial values, so make two models, take all hooks off one of them, and compare loss and gradients for that batch.
#
# </div>
#
# <div lang="zh">
#
# 最后还缺一样：多大才算大？这要看是什么网络，所以自己量：收治一打健康的病人，看每个数的范围。下面最大的更新比例取自所有的步，不像 15.7 节的 `ratio` 只看第一步；门槛要和同一种数比。每种故障也可以这样量，门槛就放在两者之间。
#
# </div>
# <div lang="en">
#
# One thing is still missing: how large is large? That depends on the network, so measure: admit a dozen healthy patients, and see the range of each. The largest ratio below is over all steps, unlike the `ratio` of section 15.7, of the first step alone; compare like with like. Do the same with each fault, and put your threshold between the two.
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
# 写 `diagnose_run(build, data)`：`build()` 给出 `(model, optimizer)`，每次都是同样的初始值；`data` 是 `(x, y)` 的列表，每步一批，损失是 `F.cross_entropy(model(x), y)`。返回 `HEALTHY` 或 `FAULTS` 里的一个名字。可以训练，可以训练几次，可以用 `train`、`TrainingPanel`、前面三个练习。用没有见过的病人来评分：九成对，每种故障至少认出一次，三个健康的至多冤枉一个，同一个病人再问一遍回答一样，就是满分。评一次要一分钟左右，每个病人训练几次就更久。不要改 `data`，不要留下钩子；随机数发生器的状态要和原来一样，所以也不要 `torch.manual_seed`。
#
# </div>
# <div lang="en">
#
# Write `diagnose_run(build, data)`: `build()` gives `(model, optimizer)`, always with the same initial values; `data` is a list of `(x, y)`, a batch per step, and the loss is `F.cross_entropy(model(x), y)`. Return `HEALTHY` or one of the names in `FAULTS`. You may train, also several times, and use `train`, `TrainingPanel` and the three exercises above. It is scored on patients that it has never seen: full marks take nine in ten right, each fault recognised at least once, at most one of three healthy ones called ill, and the same answer when a patient is shown again. Scoring takes about a minute, and longer if you train each patient several times. Do not change `data`, leave no hooks on, and leave the state of the random number generator as it was, so no `torch.manual_seed` either.
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
    if early > 0.2:  # a healthy step moves a layer by a few hundredths of its length
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
# 最后一个病人没有写 `fault`。损失很好，看起来可以回家。先看仪表，写下你的诊断：哪一层，什么病？再打开答案。你的 `diagnose_run` 怎么说？
#
# </div>
# <div lang="en">
#
# The last patient comes without a `fault`. Its loss is fine, and it looks ready to go home. Read the panel first and write down your diagnosis: which layer, and what illness? Then open the answer. What does your `diagnose_run` say?
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
# 梯度不是一层一层小下去的，而是在 `hidden2.mix` 前面突然小了约一百倍，再往前的全都跟着小：不是消失，是有人在中间动了手。激活一切正常，所以不在前向传播里。前面各层的更新比例，比 `hidden2` 的也小一百多倍，它们几乎没有学；损失照样降，靠的是后面的层。下面 `list_hooks` 找到了它：一个反向钩子，把梯度缩小了。取下它，前面的梯度就回来了，损失也低得多。这个病人用的是 SGD；换成 Adam，小梯度会被放大回来（第 10 课），露馅的就可能只有梯度了。
#
# </details>
#
# </div>
# <div lang="en">
#
# <details><summary>Answer</summary>
#
# The gradient does not shrink layer by layer: just before `hidden2.mix` it falls about a hundredfold, and all before are smaller by as much. That is not vanishing; somebody interferes in between. Activations are normal, so the fault is not in the forward pass. The update ratios of the layers before are over a hundred times smaller than those of `hidden2`, too: they hardly learn, and the loss comes down thanks to the later layers. Below, `list_hooks` finds it: a backward hook that shrinks gradients. Take it off, and the gradients before that layer are back and the loss is far lower. This patient is trained by SGD; Adam would magnify the small gradients again (lesson 10), and then only the gradients might give it away.
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
# 1. 损失好，不等于每一层都在学；损失坏，也说不出是什么病。
# 2. 梯度消失是一层一层小下去；断开是没有梯度；冻结是有梯度而不动（`requires_grad=False` 的第一层除外）。
# 3. 死掉的 ReLU 要一个单元一个单元地数：对任何样本都不为正的才算。
# 4. 更新比例量的是结果，学习率太高，第一步就看得出。
# 5. `nan` 要在它出现的那一步、那一层抓住：批归一化会把它传给整批。
#
# </div>
# <div lang="en">
#
# 1. A good loss does not mean that every layer learns, and a bad one does not tell what is wrong.
# 2. Vanishing gradients shrink layer by layer; a detached branch has none; a frozen layer has one and does not move, except for a first layer with `requires_grad=False`.
# 3. Count dead ReLUs by units: only those that are positive for no sample at all.
# 4. Update ratios measure the outcome: too high a learning rate shows in the very first step.
# 5. Catch a `nan` in the step and layer where it appears: batch normalisation spreads it over the batch.
#
# </div>

# %% [markdown]
# ## 15.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 一层的参数一动不动，要看什么才知道是冻结还是断开？</summary>看损失对它输出的梯度：冻结的层有梯度，断开的没有；如果是第一层，就看参数的 <code>requires_grad</code>。</details>
# <details><summary>2. 为什么 <code>exploding</code> 和 <code>rate_too_high</code> 要在第一步就分开？</summary>前者一步还没走，梯度就已经越靠近输入越大；后者要走了一步才坏。</details>
# <details><summary>3. 所有仪表都正常，损失却停在 $\ln C$，先怀疑什么？</summary>先怀疑标签：标签打乱了，开头的仪表全都正常，只是学不到东西。</details>
# </div>
# <div lang="en">
# <details><summary>1. The parameters of a layer do not move at all. What tells you whether it is frozen or detached?</summary>The gradient with respect to its output tells: a frozen layer has one, a detached one has none. For a first layer, look at <code>requires_grad</code>.</details>
# <details><summary>2. Why must <code>exploding</code> and <code>rate_too_high</code> be told apart in the first step?</summary>The gradients of the first grow towards the input before any step is made; the second is ruined by a step.</details>
# <details><summary>3. All instruments read normal, but the loss stays at $\ln C$. What do you suspect first?</summary>Suspect the labels first: with shuffled ones the instruments read normal at the start, only nothing is learnt.</details>
# </div>

# %% [markdown]
# ## 15.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# 更新比例是 Andrej Karpathy 的 makemore 课里反复看的一个数，他的经验是千分之一上下（那是训练稳定以后；15.7 节的表列的是第一步里最大的一层，要大得多）。`wandb.watch` 记梯度的直方图，也可以记参数的，TensorBoard 记你写进去的；PyTorch 的 `torch.autograd.detect_anomaly` 找反向传播里的 `nan`。大模型的训练日志（例如 OPT-175B 的）里，写满了这一课的病：损失尖峰，训练发散。下面是你的进度。
#
# </div>
# <div lang="en">
#
# Update ratios are a number that Andrej Karpathy watches all through his makemore lectures; about a thousandth is his rule of thumb (for training that has settled; the table of section 15.7 takes the largest layer of the first step, which is far more). `wandb.watch` keeps histograms of gradients, and of parameters if asked, TensorBoard those that you write, and PyTorch's `torch.autograd.detect_anomaly` finds a `nan` in backward. The published logbooks of large runs, such as that of OPT-175B, are full of this lesson's illnesses: spikes of the loss and runs that diverge. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
