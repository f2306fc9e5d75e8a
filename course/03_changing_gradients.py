# %% tags=["setup"]
import matplotlib.pyplot as plt
import torch

from hookedu import LanguageToggle, check, hint, plot_graph, plot_sharing, progress, solution

LanguageToggle()

# %% [markdown]
# ## 3.1 只改一个？ · Change only one?
#
# <div lang="zh">
#
# `c = a + b`，所以 `a` 和 `b` 的梯度都是 1。现在只在 `a` 上挂一个钩子，把梯度乘以 2。
#
# 用的是 `mul_`。末尾的下划线表示**就地**：不新建张量，直接改写原来的那个。
#
# **先猜一猜**：`a.grad` 和 `b.grad` 各是多少？
#
# </div>
# <div lang="en">
#
# `c = a + b`, so the gradients of `a` and `b` are both 1. Now a hook on `a`, and on `a` only, multiplies its gradient by 2.
#
# It uses `mul_`. The underscore at the end means **in place**: no new tensor, the old one is overwritten.
#
# **Guess first**: how much are `a.grad` and `b.grad`?
#
# </div>

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
# `b.grad` 也成了 2，没有报错，也没有警告！原因在 3.6 节揭晓。
#
# </div>
# <div lang="en">
#
# `b.grad` became 2 as well, with no error and no warning! Section 3.6 tells why.
#
# </div>
#
# ## 3.2 正路：返回一个新张量 · The right way: return a new tensor
#
# <div lang="zh">
#
# 先学不会出事的写法：
#
# **钩子返回什么张量，它就取代原来的梯度；什么也不返回，就接着用原来那个张量。**
#
# 1.11 节的例子，这回也看 `g` 自己：`v.backward(g)` 把梯度 `g` 直接交给 `v`。**先猜** `v.grad` 和 `g`。
#
# </div>
# <div lang="en">
#
# First the way that is always safe:
#
# **The tensor that a hook returns replaces the gradient; if it returns nothing, the original tensor goes on.**
#
# The example of section 1.11, now with an eye on `g` as well: `v.backward(g)` hands the gradient `g` straight to `v`.
# **Guess** `v.grad` and `g`.
#
# </div>

# %% tags=["E6"]
v = torch.zeros(3, requires_grad=True)
g = torch.tensor([1.0, 2.0, 3.0])

v.register_hook(lambda grad: grad**2)  # a new tensor; grad itself is only read
v.backward(g)
print("v.grad:", v.grad)
print("g:     ", g)

# %% [markdown]
# <div lang="zh">
#
# `v.grad` 是平方，`g` 毫发无损。
#
# </div>
# <div lang="en">
#
# `v.grad` holds the squares, and `g` is unharmed.
#
# </div>
#
# ### 练习 03.1：用返回值加倍 · Exercise 03.1: Double by returning
#
# ●● · 4 min
#
# <div lang="zh">
#
# 轮到你了：写 `double_gradient(y)`，让经过 `y` 的梯度加倍，返回句柄；`y` 的形状和 dtype 不限，几次调用互不影响。检查时会把另一个张量 `skip` 和 `y` 相加（就像 3.1 节的 `b`）：那一边的梯度不许变。
#
# </div>
# <div lang="en">
#
# Your turn: write `double_gradient(y)`, which doubles the gradient that passes `y`, and return the handle. `y` may be of
# any shape and dtype, and one call must not affect another. The check adds another tensor, `skip`, to `y` (like `b` in
# 3.1): the gradient on that side must not change.
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
# 下面四个钩子都收到梯度 `[2, 3, 6]`，它的大小（范数，`grad.norm()`）是 7。
#
# **先猜**：哪几个报错？哪一个悄悄地什么也没做？
#
# </div>
# <div lang="en">
#
# Each of the four hooks below gets the gradient `[2, 3, 6]`, whose size (the norm, `grad.norm()`) is 7.
#
# **Guess**: which of them raise an error, and which one silently does nothing?
#
# </div>


