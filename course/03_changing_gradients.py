# %% tags=["setup"]
import matplotlib.pyplot as plt
import numpy as np
import torch

from hookedu import (
    GradientFlow,
    LanguageToggle,
    check,
    guess,
    hint,
    plot_graph,
    plot_sharing,
    progress,
    solution,
)

LanguageToggle()

# %% [markdown]
# ## 3.1 只改一个？ · Change only one?
#
# <div lang="zh">
#
# 到目前为止，我们的钩子多半只是看。这一课要动手改梯度；梯度一改，反向传播后面算出来的也会跟着变。所以先要弄清楚：一个钩子改到的究竟是谁的梯度？
#
# 设 `c = a + b`，那么 `a` 和 `b` 的梯度都是 1。我们只在 `a` 上挂一个钩子，用 `mul_` 把收到的梯度乘以 2。方法名末尾的下划线表示**就地**操作：`mul_` 不新建张量，而是直接改写原来那块内存里的数。
#
# 反向传播之后，`a.grad` 会是 2。**先猜** `b`。
#
# </div>
# <div lang="en">
#
# So far most of our hooks have only watched. Now they change gradients, and with them whatever backward computes
# next. So let us first find out whose gradient a hook really changes.
#
# Take `c = a + b`: the gradients of `a` and `b` are both 1. We put one hook on `a`, and none on `b`. It multiplies the
# gradient it receives by 2, using `mul_`. The underscore at the end means **in place**: instead of making a new
# tensor, `mul_` overwrites the numbers of the old one.
#
# After backward, `a.grad` will be 2. **Guess first** what becomes of `b`.
#
# </div>

# %%
guess("03.a")

# %% tags=["F1"]
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)


def double_in_place(grad):
    grad.mul_(2)


a.register_hook(double_in_place)
c = a + b
c.backward()
print("a.grad:", a.grad)
print("b.grad:", b.grad)

# %% [markdown]
# <div lang="zh">
#
# `a.grad` 是 2，这正是我们要的。可是 `b.grad` 也成了 2，而 `b` 上根本没有钩子！PyTorch 既没有报错，也没有警告；要是在训练里，模型就会拿着错误的梯度一直学下去。
#
# 原因留到 3.6 节揭晓。在那之前，先学一种不会出这种事的写法。
#
# </div>
# <div lang="en">
#
# `a.grad` is 2, just as we wanted. But `b.grad` became 2 as well, and there is no hook on `b`! There was no error and
# no warning; a model in training would simply go on learning from wrong gradients.
#
# Section 3.6 shows why. Before that, let us learn a way in which this cannot happen.
#
# </div>
#
# ## 3.2 正路：返回一个新张量 · The right way: return a new tensor
#
# <div lang="zh">
#
# 钩子可以返回一个张量，规则是这样的：
#
# **钩子返回了张量，这个张量就取代原来的梯度，继续往下传；什么也没返回（也就是返回 `None`），继续往下传的就还是它收到的那个张量。**
#
# 下面的钩子返回梯度的平方。`v.backward(g)` 把 `g` 直接当作 `v` 的梯度（第 01 课），所以我们可以看清楚：梯度变了，`g` 自己变了没有？`g` 是 `[1, 2, 3]`。**先猜。**
#
# </div>
# <div lang="en">
#
# A hook may return a tensor, and this is the rule:
#
# **If a hook returns a tensor, that tensor takes the gradient's place and flows on. If it returns nothing, which is
# to say `None`, the tensor that it received flows on.**
#
# The hook below returns the square of the gradient. Since `v.backward(g)` takes `g` itself as the gradient of `v`
# (lesson 01), we can see both: the gradient that changes, and whether `g` changes with it. `g` is `[1, 2, 3]`. **Guess
# first.**
#
# </div>

# %%
guess("03.b")

# %% tags=["E6"]
v = torch.zeros(3, requires_grad=True)
g = torch.tensor([1.0, 2.0, 3.0])

v.register_hook(lambda grad: grad**2)  # a new tensor
v.backward(g)
print("v.grad:", v.grad)
print("g:     ", g)

# %% [markdown]
# <div lang="zh">
#
# `v.grad` 里是平方，`g` 却原封不动：`grad**2` 只读 `grad`，结果写进了一个新张量。不管还有谁拿着 `g`，都不会察觉到这个钩子。
#
# </div>
# <div lang="en">
#
# `v.grad` holds the squares, and `g` is as it was: `grad**2` only reads `grad` and writes its result into a new tensor.
# Whoever else holds `g` will never notice this hook.
#
# </div>
#
# ### 练习 03.1：用返回值加倍 · Exercise 03.1: Double by returning
#
# ●● · 5 min
#
# <div lang="zh">
#
# 现在轮到你了。写 `double_gradient(y)`：让经过 `y` 的梯度加倍，并返回句柄。`y` 可以是任何形状、任何浮点 dtype；调用几次，各次之间互不影响。
#
# 检查的时候会把另一个张量 `skip` 和 `y` 相加，它的处境就和 3.1 节的 `b` 一样：那一边的梯度不许变。
#
# </div>
# <div lang="en">
#
# Now it is your turn. Write `double_gradient(y)`, which doubles the gradient that passes `y`, and return the handle.
# `y` may have any shape and any floating-point dtype, and one call must not affect another.
#
# The check adds another tensor, `skip`, to `y`, so that `skip` is in the position of `b` in section 3.1: the gradient
# on that side must not change.
#
# </div>


