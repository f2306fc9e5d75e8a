# %% tags=["setup"]
import math
import warnings
from functools import partial

import matplotlib.pyplot as plt
import torch

from hookedu import LanguageToggle, check, hint, plot_graph, progress, solution

# We look at .grad where PyTorch would rather not have us look; it warns about that, and rightly so.
warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
LanguageToggle()

# %% [markdown]
# ## 2.1 一个消失的数 · A number that vanished
#
# <div lang="zh">
#
# 下面分两步计算 $z=\frac{1}{4}\sum_i x_i^2$，中间结果叫 `y`。反向传播时，梯度要先经过 `y`，才到得了 `x`。
#
# **先猜一猜**：跑完之后，`x.grad`、`y.grad`、`z.grad` 里各是什么（1.2 节）？没有留下的那个梯度，还看得到吗？
#
# </div>
# <div lang="en">
#
# The next cell computes $z=\frac{1}{4}\sum_i x_i^2$ in two steps; the result in between is called `y`. In backward, the
# gradient has to pass `y` before it can reach `x`.
#
# **Guess first**: when it is over, what is in `x.grad`, `y.grad` and `z.grad` (section 1.2)?
# Can a gradient that was not kept be seen at all?
#
# </div>

# %% tags=["E1"]
x = torch.full((4,), 2.0, requires_grad=True)
y = x**2
z = y.mean()
z.backward()

print("x.grad:", x.grad)
print("y.grad:", y.grad)
print("z.grad:", z.grad)

# %% [markdown]
# <div lang="zh">
#
# `y.grad` 是 `None`，可是梯度明明经过了 `y`：只有**叶子**（这里是 `x`）才留得住（1.2 节）。想看，就得趁它经过的那一刻看。
#
# </div>
# <div lang="en">
#
# `y.grad` is `None`, and yet the gradient did pass `y`: only a **leaf** (here `x`) keeps it (section 1.2). To see it, you
# have to look as it passes.
#
# </div>
#
# ## 2.2 在路上挂一个钩子 · Attach a hook on the path
#
# <div lang="zh">
#
# **钩子**是你写的函数，用 `register_hook` 挂在张量上。反向传播一算出这个张量的梯度，PyTorch 就调用它，把梯度交给它。
#
# </div>
# <div lang="en">
#
# A **hook** is a function of yours, attached to a tensor with `register_hook`. As soon as backward has that tensor's
# gradient, PyTorch calls the hook and hands it over.
#
# </div>

# %% tags=["E1"]
x = torch.full((4,), 2.0, requires_grad=True)
y = x**2
seen = []


def keep(grad):
    seen.append(grad)


y.register_hook(keep)  # the function itself, without parentheses
z = y.mean()
z.backward()

print("the hook saw:", seen[0])
print("y.grad:", y.grad)

# %% [markdown]
# <div lang="zh">
#
# 梯度找到了：$\partial z/\partial y_i=\frac{1}{4}$，也就是 `0.25`。`y.grad` 依旧是 `None`，是钩子替我们把它记在了 `seen` 里。
#
# </div>
# <div lang="en">
#
# There it is: $\partial z/\partial y_i=\frac{1}{4}$, that is `0.25`. `y.grad` is still `None`; it was the hook that kept
# the gradient for us, in `seen`.
#
# </div>
#
# ## 2.3 谁留下，谁路过 · Who keeps, who passes on
#
# <div lang="zh">
#
# 再看 1.4 节那张有岔路的图：`w` 同时通向 `a` 和 `b`。这回不用 `retain_grad`。**先猜**：`a` 上的钩子看到多少？`b` 的梯度呢？
#
# </div>
# <div lang="en">
#
# Now the graph of section 1.4, with its fork: `w` leads to both `a` and `b`. This time without `retain_grad`. **Guess**: what does
# a hook on `a` see, and what becomes of the gradient of `b`?
#
# </div>

# %% tags=["E13"]
w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
b = w + 1
y = a * b

seen = {}
a.register_hook(lambda grad: seen.update(a=grad))  # update() returns None: the gradient stays as it is
y.backward()

print("w.grad:", w.grad, " x.grad:", x.grad)
print("a.grad:", a.grad, " b.grad:", b.grad, " y.grad:", y.grad)
print("the hook on a saw:", seen["a"])
ax = plot_graph(y, {"w": w, "x": x, "a": a, "b": b, "y": y}, gradients=seen)