# %% tags=["F7", "F8"]
def norm_14(grad):
    return grad * (14 / grad.norm())  # same direction, another norm


def forgot_return(grad):
    grad = grad * 2  # a new tensor, but nobody gets it


def two_values(grad):
    return grad * 2, "doubled"


def wrong_shape(grad):
    return grad[:2]


for hook in (norm_14, forgot_return, two_values, wrong_shape):
    v = torch.zeros(3, requires_grad=True)
    v.register_hook(hook)
    try:
        v.backward(torch.tensor([2.0, 3.0, 6.0]))
        print(f"{hook.__name__}: v.grad is {v.grad.tolist()}")
    except (RuntimeError, TypeError) as error:
        print(f"{hook.__name__}: {type(error).__name__}: {error}")

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F7, F8)
#
# <div lang="zh">
#
# 忘写 `return`：梯度不变，谁也不提醒你。返回元组：`TypeError`。形状不同：`RuntimeError`。
#
# </div>
# <div lang="en">
#
# No `return`: the gradient stays, and nobody tells you. A tuple: `TypeError`. Another shape: `RuntimeError`.
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
# 写 `clip_by_norm(y, max_norm)`，`y` 的形状和 dtype 不限：整个梯度的范数大于 `max_norm` 时，方向不变，缩小到正好 `max_norm`；其余的（很小的、全是 0 的也算）原样通过。返回句柄。
#
# </div>
# <div lang="en">
#
# Write `clip_by_norm(y, max_norm)`, for `y` of any shape and dtype: a gradient whose norm, taken over all of it, is above
# `max_norm` keeps its direction and is scaled down to exactly `max_norm`; any other, even a tiny one or one of all 0,
# passes as it is. Return the handle.
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
# 一个张量上可以挂好几个钩子。它们按**注册的次序**运行，每一个拿到的是前一个返回的梯度。
#
# 下面 $L=\sum_i v_i^2$，`v` 的梯度本来是 `[2, 4, 6]`。依次挂上：加倍、看、减半、看。**先猜**：两次各看到什么？
#
# </div>
# <div lang="en">
#
# One tensor can carry several hooks. They run in the **order of registration**, and each gets the gradient that the one
# before it returned.
#
# Below $L=\sum_i v_i^2$; without hooks the gradient of `v` is `[2, 4, 6]`. The hooks, in this order: double, look, halve,
# look. **Guess**: what do the two looks see?
#
# </div>

# %% tags=["E5"]
v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
seen = []


def double(grad):
    return grad * 2


def keep(grad):
    seen.append(grad)


def halve(grad):
    return grad / 2


for hook in (double, keep, halve, keep):
    v.register_hook(hook)
(v**2).sum().backward()
print("first look: ", seen[0])
print("second look:", seen[1])
print("v.grad:     ", v.grad)

# %% [markdown]
# ### 练习 03.3：照着要看到的搭一条链 · Exercise 03.3: Build a chain for given looks
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `build_chain(y, factors, seen)`。设 `y` 的梯度是 `g`，`factors` 是 `[2, -6]`：反向传播之后 `seen` 应当是
# `[2 * g, -6 * g]`，继续往下流的是最后那个 `-6 * g`。再来一次反向传播，就再添这么多项；
# `seen` 里先有的东西要留着。
#
# 每个系数挂自己的钩子，按次序返回所有句柄的列表：只取下最后一个句柄，`seen` 就只少最后一项。系数不会是 0。
#
# </div>
# <div lang="en">
#
# Write `build_chain(y, factors, seen)`. Say the gradient of `y` is `g` and `factors` is `[2, -6]`: after backward `seen`
# should be `[2 * g, -6 * g]`, and what flows on is the last, `-6 * g`. Another backward adds as many again;
# whatever lies in `seen` before stays there.
#
# Register a hook of its own for each factor and return a list of all handles in that order: with the last one removed, `seen`
# lacks only its last item. No factor is 0.
#
# </div>