# %% exercise="03.1"
def double_gradient(y):
    """让经过 y 的梯度加倍，返回句柄。

    Double the gradient that passes y; return the handle.
    """

    ### BEGIN SOLUTION
    def double(grad):
        return grad * 2

    return y.register_hook(double)
    ### END SOLUTION


# %% check="03.1"
check("03.1", double_gradient)

# %% [markdown]
# ## 3.3 能返回什么，不能返回什么 · What may be returned, and what may not
#
# <div lang="zh">
#
# 不是返回什么都行。我们来试五个钩子，每个都收到梯度 `[2, 3, 6]`。它的范数 `grad.norm()`，也就是各元素平方和的平方根，是 7。
#
# 先看前两个：一个把范数改成 14，另一个算出了加倍的梯度，却忘了写 `return`。**先猜**第二个。
#
# </div>
# <div lang="en">
#
# Not everything may be returned. We try five hooks, and each of them receives the gradient `[2, 3, 6]`. Its norm,
# `grad.norm()`, which is the root of the sum of its squares, is 7.
#
# Here are the first two: one turns that norm into 14, the other computes twice the gradient and lacks its `return`.
# **Guess first** what the second one does.
#
# </div>


# %%
guess("03.c")


# %% tags=["F8"]
def norm_14(grad):
    return grad * (14 / grad.norm())  # same direction, another norm


def forgot_return(grad):
    grad = grad * 2  # a new tensor, but nobody gets it


for hook in (norm_14, forgot_return):
    v = torch.zeros(3, requires_grad=True)
    v.register_hook(hook)
    v.backward(torch.tensor([2.0, 3.0, 6.0]))
    print(f"{hook.__name__}: v.grad is {v.grad.tolist()}")

# %% [markdown]
# <div lang="zh">
#
# 忘写 `return` 的钩子只是白忙了一场，也没有报错：算出来的新张量没有交给任何人，梯度原样通过。
#
# 另外三个返回的东西不合规矩：一个元组、一个更短的张量，还有一个 dtype 不同的张量。**先猜。**
#
# </div>
# <div lang="en">
#
# Without its `return` the hook raises nothing. It merely worked in vain: nobody was given the new tensor, and the
# gradient passed as it came.
#
# The other three return something odd: a tuple, a shorter tensor, and a tensor of another dtype. **Guess first.**
#
# </div>

# %%
guess("03.d")

# %% tags=["F7", "F8", "F33"]
mask = torch.from_numpy(np.array([1.0, 0.0, 1.0]))
bad_hooks = {
    "two values": lambda grad: (grad * 2, "doubled"),
    "wrong shape": lambda grad: grad[:2],
    "wrong dtype": lambda grad: grad * mask,
}
passed = set(bad_hooks)
for name, hook in bad_hooks.items():
    v = torch.zeros(3, requires_grad=True)
    v.register_hook(hook)
    try:
        v.backward(torch.tensor([2.0, 3.0, 6.0]))
    except (RuntimeError, TypeError) as error:
        passed.remove(name)
        print(f"{name:11} {type(error).__name__}: {error}")

v = torch.zeros(3, requires_grad=True)
v.register_hook(lambda grad: grad * torch.tensor([1.0, 0.0, 1.0], dtype=grad.dtype))
v.backward(torch.tensor([2.0, 3.0, 6.0]))
print("mended dtype: v.grad is", v.grad.tolist())

# %% [markdown] tags=["F7", "F8", "F33"]
# <div lang="zh">
#
# 三个都报错，一个也没有放过。最后一行的掩码写明了 `dtype=grad.dtype`，它就通过了。
#
# </div>
# <div lang="en">
#
# All three raise an error. The last mask, with `dtype=grad.dtype`, passes.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 忘写 `return` 最难发现，因为谁也不会提醒你。返回的既不是张量也不是 `None`，会得到 `TypeError`；形状或 dtype 与收到的梯度不同，会得到 `RuntimeError`。
#
# dtype 多半是不知不觉变掉的：NumPy 的小数默认存成 `float64`，用这样的数组做的掩码乘上 `float32` 的梯度，结果就成了 `float64`。掩码要写明 `dtype=grad.dtype`，或者用 `torch.ones_like(grad)` 来造。
#
# </div>
# <div lang="en">
#
# A missing `return` is the hardest to find, since nobody tells you. Anything but a tensor or `None` gives a `TypeError`, another
# shape or dtype a `RuntimeError`.
#
# The dtype mostly changes unnoticed: NumPy floats are usually `float64`, and a mask made from them turns a gradient of
# `float32` into `float64`. Make it with `dtype=grad.dtype` or `torch.ones_like(grad)`.
#
# </div>
# </div>
#
# ### 练习 03.2：按范数裁剪 · Exercise 03.2: Clip by norm
#
# ●● · 6 min
#
# <div lang="zh">
#
# 梯度偶尔会大得离谱，一步就把模型带偏；按范数裁剪就是给它的大小设一个上限。
#
# 写 `clip_by_norm(y, max_norm)`，并返回句柄。整个梯度的范数超过 `max_norm` 时，方向不变，缩小到范数等于 `max_norm`（舍入和溢出不计）；没有超过时原样通过，很小的、全是 0 的梯度也一样。`y` 可以是任何形状、任何浮点 dtype。
#
# </div>
# <div lang="en">
#
# Now and then a gradient is so large that one step throws the model off course. Clipping by norm limits its size.
#
# Write `clip_by_norm(y, max_norm)` and return the handle. If the norm, taken over the whole gradient, is above
# `max_norm`, the gradient keeps its direction and is scaled down until its norm is `max_norm`, rounding and overflow
# aside. If not, it passes as it is, and so do tiny gradients and those of all 0. `y` may have any shape and any
# floating-point dtype.
#
# </div>