# %% [markdown]
# <div lang="zh">
#
# 图里，双线框是叶子，它们的 `.grad` 留下来了；`a` 的梯度多亏钩子才看得到；`b` 的就此消失。
#
# </div>
# <div lang="en">
#
# In the picture, double frames are leaves: their `.grad` stayed. We know the gradient of `a` thanks to the hook, and
# that of `b` is gone for good.
#
# </div>
#
# ## 2.4 什么时候触发 · When it fires
#
# <div lang="zh">
#
# 那么钩子到底何时运行？下面先挂钩子，再做两次反向传播。**先猜**：`hook` 那一行会出现几次，每次的数一样吗？
#
# </div>
# <div lang="en">
#
# So when exactly does a hook run? Below, one is attached and backward runs twice. **Guess**: how often will the line
# `hook` appear, and with the same number each time?
#
# </div>

# %%
x = torch.tensor(3.0, requires_grad=True)
y = 2 * x
z = y**2

print("registering")
y.register_hook(lambda grad: print("   hook:", grad))
print("backward")
z.backward(retain_graph=True)
print("backward again")
z.backward(retain_graph=True)
print("x.grad:", x.grad)

# %% [markdown]
# <div lang="zh">
#
# 钩子在挂上时不运行，每次反向传播才运行一次；它看到的是**这一次**的 `12`，而 `x.grad` 把几次的都加在一起。
#
# </div>
# <div lang="en">
#
# A hook does not run when you attach it, but once in each backward pass; it sees the `12` of **this** pass, while
# `x.grad` adds the passes up.
#
# </div>
#
# ### 练习 02.1：看住一个梯度 · Exercise 02.1: Watch one gradient
#
# ●● · 6 min
#
# <div lang="zh">
#
# 轮到你了：写 `watch(y, seen)`，把 `y` 的每个梯度都添加到列表 `seen` 的末尾，梯度本身不要动；再把 `register_hook` 给你的
# **句柄**返回（以后靠它取下钩子，见 2.5）。卡住了就运行 `hint("02.1")`。
#
# </div>
# <div lang="en">
#
# Your turn: write `watch(y, seen)`. Every gradient of `y` goes at the end of the list `seen`, the gradient itself stays
# as it is, and you return the **handle** that `register_hook` gives you (it takes the hook off later, see 2.5). Stuck? Run
# `hint("02.1")`.
#
# </div>


# %% exercise="02.1"
def watch(y, seen):
    """把 y 的每个梯度放进列表 seen，返回句柄。

    Put every gradient of y into the list seen; return the handle.
    """

    ### BEGIN SOLUTION
    def keep(grad):
        seen.append(grad)

    return y.register_hook(keep)
    ### END SOLUTION


# %% check="02.1"
check("02.1", watch)

# %% [markdown]
# ## 2.5 取下来 · Taking it off
#
# <div lang="zh">
#
# 句柄是用来取下钩子的：`handle.remove()`。下面的钩子让梯度翻倍（返回一个张量就会替换梯度，第 03 课细讲），
# 所以它还在不在，看 `x` 的梯度就知道（这里用 `torch.autograd.grad` 直接取得，不写 `.grad`）。
#
# 句柄也能放进 `with`：离开那个块，钩子就取下了。**先猜**最后两行。
#
# </div>
# <div lang="en">
#
# The handle is there to take the hook off: `handle.remove()`. The hook below doubles the gradient (what a hook
# returns replaces the gradient, see lesson 03), so the gradient of `x` tells whether it is still on
# (`torch.autograd.grad` returns it directly and writes no `.grad`).
#
# A handle also works in a `with` statement: once the block is left, the hook is off. **Guess** the last two lines.
#
# </div>

# %% tags=["E22", "F6"]
x = torch.tensor(3.0, requires_grad=True)
y = 2 * x


def gradient_of_x():
    return torch.autograd.grad(y**2, x, retain_graph=True)[0]


print("no hook yet:        ", gradient_of_x())
handle = y.register_hook(lambda grad: 2 * grad)
print("with the hook:      ", gradient_of_x())
handle.remove()
print("after remove():     ", gradient_of_x())
handle.remove()  # a second time: nothing happens

with y.register_hook(lambda grad: 2 * grad):
    print("inside the with:    ", gradient_of_x())
