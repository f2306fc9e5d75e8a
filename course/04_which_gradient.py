# %% tags=["setup"]
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

from hookedu import LanguageToggle, check, hint, plot_graph, progress, solution

LanguageToggle()

# %% [markdown]
# ## 4.1 写在前面，就在前面吗 · Written first, run first?
#
# <div lang="zh">
#
# `a` 是 7，`b` 是 13，`c = a * b`。`c.retain_grad()` 让 `c` 也把梯度留在 `.grad` 里。
#
# 下面先不挂钩子跑一遍；再跑一遍，**先**调用 `retain_grad`，**后**挂一个给梯度加 2 的钩子。
# **先猜**：第二遍的 `c.grad` 是 1 还是 3？
#
# </div>
# <div lang="en">
#
# `a` is 7, `b` is 13 and `c = a * b`. With `c.retain_grad()`, `c` keeps its gradient in `.grad` as well.
#
# The next cell runs once without a hook. Then it runs again: `retain_grad` is called **first**, and a hook that adds 2 to
# the gradient is attached **second**. **Guess**: in the second run, is `c.grad` 1 or 3?
#
# </div>

# %% tags=["E20"]
a = torch.tensor(7.0, requires_grad=True)
b = torch.tensor(13.0, requires_grad=True)
c = a * b
c.retain_grad()
c.backward()
print("without a hook: a.grad", a.grad.item(), " b.grad", b.grad.item(), " c.grad", c.grad.item())

a.grad = b.grad = None
c = a * b
c.retain_grad()  # first
c.register_hook(lambda grad: grad + 2)  # second
c.backward()
print("with the hook:  a.grad", a.grad.item(), " b.grad", b.grad.item(), " c.grad", c.grad.item())
ax = plot_graph(c, {"a": a, "b": b, "c": c})

# %% [markdown]
# <div lang="zh">
#
# `c.grad` 是 3：到达 `c` 的是 1，钩子把它改成 3，继续往下传的就是 3，所以 `a.grad` 是 $3 \cdot 13 = 39$。
#
# </div>
# <div lang="en">
#
# `c.grad` is 3: what reached `c` was 1, the hook made it 3, and 3 is what flowed on. Hence `a.grad` is $3 \cdot 13 = 39$.
#
# </div>
#
# ## 4.2 `retain_grad` 不排队 · `retain_grad` does not queue
#
# <div lang="zh">
#
# 可是 `retain_grad` 明明写在钩子前面。把两行对调，会不一样吗？再让钩子自己看一眼 `c.grad`。
#
# </div>
# <div lang="en">
#
# And yet `retain_grad` was written before the hook. Does it matter if the two lines change places? And what does the hook
# itself find in `c.grad`?
#
# </div>


# %% tags=["F2", "E20"]
def gradients(*steps):
    a = torch.tensor(7.0, requires_grad=True)
    b = torch.tensor(13.0, requires_grad=True)
    c = a * b

    def add_two(grad):
        print("   in the hook, c.grad is", c.grad)
        return grad + 2

    for step in steps:
        if step == "retain_grad":
            c.retain_grad()
        else:
            c.register_hook(add_two)
    c.backward()
    return a.grad.item(), b.grad.item(), c.grad.item()


print("retain_grad, then hook:", gradients("retain_grad", "hook"))
print("hook, then retain_grad:", gradients("hook", "retain_grad"))

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F2)
#
# <div lang="zh">
#
# 以为 `retain_grad` 存的是「刚到」的梯度。张量钩子按注册的次序一个个运行，`retain_grad` 不排这个队：
# 它总在最后，存下**继续往下传**的梯度。所以钩子运行时 `c.grad` 还是 `None`。想看没改过的，就把自己的钩子注册在最前面。
#
# </div>
# <div lang="en">
#
# Thinking that `retain_grad` stores the gradient as it arrives. Tensor hooks run in the order they were registered, but
# `retain_grad` does not queue: it comes last and stores what **flows on**. That is why the hook still finds `None` in
# `c.grad`. To see the unchanged gradient, register a hook of your own first.
#
# </div>
# </div>
#
# ## 4.3 路过的和加好的 · What passes and what adds up
#
# <div lang="zh">
#
# 叶子上有两种钩子：张量钩子，和第 02 课见过的 post-accumulate 钩子。反向传播两次，不清零。
# **先猜**：第 2 次的 4 行各是多少？
#
# </div>
# <div lang="en">
#
# A leaf can carry a tensor hook and the post-accumulate hook of lesson 02. Backward runs twice, nothing is zeroed.
# **Guess** the 4 lines of backward 2.
#
# </div>