# %% exercise="03.2"
def clip_by_norm(y, max_norm):
    """让经过 y 的梯度的范数不超过 max_norm，返回句柄。

    Keep the norm of the gradient that passes y at max_norm or below; return the handle.
    """

    ### BEGIN SOLUTION
    def clip(grad):
        norm = grad.norm()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)
    ### END SOLUTION


# %% check="03.2"
check("03.2", clip_by_norm)

# %% [markdown]
# ## 3.4 一条链 · A chain
#
# <div lang="zh">
#
# 一个张量上可以挂好几个钩子。它们按**注册的次序**一个接一个地运行，每一个收到的，都是前一个交出来的梯度。
#
# 下面 $L=\sum_i v_i^2$，没有钩子的时候 `v` 的梯度是 `[2, 4, 6]`。我们依次挂上四个：加倍、记录、减半、记录。**先猜。**
#
# </div>
# <div lang="en">
#
# A tensor can carry several hooks. They run one after the other in the **order of registration**, and each receives
# the gradient that the one before it handed on.
#
# Below $L=\sum_i v_i^2$, and without hooks the gradient of `v` would be `[2, 4, 6]`. We register four, in this order:
# double, record, halve, record. **Guess first.**
#
# </div>


# %%
guess("03.e")


# %% tags=["E5"]
def double(grad):
    return grad * 2


v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
seen = []
for hook in (double, seen.append, lambda grad: grad / 2, seen.append):
    v.register_hook(hook)
(v**2).sum().backward()
print("recorded:", seen)
print("v.grad:  ", v.grad)

# %% [markdown]
# <div lang="zh">
#
# 第一次记下的是加倍之后的 `[4, 8, 12]`，第二次是又减半之后的 `[2, 4, 6]`。`seen.append` 返回 `None`，所以负责记录的钩子什么也不改变。写进 `v.grad` 的，是最后一个钩子交出来的梯度，在这里恰好和没有钩子时一样。
#
# </div>
# <div lang="en">
#
# The first recording was made after doubling, `[4, 8, 12]`, and the second after halving as well, `[2, 4, 6]`. As
# `seen.append` returns `None`, the hooks that record change nothing. What ends up in `v.grad` is the gradient that the
# last hook hands on, here by chance the same as without hooks.
#
# </div>
#
# ### 练习 03.3：搭一条系数链 · Exercise 03.3: Build a chain of factors
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写 `build_chain(y, factors, seen)`，给每个系数各挂一个钩子，让 `seen` 依次记下原来的梯度乘以每个系数。设 `y` 的梯度是 `g`，`factors` 是 `[2, -6]`：反向传播之后，`seen` 里应当是 `[2 * g, -6 * g]`，继续往下传的是最后那个 `-6 * g`。再做一次反向传播，就再添同样多的项；`seen` 里原有的东西要留着。
#
# 按注册的次序返回所有句柄的列表。只取下最后一个句柄，`seen` 就只少最后一项。系数不会是 0。
#
# </div>
# <div lang="en">
#
# Write `build_chain(y, factors, seen)`. It registers one hook for each factor, so that `seen` gets the original
# gradient times each factor in turn. Say the gradient of `y` is `g` and `factors` is `[2, -6]`: after backward, `seen`
# should be `[2 * g, -6 * g]`, and what flows on is the last, `-6 * g`. Another backward adds as many items again, and
# whatever was in `seen` before stays there.
#
# Return a list of all handles, in the order of registration: with only the last one removed, `seen` lacks only its
# last item. No factor is 0.
#
# </div>


# %% exercise="03.3"
def build_chain(y, factors, seen):
    """让 seen 依次记下原梯度乘以每个系数，返回句柄的列表。

    Let seen get the original gradient times each factor in turn; return the list of handles.
    """
    ### BEGIN SOLUTION
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            new = grad * ratio
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
        previous = factor
    return handles
    ### END SOLUTION


# %% check="03.3"
check("03.3", build_chain)

# %% [markdown]
# ## 3.5 就地修改，两次都没事 · In place, and twice all is well
#
# <div lang="zh">
#
# 关于在钩子里就地修改梯度，你会读到两种说法：有的教程就这么写，有的说绝对不行。我们来试两个例子。
#
# 第一个是四个数的平方的平均，`x.grad` 本来全是 1。同一个例子跑三遍：不动梯度、返回加倍的、就地加倍。**先猜。**
#
# </div>
# <div lang="en">
#
# About hooks that change a gradient in place you will read two opinions: some tutorials do it, others say never. Let
# us try two examples.
#
# The first is the mean of the squares of four numbers, where `x.grad` is 1 everywhere. There are three runs: the
# gradient is left alone, doubled by returning, doubled in place. **Guess first.**
#
# </div>


