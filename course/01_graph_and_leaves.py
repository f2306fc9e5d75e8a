# %% tags=["setup"]
import warnings

import matplotlib.pyplot as plt
import torch

from hookedu import LanguageToggle, check, hint, plot_graph, progress, solution

# We look at .grad where PyTorch would rather not have us look; it warns about that, and rightly so.
warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
LanguageToggle()

# %% [markdown]
# ## 1.1 两份一样的权重 · Two weights that look the same
#
# <div lang="zh">
#
# 权重常常从小的数开始。`a` 直接写出 `0.5`，`b` 先建一串 `1`，再乘以 `0.5`。
# 它们的值一样，也都说自己需要梯度。接着对两者做同样的计算，再反向传播，最后交给优化器。
#
# **先猜一猜**：`a.grad` 和 `b.grad` 会一样吗？
#
# </div>
# <div lang="en">
#
# Weights often start small. `a` writes `0.5` down at once; `b` starts from ones (`1`) and multiplies them by `0.5`. Both hold the
# same values, and both say that they require a gradient. Then the same computation runs on each, and backward; last, each is
# handed to an optimizer.
#
# **Guess first**: will `a.grad` and `b.grad` be the same?
#
# </div>

# %%
a = torch.tensor([0.5, 0.5], requires_grad=True)
b = 0.5 * torch.ones(2, requires_grad=True)

print("same values:", torch.equal(a, b), " require a gradient:", a.requires_grad, b.requires_grad)

(3 * a).sum().backward()
(3 * b).sum().backward()

print("a.grad:", a.grad)
print("b.grad:", b.grad)

torch.optim.SGD([a], lr=0.1)
try:
    torch.optim.SGD([b], lr=0.1)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# <div lang="zh">
#
# `b` 没有梯度，优化器也拒收它：它不是**叶子**（leaf）。差别在来历：`a` 是你直接建的，`b` 是算出来的。
#
# </div>
# <div lang="en">
#
# `b` has no gradient, and the optimizer refuses it: it is not a **leaf**. The difference is where they came from: you made `a`
# yourself, `b` was computed.
#
# </div>
#
# ## 1.2 PyTorch 在记账 · PyTorch keeps a record
#
# <div lang="zh">
#
# 凡是用到需要梯度的张量，PyTorch 就把那一步运算记在结果的 `grad_fn` 里。这些记录连起来，就是**计算图**。
# 没有 `grad_fn` 的张量是图的起点，也就是叶子。再看一条链，**先猜**：谁的 `.grad` 会留下？
#
# </div>
# <div lang="en">
#
# Whenever a tensor that requires a gradient is used, PyTorch notes the operation in the result's `grad_fn`. These
# notes, linked up, are the **computation graph**. A tensor without `grad_fn` is where the graph starts: a leaf. Here is a chain.
# **Guess** who keeps a `.grad`.
#
# </div>

# %% tags=["E1"]
x = torch.full((4,), 2.0, requires_grad=True)
y = x**2
z = y.mean()
z.backward()

for name, tensor in {"x": x, "y": y, "z": z}.items():
    made_by = tensor.grad_fn.name() if tensor.grad_fn else None
    print(f"{name}: is_leaf {tensor.is_leaf!s:5}  grad_fn {made_by}")
print("x.grad:", x.grad, " y.grad:", y.grad, " z.grad:", z.grad)
ax = plot_graph(z, {"x": x, "y": y, "z": z})

# %% [markdown]
# <div lang="zh">
#
# 前向传播从左往右，梯度从右往左。它经过 `z` 和 `y`，用完就扔，省下内存；只有叶子 `x`（双线框）留住了自己的那一份。
#
# </div>
# <div lang="en">
#
# Forward runs left to right, the gradient right to left. It passed `z` and `y` and was thrown away after use, which saves
# memory; only the leaf `x` (double frame) kept its share.
#
# </div>
#
# ## 1.3 叶子也分两种 · Two kinds of leaves
#
# <div lang="zh">
#
# 那么，凡是叶子都有梯度吗？下面有 8 个张量。**先猜**每一行的两个布尔值，尤其是 `data`。
#
# </div>
# <div lang="en">
#
# So does every leaf have a gradient? Below are 8 tensors. **Guess** the two booleans in each line, above all for `data`.
#
# </div>