# %%
w = torch.tensor(1.0, requires_grad=True)
y = 2 * w

y.register_hook(lambda grad: print("   hook on y:           ", grad))
y.retain_grad()
w.register_hook(lambda grad: print("   hook on w:           ", grad, "while w.grad is", w.grad))
w.register_post_accumulate_grad_hook(lambda param: print("   post-accumulate on w:", param.grad))

for number in (1, 2):
    print("backward", number)
    (5 * y).backward(retain_graph=True)
    print("   y.grad afterwards:   ", y.grad)

# %% [markdown]
# <div lang="zh">
#
# 钩子看到的是**这一次**路过的：`5` 和 `10`，两次都一样。两个 `.grad` 里是**加好的**：`y.grad` 从 `5` 到 `10`，`w.grad` 从 `10` 到 `20`。
# `w` 上的张量钩子运行时，这一次的还没加进 `w.grad`；post-accumulate 钩子运行时，已经加好。
#
# 把一次反向传播的每一站都画出来。这回 `y` 上有 3 个钩子，第 2 个给梯度加 1（`retain_grad` 的位置依 4.2 节，由我们补上）：
#
# </div>
# <div lang="en">
#
# Hooks see what passes in **this** backward: `5` and `10`, both times. The two `.grad` hold the sum: `y.grad` goes from
# `5` to `10`, `w.grad` from `10` to `20`. While the tensor hook on `w` runs, this pass is not yet in `w.grad`; when
# the post-accumulate hook runs, it is.
#
# Here are all stations of one backward. This time `y` has 3 hooks, and hook 2 adds 1 to the gradient (we place
# `retain_grad` ourselves, by section 4.2):
#
# </div>

# %%
w = torch.tensor(1.0, requires_grad=True)
y = 2 * w
stations = []


def add_one(grad):
    stations.append(("hook 2 on y\nreturns", grad + 1))
    return grad + 1


y.register_hook(lambda grad: stations.append(("hook 1 on y\nsees", grad)))
y.retain_grad()
y.register_hook(add_one)
y.register_hook(lambda grad: stations.append(("hook 3 on y\nsees", grad)))
w.register_hook(lambda grad: stations.append(("hook on w\nsees", grad)))
w.register_post_accumulate_grad_hook(lambda p: stations.append(("post-accumulate\nw.grad is", p.grad)))
(5 * y).backward()
stations.insert(3, ("retain_grad\ny.grad is", y.grad))  # after the hooks, as in 4.2
fig, ax = plt.subplots(figsize=(9, 1.2), layout="constrained")
box = {"boxstyle": "rarrow", "fc": "#e3eefa"}
for at, (station, value) in enumerate(stations):
    ax.text(at, 0, f"{station} {value:g}", ha="center", va="center", bbox=box)
ax.set(xlim=(-0.5, len(stations) - 0.4), ylim=(-1, 1))
ax.set_axis_off()

# %% [markdown]
# ### 练习 04.1：预测 4 个数 · Exercise 04.1: Predict 4 values
#
# ●● · 8 min
#
# ```python
# k, m, s = 3, 5, 1
# look = look_w = lambda grad: print(grad)
# look_after = lambda param: print(param.grad)
# w = torch.tensor(1.0, requires_grad=True)
# y = k * w
# y.register_hook(look)
# y.retain_grad()
# y.register_hook(lambda grad: grad + s)
# w.register_hook(look_w)
# w.register_post_accumulate_grad_hook(look_after)
# (m * y).backward(retain_graph=True)
# (m * y).backward()
# ```
#
# <div lang="zh">
#
# 三个 `look` 只看不改。写 `predict(k, m, s)`，按次序返回**第 2 次**反向传播里的 4 个数：`look` 看到的，之后的 `y.grad`，
# `look_w` 看到的，`look_after` 看到的 `param.grad`。只用加法和乘法；拿不准，就另开一个单元跑一跑。
#
# </div>
# <div lang="en">
#
# The three `look` functions only look. Write `predict(k, m, s)` and return, in this order, 4 numbers of backward
# **number 2**: what `look` sees, `y.grad` afterwards, what `look_w` sees, and the `param.grad` that `look_after` sees.
# Use nothing but sums and products; if in doubt, try it in a cell of your own.
#
# </div>