# %%
guess("03.f")


# %% tags=["E2", "E21"]
def leave_alone(grad):
    pass


def mean_of_squares(hook):
    x = torch.full((4,), 2.0, requires_grad=True)
    x.register_hook(hook)
    (x**2).mean().backward()
    return x.grad.tolist()


for hook in (leave_alone, double, double_in_place):
    print(f"{hook.__name__}: x.grad {mean_of_squares(hook)}")

# %% [markdown]
# <div lang="zh">
#
# 是 2，没有出错：就地加倍和返回加倍的，结果一模一样。第二个例子是第 01 课里那张有岔路的图：`w` 既通向 `w + x`，也通向 `w + 1`，不动的时候梯度是 5。这一次呢？
#
# </div>
# <div lang="en">
#
# They are 2, so nothing went wrong: doubling in place gives exactly what returning the double gives. The second example is the graph with a
# fork from lesson 01, in which `w` leads to both `w + x` and `w + 1`, and its gradient is 5 if left alone. And this
# time?
#
# </div>


# %% tags=["E14", "E21"]
def fork(hook):
    w = torch.tensor(1.0, requires_grad=True)
    x = torch.tensor(2.0, requires_grad=True)
    w.register_hook(hook)
    ((w + x) * (w + 1)).backward()
    return f"w.grad {w.grad.item():g}, x.grad {x.grad.item():g}"


for hook in (leave_alone, double, double_in_place):
    print(f"{hook.__name__}: {fork(hook)}")

# %% [markdown]
# ## 3.6 谁拿着同一个张量 · Who holds the same tensor
#
# <div lang="zh">
#
# 又没事：`w` 的梯度从 5 变成 10，`x` 的一直是 2。那么 3.1 节为什么就坏了呢？
#
# 要回答它，得看各处的梯度是不是同一个张量。`is` 问两个名字是不是同一个对象，`data_ptr()` 给出数据在内存里的地址，`_version` 数它被就地改写过几次。下面再算一次 `a + b`，反向传播从我们自己的张量 `mine` 开始，并且把 `c`、`a`、`b` 的梯度都留下来。
#
# </div>
# <div lang="en">
#
# All well again: the gradient of `w` went from 5 to 10, and that of `x` is 2 every time. Then what went wrong in 3.1?
#
# We need to see which gradients are one and the same tensor. `is` asks whether two names stand for one object,
# `data_ptr()` gives the address of the data in memory, and `_version` counts how often a tensor was overwritten in
# place. We compute `a + b` once more, start backward from a tensor of our own, `mine`, and keep the gradients of `c`,
# `a` and `b`.
#
# </div>


# %% tags=["F1"]
def who_holds(hook):
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    mine = torch.tensor([5.0, 7.0])
    c, held = a + b, {"mine": mine, "c": None, "b": None, "a": None}
    a.register_hook(hook)
    for name, tensor in {"c": c, "a": a, "b": b}.items():
        tensor.register_hook(lambda grad, name=name: held.update({name: grad}))
    c.backward(mine)
    return held


held = who_holds(double_in_place)
print("one object:", held["a"] is held["b"])
print("one address:", held["a"].data_ptr() == held["b"].data_ptr())
print("mine:", held["mine"].tolist(), " _version:", held["mine"]._version)

# %% [markdown]
# <div lang="zh">
#
# `a` 和 `b` 拿到的是同一个对象，连我们自己的 `mine` 都被改成了 `[10, 14]`。
#
# 下面把它和返回新张量的钩子画在一起：左边列出名字，右边的每个方框是一块内存。**先猜。**
#
# </div>
# <div lang="en">
#
# `a` and `b` were given one and the same object, and even our own `mine` was changed, to `[10, 14]`.
#
# Below this is drawn beside the hook that returns a new tensor: names on the left, and on the right a box for each
# piece of memory. **Guess first.**
#
# </div>

# %%
guess("03.g")

# %% tags=["F1"] picture="sharing"
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for hook, ax in zip((double_in_place, double), axes, strict=True):
    held = who_holds(hook)
    plot_sharing(held, ax=ax).set_title(hook.__name__)
print("returned, one object:", held["a"] is held["b"])
print("returned, mine:", held["mine"].tolist(), " _version:", held["mine"]._version)

# %% [markdown]
# <div lang="zh">
#
# 左图只有一块内存，四个名字都指着它；右图有两块，`a` 的梯度住在自己的新张量里。
#
# 加法对 `a` 和 `b` 的导数都是 1，没有什么要算的，PyTorch 便把收到的张量**原样**交给两边。就地改了它，就是替所有拿着它的人改了。3.5 节的两个例子里，钩子收到的却是刚刚算出来的张量，没有别人拿着。
#
# 现在请你**存心把 `b` 的梯度弄坏**：下面又是 `a + b`，点一个张量，给它挂一个钩子，但不许碰 `b`。坏了的梯度会变红。再找一找：同一个钩子挂在哪里，谁也不会坏？
#
# </div>
# <div lang="en">
#
# The left picture has one piece of memory, to which all four names point; the right one has two, as the gradient of
# `a` lives in a new tensor of its own.
#
# The derivative of a sum is 1 for `a` and for `b`, so there is nothing to compute, and PyTorch hands the tensor it
# received to both sides **as it is**. To change it in place is to change it for everybody who holds it. In the two
# examples of 3.5 the hook received a tensor that had just been computed, and nobody else held it.
#
# Now **make the gradient of `b` wrong on purpose**. Below is `a + b` again: click a tensor and hang a hook on it, but
# not on `b`. A spoiled gradient turns red. Then find a place where the same hook spoils nobody's.
#
# </div>