# %%
w = torch.ones(2, requires_grad=True)
data = torch.tensor([3.0, 4.0])
with torch.no_grad():  # nothing is recorded in here
    quiet = 2 * w
cured = (0.5 * torch.ones(2)).requires_grad_()  # b of section 1.1: compute first, then ask for a gradient

tensors = {
    "w": w,
    "data": data,
    "2 * data": 2 * data,
    "2 * w": 2 * w,
    "w.double()": w.double(),
    "w.detach()": w.detach(),
    "quiet": quiet,
    "cured": cured,
}
for name, tensor in tensors.items():
    print(f"{name:11} requires_grad {tensor.requires_grad!s:5}  is_leaf {tensor.is_leaf}")

# %% [markdown]
# <div lang="zh">
#
# 不需要梯度的张量也算叶子，却永远没有梯度。**留住梯度，两样缺一不可**：`requires_grad` 和 `is_leaf`。
# `w.double()`（以及真正搬动数据的 `w.to(device)`）也是算出来的，不再是叶子。`b` 的治法是 `cured`：先算好，再 `requires_grad_()`。
#
# </div>
# <div lang="en">
#
# A tensor that requires no gradient counts as a leaf too, but never gets one. **To keep it takes both**: `requires_grad` and
# `is_leaf`. `w.double()`, like a `w.to(device)` that really moves data, is computed: no longer a leaf. The cure for `b` is `cured`:
# compute first, then `requires_grad_()`.
#
# </div>
#
# ### 练习 01.1：给张量分类 · Exercise 01.1: Classify tensors
#
# ●● · 6 min
#
# <div lang="zh">
#
# 写 `classify(tensors)`：收到字典「名字 → 张量」，返回字典「名字 → 词」。`"keeps"`：反向传播把梯度留在 `.grad`；
# `"passes"`：梯度只是路过；`"none"`：梯度根本不来。卡住了就运行 `hint("01.1")`。
#
# </div>
# <div lang="en">
#
# Write `classify(tensors)`: a dictionary from names to tensors in, one from names to words out. `"keeps"`: backward
# leaves the gradient in `.grad`; `"passes"`: it only passes; `"none"`: none ever comes. Stuck? Run `hint("01.1")`.
#
# </div>


# %% exercise="01.1"
def classify(tensors):
    """返回字典：每个名字对应 "keeps"、"passes" 或 "none"。

    Return a dictionary: for each name "keeps", "passes" or "none".
    """
    ### BEGIN SOLUTION
    kinds = {}
    for name, tensor in tensors.items():
        if not tensor.requires_grad:
            kinds[name] = "none"
        elif tensor.is_leaf:
            kinds[name] = "keeps"
        else:
            kinds[name] = "passes"
    return kinds
    ### END SOLUTION


# %% check="01.1"
check("01.1", classify)

# %% [markdown]
# ## 1.4 两条路，一片叶子 · Two paths, one leaf
#
# <div lang="zh">
#
# 现在 `w` 有两条路通向 `y`：一条经过 `a`，一条经过 `b`。**拿支笔算一算**：`w.grad` 是多少？
#
# </div>
# <div lang="en">
#
# Now `w` has two paths to `y`, one through `a` and one through `b`. **Take a pencil**: what is `w.grad`?
#
# </div>

# %% tags=["E13"]
w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
b = w + 1
y = a * b
y.backward()

print("w.grad:", w.grad, " x.grad:", x.grad)
print("a.grad:", a.grad, " b.grad:", b.grad, " y.grad:", y.grad)
ax = plot_graph(y, {"w": w, "x": x, "a": a, "b": b, "y": y})