print("after the with:     ", gradient_of_x())

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F6)
#
# <div lang="zh">
#
# 丢了句柄，就没有正规的办法取下钩子了。`remove()` 多调用一次没有坏处；少调用一次，钩子就一直挂着。
#
# </div>
# <div lang="en">
#
# Lose the handle and there is no proper way to take the hook off. One `remove()` too many does no harm; after one too
# few the hook stays for good.
#
# </div>
# </div>
#
# ## 2.6 哪种反向传播会触发它 · Which kind of backward fires it
#
# <div lang="zh">
#
# 刚才算梯度用的是 `torch.autograd.grad`，钩子照样触发。叶子上还能挂另一种钩子：post-accumulate 钩子，
# 用 `register_post_accumulate_grad_hook` 挂上。下面数一数各触发几次。
#
# </div>
# <div lang="en">
#
# That was `torch.autograd.grad`, and the hook fired all the same. A leaf can carry another kind as well: a post-accumulate
# hook, attached with `register_post_accumulate_grad_hook`. Let us count both.
#
# </div>

# %% tags=["F3"]
w = torch.tensor(3.0, requires_grad=True)
fired = {"tensor hook": 0, "post-accumulate hook": 0}
received = []


def on_gradient(grad):
    fired["tensor hook"] += 1


def on_accumulated(param):
    fired["post-accumulate hook"] += 1
    received.append(param)


w.register_hook(on_gradient)
w.register_post_accumulate_grad_hook(on_accumulated)

torch.autograd.grad(w**2, w)
print("after autograd.grad:", fired)
(w**2).backward()
print("after backward:     ", fired)
print("post-accumulate received w itself:", received[0] is w, "with .grad", received[0].grad)

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F3)
#
# <div lang="zh">
#
# `register_post_accumulate_grad_hook` 等的是「`.grad` 已写好」：`torch.autograd.grad` 不写 `.grad`，它便不触发；
# 它收到的是张量 `w` 本身（在模型里就是那个权重），不是梯度。
#
# </div>
# <div lang="en">
#
# `register_post_accumulate_grad_hook` waits until `.grad` is written. `torch.autograd.grad` writes no `.grad`, so it
# stays silent; and what it receives is the tensor `w` itself (in a model: the weight), not the gradient.
#
# </div>
# </div>
#
# ## 2.7 太晚了，以及根本不行 · Too late, and not at all
#
# <div lang="zh">
#
# 反向传播过后再挂钩子，还来得及吗？没有 `requires_grad` 的张量呢？
#
# </div>
# <div lang="en">
#
# Is there still time for a hook after backward? And what about a tensor without `requires_grad`?
#
# </div>

# %% tags=["F5"]
x = torch.ones(2, requires_grad=True)
y = 3 * x
y.sum().backward(retain_graph=True)

late = []
y.register_hook(late.append)
y.retain_grad()
print("a hook after backward saw:", late)
print("retain_grad after backward:", y.grad)
y.sum().backward()
print("after the next backward:", late, y.grad)

data = torch.ones(2)
try:
    data.register_hook(late.append)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F5)
#
# <div lang="zh">
#
# 钩子只看得到挂上**以后**的反向传播，和 `retain_grad` 一样（1.7 节）。不需要梯度的张量根本不接受钩子。
#
# </div>
# <div lang="en">
#
# A hook sees only what passes **after** it was attached, just like `retain_grad` (section 1.7). A tensor that needs no
# gradient takes no hook at all.
#
# </div>
# </div>
#
# ## 2.8 许多钩子，各有各的名字 · Many hooks, each with its name
#
# <div lang="zh">
#
# 一个循环给两个张量各挂一个钩子，每个钩子应当记下自己那个张量的名字。**先猜**会打印出什么？
#
# </div>
# <div lang="en">
#
# One loop attaches a hook to each of two tensors; each hook should note the name of its tensor. **Guess** what is
# printed.
#
# </div>

# %% tags=["F9"]
x = torch.tensor([1.0, 2.0], requires_grad=True)
tensors = {"double": 2 * x, "triple": 3 * x}

seen = []
for name, tensor in tensors.items():
    tensor.register_hook(lambda grad: seen.append(name))

(tensors["double"] + tensors["triple"]).sum().backward()
print(seen)

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F9)
#
# <div lang="zh">
#
# 两个都报 `triple`！这叫**延迟绑定**：钩子运行时才去查 `name`，那时循环早已走完，只剩最后一个名字。
# 改法有三种，都在循环的当下把名字固定住：默认参数、工厂函数（闭包）、`functools.partial`。
#
# </div>
# <div lang="en">
#
# Both say `triple`! This is **late binding**: the hook looks `name` up when it runs, and by then the loop is over and only the
# last name is left. There are three cures, all of which fix the name inside the loop: a default argument, a factory
# function (a closure), `functools.partial`.
#
# </div>
# </div>