# %% picture="flow"
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a + b
GradientFlow(c, {"a": a, "b": b, "c": c})

# %% [markdown]
# <div lang="zh">
#
# 就地加倍或就地变成零，挂在 `a` 上，`b` 就坏了。挂在 `c` 上没事，那时梯度还没有分给两边。挂在 `b` 上也没事，这就奇怪了：`a` 拿着的不是同一个张量吗？
#
# </div>
# <div lang="en">
#
# Doubling or zeroing in place on `a` spoils `b`. On `c` it does no harm, since the gradient has not yet been handed to
# both sides. On `b` it does none either, which is odd: does `a` not hold the same tensor?
#
# </div>
#
# ## 3.7 三种下场 · Three outcomes
#
# <div lang="zh">
#
# 共用一个张量，也不一定会坏，这还得看谁先谁后：刚才先轮到的是 `a`。去掉岔路，令 $y=2(w+x)$，仍然只在 `w` 上就地加倍，`x.grad` 应当是 2。`w + x` 和 `x + w` 各跑一遍。**先猜。**
#
# </div>
# <div lang="en">
#
# Sharing a tensor does not always end badly, since it also matters who comes first: just now it was `a`'s turn before
# `b`'s. Without the fork, let $y=2(w+x)$; again only `w` doubles its gradient in place, and `x.grad` should be 2.
# It runs once with `w + x` and once with `x + w`. **Guess first.**
#
# </div>


# %%
guess("03.h")


# %% tags=["F1"]
def no_fork(swapped, hook):
    w = torch.tensor(1.0, requires_grad=True)
    x = torch.tensor(2.0, requires_grad=True)
    w.register_hook(hook)
    a = x + w if swapped else w + x
    (2 * a).backward()
    return f"w.grad {w.grad.item():g}, x.grad {x.grad.item():g}"


print("in place, w + x:", no_fork(False, double_in_place))
print("in place, x + w:", no_fork(True, double_in_place))
print("returned, w + x:", no_fork(False, double))

# %% [markdown]
# <div lang="zh">
#
# 次序有关系：`w + x` 时 `x.grad` 坏成了 4，`x + w` 时却是对的 2。后一种写法里先轮到 `x`，等 `w` 的钩子动手时，`x` 已经把梯度抄进了自己的 `.grad`。
#
# 再看一个残差：`x` 分成 `skip` 和 `branch` 两路，又加在一起。我们只想去掉 `branch` 这一路的梯度，`x.grad` 应当剩下 `[1, 1]`。**先猜**就地清零的结果。
#
# </div>
# <div lang="en">
#
# The order matters: with `w + x`, `x.grad` is spoiled and becomes 4, while with `x + w` it is 2, as it should be. In the latter it
# is `x`'s turn first: by the time the hook of `w` runs, `x` has copied the gradient into its own `.grad`.
#
# Next, a residual connection: `x` splits into `skip` and `branch`, which are then added up. We want to remove the
# gradient of `branch` only, so that `x.grad` should be `[1, 1]`. **Guess first** what it is after zeroing in
# place.
#
# </div>


# %%
guess("03.i")


# %% tags=["F1"]
def residual(hook):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    skip, branch = 1 * x, 3 * x
    branch.register_hook(hook)  # meant for the branch alone
    (skip + branch).sum().backward()
    return x.grad.tolist()


print("branch left alone:     ", residual(leave_alone))
print("branch * 0, returned:  ", residual(lambda grad: grad * 0))
print("branch zeroed in place:", residual(lambda grad: grad.zero_()))

# %% [markdown]
# <div lang="zh">
#
# 就地清零的那一行是 `[0, 0]`：`skip` 那一路的梯度是同一个张量，也一起没了，`x` 什么也学不到。
#
# 把 `zero_()` 换成 `mul_(0)`，算出来的同样是零。**先猜。**
#
# </div>
# <div lang="en">
#
# Zeroing in place gives `[0, 0]`: the gradient of `skip` is the same tensor and is gone as well, so `x` would learn
# nothing at all.
#
# Instead of `zero_()` we could write `mul_(0)`, which computes the same zeros. **Guess first.**
#
# </div>

# %%
guess("03.j")

# %% tags=["F31"]
try:
    got = residual(lambda grad: grad.mul_(0))
except RuntimeError as error:
    got = None
    print("RuntimeError:", error)


def describe(grad):
    size = grad.untyped_storage().nbytes()
    print(f"{grad.numel()} elements in {size} bytes, stride {grad.stride()}")


x_grad = residual(describe)