# %% [markdown]
# <div lang="zh">
#
# 经过 `b` 的那条路带来 `3`，经过 `a` 的带来 `2`。**各条路**的梯度在汇合处相加，这里是 `w`，得 `5`。
#
# </div>
# <div lang="en">
#
# The path through `b` brought `3`, the one through `a` brought `2`. The gradients of **paths** add up where the paths meet, here at `w`,
# to `5`.
#
# </div>
#
# ## 1.5 再走一遍 · Once more through the graph
#
# <div lang="zh">
#
# `w.grad` 还会把**各次**反向传播的梯度相加。
#
# 反向传播一边走，一边释放图里存着的数；还要再走，就写 `retain_graph=True`。
# 下面对同一个 `y` 做三次 `backward`，再清零。**先猜**每一行。
#
# </div>
# <div lang="en">
#
# And `w.grad` adds up those of all backward **passes**.
#
# As it goes, backward frees the values stored in the graph. If you need them again, say `retain_graph=True`. Below, `backward` runs
# three times on the same `y`, then we clear. **Guess** each line.
#
# </div>

# %%
w = torch.tensor(3.0, requires_grad=True)
y = w**2

y.backward(retain_graph=True)
print("first time: ", w.grad)
y.backward()  # this one frees the graph
print("second time:", w.grad)
try:
    y.backward()
except RuntimeError as error:
    print("third time:  RuntimeError:", str(error).split(" (")[0])

torch.optim.SGD([w], lr=0.1).zero_grad()  # the same as w.grad = None
print("cleared:    ", w.grad)
y = w**2  # a new forward pass builds a new graph
y.backward()
print("new graph:  ", w.grad)

# %% [markdown]
# <div lang="zh">
#
# 所以每个训练循环都要清零：优化器的 `zero_grad()` 做的就是 `w.grad = None`。有时却正要累加。
#
# </div>
# <div lang="en">
#
# So every training loop has to clear: an optimizer's `zero_grad()` does just that, `w.grad = None`. Sometimes, though, adding up is what you
# want.
#
# </div>
#
# ### 练习 01.2：累加与清零 · Exercise 01.2: Add up and zero
#
# ●●● · 7 min
#
# <div lang="zh">
#
# 写 `sum_gradients(w, losses)`：列表 `losses` 里的损失都由 `w` 算出，而且**共用**一段计算图。之后 `w.grad` 应当是它们梯度的总和；
# 调用之前 `w.grad` 里已有的值不算在内。什么也不用返回。
#
# </div>
# <div lang="en">
#
# Write `sum_gradients(w, losses)`. The losses in the list `losses` were computed from `w` and **share** a part of the computation graph. Afterwards
# `w.grad` should be the sum of their gradients, without what it held before. Nothing needs to be returned.
#
# </div>


# %% exercise="01.2"
def sum_gradients(w, losses):
    """让 w.grad 成为所有损失的梯度之和，不含旧的。

    Make w.grad the sum of the gradients of all losses, without the old one.
    """
    ### BEGIN SOLUTION
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=True)
    ### END SOLUTION


# %% check="01.2"
check("01.2", sum_gradients)

# %% [markdown]
# ## 1.6 请它留下 · Ask it to stay
#
# <div lang="zh">
#
# 刚才说 `5` 是 `2` 加 `3`，口说无凭：`a` 和 `b` 的梯度都扔掉了。对非叶子，可以**事先**吩咐一句 `retain_grad()`，
# 让它经过时在 `.grad` 里留一份。
#
# （名字相近：`retain_grad` 留住梯度，`retain_graph` 留住图。）**先猜**：`a.grad` 是 `2` 还是 `3`？
#
# </div>
# <div lang="en">
#
# The `5` was `2` plus `3`, we said, but the gradients of `a` and `b` had been thrown away. Let us see them. You can tell a
# non-leaf **beforehand**, with `retain_grad()`, to keep its gradient in `.grad` as it passes.
#
# (Mind the names: `retain_grad` keeps a gradient, `retain_graph` keeps the graph.) **Guess**: is `a.grad` `2` or `3`?
#
# </div>