# %% exercise="03.3"
def build_chain(y, factors, seen):
    """让 seen 依次看到原梯度乘以每个系数，返回句柄的列表。

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
# 回到开头的谜。关于就地修改，你会读到两种说法：有的教程就这么写，有的说这是错的。
#
# 下面两个例子各跑三遍：不动、返回加倍的、就地加倍。第二个是 1.4 节的岔路图。**先猜**：就地的那一行会坏吗？
#
# </div>
# <div lang="en">
#
# Back to the riddle of the beginning. You will read two opinions on in-place changes: some tutorials do it, others call
# it wrong.
#
# Two examples, three runs each: leave alone, return the double, double in place. The second is the fork of section 1.4.
# **Guess**: does the in-place line go wrong?
#
# </div>


# %% tags=["E2", "E14", "E21"]
def mean_of_squares(hook):
    x = torch.full((4,), 2.0, requires_grad=True)
    x.register_hook(hook)
    (x**2).mean().backward()
    return f"x.grad {x.grad.tolist()}"


def fork(hook):
    w = torch.tensor(1.0, requires_grad=True)
    x = torch.tensor(2.0, requires_grad=True)
    w.register_hook(hook)
    ((w + x) * (w + 1)).backward()
    return f"w.grad {w.grad.item():g}, x.grad {x.grad.item():g}"


def leave_alone(grad):
    pass


for example in (mean_of_squares, fork):
    for hook in (leave_alone, double, double_in_place):
        print(f"{example.__name__}, {hook.__name__}: {example(hook)}")

# %% [markdown]
# ## 3.6 谁拿着同一个张量 · Who holds the same tensor
#
# <div lang="zh">
#
# 两次都对。那 3.1 节为什么坏了？把各处的梯度都留下来比一比：`is` 问是不是同一个对象，`data_ptr()` 给出内存地址，`_version` 数它被就地改写过几次。
#
# 反向传播从你自己的张量 `mine` 开始。**先猜**：图里会有几块内存？
#
# </div>
# <div lang="en">
#
# Right both times. Then what went wrong in 3.1? Keep every gradient and compare: `is` asks whether two are one object,
# `data_ptr()` gives the address in memory, `_version` counts how often it was overwritten in place.
#
# Backward starts from a tensor of your own, `mine`. **Guess**: how many pieces of memory will the pictures show?
#
# </div>

# %% tags=["F1"]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")

for hook, ax in zip((double_in_place, double), axes, strict=True):
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    c, mine, seen = a + b, torch.tensor([5.0, 7.0]), {}
    a.register_hook(hook)
    for name, tensor in {"c": c, "a": a, "b": b}.items():
        tensor.register_hook(lambda grad, name=name: seen.update({name: grad}))
    c.backward(mine)

    print(hook.__name__)
    print("   after the hook, one object: ", seen["a"] is seen["b"])
    print("   after the hook, one address:", seen["a"].data_ptr() == seen["b"].data_ptr())
    print("   mine:", mine.tolist(), " _version:", mine._version)
    plot_sharing({"mine": mine} | seen, ax=ax).set_title(hook.__name__)

# %% [markdown]
# <div lang="zh">
#
# 看 `double` 那一栏：看的钩子排在它后面，看到的已是新张量。
#
# 加法的导数是 1，没什么可算，PyTorch 就把**同一个张量**交给 `a` 和 `b`，连 `mine` 都是它。3.5 节的梯度却是刚刚算出来的，没有别人拿着。
#
# </div>
# <div lang="en">
#
# In the `double` picture, the look comes after `double`, so it sees the new tensor.
#
# The derivative of a sum is 1: nothing to compute, and PyTorch hands **the same tensor** to `a` and `b`; `mine`
# is it too. The gradients of 3.5 were freshly computed; nobody else held them.
#
# </div>
#
# ## 3.7 何时会坏 · When it goes wrong
#
# <div lang="zh">
#
# 现在去掉岔路：$y=2(w+x)$，`x.grad` 应当是 2；再把 `w` 和 `x` 换个次序。
#
# 最后是一个残差：只想去掉支路的梯度，`x.grad` 应当剩下 `[1, 1]`。**先猜**：每一行打印什么？
#
# </div>
# <div lang="en">
#
# Now no fork: $y=2(w+x)$, where `x.grad` should be 2; then `w` and `x` swapped.
#
# Last, a residual: remove only the branch's gradient; `x.grad` should be `[1, 1]`. **Guess** each printed line.
#
# </div>


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
# `x + w` 时先轮到 `x`，它已经抄走了自己的一份，`w` 的钩子才动手。
#
# </div>
# <div lang="en">
#
# With `x + w` it is `x`'s turn first, and it has its own copy before `w`'s hook runs.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake** (F1)
#
# <div lang="zh">
#
# 两种说法都对了一半：没有别人拿着这个张量，或者他们已经用完，就地修改便没事；否则就弄坏别人的。可钩子看不出是哪一种，`w + x` 写成 `x + w` 都会变。**所以一律返回新张量。**
#
# </div>
# <div lang="en">
#
# Both opinions are half right. Changing in place does no harm while nobody else holds the tensor, or once they are done with it;
# otherwise it spoils theirs. A hook cannot tell which: writing `x + w` for `w + x` is enough. **So always return a new tensor.**
#
# </div>
# </div>
#
# ## 3.8 伪装的就地修改 · In place in disguise
#
# <div lang="zh">
#
# 下面哪几行会改到原来的 `[-1, 2]`？
#
# </div>
# <div lang="en">
#
# Which of the lines below change the original `[-1, 2]`?
#
# </div>

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
for line in lines:
    g = original = torch.tensor([-1.0, 2.0])
    exec(line)  # run it
    print(f"{line:20} original {original.tolist()}, _version {original._version}")

# %% [markdown]
# <div lang="zh">
#
# `*=` 和下标赋值都是就地修改；`detach()` 共用内存，`clone()` 才是拷贝；`.data` 连 `_version` 都瞒过了。
#
# </div>
# <div lang="en">
#
# `*=` and assignment to an index work in place; `detach()` shares the memory, only `clone()` copies; `.data` hides even
# from `_version`.
#
# </div>
#
# ### 练习 03.4：找出并修好就地修改 · Exercise 03.4: Find and mend the in-place change
#
# ●●● · 6 min
#
# <div lang="zh">
#
# `tame(branch)` 挂两个钩子：去掉负的梯度，再减半。注释里的旧写法弄坏了与 `branch` 相加的那条路。请修好两个，**只留其中一个时也要对**。`clamp(min=0)` 去掉负数。
#
# </div>
# <div lang="en">
#
# `tame(branch)` registers two hooks: drop negative gradients, then halve. The comments hold the old lines, which spoil the
# path that is added to `branch`. Mend both, so that **each is right even when left alone**. `clamp(min=0)` drops negatives.
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
# ## 3.9 实例：只改一条路 · Worked example: change one path only
#
# <div lang="zh">
#
# $L=3x+5x$：`x` 被用了两次。想让 5 那条路不把梯度传回 `x`，在 `x` 上挂钩子不行，两条路的梯度到那里已经加在一起了。
#
# 办法：用 `x.view_as(x)` 造一个值相同的新张量 `y`（和 `x` 共用内存，在图里却是新节点），只让那条路经过它，钩子挂在 `y` 上。**先猜**两次的 `x.grad`。
#
# </div>
# <div lang="en">
#
# $L=3x+5x$ uses `x` twice. The path with the 5 should pass no gradient back to `x`. A hook on `x` cannot do that: there, both
# gradients are already added up.
#
# Instead let `x.view_as(x)` make a new tensor `y` with the same values (it shares memory with `x` but is a node of its own in
# the graph). Only that path runs through it, and the hook is on `y`. **Guess** both `x.grad`.
#
# </div>

# %%
x = torch.tensor(2.0, requires_grad=True)
x.register_hook(lambda grad: grad * 0)
(3 * x + 5 * x).backward()
print("hook on x: x.grad", x.grad)

x = torch.tensor(2.0, requires_grad=True)
y, seen = x.view_as(x), {}
y.register_hook(lambda grad: seen.update(y=grad))  # looks before the change
y.register_hook(lambda grad: grad * 0)
three = 3 * x
loss = three + 5 * y
loss.backward()
print("hook on y: x.grad", x.grad)
ax = plot_graph(loss, {"x": x, "three": three, "y": y, "loss": loss}, gradients=seen)

# %% [markdown]
# ### 练习 03.5：梯度反转 · Exercise 03.5: Gradient reversal
#
# ●●●● · 8 min
#
# <div lang="zh">
#
# 写 `reverse_gradient(x, strength)`：返回一个值和 `x` 相同的张量 `y`。反向传播时，经过 `y` 的梯度乘以 `-strength`；不经过 `y` 的路不受影响。
#
# `x` 不需要梯度时，或者在 `torch.no_grad()` 里（那里不能建图），也要能用：这时的 `y` 可能不需要梯度，也就不接受钩子（第 02 课）。挂之前先问 `y.requires_grad`。
#
# </div>
# <div lang="en">
#
# Write `reverse_gradient(x, strength)`: it returns a tensor `y` with the values of `x`. In backward, the gradient that passes
# `y` is multiplied by `-strength`; paths that do not run through `y` are not affected.
#
# It must also work when `x` requires no gradient, and under `torch.no_grad()`, where it must build no graph: there `y` may
# not require a gradient, and then it does not accept a hook (lesson 02). Check `y.requires_grad` before you register.
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
# ## 3.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 钩子返回的张量取代梯度；什么也不返回，就接着用原来那个张量（但它若被就地改过，就带着改动）。
# 2. 返回的必须是张量，形状和原来一样。
# 3. 钩子按注册次序运行，各接着上一个的结果。
# 4. 加法把同一个张量交给两边：就地修改会弄坏别人的。
# 5. 只想改一条路，就给它一个自己的张量。
#
# </div>
# <div lang="en">
#
# 1. The tensor that a hook returns replaces the gradient; if it returns nothing, the original tensor goes on (with any
#    in-place change in it).
# 2. It must be a tensor of the same shape.
# 3. Hooks run in the order of registration, each on the result of the one before.
# 4. A sum hands one tensor to both sides: an in-place change spoils the other's.
# 5. To change one path only, give it a tensor of its own.
#
# </div>

# %% [markdown]
# ## 3.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么 <code>grad *= 2</code> 危险，<code>grad * 2</code> 不危险？</summary>前者改写原来的张量，别人也许正拿着它；后者是新的。</details>
# <details><summary>2. 就地修改什么时候碰巧没事？</summary>那个张量没有别人拿着，或者别人已经用完了。</details>
# <details><summary>3. 钩子忘了 <code>return</code>，会怎样？</summary>梯度不变，也不报错。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why is <code>grad *= 2</code> dangerous and <code>grad * 2</code> not?</summary>The former overwrites a tensor that somebody else may hold; the latter is new.</details>
# <details><summary>2. When does an in-place change happen to do no harm?</summary>When nobody else holds the tensor, or they are done with it.</details>
# <details><summary>3. A hook forgets <code>return</code>: what happens?</summary>The gradient stays as it is, without an error.</details>
# </div>

# %% [markdown]
# ## 3.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# 域对抗训练（DANN）用的就是 03.5 的梯度反转，可以搜索 `gradient reversal layer`。MuZero 的许多实现里有
# `hidden_state.register_hook(lambda grad: grad * 0.5)`：展开很多步时，让每一步的梯度减半。
#
# </div>
# <div lang="en">
#
# Domain-adversarial training (DANN) uses the gradient reversal of 03.5; search for `gradient reversal layer`. Many
# implementations of MuZero hold the line `hidden_state.register_hook(lambda grad: grad * 0.5)`: unrolled over many steps,
# each step halves the gradient.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