# %% [markdown] tags=["F1", "F31"]
# <div lang="zh">
#
# 这一次报错了。`.sum()` 对每个元素的导数都是 1，PyTorch 只存一个 1，再把它**扩展**开来（步幅是 0，两个 `float32` 只占 4 个字节）。`mul_` 不肯往重叠的内存里写；`zero_()` 给每个元素写的数都一样，PyTorch 就放行了。
#
# </div>
# <div lang="en">
#
# This one raises an error. The derivative of `.sum()` is 1 everywhere, so PyTorch stores a single 1 and **expands**
# it: the stride is 0, and two numbers of `float32` take only 4 bytes. `mul_` refuses to write to memory that overlaps;
# `zero_()` writes the same number everywhere and is let through.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 所以两种说法都只对了一半。就地修改有三种下场：没有别人拿着这个张量，或者他们已经用完了，就平安无事；还有人要用，就悄悄弄坏他们的。到底是哪一种，钩子自己看不出来。张量是扩展出来的，还可能报错。**所以一律返回新张量。**
#
# </div>
# <div lang="en">
#
# Both opinions are half right; a change in place can end in three ways. All is well if nobody else holds the tensor,
# or they are done with it. If somebody still needs it, theirs is silently spoiled. A hook cannot see which. If the
# tensor is expanded, there may be an error. **So always return a new tensor.**
#
# </div>
# </div>
#
# ## 3.8 伪装的就地修改 · In place in disguise
#
# <div lang="zh">
#
# 就地修改并不总是带着下划线。下面八行，每一行开始的时候，`g` 都是原来的张量 `[-1, 2]`。**先猜**，再找一找：有没有哪一行改了它，`_version` 却不知道？
#
# </div>
# <div lang="en">
#
# A change in place does not always carry an underscore. Before each of the eight lines below, `g` is the original
# tensor `[-1, 2]`. **Guess first**, and then look whether any changes it without `_version` noticing.
#
# </div>

# %%
guess("03.k")

# %%
lines = (
    "g = g * 2",
    "g *= 2",
    "g = g.clamp(min=0)",
    "g.clamp_(min=0)",
    "g[g < 0] = 0",
    "g.detach().mul_(2)",
    "g.clone().mul_(2)",
    "g.data.mul_(2)",
)
changed = []
for line in lines:
    g = original = torch.tensor([-1.0, 2.0])
    exec(line)  # run the line
    changed.append(original.tolist() != [-1, 2])
    print(f"{line:20} original {original.tolist()}, _version {original._version}")

# %% [markdown]
# <div lang="zh">
#
# 有五行改到了它。`*=` 和对下标赋值也是就地修改。`detach()` 得到的张量和原来的共用内存，改它就是改原来的；`clone()` 才是真正的拷贝。`.data` 最阴险：它改了数，`_version` 却还是 0，所以靠 `_version` 发现错误的检查也会被它瞒过去。
#
# </div>
# <div lang="en">
#
# Five of them do. `*=` and assignment to an index work in place as well. `detach()` returns a tensor that shares memory
# with the original, so changing one changes the other; only `clone()` makes a copy. The most treacherous is `.data`:
# the numbers change, yet `_version` is still 0, so every check that relies on it is deceived.
#
# </div>
#
# ### 练习 03.4：找出并修好就地修改 · Exercise 03.4: Find and mend the in-place change
#
# ●●● · 6 min
#
# <div lang="zh">
#
# `tame(branch)` 给 `branch` 挂两个钩子：第一个把负的梯度变成 0，第二个减半。注释里是原来的写法，它们会弄坏与 `branch` 相加的那条路。
#
# 请把两个都修好，返回它们的句柄。**单独留下其中任何一个时，也要是对的。** `clamp(min=0)` 可以把负数变成 0。
#
# </div>
# <div lang="en">
#
# `tame(branch)` registers two hooks: the first turns negative gradients into 0, the second halves what is left. The
# comments show the old lines, which spoil the path that is added to `branch`.
#
# Mend both and return their handles. **Each must also be right when it is left alone.** `clamp(min=0)` turns negative
# numbers into 0.
#
# </div>


# %% exercise="03.4"
def tame(branch):
    """去掉负的梯度，再减半，不碰别人的；返回两个句柄。

    Drop negative gradients, then halve, and touch nobody else's; return both handles.
    """

    def keep_positive(grad):
        # it was: grad[grad < 0] = 0
        ### BEGIN SOLUTION
        return grad.clamp(min=0)
        ### END SOLUTION

    def halve(grad):
        # it was: grad /= 2
        ### BEGIN SOLUTION
        return grad / 2
        ### END SOLUTION

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


# %% check="03.4"
check("03.4", tame)

# %% [markdown]
# ## 3.9 记下的也会变 · What was recorded may still change
#
# <div lang="zh">
#
# 你自己从不就地修改，也未必安全。设想你只是记录 `a` 的梯度，别处的代码却在 `b` 上挂了一个就地乘以 7 的钩子。`a` 的梯度是 1。**先猜。**
#
# </div>
# <div lang="en">
#
# Even if you never change anything in place, you are not quite safe. Suppose you only record the gradient of `a`,
# while code elsewhere puts a hook on `b` that multiplies by 7 in place. The gradient of `a` is 1. **Guess first.**
#
# </div>

# %%
guess("03.l")

# %% tags=["F32"]
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
kept = []
a.register_hook(kept.append)
b.register_hook(lambda grad: grad.mul_(7))  # somebody else's hook
(a + b).backward()
print("a.grad:  ", a.grad)
print("recorded:", kept[0])