# %% exercise="04.1"
def predict(k, m, s):
    """返回第 2 次反向传播里的 4 个数。

    Return the 4 numbers of the second backward.
    """
    ### BEGIN SOLUTION
    look = m  # runs before the change, and sees this pass only
    y_grad = 2 * (m + s)  # what left y, added up over both passes
    look_w = k * (m + s)  # the changed gradient flowed on; this pass only
    w_grad = 2 * look_w  # added up
    return look, y_grad, look_w, w_grad
    ### END SOLUTION


# %% check="04.1"
check("04.1", predict)

# %% [markdown]
# ## 4.4 没有人写叶子的 `.grad` 的时候 · When nobody writes a leaf's `.grad`
#
# <div lang="zh">
#
# `torch.autograd.grad` 把梯度直接返回给你，不写叶子的 `.grad`。第 02 课数过两种，现在加上 `retain_grad`。
# **先猜**：张量钩子、post-accumulate 钩子、`retain_grad`，哪些照常工作？post-accumulate 钩子能不能挂在 `y` 上？
#
# </div>
# <div lang="en">
#
# `torch.autograd.grad` hands the gradient straight to you and writes no `.grad` of a leaf. Lesson 02 counted two; now
# add `retain_grad`. **Guess**: which still work, the tensor hook, the post-accumulate hook, `retain_grad`? And can a
# post-accumulate hook be attached to `y`?
#
# </div>

# %% tags=["F3"]
w = torch.tensor(3.0, requires_grad=True)
y = 2 * w
fired = {"tensor hook": 0, "post-accumulate hook": 0}


def on_accumulated(param):
    fired["post-accumulate hook"] += 1


w.register_hook(lambda grad: fired.update({"tensor hook": fired["tensor hook"] + 1}))
w.register_post_accumulate_grad_hook(on_accumulated)
y.retain_grad()
torch.autograd.grad(y**2, w, retain_graph=True)
print("after autograd.grad:", fired)
print("   y.grad:", y.grad, " w.grad:", w.grad)
(y**2).backward()
print("after backward:     ", fired)
print("   y.grad:", y.grad, " w.grad:", w.grad)
try:
    y.register_post_accumulate_grad_hook(on_accumulated)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F3)
#
# <div lang="zh">
#
# 把 post-accumulate 钩子当成张量钩子用。它只能挂在叶子上；没人写叶子的 `.grad` 就不触发；收到的是**参数**，梯度在 `param.grad` 里。
# 张量钩子和 `retain_grad` 却两种情况都工作。
#
# </div>
# <div lang="en">
#
# Using a post-accumulate hook like a tensor hook. It goes on leaves only, is silent where nobody writes a leaf's
# `.grad`, and receives the **parameter** (gradient: `param.grad`). Tensor hooks and `retain_grad` work either way.
#
# </div>
# </div>
#
# ## 4.5 用完就放 · Use it and let it go
#
# <div lang="zh">
#
# post-accumulate 钩子触发时，这个参数的梯度已经写完，反向传播自己不再用它。只要你也不需要各参数一起看（如按总范数裁剪），也不做梯度累积，
# 就可以当场用掉、当场放掉。每次触发时，有几个参数留着 `.grad`？
#
# </div>
# <div lang="en">
#
# When a post-accumulate hook fires, its parameter's gradient is complete, and backward no longer needs it. Unless you
# need all gradients together (clipping by total norm) or accumulate over passes, use it and let it go. How many
# parameters hold a `.grad` whenever one fires?
#
# </div>