# %% tags=["E13"]
w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
b = w + 1
y = a * b
a.retain_grad()
b.retain_grad()
y.backward()

print("kept now: a.grad", a.grad, " b.grad", b.grad)
print("their sum:", a.grad + b.grad, " w.grad:", w.grad)
ax = plot_graph(y, {"w": w, "x": x, "a": a, "b": b, "y": y})

# %% [markdown]
# <div lang="zh">
#
# `a` 的梯度是另一个因子 `b` 的值 `2`，`b` 的梯度是 `a` 的值 `3`。每条路上相乘，路汇合的地方（这里是叶子 `w`）再相加，
# 这就是链式法则。
#
# </div>
# <div lang="en">
#
# The gradient of `a` is the value of the other factor, `b`, namely `2`; that of `b` is the value of `a`, `3`. Multiply along each
# path and add where the paths meet, here at the leaf `w`: that is the chain rule.
#
# </div>
#
# ## 1.7 什么时候吩咐 · When to ask
#
# <div lang="zh">
#
# 如果反向传播以后才想起来吩咐呢？不需要梯度的 `data` 又会怎样？
#
# </div>
# <div lang="en">
#
# And what if you remember to ask only after backward? Or ask `data`, which needs no gradient?
#
# </div>

# %% tags=["F5"]
x = torch.ones(2, requires_grad=True)
y = x**2
y.sum().backward(retain_graph=True)
y.retain_grad()  # too late for this backward
print("asked after backward, y.grad:", y.grad)

y.sum().backward()
print("after the next backward, y.grad:", y.grad)

data = torch.ones(2)
try:
    data.retain_grad()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F5)
#
# <div lang="zh">
#
# `retain_grad()` 只管**以后**的反向传播：过去的梯度已经扔掉，找不回来。不需要梯度的张量会拒绝它。
#
# </div>
# <div lang="en">
#
# `retain_grad()` works from the **next** backward on: the gradient of the last one has been thrown away. A tensor that requires no
# gradient refuses it.
#
# </div>
# </div>
#
# ### 练习 01.3：留住每一个梯度 · Exercise 01.3: Keep every gradient
#
# ●● · 5 min
#
# <div lang="zh">
#
# 写 `keep_all(tensors, loss)`：`loss` 已由字典 `tensors` 里的张量算出。请做一次反向传播，之后每个张量的 `.grad` 里都有它的梯度；
# 跳过 `requires_grad` 为 `False` 的，也不要留下钩子。什么也不用返回。
#
# </div>
# <div lang="en">
#
# Write `keep_all(tensors, loss)`, where `loss` has been computed from the tensors in the dictionary `tensors`. Run backward once so that
# every tensor then has its gradient in `.grad`; skip those whose `requires_grad` is `False`, and leave no hooks on. Nothing needs to be returned.
#
# </div>


# %% exercise="01.3"
def keep_all(tensors, loss):
    """对 loss 做反向传播，让每个张量都留住自己的梯度。

    Run backward from loss so that every tensor keeps its gradient.
    """
    ### BEGIN SOLUTION
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
    loss.backward()
    ### END SOLUTION


# %% check="01.3"
check("01.3", keep_all)