# %% [markdown]
# <div lang="zh">
#
# `a.grad` 是对的 1，你的记录却说是 7。记下的不是一个数，而是张量本身；之后有人改了它，你的记录也跟着变。再试一遍，这次用四种办法来记：
#
# </div>
# <div lang="en">
#
# `a.grad` is 1, which is right, and yet your record says 7. What you recorded is not a number but the tensor itself,
# and when somebody changed it later, your record changed too. Once more, now recorded in four ways:
#
# </div>

# %% tags=["F32"]
kept = {}
a.register_hook(lambda grad: kept.update({"grad": grad}))
a.register_hook(lambda grad: kept.update({"grad.detach()": grad.detach()}))
a.register_hook(lambda grad: kept.update({"grad.detach().clone()": grad.detach().clone()}))
a.register_hook(lambda grad: kept.update({"grad.item()": grad.item()}))
(a + b).backward()
for how, value in kept.items():
    print(f"{how:22} {float(value):g}")


def attached(grad):
    ways = {"grad": grad, "clone()": grad.clone(), "detach()": grad.detach()}
    print("attached:", {how: way.requires_grad for how, way in ways.items()})


a.register_hook(attached)
(slope,) = torch.autograd.grad((a + b) ** 2, a, create_graph=True)

# %% [markdown] tags=["F32"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 把 `grad` 本身留下来当记录。我们之前大多是这么做的；只要没有人就地修改它，这样也没有问题。要留住那一刻的值，用 `grad.detach().clone()`：`clone()` 抄一份数；`detach()` 剪断图，因为在 `create_graph=True` 之下，梯度自己也可能连着一张计算图（最后一行）。如果梯度只有一个数，`grad.item()` 就够了。
#
# </div>
# <div lang="en">
#
# Keeping `grad` itself as a record. We have mostly done so, which is fine as long as nobody changes it in place. To
# keep the value of that moment, use `grad.detach().clone()`. `clone()` copies the numbers. `detach()` cuts the graph
# off: under `create_graph=True` a gradient can itself be attached to a computation graph (the last line). If the
# gradient is a single number, `grad.item()` will do.
#
# </div>
# </div>
#
# ## 3.10 实例：只改一条路 · Worked example: change one path only
#
# <div lang="zh">
#
# 设 $L=3x+5x$，`x` 被用了两次。我们想让 5 的那条路不把梯度传回 `x`，于是 `x.grad` 应当是 3。
#
# 先试最直接的办法：在 `x` 上挂一个返回零的钩子。**先猜。**
#
# </div>
# <div lang="en">
#
# Let $L=3x+5x$, which uses `x` twice. The path with the 5 should pass no gradient back to `x`, so that `x.grad` should
# be 3.
#
# First we try the obvious: a hook on `x` that returns zero. **Guess first.**
#
# </div>

# %%
guess("03.m")

# %%
x = torch.tensor(2.0, requires_grad=True)
received = []
x.register_hook(received.append)
x.register_hook(lambda grad: grad * 0)
(3 * x + 5 * x).backward()
print("the hook receives", received[0])
print("x.grad:", x.grad)

# %% [markdown]
# <div lang="zh">
#
# 钩子收到 8，`x.grad` 是 0。到了 `x` 这里，两条路的梯度已经加在一起，再也分不开了。
#
# 所以要在它们汇合之前动手。`x.view_as(x)` 造出一个值相同的张量 `y`：它和 `x` 共用内存，在计算图里却是一个单独的节点。只让 5 的那条路经过 `y`，把钩子挂在 `y` 上。**先猜。**
#
# </div>
# <div lang="en">
#
# It receives 8, and `x.grad` is 0. By the time they reach `x`, the gradients of both paths have been added up, and
# nothing can take them apart again.
#
# So we have to act before they meet. `x.view_as(x)` makes a tensor `y` with the same values: it shares memory with
# `x`, but is a node of its own in the computation graph. Only the path with the 5 runs through `y`, and the hook goes
# on `y`. **Guess first.**
#
# </div>

# %%
guess("03.n")

# %% picture="beside_the_view"
x = torch.tensor(2.0, requires_grad=True)
y, seen = x.view_as(x), {}
y.register_hook(lambda grad: seen.update(y=grad))  # records what arrives
y.register_hook(lambda grad: grad * 0)
three = 3 * x
loss = three + 5 * y
loss.backward()
print("x.grad:", x.grad)
ax = plot_graph(loss, {"x": x, "three": three, "y": y, "loss": loss}, gradients=seen)

# %% [markdown]
# <div lang="zh">
#
# 这回是 3：钩子只截住了经过 `y` 的那个 5，另一条路的 3 照常回到 `x`。
#
# 还有一个问题：在 `torch.no_grad()` 里不建图，那里的张量还肯收钩子吗？分别试一试 `clone()` 和 `view_as` 造出来的。
#
# </div>
# <div lang="en">
#
# Now it is 3: the hook stopped only the 5 that passed `y`, and the 3 of the other path got back to `x` as ever.
#
# One more question: under `torch.no_grad()` no graph is built. Does a tensor take a hook there? Let us ask one made
# with `clone()` and one made with `view_as`.
#
# </div>

# %%
with torch.no_grad():
    for name, y in {"clone": x.clone(), "view_as": x.view_as(x)}.items():
        print(f"{name:8} requires_grad {y.requires_grad}, grad_fn {y.grad_fn}")
        try:
            y.register_hook(double)
        except RuntimeError as error:
            print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 克隆出来的张量不需要梯度，也就不接受钩子。视图则重复 `x` 的 `True`，肯收下钩子，却没有 `grad_fn`：没有梯度会经它回到 `x`。两种情况下都可以先问 `y.requires_grad`，再决定挂不挂。