# %% tags=["F9"]
def named(name):  # a factory: each call has a `name` of its own
    def note(grad):
        seen.append(name)

    return note


def note_with(name, grad):
    seen.append(name)


for way in ("default", "factory", "partial"):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    tensors, seen = {"double": 2 * x, "triple": 3 * x}, []
    for name, tensor in tensors.items():
        hooks = {
            "default": lambda grad, name=name: seen.append(name),
            "factory": named(name),
            "partial": partial(note_with, name),
        }
        tensor.register_hook(hooks[way])
    (tensors["double"] + tensors["triple"]).sum().backward()
    print(f"{way}:", sorted(seen))  # sorted: backward need not follow the loop's order

# %% [markdown]
# ### 练习 02.2：按名字看住许多张量 · Exercise 02.2: Watch many tensors by name
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `watch_many(tensors, seen)`：`tensors` 是「名字 → 张量」的字典。每次反向传播之后，`seen[name]` 应当是那个张量**这一次**的梯度。
# 跳过 `requires_grad` 为 `False` 的张量；返回一个列表，装着所有句柄。
#
# </div>
# <div lang="en">
#
# Write `watch_many(tensors, seen)`, where `tensors` is a dictionary from names to tensors. After each backward, `seen[name]`
# should be that tensor's gradient in **this** pass. Skip tensors whose `requires_grad` is `False`; return a list of all
# handles.
#
# </div>


# %% exercise="02.2"
def watch_many(tensors, seen):
    """让 seen[name] 成为 tensors[name] 的梯度，返回句柄的列表。

    Make seen[name] the gradient of tensors[name]; return the list of handles.
    """
    ### BEGIN SOLUTION
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:

            def keep(grad, name=name):
                seen[name] = grad

            handles.append(tensor.register_hook(keep))
    return handles
    ### END SOLUTION


# %% check="02.2"
check("02.2", watch_many)

# %% [markdown]
# ## 2.9 实例：梯度在哪里消失 · Worked example: where gradients vanish
#
# <div lang="zh">
#
# 8 层全连接，每层后面是 sigmoid。在每层的输出上挂一个钩子，只记下梯度的大小（范数）。
# 一次反向传播就能看出：离损失越远，梯度越小。sigmoid 的导数不超过 $\frac{1}{4}$，这里的初始权重又小，所以每过一层大约只剩七分之一。
#
# </div>
# <div lang="en">
#
# 8 linear layers, a sigmoid after each. A hook on every layer's output notes only how large its gradient is (the norm).
# One backward pass shows it: the further from the loss, the smaller the gradient. The slope of a sigmoid is never more than
# $\frac{1}{4}$, and the initial weights are small as well: each layer lets about a seventh through.
#
# </div>

# %%
torch.manual_seed(0)
norms = {}


def note_norm(name, grad):
    norms[name] = grad.norm().item()


h = torch.randn(16, 32)
for layer in range(1, 9):
    h = torch.sigmoid(torch.nn.Linear(32, 32)(h))
    h.register_hook(partial(note_norm, f"h{layer}"))
h.sum().backward()

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.bar(list(reversed(norms)), list(reversed(norms.values())))
ax.set(yscale="log", ylabel="gradient norm", xlabel="layer output, from input to loss")
print("order of firing:", *norms)
print("h8 / h1 is about 10 to the power", round(math.log10(norms["h8"] / norms["h1"])))

# %% [markdown]
# ### 练习 02.3：只看一次 · Exercise 02.3: Observe once
#
# ●●● · 6 min
#
# <div lang="zh">
#
# 有时只需要看第一次反向传播。写 `observe_once(y, seen)`：把 `y` 的第一个梯度添加到 `seen` 末尾（原有的留着），然后钩子**自己取下自己**；
# 别人挂在 `y` 上的钩子不受影响。仍然返回句柄，好让调用者提前取消。
#
# </div>
# <div lang="en">
#
# Sometimes the first backward is all you want to see. Write `observe_once(y, seen)`: it adds the first gradient of `y`
# at the end of `seen` (what is there stays), and then the hook **takes itself off**. Hooks that others attached to `y` stay. Return the handle as before,
# so that a caller can cancel early.
#
# </div>