# %%
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1))


def count_alive(let_go):
    alive = []

    def on_accumulated(param):
        alive.append(sum(p.grad is not None for p in model.parameters()))
        if let_go:
            param.grad = None

    handles = [p.register_post_accumulate_grad_hook(on_accumulated) for p in model.parameters()]
    model(torch.ones(2, 4)).sum().backward()
    for handle in handles:
        handle.remove()
    model.zero_grad()
    return alive


print("kept:  ", count_alive(let_go=False))
print("let go:", count_alive(let_go=True))

# %% [markdown]
# <div lang="zh">
#
# 留着，`.grad` 就越积越多，一直到 6 个；用完就放，从来只有 1 个。训练大模型时，这省下的内存几乎有整个模型那么大。
#
# 动手之前再看两件事：反向传播里，梯度模式（就是 `torch.no_grad()` 关掉的那个）开着吗？post-accumulate 钩子可以返回东西吗？
#
# </div>
# <div lang="en">
#
# Kept, the `.grad` pile up until there are 6; let go, there is never more than 1. In a large model that saves nearly as
# much memory as the model itself takes.
#
# Two more things before you try it: is grad mode (what `torch.no_grad()` switches off) on during backward, and may
# a post-accumulate hook return something?
#
# </div>

# %%
w = torch.tensor(3.0, requires_grad=True)
handle = w.register_post_accumulate_grad_hook(
    lambda param: print("grad mode is on:", torch.is_grad_enabled())
)
(w**2).backward()
handle.remove()

w.register_post_accumulate_grad_hook(lambda param: 0.5 * param.grad)  # returns a new tensor
try:
    (w**2).backward()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 梯度模式是关着的，所以可以就地改参数。钩子应当返回 `None`：返回新的张量就报错。
# 写 `def`，就不会顺手返回什么。
#
# </div>
# <div lang="en">
#
# Grad mode is off, so parameters may change in place. The hook should return `None`: a new tensor is an error.
# A `def` returns nothing by accident.
#
# </div>
#
# ### 练习 04.2：反向传播里的 SGD · Exercise 04.2: SGD inside backward
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 写 `sgd_in_backward(model, lr)`：此后每次 `backward()`，每个参数各走一步 SGD（减去 `lr` 乘梯度），并把自己的 `.grad` 放掉。
# 只用到一部分参数的反向传播也如此；两个模块共用的参数也只走一步。跳过冻结的参数（`requires_grad` 为 `False`，
# 它们的 `.grad` 也不动）；几次调用互不影响；返回句柄的列表。
#
# </div>
# <div lang="en">
#
# Write `sgd_in_backward(model, lr)`: in every later `backward()` each parameter it reaches, also one that modules share,
# takes one SGD step (subtract `lr` times the gradient) and lets its `.grad` go. Skip frozen ones (`requires_grad` is
# `False`), their `.grad` too. Calls must not affect each other; return a list of the handles.
#
# </div>


# %% exercise="04.2"
def sgd_in_backward(model, lr):
    """让每个参数在反向传播里走一步 SGD 并放掉 .grad；返回句柄的列表。

    Let every parameter take its SGD step inside backward and let .grad go; return the list of handles.
    """

    ### BEGIN SOLUTION
    def step(param):
        param -= lr * param.grad  # grad mode is off
        param.grad = None

    handles = []
    for param in model.parameters():
        if param.requires_grad:
            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles
    ### END SOLUTION


# %% check="04.2"
check("04.2", sgd_in_backward)

# %% [markdown]
# ## 4.6 就地修改之后 · After a change in place
#
# <div lang="zh">
#
# `y = 3 * x`，挂钩子，`retain_grad`，然后 `y.mul_(2)` 就地翻倍。变量还是 `y`，图却多了一步。
# **先猜**：钩子和 `y.grad` 看到的是同一个梯度吗？
#
# </div>
# <div lang="en">
#
# `y = 3 * x`, then a hook, then `retain_grad`; and then `y.mul_(2)` doubles it in place. The variable is still `y`, but
# the graph has one step more. **Guess**: do the hook and `y.grad` get the same gradient?
#
# </div>