# %% [markdown]
# ## 1.8 一个数不够 · When the output is not one number
#
# <div lang="zh">
#
# 到现在为止，反向传播都从标量出发。如果 `y` 是 3 个数呢？直接 `y.backward()` 会报错：该从哪个数出发？
#
# 你来给每个输出一个权重，组成向量 `v`。`y.backward(v)` 等于 `(v * y).sum().backward()`。**先猜**下面的结果。
#
# </div>
# <div lang="en">
#
# So far, backward always started from a scalar. What if `y` is 3 numbers? A plain `y.backward()` fails: from which of them
# should it start?
#
# You give each output a weight, in a vector `v`: `y.backward(v)` is the same as `(v * y).sum().backward()`. **Guess** what comes out.
#
# </div>

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x**2  # the slopes are 2 * x: 2, 4, 6

try:
    y.backward()
except RuntimeError as error:
    print("RuntimeError:", error)

for v in ([1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 10.0, 1.0]):
    x.grad = None
    y.backward(torch.tensor(v), retain_graph=True)
    print("v =", v, "->", x.grad)

x.grad = None
(torch.tensor(v) * y).sum().backward(retain_graph=True)
print("(v * y).sum(), last v  ->", x.grad)

(slope,) = torch.autograd.grad(y, x, torch.ones(3))
print("autograd.grad returns", slope, "and leaves x.grad at", x.grad)

# %% [markdown]
# <div lang="zh">
#
# `y[i]` 只依赖 `x[i]` 时，全 1 的向量给出各个斜率；`0` 让一个输出不说话。`torch.autograd.grad` 把梯度返回给你（装在元组里），不写 `.grad`。
#
# </div>
# <div lang="en">
#
# Where `y[i]` depends on `x[i]` only, a vector of 1s gives the slopes; a `0` silences an output. `torch.autograd.grad` returns the
# gradient to you (in a tuple) and writes no `.grad`.
#
# </div>
#
# ## 1.9 三次，全在一起 · Three times, all at once
#
# <div lang="zh">
#
# 现在把学过的放在一起：`inp` 是 4 行 5 列，对角线上是 1，其余是 0；`out` 是 $(inp+1)^2$ 的转置。做三次反向传播，第三次之前清零。
# **先猜**：每次之后，对角线上是几？
#
# </div>
# <div lang="en">
#
# Now everything together: `inp` has 4 rows and 5 columns, 1 on the diagonal and 0 elsewhere; `out` is $(inp+1)^2$, transposed. Backward runs three
# times, with zeroing before the third. **Guess** what the diagonal holds after each.
#
# </div>

# %% tags=["E7"]
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).T
v = torch.ones_like(out)  # one weight for each of the 5 * 4 outputs
elsewhere = inp == 0  # off the diagonal

out.backward(v, retain_graph=True)
print("first call:\n", inp.grad)
out.backward(v, retain_graph=True)
print("second call, added up:     diagonal", inp.grad.diagonal(), " elsewhere", inp.grad[elsewhere].unique())
inp.grad.zero_()
out.backward(v, retain_graph=True)
print("third call, after zeroing: diagonal", inp.grad.diagonal(), " elsewhere", inp.grad[elsewhere].unique())

# %% [markdown]
# <div lang="zh">
#
# 刚才的斜率是 $2(inp+1)$：对角线上 4，其余 2；转置只换了位置。
#
# </div>
# <div lang="en">
#
# The slopes just now were $2(inp+1)$: 4 on the diagonal, 2 elsewhere; transposing only moved them.
#
# </div>
#
# ## 1.10 实例：逐行读出雅可比矩阵 · Worked example: read a Jacobian row by row
#
# <div lang="zh">
#
# 如果每个输出都牵涉好几个输入，斜率就排成一张表：**雅可比矩阵** $J$，第 $i$ 行是 $y_i$ 对各个输入的导数。
# `backward(v)` 算的正是 $v^\top J$，所以叫**向量-雅可比积**；整张 $J$ 它从不建出来。
#
# 想看第 $i$ 行，就让 `v` 只在那里取 1。
#
# </div>
# <div lang="en">
#
# If each output depends on several inputs, the slopes form a table: the **Jacobian** $J$, whose row $i$ holds the derivatives of
# $y_i$ with respect to each input. What `backward(v)` computes is $v^\top J$, hence the name **vector-Jacobian product**; the whole $J$ is never built.
#
# To see row $i$, let `v` be 1 only there.
#
# </div>