# %% exercise="02.3"
def observe_once(y, seen):
    """把 y 的第一个梯度放进 seen，然后取下自己；返回句柄。

    Put the first gradient of y into seen, then take the hook off; return the handle.
    """

    ### BEGIN SOLUTION
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle
    ### END SOLUTION


# %% check="02.3"
check("02.3", observe_once)

# %% [markdown]
# ### 练习 02.4：用完不留痕迹 · Exercise 02.4: Leave nothing behind
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 写一个上下文管理器：`with watching(tensors) as seen:`。进入块时才挂上钩子；在块里面，`seen` 像 02.2 那样收集梯度；
# 离开时取下**自己挂的**所有钩子（别人的留着），**哪怕块里抛出了异常**，而且异常要照常传出去。每次 `with` 都给出新的字典。
#
# 可以用 `contextlib.contextmanager`（`yield` 之前是进入，之后是离开），也可以写一个带 `__enter__` 和 `__exit__` 的类（那就删掉
# `@contextmanager` 那一行）。
#
# </div>
# <div lang="en">
#
# Write a context manager: `with watching(tensors) as seen:`. It attaches hooks on entering the block. Inside, `seen`
# collects gradients as in 02.2; on the way out all hooks **of its own** come off (others' stay), **even if the block raised an exception**, and that exception
# must still come through. Each `with` yields a new dictionary.
#
# You may use `contextlib.contextmanager` (before the `yield`: entering; after it: leaving), or a class with `__enter__` and
# `__exit__` (then delete the line `@contextmanager`).
#
# </div>

# %% exercise="02.4"
from contextlib import contextmanager


@contextmanager
def watching(tensors):
    """在 with 块内看住这些张量：给出新的字典 seen，离开时取下自己的钩子。

    Watch these tensors inside a with block: yields a new dict seen, takes its own hooks off at the end.
    """
    ### BEGIN SOLUTION
    seen, handles = {}, []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
    ### END SOLUTION


# %% check="02.4"
check("02.4", watching)

# %% [markdown]
# ## 2.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 钩子是在梯度经过张量时被调用的函数。
# 2. 只看不改，就什么也不返回。
# 3. 只要梯度经过它的张量，`backward()` 和 `torch.autograd.grad` 都会触发它；只对挂上以后的有效。
# 4. 循环里要当场固定名字。
# 5. 留住句柄；用 `with` 或 `finally` 取下钩子。
#
# </div>
# <div lang="en">
#
# 1. A hook is a function called while the gradient passes a tensor.
# 2. To watch and not to change, return nothing.
# 3. Whenever the gradient reaches its tensor it fires, in `backward()` and in `torch.autograd.grad`, but only after it was attached.
# 4. In a loop, fix the name on the spot.
# 5. Keep the handle; take hooks off with `with` or `finally`.
#
# </div>

# %% [markdown]
# ## 2.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 反向传播之后 <code>y.grad</code> 是 <code>None</code>，怎样拿到它？</summary>反向传播之前用 <code>y.register_hook</code> 挂上钩子。</details>
# <details><summary>2. 循环里的钩子为什么都报最后一个名字？</summary>延迟绑定：运行时才查 <code>name</code>。</details>
# <details><summary>3. 哪种钩子在 <code>torch.autograd.grad</code> 下不触发？</summary>post-accumulate 钩子。</details>
# </div>
# <div lang="en">
# <details><summary>1. After backward <code>y.grad</code> is <code>None</code>. How do you get at it?</summary>Attach a hook with <code>y.register_hook</code> before backward.</details>
# <details><summary>2. Why do hooks from a loop all report the last name?</summary>Late binding: <code>name</code> is looked up when they run.</details>
# <details><summary>3. Which hook stays silent under <code>torch.autograd.grad</code>?</summary>The post-accumulate hook.</details>
# </div>

# %% [markdown]
# ## 2.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# Grad-CAM 的许多实现都在前向传播里给特征图挂张量钩子，拿到它的梯度（可以搜索 `pytorch-grad-cam` 的 `ActivationsAndGradients`）。
# 第 11 课我们自己来做。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# Many implementations of Grad-CAM attach a tensor hook to a feature map during forward to get at its gradient (search for
# `ActivationsAndGradients` in `pytorch-grad-cam`). In lesson 11 we build our own. Below is your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