# %% tags=["F4"]
x = torch.tensor(1.0, requires_grad=True)
y = 3 * x
seen = []
y.register_hook(seen.append)
y.retain_grad()
y.mul_(2)
y.register_hook(lambda grad: print("a hook from after mul_ saw:", grad))
y.backward()
print("the hook from before saw:  ", seen[0])
print("y.grad:                    ", y.grad)

# The same, with a name for each value
x = torch.tensor(1.0, requires_grad=True)
seen = []
old = 3 * x
old.register_hook(seen.append)
y = 2 * old
y.retain_grad()
y.backward()
ax = plot_graph(y, {"x": x, "old": old, "y": y}, gradients={"old": seen[0]})

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F4)
#
# <div lang="zh">
#
# 先挂钩子，再就地修改张量。旧钩子留在**旧的值**上（图里的 `old`），看到 `2`；`retain_grad` 跟着张量 `y` 本身走，存下**新的值**的梯度 `1`。
# 等就地修改都做完再挂，或者干脆不就地修改。
#
# </div>
# <div lang="en">
#
# Changing a tensor in place after attaching a hook. The hook stays with the **old value** (`old` in the picture) and
# sees `2`; `retain_grad` follows the tensor `y` itself and stores `1`, the gradient of the **new value**. Attach hooks
# after the last change in place, or change nothing in place.
#
# </div>
# </div>
#
# ## 4.7 几个梯度一起看 · Several gradients at once
#
# <div lang="zh">
#
# 要比较两个梯度，得等它们都到齐。`register_multi_grad_hook` 替你等。**先猜**：如果这次只用到 `a`，它会一直等 `b` 吗？
#
# </div>
# <div lang="en">
#
# To compare two gradients, both must be there. `register_multi_grad_hook` waits for you. **Guess**: if only `a` is
# used, does it wait for `b` forever?
#
# </div>

# %% tags=["F29"]
x = torch.tensor(2.0, requires_grad=True)
a, b = 3 * x, 5 * x
a.register_hook(lambda grad: print("   a arrives"))
b.register_hook(lambda grad: print("   b arrives"))
handle = register_multi_grad_hook((a, b), lambda grads: print("   multi-grad hook:", grads))

print("both are used")
(a * b).backward(retain_graph=True)
print("only a is used")
(7 * a).backward(retain_graph=True)
handle.remove()

x.grad = None
a, b = 3 * x, 5 * x
with register_multi_grad_hook((a, b), lambda grads: [0 * grad for grad in grads]):
    (a * b).backward()
print("x.grad, though the hook returned zeros:", x.grad)

register_multi_grad_hook((x,), print)  # x is a leaf
try:
    torch.autograd.grad(3 * x, x)
except RuntimeError as error:
    print("RuntimeError:", str(error).split(".")[0])

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F29)
#
# <div lang="zh">
#
# 指望它改梯度，或者报告先后。它**到齐了才运行一次**，按你给的次序交出一个列表（`b` 先到，列表里还是 `a` 在前）；
# 没用到的是 `None`；返回什么都不算数。列表里有叶子、又用 `torch.autograd.grad` 求它的梯度，就会报错。
#
# </div>
# <div lang="en">
#
# Expecting it to change gradients, or to tell who came first. It runs **once, when all are there**, with a list in the
# order you named them (`b` arrives first, `a` stands first). An unused one gives `None`; what it returns is ignored.
# Asking `torch.autograd.grad` for a leaf in the list fails.
#
# </div>
# </div>
#
# ## 4.8 实例：两个损失在拔河 · Worked example: two losses in a tug-of-war
#
# <div lang="zh">
#
# 一个点，两个目标，两个损失的梯度分别从 `for_a` 和 `for_b` 回来。到齐时算一次余弦：`1` 是同向，`-1` 是正相反。
#
# </div>
# <div lang="en">
#
# One point, two goals. The gradients of two losses come back through `for_a` and `for_b`; take their cosine: `1` means
# the same way, `-1` opposite ways.
#
# </div>