# %%
x = torch.tensor([2.0, 3.0, 5.0], requires_grad=True)
y = torch.stack([x[0] * x[1], x[1] * x[2], x.sum()])

rows = []
for i in range(3):
    x.grad = None  # a new tensor for each row; zero_() would overwrite the rows we keep
    y.backward(torch.eye(3)[i], retain_graph=True)  # 1 in place i, 0 elsewhere
    rows.append(x.grad)
J = torch.stack(rows)

fig, ax = plt.subplots(figsize=(3.2, 2.6), layout="constrained")
ax.imshow(J, cmap="RdBu_r", vmin=-8, vmax=8)
for i in range(3):
    for j in range(3):
        ax.text(j, i, f"{J[i, j]:g}", ha="center", va="center")
ax.set(xticks=range(3), xticklabels=["x[0]", "x[1]", "x[2]"])
ax.set(yticks=range(3), yticklabels=["y[0]", "y[1]", "y[2]"], title="Jacobian: d y[i] / d x[j]")

v = torch.tensor([1.0, 2.0, 3.0])
x.grad = None
y.backward(v)
print("v @ J:        ", v @ J)
print("y.backward(v):", x.grad)

# %% [markdown]
# ### 练习 01.4：选一个向量 · Exercise 01.4: Choose the vector
#
# ●●●● · 8 min
#
# <div lang="zh">
#
# 反过来：结果给定，求 `v`。`y` 由 `x` **逐元素**算出（`y[i]` 只依赖 `x[i]`），公式你不知道。
#
# 写 `choose_vector(x, y, wanted)`：返回 `v`，使调用者接着执行 `y.backward(v)` 之后，`x.grad` 等于 `wanted`。
# 调用之前 `x.grad` 是 `None`，让它仍是 `None`；也别释放计算图，`torch.autograd.grad` 也会释放它。
#
# </div>
# <div lang="en">
#
# The other way round: the result is given, find `v`. `y` was computed from `x` **element by element** (`y[i]` depends on `x[i]` only), by a
# formula that you do not know.
#
# Write `choose_vector(x, y, wanted)`. Return `v` such that, when your caller then runs `y.backward(v)`, `x.grad` equals `wanted`. Before the
# call `x.grad` is `None`: leave it `None`. And do not free the computation graph, which `torch.autograd.grad` does too.
#
# </div>


# %% exercise="01.4"
def choose_vector(x, y, wanted):
    """返回向量 v，使 y.backward(v) 之后 x.grad 等于 wanted。

    Return a vector v such that after y.backward(v), x.grad equals wanted.
    """
    ### BEGIN SOLUTION
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return wanted / slope
    ### END SOLUTION


# %% check="01.4"
check("01.4", choose_vector)

# %% [markdown]
# ## 1.11 钩子，第一眼 · Hooks, a first glimpse
#
# <div lang="zh">
#
# `retain_grad` 只会留一份。若想趁梯度经过时自己做点什么，就用 `register_hook` 挂一个**钩子**：它是个函数，收到梯度，可以返回新的来替换。
#
# 下面的 `v` 本身就是叶子，`v.backward(g)` 直接把 `g` 送进 `v.grad`；钩子半路把它平方。
# 再下一格的两个钩子只看不改：`print` 什么也不返回，梯度照旧。**先猜** `v.grad`，以及 `y`、`a` 上的钩子看到什么。
#
# </div>
# <div lang="en">
#
# `retain_grad` only keeps. To do more while the gradient passes, register a **hook** with `register_hook`: a
# function that gets the gradient and may return a new one.
#
# Below, `v` is itself a leaf: `v.backward(g)` sends `g` straight into `v.grad`, and a hook squares it on the way. The two hooks in the
# cell after it only look: `print` returns nothing, so the gradient goes on as it was. **Guess** `v.grad`, and what the hooks on `y` and
# `a` see.
#
# </div>