#
# </div>
# <div lang="en">
#
# The clone requires no gradient and therefore refuses a hook. The view repeats the `True` of `x` and accepts one, but
# has no `grad_fn`: no gradient will ever get back to `x` through it. In either case you can ask `y.requires_grad` first
# and then decide whether to register.
#
# </div>
#
# ### 练习 03.5：梯度反转 · Exercise 03.5: Gradient reversal
#
# ●●●● · 8 min
#
# <div lang="zh">
#
# 写 `reverse_gradient(x, strength)`：返回一个值和 `x` 相同的张量 `y`。反向传播时，经过 `y` 的梯度要乘以 `-strength`；不经过 `y` 的路不受影响。
#
# `x` 不需要梯度的时候（`y` 也就不需要），或者在 `torch.no_grad()` 里，它也要能用；在后者里不许建图。
#
# </div>
# <div lang="en">
#
# Write `reverse_gradient(x, strength)`, which returns a tensor `y` with the values of `x`. In backward, the gradient
# that passes `y` is multiplied by `-strength`; paths that do not run through `y` are not affected.
#
# It must also work when `x` requires no gradient (then `y` requires none either), and under `torch.no_grad()`, where
# it must not build a graph.
#
# </div>


# %% exercise="03.5"
def reverse_gradient(x, strength):
    """返回值与 x 相同的张量，经过它的梯度乘以 -strength。

    Return a tensor with the values of x; the gradient that passes it is multiplied by -strength.
    """
    ### BEGIN SOLUTION
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
    return y
    ### END SOLUTION


# %% check="03.5"
check("03.5", reverse_gradient)

# %% [markdown]
# ## 3.11 小结 · Recap
#
# <div lang="zh">
#
# 1. 钩子返回的张量取代梯度；什么也不返回，继续往下传的就是它收到的那个张量，连同就地做过的改动。
# 2. 返回的张量，形状和 dtype 都要和收到的梯度一样。
# 3. 一个张量上的钩子按注册的次序运行，每一个都从前一个的结果开始。
# 4. 形状和 dtype 相同的 `a + b`，把同一个张量交给两边。就地修改它，可能平安无事，也可能弄坏别人的；张量是扩展出来的，还可能报错。所以要返回新张量。
# 5. 要留下记录，就用 `grad.detach().clone()`。只想改一条路，就给它一个自己的张量。
#
# </div>
# <div lang="en">
#
# 1. The tensor that a hook returns replaces the gradient. If it returns nothing, the tensor it received flows on,
#    with any change that was made to it in place.
# 2. A returned tensor must have the shape and dtype of the gradient.
# 3. The hooks of a tensor run in the order of registration, each on the result of the one before.
# 4. `a + b`, of the same shape and dtype, hands one tensor to both sides. Changing it in place may do no harm, or spoil somebody else's gradient. If
#    the tensor is expanded, it may raise an error. So return a new tensor.
# 5. To keep a record, use `grad.detach().clone()`. To change one path only, give it a tensor of its own.
#
# </div>

# %% [markdown]
# ## 3.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么 <code>grad *= 2</code> 危险，<code>grad * 2</code> 却不危险？</summary>前者改写收到的张量，而别人也许正拿着它；后者把结果写进一个新张量。</details>
# <details><summary>2. 就地修改有哪三种下场？</summary>没有别人拿着，或者他们已经用完：平安无事。还有人要用：悄悄弄坏他们的。张量是扩展出来的：可能报错。</details>
# <details><summary>3. 钩子忘了写 <code>return</code>，会怎样？</summary>不报错；如果它只算出了新张量，梯度就原样通过。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why is <code>grad *= 2</code> dangerous and <code>grad * 2</code> not?</summary>The former overwrites the tensor it received, which somebody else may hold; the latter writes its result into a new one.</details>
# <details><summary>2. In which three ways can a change in place end?</summary>Nobody else holds the tensor, or they are done with it: no harm. Somebody still needs it: theirs is silently spoiled. It is expanded: there may be an error.</details>
# <details><summary>3. A hook lacks its <code>return</code>. What happens?</summary>There is no error; if all it did was compute a new tensor, the gradient passes as it is.</details>
# </div>

# %% [markdown]
# ## 3.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 域对抗训练（DANN）用的正是练习 03.5 的梯度反转：特征提取器要学到的，是让域分类器分不清数据来自哪里的特征。可以搜索 `gradient reversal layer`。不少 MuZero 的实现里有这样一行：`hidden_state.register_hook(lambda grad: grad * 0.5)`。模型要连着展开好几步，每退回一步，梯度就减半，免得越积越大。这个钩子返回的也是新张量。
#
# </div>
# <div lang="en">
#
# Domain-adversarial training (DANN) rests on the gradient reversal of exercise 03.5: the features are to be learned
# so that a domain classifier cannot tell where the data come from. Search for `gradient reversal layer`. And quite a
# few implementations of MuZero contain the line `hidden_state.register_hook(lambda grad: grad * 0.5)`. The model is
# unrolled over several steps, and at each step back the gradient is halved, lest it pile up. This hook returns a new
# tensor, too.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