# %%
goals = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
point = torch.zeros(2, requires_grad=True)
cosines = []


def compare(grads):
    cosines.append(torch.cosine_similarity(*grads, dim=0).item())


for _ in range(25):
    for_a, for_b = point.clone(), point.clone()  # a branch for each loss, with a gradient of its own
    register_multi_grad_hook((for_a, for_b), compare)  # new tensors in each step: nothing to remove
    loss = (for_a - goals[0]).square().sum() + (for_b - goals[1]).square().sum()
    loss.backward()
    with torch.no_grad():
        point -= 0.04 * point.grad
        point.grad = None

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.axhline(0, color="gray", linewidth=0.8)
ax.plot(cosines, marker="o", markersize=3)
ax.set(xlabel="step", ylabel="cosine", ylim=(-1.1, 1.1))
print(f"first step: {cosines[0]:.2f}, last step: {cosines[-1]:.2f}")

# %% [markdown]
# <div lang="zh">
#
# 起初两个损失往同一边拉，点走到两个目标之间，两股拉力就互相抵消。多任务训练里，这就叫梯度冲突。
#
# </div>
# <div lang="en">
#
# At first both losses pull the same way; between the two goals they cancel. In training with several tasks this is
# called gradient conflict.
#
# </div>
#
# ## 4.9 该用哪一个 · Which one to use
#
# <div lang="zh">
#
# | | 挂在 | 看到 | `autograd.grad` 下 | 改梯度 |
# |---|---|---|---|---|
# | `register_hook` | 张量 | 这一次的梯度 | 触发 | 能，返回新的 |
# | `retain_grad` | 非叶子 | 钩子之后的，累加 | 照存 | 否 |
# | post-accumulate | 叶子 | 参数 | 不触发 | 只能改 `.grad` |
# | multi-grad | 几个张量 | 一串梯度 | 触发；求叶子则报错 | 否 |
#
# </div>
# <div lang="en">
#
# | | goes on | sees | in `autograd.grad` | may change it |
# |---|---|---|---|---|
# | `register_hook` | a tensor | this pass's gradient | fires | yes, by returning |
# | `retain_grad` | a non-leaf | the hooks' result, summed | stores it | no |
# | post-accumulate | a leaf | the parameter | silent | `.grad` only |
# | multi-grad | some tensors | their gradients | fires; fails for leaves | no |
#
# </div>

# %% [markdown]
# ### 练习 04.3：冻结嵌入的几行 · Exercise 04.3: Freeze rows of an embedding
#
# ●●● · 8 min
#
# <div lang="zh">
#
# `nn.Embedding` 的 `embedding.weight` 里，一行是一个词的向量；有些词不该再学。写 `freeze_rows(embedding, rows)`：
# 列表 `rows`（不空，各不相同，没有负数）中的行，梯度总是零，其余照旧，`.grad` 里先前攒下的也照旧；dtype 不限；返回句柄。
# 用 `torch.autograd.grad` 来要梯度，或者直接用 `embedding.weight` 计算，也得如此；
# 别的张量的梯度不能受影响（第 03 课）。先想好：用哪种钩子？
#
# </div>
# <div lang="en">
#
# Each row of `embedding.weight` in `nn.Embedding` is the vector of a word; some should learn no more. Write
# `freeze_rows(embedding, rows)`: for the rows in the list `rows` (not empty, all different, none negative) the gradient
# is always zero; the others, and what lay in `.grad` before, stay; any dtype. Return the handle. It must hold under `torch.autograd.grad` and where `embedding.weight` is used directly, and no other
# tensor's gradient may suffer (lesson 03). Decide first: which kind of hook?
#
# </div>


# %% exercise="04.3"
def freeze_rows(embedding, rows):
    """让 embedding.weight 的梯度在 rows 这些行上为零；返回句柄。

    Make the gradient of embedding.weight zero in these rows; return the handle.
    """

    ### BEGIN SOLUTION
    def freeze(grad):
        grad = grad.clone()  # it may be somebody else's gradient too
        grad[rows] = 0
        return grad

    return embedding.weight.register_hook(freeze)
    ### END SOLUTION


# %% check="04.3"
check("04.3", freeze_rows)