# %% tags=["E6"]
v = torch.zeros(3, requires_grad=True)
g = torch.tensor([1.0, 2.0, 3.0])
v.backward(g)
print("without a hook, v.grad:", v.grad)

v.grad = None
v.register_hook(lambda grad: grad**2)
v.backward(g)
print("with the hook,  v.grad:", v.grad)

# %% tags=["E1", "E13"]
x = torch.full((4,), 2.0, requires_grad=True)
y = x**2
y.register_hook(lambda grad: print("the hook on y saw:", grad))
y.mean().backward()

w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
a.register_hook(lambda grad: print("the hook on a saw:", grad))
(a * (w + 1)).backward()

print("y.grad:", y.grad, " a.grad:", a.grad)

# %% [markdown]
# <div lang="zh">
#
# `v.grad` 里是平方。后两个钩子看到的梯度，`y.grad` 和 `a.grad` 却没有留下。
#
# </div>
# <div lang="en">
#
# `v.grad` holds the squares. The hooks saw gradients that `y.grad` and `a.grad` did not keep.
#
# </div>
#
# ## 1.12 小结 · Recap
#
# <div lang="zh">
#
# 1. 梯度留在叶子里：`requires_grad` 和 `is_leaf` 都得为真。
# 2. 非叶子要留住梯度，须在反向传播之前调用 `retain_grad()`。
# 3. `.grad` 只会累加：每次反向传播都加上去，用 `w.grad = None` 清掉。一次之内，各条路的梯度在汇合处相加。
# 4. 同一张图要走两遍，第一遍写 `retain_graph=True`。
# 5. `y.backward(v)` 算的是 $v^\top J$。
#
# </div>
# <div lang="en">
#
# 1. Gradients stay in leaves: `requires_grad` and `is_leaf` must both be true.
# 2. To keep a non-leaf's gradient, call `retain_grad()` before backward.
# 3. `.grad` only adds: every backward pass adds to it; clear with `w.grad = None`. Within one pass, paths add up where they meet.
# 4. To go through a graph twice, say `retain_graph=True` the first time.
# 5. `y.backward(v)` computes $v^\top J$.
#
# </div>

# %% [markdown]
# ## 1.13 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. <code>b = 0.5 * torch.ones(2, requires_grad=True)</code>，为什么 <code>b.grad</code> 是 <code>None</code>？</summary>它是乘出来的；叶子是那个没有名字、全为 1 的张量。</details>
# <details><summary>2. 再做一次反向传播，梯度为什么翻倍？</summary><code>.grad</code> 会累加。</details>
# <details><summary>3. 怎样读出雅可比矩阵的一行？</summary>让 <code>v</code> 只在那一行取 1。</details>
# </div>
# <div lang="en">
# <details><summary>1. <code>b = 0.5 * torch.ones(2, requires_grad=True)</code>: why is <code>b.grad</code> <code>None</code>?</summary>It is a product; the leaf is the nameless tensor of 1s.</details>
# <details><summary>2. Why does a second backward double the gradient?</summary><code>.grad</code> adds up.</details>
# <details><summary>3. How do you read one row of a Jacobian?</summary>Let <code>v</code> be 1 in that row only.</details>
# </div>
#
# ## 1.14 真实世界里 · In the wild
#
# <div lang="zh">
#
# 显存放不下大批次时，就把它拆开，做几次反向传播才清一次零，这叫**梯度累积**（搜索 `gradient_accumulation_steps`）。
# 下一站：第 02 课，钩子。下面是你的进度。
#
# </div>
# <div lang="en">
#
# A batch too large for memory is split, and gradients are cleared only after several backward passes: **gradient accumulation**
# (search for `gradient_accumulation_steps`). Next, lesson 02: hooks. Below is your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