# %% [markdown]
# ### 练习 04.4：按反向传播的次序记下范数 · Exercise 04.4: Norms in backward order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `watch_norms(model, seen)`：每次反向传播时，谁的梯度先到，就先往列表 `seen` 里添一对 `(name, norm)`。
# 名字来自 `model.named_parameters()`；范数取自**这一次**的梯度，有没有人清零 `.grad` 都一样，零也要记，不取整；记成 Python 的数（`.item()`）。
# `seen` 里先有的东西要留着。跳过冻结的参数；返回句柄的列表。
#
# </div>
# <div lang="en">
#
# Write `watch_norms(model, seen)`: in every backward, as each gradient arrives, a pair `(name, norm)` is added to the
# list `seen`. Names come from `model.named_parameters()`; the norm, a Python number (`.item()`), is that of **this**
# pass's gradient, whether or not anybody zeroed `.grad`; note a norm of zero as well, and do not round. Whatever lies in `seen` before
# stays there. Skip frozen parameters; return a list of the handles.
#
# </div>


# %% exercise="04.4"
def watch_norms(model, seen):
    """按到达的次序把 (name, norm) 放进 seen；返回句柄的列表。

    Put (name, norm) into seen, in order of arrival; return the list of handles.
    """
    ### BEGIN SOLUTION
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(grad, name=name):
                seen.append((name, grad.norm().item()))

            handles.append(param.register_hook(note))
    return handles
    ### END SOLUTION


# %% check="04.4"
check("04.4", watch_norms)

# %% [markdown]
# ## 4.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 张量钩子看这一次路过的梯度，按注册的次序运行。
# 2. `retain_grad` 在所有张量钩子之后，存下它们改过的梯度。
# 3. post-accumulate 钩子等 `.grad` 加好，收到参数，应当返回 `None`。
# 4. multi-grad 钩子等到齐了看一次，改不了梯度。
# 5. 就地修改之后，旧钩子留在旧的值上。
#
# </div>
# <div lang="en">
#
# 1. Tensor hooks see what passes this time, in the order they were registered.
# 2. `retain_grad` comes after all tensor hooks and stores what they made of it.
# 3. A post-accumulate hook waits until `.grad` is summed, receives the parameter and should return `None`.
# 4. A multi-grad hook looks once, when all are there, and changes nothing.
# 5. After a change in place, an old hook stays with the old value.
#
# </div>

# %% [markdown]
# ## 4.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 先 <code>retain_grad</code>，后挂改梯度的钩子，<code>.grad</code> 里是哪个梯度？</summary>改过的：<code>retain_grad</code> 总在张量钩子之后。</details>
# <details><summary>2. 想在 <code>.grad</code> 写好之后立刻用掉它，用哪种钩子？</summary>post-accumulate 钩子，它收到参数。</details>
# <details><summary>3. 为什么 multi-grad 钩子看不出梯度到达的先后？</summary>它等到齐才运行，按你给的次序排列。</details>
# </div>
# <div lang="en">
# <details><summary>1. First <code>retain_grad</code>, then a hook that changes the gradient: which one is in <code>.grad</code>?</summary>The changed one: <code>retain_grad</code> always comes after the tensor hooks.</details>
# <details><summary>2. Which hook lets you use <code>.grad</code> up as soon as it is written?</summary>The post-accumulate hook, which receives the parameter.</details>
# <details><summary>3. Why can a multi-grad hook not tell which gradient arrived first?</summary>It runs when all are there, and lists them in the order you named them.</details>
# </div>

# %% [markdown]
# ## 4.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# torchtune 微调大模型时就把优化器放进反向传播（搜索 `register_optim_in_bwd_hooks`）；PyTorch 的 FSDP 在 `_runtime_utils.py` 里两种都用：
# post-accumulate 钩子和 `register_multi_grad_hook`。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# torchtune fine-tunes large models with the optimizer inside backward (search for `register_optim_in_bwd_hooks`). The
# FSDP of PyTorch uses both post-accumulate hooks and `register_multi_grad_hook`, in `_runtime_utils.py`. Below is your
# progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
