# %% tags=["setup"]
import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

from hookedu import GradientFlow, LanguageToggle, check, guess, hint, plot_graph, progress, solution

# With create_graph=True PyTorch warns of a reference cycle; it does no harm in examples this small.
warnings.filterwarnings("ignore", message="Using backward.* with create_graph=True")
LanguageToggle()

# %% [markdown]
# ## 4.1 同一个梯度，四种看法 · One gradient, four views
#
# <div lang="zh">
#
# 「这里的梯度是多少？」听起来只有一个答案。可是在 PyTorch 里，看梯度的工具不止一种。这一课用四种：张量钩子、`retain_grad`、post-accumulate 钩子，还有一次看几个梯度的 multi-grad 钩子。它们看的是同一个梯度，给出的数却可能不同。
#
# 要比较它们，就把四种全用在一张小图上。设 `y = 10 * w`，损失是 `3 * y`，那么 `y` 的梯度是 3，`w` 的梯度是 30。
#
# 只做一次反向传播，看不出谁说的是这一次的梯度，谁说的是总和。所以我们做两次，中间不清零。到了第 2 次，谁看到的还是 3 和 30，谁看到的是 6 和 60？
#
# 钩子看到的东西转眼就过去了，所以先写好 `note`，由它来记录。每个钩子运行时都调用它，记下自己看到了什么，还有**那一刻**两个 `.grad` 里各是什么。
#
# </div>
# <div lang="en">
#
# “What is the gradient here?” sounds like a question with one answer. Yet PyTorch has more than one tool for looking at
# it, and this lesson compares four: the tensor hook, `retain_grad`, the post-accumulate hook, and the multi-grad hook,
# which looks at several gradients at once. They look at the same gradient and may still show different numbers.
#
# To compare the four fairly, we put all of them on one small graph. With `y = 10 * w` and a loss of `3 * y`, the
# gradient of `y` is 3 and that of `w` is 30.
#
# A single backward pass would not tell us who looks at this pass alone and who at a sum. So we run two passes, and zero
# nothing in between. In pass 2, who still sees 3 and 30, and who sees 6 and 60?
#
# First we need something that keeps a record. Every hook below calls `note`, which writes down what the hook saw
# and, beside it, what both `.grad` hold **at that very moment**.
#
# </div>


# %%
def text(grad):
    return "None" if grad is None else f"{grad.item():g}"


def note(row, *grads):
    received = ", ".join(text(grad) for grad in grads)
    moments.append({row: received, "y.grad": text(y.grad), "w.grad": text(w.grad)})


w = torch.tensor(1.0, requires_grad=True)
y, moments = 10 * w, []
y.retain_grad()
y.register_hook(lambda grad: note("tensor hook on y", grad))
w.register_hook(lambda grad: note("tensor hook on w", grad))
w.register_post_accumulate_grad_hook(lambda param: note("post-accumulate on w", param.grad))
register_multi_grad_hook((y, w), lambda grads: note("multi-grad on y, w", *grads))
for _ in range(2):
    (3 * y).backward(retain_graph=True)

# %% [markdown]
# <div lang="zh">
#
# 把这份记录画成图，几种工具就容易比较了。左边是第 1 次反向传播，右边是第 2 次，每一边的时间都从左往右走。
#
# 图里的每一列是一个时刻，这时有一个钩子在运行。橙色框里是这个钩子看到的梯度（multi-grad 钩子看到两个），蓝色框里是那一刻的两个 `.grad`。
#
# 两次之间，我们什么也没有清零。那么到了第 2 次，`w` 上的张量钩子收到了多少？**先猜。**
#
# </div>
# <div lang="en">
#
# To compare the tools, it helps to draw this record. Backward pass 1 is on the left and pass 2 on the right, and in
# both of them time runs from left to right.
#
# Each column is one moment, at which one hook ran. The orange box holds the gradient that this hook saw (the multi-grad
# hook sees two), and the blue boxes hold what the two `.grad` were just then. What did the tensor hook on `w` receive
# in pass 2? **Guess first.**
#
# </div>


# %%
guess("04.a")


# %% picture="moments"
def draw(moments):
    rows = sorted(dict.fromkeys(row for m in moments for row in m), key=lambda row: ".grad" in row)
    half, size = len(moments) // 2, (9, 0.45 * len(rows))
    _, axes = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    for number, ax in enumerate(axes):
        ax.set(title=f"backward {number + 1}", xlim=(-0.6, half - 0.4), xticks=[])
        ax.set(yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.4, -0.6))
        for x, moment in enumerate(moments[number * half :][:half]):
            for row, value in moment.items():
                box = {"boxstyle": "round", "fc": "#e3eefa" if ".grad" in row else "#fdd49e"}
                ax.text(x, rows.index(row), value, ha="center", va="center", bbox=box)


draw(moments)

# %% [markdown]
# <div lang="zh">
#
# 张量钩子和 multi-grad 钩子两次看到的都是 3 和 30，因为它们看的是**这一次**路过的梯度。
#
# `.grad` 里放的却是**加起来**的总和：`y.grad` 从 3 到 6，`w.grad` 从 30 到 60。`y.grad` 是 `retain_grad` 写的，`w.grad` 是叶子自己留着的，在累加这一点上没有分别。post-accumulate 钩子读的就是 `w.grad`，所以它先看到 30，后看到 60。
#
# 图上还看得出先后，我们跟着梯度走一遍。它先到 `y`：张量钩子运行时，`y.grad` 还是旧的。接着它到 `w`：这时 `y.grad` 已经写好，`w.grad` 却还没有。
#
# 几个钩子里，只有 post-accumulate 钩子要等 `w.grad` 写好才运行。multi-grad 钩子等的是另一件事：`y` 和 `w` 的梯度一到齐，它就运行。
#
# 可以说，整整一课都在这张图里了。下面逐个来看这些工具，因为每一种都有一处容易看错。
#
# </div>
# <div lang="en">
#
# The tensor hooks and the multi-grad hook see 3 and 30 both times, because they look at the gradient that passes **this
# time**.
#
# `.grad`, however, holds the **sum** of all passes: `y.grad` goes from 3 to 6 and `w.grad` from 30 to 60. (The former
# is written by `retain_grad`, the latter is kept by the leaf itself; here this makes no difference.) The
# post-accumulate hook reads `w.grad`, so it sees 30 and then 60.
#
# The picture also shows who comes first. While the tensor hook on `y` runs, `y.grad` still holds the old value. By the
# time the gradient arrives at `w`, `y.grad` has been written, but `w.grad` has not. Only the post-accumulate hook waits
# until that is written as well. The multi-grad hook runs as soon as the gradients of `y` and `w` are both there.
#
# In a way this picture is the whole lesson. We now take the tools one at a time, because each of them has something
# that is easily misread.
#
# </div>

# %% [markdown]
# ## 4.2 `retain_grad` 不排队 · `retain_grad` does not queue
#
# <div lang="zh">
#
# 先看 `retain_grad`，它把一个中间张量的梯度存进 `.grad`。可是，如果还有一个钩子改动这个梯度，存下来的是改动之前的，还是之后的？
#
# 用一个小例子来试。设 `a` 是 7，`b` 是 13，`c = a * b`。没有钩子时，`c` 的梯度是 1。现在**先**调用 `c.retain_grad()`，**后**挂一个给梯度加 2 的钩子。`c.grad` 会是多少？
#
# </div>
# <div lang="en">
#
# We begin with `retain_grad`, which stores the gradient of an intermediate tensor in its `.grad`. But suppose that a
# hook changes this gradient. Is it stored as it was before the change or after it?
#
# A small example will show. Let `a` be 7, `b` 13, and `c = a * b`, so that the gradient of `c` is 1 without any hook.
# Now we call `c.retain_grad()` **first**, and only **then** register a hook that adds 2 to the gradient. What will
# `c.grad` be?
#
# </div>

# %% tags=["E20"]
a = torch.tensor(7.0, requires_grad=True)
b = torch.tensor(13.0, requires_grad=True)
c = a * b
c.retain_grad()
c.backward()
print("without a hook: a.grad", a.grad.item(), " b.grad", b.grad.item(), " c.grad", c.grad.item())

# %%
guess("04.b")

# %% tags=["E20"] picture="flow"
a.grad = b.grad = None
c = a * b
c.retain_grad()  # first
c.register_hook(lambda grad: grad + 2)  # second
c.backward(retain_graph=True)
print("with the hook:  a.grad", a.grad.item(), " b.grad", b.grad.item(), " c.grad", c.grad.item())
GradientFlow(c, {"a": a, "b": b, "c": c})

# %% [markdown]
# <div lang="zh">
#
# `c.grad` 是 3，所以 `retain_grad` 虽然写在前面，存下的却是改动之后的梯度。到达 `c` 的是 1，钩子把它改成 3，继续往下传的就是 3。因此 `a.grad` 是 $3 \cdot 13 = 39$，`b.grad` 是 $3 \cdot 7 = 21$。
#
# **试一试**：在上面的图里给 `c` 再挂一个加倍的钩子，`a` 的梯度会是 52 还是 78？点一点就知道。
#
# <details><summary>为什么</summary>78。后注册的后运行：加倍的钩子收到 3，交出 6，6 · 13 = 78。要是它先运行，就是 (2 + 2) · 13 = 52。</details>
#
# 那么，把两行对调，结果会不一样吗？两种次序都试一试，这次让钩子自己在运行时也看一眼 `c.grad`。
#
# </div>
# <div lang="en">
#
# `c.grad` is 3. So `retain_grad` stored the gradient after the change, although we had called it before the hook. What
# reached `c` was 1, the hook turned it into 3, and 3 is what flowed on to both inputs. That is why `a.grad` is
# $3 \cdot 13 = 39$ and `b.grad` is $3 \cdot 7 = 21$.
#
# **Try it**: if you register a second hook on `c` in the picture above, one that doubles, will the gradient of `a` be 52 or
# 78? Click and see.
#
# <details><summary>Why</summary>78. Registered later, the second hook runs later: it receives 3 and hands on 6, and 6 · 13 = 78. Had it run first, the result would be (2 + 2) · 13 = 52.</details>
#
# Would the result be different if the two lines changed places? Let us try both orders, and this time the hook itself
# looks at `c.grad` while it runs.
#
# </div>


# %% tags=["F2", "E20"]
def gradients(*steps):
    a, b = (torch.tensor(value, requires_grad=True) for value in (7.0, 13.0))
    c = a * b

    def add_two(grad):
        print("   in the hook, c.grad is", c.grad)
        return grad + 2

    for step in steps:
        c.retain_grad() if step == "retain_grad" else c.register_hook(add_two)
    c.backward()
    return a.grad.item(), b.grad.item(), c.grad.item()


print("retain_grad, then hook:", gradients("retain_grad", "hook"))
print("hook, then retain_grad:", gradients("hook", "retain_grad"))

# %% [markdown] tags=["F2"]
# <div lang="zh">
#
# 两行对调没有影响，两种次序得到的都是 39、21、3。再看钩子打印的那两行：它运行的时候，`c.grad` 两次都还是 `None`，可见 `retain_grad` 那时还没有存。
#
# </div>
# <div lang="en">
#
# No, the result is the same: the gradients are 39, 21 and 3 in either order. And both times `c.grad` is still `None`
# while the hook runs.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别以为 `retain_grad` 存的是「刚到」的梯度。张量钩子按注册的次序一个个运行，`retain_grad` 却不排这个队。不论你什么时候调用它，它都在所有张量钩子之后，存下**它们交出来**的梯度。
#
# 想看改动之前的梯度，就自己挂一个钩子，注册在最前面。
#
# </div>
# <div lang="en">
#
# Do not expect `retain_grad` to store the gradient as it arrives. Tensor hooks run in the order of registration, but
# `retain_grad` does not stand in that queue. Whenever it was called, it comes after all tensor hooks and stores what
# **they hand on**.
#
# To see the unchanged gradient, register a hook of your own before all others.
#
# </div>
# </div>
#
# ## 4.3 一站一站地走 · Station by station
#
# <div lang="zh">
#
# 真正训练的时候，这两件事可能同时发生：梯度在累加，钩子也在改动它。所以现在把 4.1 节和 4.2 节看到的合在一起。图还是 4.1 节的那张，但这次 `y` 上有三个钩子，其中第二个给梯度加 1。
#
# 这样一来，第 2 次反向传播里，每一站看到的数是多少？请跟着梯度，一站一站地算下去，**先猜**最后的 `w.grad`。
#
# </div>
# <div lang="en">
#
# In real training both things may happen at once: gradients add up, and hooks change them. So now we put together what
# 4.1 and 4.2 have shown. We take the graph of 4.1 again, but this time there are three hooks on `y`, the second of which
# adds 1 to the gradient.
#
# What number does each station of pass 2 see? Follow the gradient from one station to the next, and **guess first**
# what `w.grad` is in the end.
#
# </div>


# %%
def add_one(grad):
    note("hook two on y returns", grad + 1)
    return grad + 1


# %%
guess("04.c")

# %% picture="moments_changed"
w = torch.tensor(1.0, requires_grad=True)
y, moments = 10 * w, []
y.retain_grad()
y.register_hook(lambda grad: note("hook one on y", grad))
y.register_hook(add_one)
y.register_hook(lambda grad: note("hook three on y", grad))
w.register_hook(lambda grad: note("tensor hook on w", grad))
w.register_post_accumulate_grad_hook(lambda param: note("post-accumulate on w", param.grad))
for _ in range(2):
    (3 * y).backward(retain_graph=True)
draw(moments)

# %% [markdown]
# <div lang="zh">
#
# 第一个钩子排在改动之前，看到的又只是这一次的梯度，所以两次都收到 3。第三个钩子排在改动之后，收到 4。这个 4 继续往下传，`w` 上的钩子就收到 40。
#
# `y.grad` 则把两次离开 `y` 的梯度加起来，先是 4，后是 8。同样，`w.grad` 从 40 到 80。
#
# 所以，看到一个梯度，要问两个问题：是改动之前的，还是之后的？是这一次的，还是加好的？
#
# </div>
# <div lang="en">
#
# The first hook receives 3 both times, because it comes before the change and sees only the current pass. The third
# hook comes after the change and receives 4, and so the hook on `w` receives 40.
#
# `y.grad` adds up what flows on from `y`. First it holds 4, then 8, and `w.grad` goes from 40 to 80 in the same way.
#
# So whenever you see a gradient, ask two questions. Was it taken before a change or after it? And does it stand for
# this pass alone, or for a sum of several?
#
# </div>
#
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
# 不运行代码，你就说得出每种工具会看到什么吗？说得出，就真的懂了它们。上面的代码里，三个 `look` 都只看梯度，不改它。
#
# 写 `predict(k, m, s)`。它收到这三个数，返回**第 2 次**反向传播里的 4 个数，次序如下：
#
# - `look` 收到的；
# - 之后的 `y.grad`；
# - `look_w` 收到的；
# - `look_after` 看到的 `param.grad`。
#
# 有加法和乘法就够了。要是拿不准，可以在自己的单元格里跑一跑上面的代码。
#
# </div>
# <div lang="en">
#
# You have understood these tools once you can tell what each of them will see without running anything. In the code
# above, none of the three `look` functions changes the gradient.
#
# Write `predict(k, m, s)`, which gets the three numbers and returns 4 numbers of backward **number 2**, in this
# order:
#
# - what `look` receives,
# - `y.grad` afterwards,
# - what `look_w` receives,
# - the `param.grad` that `look_after` sees.
#
# Sums and products are all you need. If in doubt, you may run the code in a cell of your own.
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
# ## 4.4 不写叶子的 `.grad` 时 · When no leaf's `.grad` is written
#
# <div lang="zh">
#
# 不是每一次反向传播都会写叶子的 `.grad`。`torch.autograd.grad` 就不往那里写，而是把梯度直接返回给你。这时我们的工具还管用吗？
#
# 第 02 课就这样比较过张量钩子和 post-accumulate 钩子。现在再加上 `retain_grad`，让它去看 `y`，而 `y` 不是叶子。三种里，哪些照常工作？**先猜。**
#
# </div>
# <div lang="en">
#
# Not every backward pass writes to the `.grad` of a leaf. `torch.autograd.grad` writes nothing there and hands the
# gradient straight to you. Do our tools still work then?
#
# Lesson 02 compared the tensor hook and the post-accumulate hook in this case. Now `retain_grad` joins them, on `y`,
# which is not a leaf. Which of the three still work? **Guess first.**
#
# </div>

# %%
guess("04.d")

# %% tags=["F3"]
w = torch.tensor(3.0, requires_grad=True)
y, fired = 2 * w, []
y.retain_grad()
w.register_hook(lambda grad: fired.append("tensor hook"))
w.register_post_accumulate_grad_hook(lambda param: fired.append("post-accumulate hook"))

(slope,) = torch.autograd.grad(y**2, w, retain_graph=True)
print("autograd.grad:", fired, " y.grad:", y.grad, " w.grad:", w.grad)

first, fired = fired, []
(y**2).backward()
print("backward:     ", fired, " y.grad:", y.grad, " w.grad:", w.grad)

# %% [markdown]
# <div lang="zh">
#
# 张量钩子触发了，`y.grad` 里也有了 12，可见 `retain_grad` 照常工作。只有 post-accumulate 钩子没有动静：它要等 `w.grad` 写好，而没有人去写 `w.grad`。到了后面的 `backward()`，它就触发了，`y.grad` 也累加到了 24。
#
# `y` 虽然不是叶子，现在也有 `.grad` 了，能不能把 post-accumulate 钩子挂在它上面呢？
#
# </div>
# <div lang="en">
#
# The tensor hook fired, and `y.grad` holds 12, so `retain_grad` did its work as well. Only the post-accumulate hook
# remained silent. It waits for `w.grad` to be written, and this time nobody wrote it. In the `backward()` that followed
# it did fire, and there `y.grad` grew to 24.
#
# Since `y` now has a `.grad` too, could a post-accumulate hook not go on `y` just as well, although `y` is no leaf?
#
# </div>

# %% tags=["F3"]
try:
    y.register_post_accumulate_grad_hook(print)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown] tags=["F3"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别把 post-accumulate 钩子当成张量钩子。它等的是叶子的 `.grad`，所以只能挂在叶子上，挂在 `y` 上会报错。没有人写这个 `.grad` 时，例如用 `torch.autograd.grad`，它就不触发。
#
# 它收到的也不是梯度，而是**参数**，梯度要到 `param.grad` 里去取。
#
# </div>
# <div lang="en">
#
# Do not use a post-accumulate hook like a tensor hook. It waits for a leaf's `.grad`, so it goes on leaves only, and on
# `y` it raises an error. Where nobody writes that `.grad`, as under `torch.autograd.grad`, it does not fire.
#
# And what it receives is not the gradient but the **parameter**, whose gradient is in `param.grad`.
#
# </div>
# </div>
#
# ## 4.5 用完就放 · Use it and let it go
#
# <div lang="zh">
#
# 那么 post-accumulate 钩子有什么好处？它触发的时候，这个参数的梯度已经加好了，反向传播自己也不再需要它。所以你可以当场用掉这份梯度，再当场放掉它，省下内存。
#
# 不过，如果要等所有梯度到齐（比如按总范数裁剪），或者要做梯度累积，就不能这样放掉。
#
# 能省多少？先看不放掉的情形。下面的模型有 6 个参数张量，钩子每次触发时，数一数有几个参数留着 `.grad`。
#
# </div>
# <div lang="en">
#
# What is a post-accumulate hook good for, then? It saves memory. By the time it fires, the gradient of its parameter is
# complete, and backward itself has no more use for it. So you can use the gradient on the spot and let it go at once.
#
# You cannot do so if you need all gradients together (to clip them by their total norm, say), or if you want to
# accumulate them over several passes.
#
# How much does this save? First we count what happens if nothing is let go. The model below has 6 parameter tensors,
# and each time the hook fires, it counts how many of them hold a `.grad`.
#
# </div>

# %%
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1))
x, alive, handles = torch.ones(2, 4), [], []


def count(param):
    alive.append(sum(p.grad is not None for p in model.parameters()))


for param in model.parameters():
    handles.append(param.register_post_accumulate_grad_hook(count))
model(x).sum().backward()
print("kept:  ", alive)

# %% [markdown]
# <div lang="zh">
#
# 没有人放掉梯度，`.grad` 就一个接一个地攒起来，直到 6 个。现在我们给每个参数再挂一个钩子，它在计数之后运行，放掉这个参数的梯度。这一次，数到的最大的数会是几？**先猜。**
#
# </div>
# <div lang="en">
#
# When the gradients are kept, one `.grad` after the other piles up until there are 6. Now we give each parameter a
# second hook, which runs after the count and lets the gradient go. What is the largest count this time? **Guess
# first.**
#
# </div>


# %%
guess("04.e")


# %%
def let_go(param):
    param.grad = None


for param in model.parameters():
    handles.append(param.register_post_accumulate_grad_hook(let_go))
model.zero_grad()
alive.clear()
model(x).sum().backward()
print("let go:", alive)
for handle in handles:
    handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 有了第二个钩子，每次数到的都只有 1 个。这能省多少内存？所有梯度加在一起，和在学的参数一样大，所以训练大模型时，最多可以省下差不多这么多。
#
# 钩子既然用完梯度就放掉，不如让它当场更新参数。可是这里有一个障碍：梯度模式开着的时候，PyTorch 不许就地修改需要梯度的叶子，因为改过之后，它就成了计算的结果。`torch.no_grad()` 可以关掉这个模式。
#
# 所以先要弄清楚：平常的 `backward()` 里，钩子运行的时候，梯度模式是开着还是关着？**先猜。**
#
# </div>
# <div lang="en">
#
# With the second hook, never more than 1 gradient is kept. For a large model this is worth a lot: together, the
# gradients are as large as the parameters that learn, and you can save up to nearly that much memory in training.
#
# If a hook may let a gradient go because it is done with it, it might as well update its parameter on the spot.
#
# There is one obstacle. While grad mode is on, PyTorch refuses to change in place a leaf that requires a gradient,
# since the leaf would then be the result of a computation. `torch.no_grad()` turns that mode off.
#
# Does a hook have to do that? It depends: is grad mode on or off while the hook runs in a plain `backward()`? **Guess
# first.**
#
# </div>


# %%
guess("04.f")


# %% tags=["F34"]
def step(param):
    print("   grad mode is on:", torch.is_grad_enabled())
    param -= 0.1 * param.grad


w = torch.tensor(3.0, requires_grad=True)
w.register_post_accumulate_grad_hook(step)
(w**2).backward()
print("after backward: w is", round(w.item(), 4))

try:
    (w**2).backward(create_graph=True)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# 平常的反向传播里，梯度模式关着，所以钩子能更新 `w`，`w` 走了一步。
#
# 换成 `backward(create_graph=True)`，同一行代码却报错了。这样写的人，是想对求出的梯度再求一次导数。要能求导，PyTorch 就得像记录前向传播那样，把反向传播也记进图里，连钩子做的事也要记。所以这时梯度模式开着，钩子也就不能这样就地修改 `w` 了。
#
# 关于 post-accumulate 钩子，还剩两个问题。在钩子里写上 `torch.no_grad()`，就不再报错了吗？还有，这样的钩子可以返回东西吗？
#
# </div>
# <div lang="en">
#
# In a plain backward pass grad mode is off, so `w` could take its step.
#
# Under `backward(create_graph=True)`, however, it is on, because the gradients are to be differentiated once more.
# Backward is then recorded in a graph just like a forward pass, and so is everything that hooks do in it. That is why
# the very same line now raises an error.
#
# Two questions about this kind of hook remain. Does `torch.no_grad()` inside the hook prevent the error? And
# may such a hook return something?
#
# </div>


# %%
def safe_step(param):
    with torch.no_grad():
        param -= 0.1 * param.grad


w = torch.tensor(3.0, requires_grad=True)
w.register_post_accumulate_grad_hook(safe_step)
(w**2).backward(create_graph=True)
print("with torch.no_grad(): w is", round(w.item(), 4))

w = torch.tensor(3.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda param: 0.5 * param.grad)  # returns a new tensor
try:
    (w**2).backward()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown] tags=["F34"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别指望反向传播里梯度模式总是关着。要在钩子里更新参数，就自己写上 `with torch.no_grad():`，这样有 `create_graph=True` 时也不会出上面的错。
#
# post-accumulate 钩子应当返回 `None`，所以最好用 `def` 来写：`lambda` 会把算出来的东西返回去。
#
# </div>
# <div lang="en">
#
# Do not rely on grad mode to be off in backward. If a hook updates a parameter, write `with torch.no_grad():` yourself,
# and the error above does not occur with `create_graph=True` either.
#
# A post-accumulate hook should return `None`. A `lambda` returns whatever it computes, so a `def` is the safer choice.
#
# </div>
# </div>
#
# ### 练习 04.2：反向传播里的 SGD · Exercise 04.2: SGD inside backward
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 平常，所有梯度都得留着，等优化器来走一步。如果每个参数一等自己的梯度加好就走，这份梯度马上就能放掉。
#
# 写 `sgd_in_backward(model, lr)`，返回句柄的列表。此后每次 `backward()` 用到哪个参数，哪个就走一步 SGD（减去 `lr` 乘梯度），再放掉自己的 `.grad`。
#
# - 有 `create_graph=True` 时也要这样，那时梯度模式开着。
# - 几个模块共用一个参数，它也只走一步。
# - 冻结的参数（`requires_grad` 为 `False`）要跳过，它们的 `.grad` 也别动。
# - 函数可以调用几次，各次要互不影响。
#
# 参数走了一步，先前的图就用不了了，所以每次 `backward()` 之前都有新的前向传播。
#
# </div>
# <div lang="en">
#
# Usually all gradients stay in memory until the optimizer takes its step. If each parameter takes its own step as soon
# as its gradient is complete, that gradient can be freed at once.
#
# Write `sgd_in_backward(model, lr)`, which returns a list of the handles. From then on a `backward()` is enough: each
# parameter it reaches takes one step of SGD (subtract `lr` times the gradient), then frees its `.grad`.
#
# - This must hold with `create_graph=True`, too, where grad mode is on.
# - A parameter that several modules share also takes only one step.
# - Skip frozen parameters, whose `requires_grad` is `False`, and leave their `.grad` alone.
# - If the function is called several times, no call may affect another.
#
# A step changes the parameters, so older graphs become useless: a new forward pass comes before each `backward()`.
#
# </div>


# %% exercise="04.2"
def sgd_in_backward(model, lr):
    """让每个参数在反向传播里走一步 SGD 并放掉 .grad；返回句柄的列表。

    Let every parameter take its SGD step inside backward and let .grad go; return the handles.
    """

    ### BEGIN SOLUTION
    def step(param):
        with torch.no_grad():
            param -= lr * param.grad
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
# 你在一个张量上挂好了钩子，后来又有一行代码把这个张量就地改了。这时，钩子看到的是哪个值的梯度？变量还叫原来的名字，所以这个陷阱很难发现。
#
# 我们给 `y = 3 * x` 挂上钩子，再调用 `retain_grad`，然后用 `y.mul_(2)` 把它就地翻倍。变量还叫 `y`，计算却多了一步。
#
# 反向传播从 `y` 开始，所以翻倍之后的 `y`，梯度是 `1`。先前的钩子和 `y.grad` 给出的都是这个 `1` 吗？**先猜。**
#
# </div>
# <div lang="en">
#
# If a tensor is changed in place after it got its hook, the gradient of which value does the hook see? Since the
# variable keeps its name, this trap is hard to notice.
#
# Here is an example. We give `y = 3 * x` a hook and then call `retain_grad`, and after that `y.mul_(2)` doubles it in
# place. The variable is still called `y`, but the computation has one step more than before.
#
# Since backward starts at `y`, the gradient of the doubled `y` is `1`. Do the earlier hook and `y.grad` both show that
# `1`? **Guess first.**
#
# </div>

# %%
guess("04.g")

# %% tags=["F4"]
x = torch.tensor(1.0, requires_grad=True)
y = 3 * x
before, after = [], []
y.register_hook(before.append)
y.retain_grad()
y.mul_(2)
y.register_hook(after.append)
y.backward()
print("a hook from after mul_ saw:", after[0])
print("the hook from before saw:  ", before[0])
print("y.grad:                    ", y.grad)

# %% [markdown]
# <div lang="zh">
#
# 先前的钩子看到 2，`y.grad` 和后来的钩子给出的却是 1。这两个数属于两个不同的值，只不过它们先后用了同一个名字。为了看清楚，我们把同样的计算再写一遍，这次不就地修改，给每个值各起一个名字：
#
# </div>
# <div lang="en">
#
# The earlier hook saw 2, while `y.grad` and the later hook have 1. These numbers belong to two different values that
# shared one name. To see both values, we write the same computation without any change in place, and give each of them
# a name of its own:
#
# </div>

# %% picture="old_tensor"
x = torch.tensor(1.0, requires_grad=True)
seen = {}
old = 3 * x
old.register_hook(lambda grad: seen.update(old=grad))
y = 2 * old  # instead of mul_
y.retain_grad()
y.backward()
ax = plot_graph(y, {"x": x, "old": old, "y": y}, gradients=seen)

# %%
for kind in ("no view", "a view"):
    x = torch.tensor(1.0, requires_grad=True)
    y = 3 * x if kind == "no view" else (3 * x).view_as(x)
    seen = []
    y.register_hook(seen.append)
    with torch.no_grad():
        y.mul_(2)  # in place, but outside the graph
    y.backward()
    print(f"{kind}: the hook saw", seen)

# %% [markdown] tags=["F4"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 就地修改可能让钩子和张量分开。先前挂的钩子留在**旧的值**上（图里的 `old`），看到 `2`；`retain_grad` 却跟着张量 `y` 走，存下**新的值**的梯度 `1`。所以，要等就地修改全都做完再挂钩子，或者干脆不就地修改。
#
# 上一个单元格里的两种情形不是这样。被改的张量若是视图，先前挂的钩子可能根本不再触发（7.8 节）。若不是视图，而修改写在 `torch.no_grad()` 里，钩子和张量就不会分开，因为那是在计算图之外修改。
#
# </div>
# <div lang="en">
#
# A change in place can separate a hook from its tensor. A hook that was registered before the change stays with the
# **old value** (`old` in the picture) and sees `2`. `retain_grad`, however, follows the tensor `y` and stores `1`, the
# gradient of the **new value**. So register hooks after the last change in place, or change nothing in place.
#
# Two cases are different (see the cell above). On a view, the earlier hook may fall silent (section 7.8). On any other
# tensor, a change under `torch.no_grad()` does not separate the two, because it happens outside the graph.
#
# </div>
# </div>
#
# ## 4.7 几个梯度一起看 · Several gradients at once
#
# <div lang="zh">
#
# 有些问题，一个梯度回答不了。想比较两个梯度，就得等它们都到齐，`register_multi_grad_hook` 可以替你等。
#
# 下面的钩子等着 `a` 和 `b`。可是，如果有一次反向传播只用到了 `a`，`b` 的梯度就不会来。这一次，钩子会怎样？**先猜。**
#
# </div>
# <div lang="en">
#
# Some questions need more than one gradient: to compare two of them, you have to wait until both are there.
# `register_multi_grad_hook` does this waiting for you.
#
# Not every backward pass uses all of your tensors, however. The hook below waits for `a` and `b`. What will it do in a
# pass that uses only `a`? **Guess first.**
#
# </div>

# %%
guess("04.h")

# %% tags=["F29"]
x = torch.tensor(2.0, requires_grad=True)
a, b = 3 * x, 5 * x
a.register_hook(lambda grad: print("   a arrives"))
b.register_hook(lambda grad: print("   b arrives"))
received = []


def look(grads):
    received.append(grads)
    print("   multi-grad hook:", grads)


register_multi_grad_hook((a, b), look)
print("both are used")
(a * b).backward(retain_graph=True)
print("only a is used")
(7 * a).backward(retain_graph=True)
print("backward is called on a itself")
a.backward(retain_graph=True)

# %% [markdown]
# <div lang="zh">
#
# 只用到 `a` 的那一次，钩子照样运行。PyTorch 一开始就知道这一次会经过哪些张量，所以它不等没用到的 `b`，直接在 `b` 的位置上填了 `None`。
#
# 有一种情形，PyTorch 会漏算：反向传播若只从一个张量出发，它就漏掉这个张量。最后一次是从 `a` 出发的，`a` 明明到了，钩子却没有运行。所以，别把这样的张量放进列表。
#
# 再看第一次。`b` 的梯度先到，列表里却仍是 `a` 在前，因为列表的次序是你给的，不是到达的先后。
#
# multi-grad 钩子拿到了所有梯度，能不能也改动它们？下面有两个钩子，一个返回零，一个把梯度就地清零。不动的话，`x.grad` 是 60。就地清零的那一次，它是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# In the pass that uses only `a`, the hook runs all the same. PyTorch knows from the start which tensors a pass will
# reach, so it does not wait for the unused `b` and puts `None` in its place.
#
# In one case this goes wrong: if backward starts from a single tensor, PyTorch overlooks it. In the last pass this
# is `a`: it does arrive, and yet the hook does not run. So keep such a tensor out of the list.
#
# Look at the first pass, too. The gradient of `b` arrives first, and still `a` stands first in the list. The list keeps
# the order that you gave.
#
# A multi-grad hook gets all the gradients. Can it change them as well? Of the two hooks below, one returns zeros and
# the other zeroes the gradients in place. Left alone, `x.grad` would be 60. What is it after zeroing in place? **Guess
# first.**
#
# </div>


# %%
guess("04.i")


# %% tags=["F29"]
def return_zeros(grads):
    return [0 * grad for grad in grads]


def zero_in_place(grads):
    for grad in grads:
        grad.zero_()


for hook in (return_zeros, zero_in_place):
    x.grad, a, b = None, 3 * x, 5 * x
    with register_multi_grad_hook((a, b), hook):
        (a * b).backward()
    print(f"{hook.__name__}: x.grad {x.grad.item():g}")

# %% [markdown]
# <div lang="zh">
#
# 钩子返回什么都不算数，`x.grad` 还是 60。就地清零的那一次却成了 30：`a` 的梯度还来得及清掉，`b` 的梯度先到，早已往下传了。两个梯度只清得掉一个，结果对谁都没有用，所以 multi-grad 钩子只用来看。
#
# 还剩两个问题。有时你不必等梯度到齐，只想知道第一个什么时候到，那就写上 `mode="any"`。这样的钩子会收到什么，在一次反向传播里又运行几回？
#
# 另一个问题：假如列表里有叶子 `x`，你又用 `torch.autograd.grad` 来求 `x` 的梯度，会发生什么？
#
# </div>
# <div lang="en">
#
# What the hook returns is ignored, so `x.grad` is still 60. Zeroing in place, however, gave 30: the gradient of `a` was
# caught in time, but that of `b` had come earlier and had already flowed on. A change that reaches only half of the
# gradients is of no use. So use a multi-grad hook for looking only.
#
# Two questions are left. The first is about waiting. Sometimes you only need to know when the first gradient arrives,
# and for that there is `mode="any"`. What does such a hook receive, and how often does it run in a pass?
#
# The second is about `torch.autograd.grad`. Suppose that the list of the hook holds the leaf `x`, and you use this
# function to get the gradient of `x`. What happens then?
#
# </div>

# %% tags=["F29", "F35"]
a, b = 3 * x, 5 * x
a.register_hook(lambda grad: print("   a arrives"))
b.register_hook(lambda grad: print("   b arrives"))
register_multi_grad_hook((a, b), lambda grad: print("   any:", grad), mode="any")
register_multi_grad_hook((a, b), lambda grads: print("   all:", grads))
(a * b).backward()

register_multi_grad_hook((x,), print)  # x is a leaf
try:
    torch.autograd.grad(3 * x, x)
except RuntimeError as error:
    print("RuntimeError:", str(error).split(".")[0])

# %% [markdown] tags=["F29", "F35"]
# <div lang="zh">
#
# `b` 的梯度一到，`mode="any"` 的钩子就运行了，只这一次。它收到的是这一个梯度，不是列表。
#
# 叶子 `x` 呢，一求它的梯度就报错。
#
# </div>
# <div lang="en">
#
# With `mode="any"` the hook runs as soon as `b` arrives, and only once. It receives this one gradient instead of a list.
#
# Asking `torch.autograd.grad` for the gradient of the leaf `x` raises an error.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别指望 multi-grad 钩子改动梯度：它返回什么，PyTorch 都不理会。
#
# 它也不报告先后。平常（`mode="all"`）它在一次反向传播里等梯度到齐，只运行**一次**。收到的列表按你给的次序排列，没用到的那一项是 `None`。
#
# 反向传播从它出发的张量，要用 `torch.autograd.grad` 求梯度的叶子，都别放进列表。
#
# </div>
# <div lang="en">
#
# Do not expect a multi-grad hook to change gradients. PyTorch ignores whatever it returns.
#
# It does not tell which gradient came first either. As a rule (`mode="all"`) it waits for all gradients of a pass
# and runs **once**. Its list has the order of your tensors, with `None` for one that was not used.
#
# Do not put into the list the tensor from which backward starts, or a leaf whose gradient you get from
# `torch.autograd.grad`.
#
# </div>
# </div>
#
# ## 4.8 实例：两个损失在拔河 · Worked example: two losses in a tug-of-war
#
# <div lang="zh">
#
# 平面上有一个点和两个目标，每个目标都有一个损失，把点往那边拉。两股拉力的方向一致吗？
#
# 到了 `point` 那里，两个梯度已经加在一起，分不出谁往哪边拉了。所以和第 03 课一样，我们给每个损失一个自己的张量 `for_a` 和 `for_b`。等它们的梯度到齐，就算一次余弦：`1` 是同向，`-1` 是正相反。
#
# </div>
# <div lang="en">
#
# A point in the plane has two goals, and for each, a loss pulls it there. Do both losses pull the same way?
#
# At `point` itself it is too late to tell: both gradients have been added up. So, as in lesson 03, we
# give each loss its own tensor, `for_a` and `for_b`. Once both gradients are there, we take their cosine: `1` means the
# same way, `-1` opposite ways.
#
# </div>

# %%
goals = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
point, cosines = torch.zeros(2, requires_grad=True), []


def compare(grads):
    cosines.append(torch.cosine_similarity(*grads, dim=0).item())


for _ in range(25):
    for_a, for_b = point.clone(), point.clone()
    register_multi_grad_hook((for_a, for_b), compare)  # new tensors in each step: nothing to remove
    (for_a - goals[0]).square().sum().add((for_b - goals[1]).square().sum()).backward()
    with torch.no_grad():
        point -= 0.04 * point.grad
    point.grad = None

# %% picture="cosines"
fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.axhline(0, color="gray", linewidth=0.8)
ax.plot(cosines, marker="o", markersize=3)
ax.set(xlabel="step", ylabel="cosine", ylim=(-1.1, 1.1))
print(f"first step: {cosines[0]:.2f}, last step: {cosines[-1]:.2f}")

# %% [markdown]
# <div lang="zh">
#
# 起初，两个损失大致往同一边拉。等点走到两个目标中间，两股力就正好相反，谁也拉不动谁。
#
# 一个网络同时学几个任务时，也可能这样，人们叫它梯度冲突。有些方法就先像我们这样量出冲突，再去掉互相抵消的那一部分梯度。
#
# </div>
# <div lang="en">
#
# At first both losses pull the point more or less the same way. Once the point lies between the two goals, they pull in
# opposite directions, and neither of them gets anywhere.
#
# The same can happen when one network learns several tasks, where it is known as gradient conflict. Some methods
# measure it just as we did here, and then remove the part of the gradients that cancels.
#
# </div>
#
# ## 4.9 该用哪一个 · Which one to use
#
# <div lang="zh">
#
# 下次想看梯度时，查一查这张表，就知道该用哪一种。
#
# | | 挂在 | 看到 | `autograd.grad` 下 | 能改梯度吗 |
# |---|---|---|---|---|
# | `register_hook` | 张量 | 这一次的梯度 | 触发；但若同时求 `y` 和 `w`，你拿到的 `y` 的梯度是钩子改动之前的 | 能，返回新的 |
# | `retain_grad` | 非叶子 | 所有张量钩子之后的，累加 | 照存 | 不能 |
# | post-accumulate | 叶子 | 参数，`.grad` 已写好 | 不触发 | 只能改 `.grad` |
# | multi-grad | 几个张量 | 到齐的列表；`mode="any"`：第一个 | 触发；但若求列表里某个叶子的梯度，`"all"` 报错 | 不能，返回什么都不算数 |
#
# </div>
# <div lang="en">
#
# Next time you want to see a gradient, look up in this table which tool to take.
#
# | | goes on | sees | in `autograd.grad` | can change the gradient |
# |---|---|---|---|---|
# | `register_hook` | a tensor | this pass's gradient | fires; if you ask for `y` and `w` at once, you get that of `y` from before the hook | yes, by returning |
# | `retain_grad` | a non-leaf | what all tensor hooks made of it, summed | stores it | no |
# | post-accumulate | a leaf | the parameter, with `.grad` written | silent | only `.grad` |
# | multi-grad | some tensors | a list when all are there; `mode="any"`: the first | fires; if you ask for a leaf of the list, `"all"` raises an error | no, returning is ignored |
#
# </div>

# %% [markdown]
# ### 练习 04.3：冻结嵌入的几行 · Exercise 04.3: Freeze rows of an embedding
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 设想你在训练一个模型，有些词它已经学得够好，你不想再动它们。在 `nn.Embedding` 的权重 `embedding.weight` 里，一行就是一个词的向量，所以你要冻结其中的几行，让别的行接着学。
#
# 写 `freeze_rows(embedding, rows)`，返回句柄。从此，列表 `rows` 中的行收到的梯度总是零。
#
# - 其余的行还要学，所以梯度照旧。`.grad` 里先前攒下的也照旧。
# - 有人会用 `torch.autograd.grad` 来求梯度（不带 `create_graph=True`），有人会直接用 `embedding.weight` 计算，这些时候也都要如此。
# - 别的张量的梯度不能受影响：第 03 课里，有的钩子就弄坏过别人的梯度。
# - 权重可以是任何浮点 dtype。
#
# 有几件事你可以放心：`rows` 不空、不重复、没有负数；梯度是稠密的（没有用 `sparse=True`），在要冻结的行上都是有限的数。
#
# 动手之前先想一想：该用哪种钩子？
#
# </div>
# <div lang="en">
#
# Suppose that a model has learned some words well enough, and its training should not change them any more. In
# `embedding.weight`, the weight of an `nn.Embedding`, each row is the vector of one word. So what we want to freeze is
# some of its rows.
#
# Write `freeze_rows(embedding, rows)`, which returns the handle. From then on:
#
# - The rows in the list `rows` always get a gradient of zero.
# - The gradient of the other rows stays as it is, and so does what lay in `.grad` before.
# - All this also holds under `torch.autograd.grad` (without `create_graph=True`), and where `embedding.weight` is used
#   directly.
# - No other tensor's gradient may suffer from it (lesson 03).
# - The weight may have any floating-point dtype.
#
# You may rely on a few things. `rows` is not empty, and has neither duplicates nor negative numbers. The gradient is
# dense (no `sparse=True`) and finite in the rows to freeze.
#
# Before you start, decide which kind of hook you need.
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
# <div lang="zh">
#
# 冻结的行，现在梯度是零。可是，它们就一定不动了吗？我们拿两个一样的权重来试，它们都是 `1`，梯度都是 `0`。一个用 SGD 走一步，另一个用 AdamW 走一步。走完以后，谁的权重不再是 `1`？**先猜。**
#
# </div>
# <div lang="en">
#
# The gradient of the frozen rows is now zero, but does that mean that they stay where they are? To find out, we let a
# weight of `1` with a gradient of `0` take one step of SGD, and a second such weight one step of AdamW. Whose weight is
# no longer `1` afterwards? **Guess first.**
#
# </div>

# %%
guess("04.j")

# %%
moved = []
for optimizer in (torch.optim.SGD, torch.optim.AdamW):
    weight = nn.Parameter(torch.ones(1))
    weight.grad = torch.zeros(1)
    optimizer([weight], lr=0.1).step()
    moved.append(weight.item() != 1)
    print(f"{optimizer.__name__}: weight {weight.item():.4f}")

# %% [markdown]
# <div lang="zh">
#
# SGD 没有动这个权重，AdamW 却把它缩小了一点。原因是权重衰减，AdamW 默认就有（SGD 要自己设）。权重衰减不看梯度，梯度是零也照样缩小权重。
#
# 要让这些行在任何优化器下都不动，就得在每一步之后把它们写回去，或者把它们单独放进一个冻结的张量。
#
# </div>
# <div lang="en">
#
# SGD left the weight alone, but AdamW shrank it a little. The reason is weight decay, which AdamW has by default (in
# SGD you have to turn it on). It does not look at the gradient, so it goes on where the gradient is zero.
#
# If rows must stay put under any optimizer, write them back after each step, or give them a frozen tensor of their own.
#
# </div>
#
# ### 练习 04.4：按反向传播的次序记下范数 · Exercise 04.4: Norms in backward order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 训练不顺利的时候，你会想看看每个参数的梯度有多大、按什么次序到达。
#
# 写 `watch_norms(model, seen)`，返回句柄的列表。每次 `backward()` 时，每到一个参数的梯度，就往列表 `seen` 里添一对 `(name, norm)`。名字来自 `model.named_parameters()`，范数是 Python 的数（`.item()`）。
#
# - 要的是**这一次**的梯度的范数，有没有人清零 `.grad` 都一样（里面没有特别大的数）。
# - 范数是零也要记下来。记的数不要取整。
# - `seen` 里原有的东西要留着。
# - 冻结的参数就跳过。
#
# </div>
# <div lang="en">
#
# When training does not go well, it helps to see how large the gradient of each parameter is, and in which order the
# gradients come.
#
# Write `watch_norms(model, seen)`, which keeps a logbook in the list `seen`, and returns a list of the handles. In
# every `backward()`, each parameter's gradient adds a pair `(name, norm)` as it arrives. The name is that of
# `model.named_parameters()`, and the norm is a Python number (`.item()`).
#
# - The norm is that of **this** pass's gradient, whether or not anybody zeroed `.grad`. (You may rely on `.grad`
#   holding no huge numbers.)
# - Record norms of zero as well, and do not round.
# - What was in `seen` before stays there.
# - Skip frozen parameters.
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
# 1. 张量钩子收到这一次反向传播里路过的梯度。张量钩子按注册的次序运行，返回的张量会取代梯度。
# 2. 不论什么时候调用，`retain_grad` 都在所有张量钩子之后，把它们改过的梯度加进 `.grad`。
# 3. post-accumulate 钩子等叶子的 `.grad` 写好才运行，收到的是参数。它应当返回 `None`；在里面更新参数，要写 `torch.no_grad()`，因为梯度模式可能开着。
# 4. 一次反向传播若用到它的张量，multi-grad 钩子通常就运行一次：等所有梯度到齐，用 `mode="any"` 则在第一个到达时。它返回什么都不算数，所以只用来看。
# 5. 就地修改若被记进图里，先前的钩子就留在旧的值上（在视图上可能不再触发），`retain_grad` 则跟着张量走。
#
# </div>
# <div lang="en">
#
# 1. A tensor hook sees the gradient on its way, and only that of the current backward. Tensor hooks run in the order of
#    registration, and if one returns a tensor, this takes the gradient's place.
# 2. Whenever you call `retain_grad`, it comes after all tensor hooks. So the gradient that it adds to `.grad` is what
#    they have made of it.
# 3. A post-accumulate hook waits until a leaf's `.grad` is written, so that you can use it up on the spot. It receives
#    the parameter, and should return `None`. To update the parameter in it, use `torch.no_grad()`, because grad mode
#    may be on.
# 4. A multi-grad hook usually runs once in each pass that uses its tensors, when all gradients are there, or with
#    `mode="any"` when the first one arrives. Use it for looking only, because what it returns is ignored.
# 5. After a change in place that the graph records, one name stands for two values. A hook from before stays with the
#    old value (on a view it may fall silent), while `retain_grad` follows the tensor.
#
# </div>

# %% [markdown]
# ## 4.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 先 <code>retain_grad</code>，后挂改梯度的钩子，<code>.grad</code> 里是哪个梯度？</summary>改过的：<code>retain_grad</code> 总在张量钩子之后。</details>
# <details><summary>2. 想在叶子的 <code>.grad</code> 写好之后立刻用掉它，用哪种钩子？</summary>post-accumulate 钩子，它收到参数。</details>
# <details><summary>3. 为什么不带 <code>mode</code> 的 multi-grad 钩子看不出梯度到达的先后？</summary>它等到齐才运行，而且列表按你给的次序排列。</details>
# </div>
# <div lang="en">
# <details><summary>1. First <code>retain_grad</code>, then a hook that changes the gradient: which one is in <code>.grad</code>?</summary>It is the changed one, because <code>retain_grad</code> always comes after the tensor hooks.</details>
# <details><summary>2. Which hook lets you use up a leaf's <code>.grad</code> as soon as it is written?</summary>That is the post-accumulate hook, which receives the parameter.</details>
# <details><summary>3. Why can a multi-grad hook without a <code>mode</code> not tell which gradient arrived first?</summary>It does not run until all are there, and its list has the order you gave.</details>
# </div>

# %% [markdown]
# ## 4.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# 练习 04.2 的做法真有人用。torchtune 微调大模型时，就可以把优化器放进反向传播，做这件事的函数叫 `register_optim_in_bwd_hooks`。
#
# PyTorch 的 FSDP 用 `register_multi_grad_hook` 来照管冻结的参数。这些参数自己没有梯度，没法告诉 FSDP 什么时候可以释放它们的内存。所以 FSDP 去等它们所在的模块：模块的各个输入的梯度一到齐，它就释放这些内存（见 `_runtime_utils.py`）。
#
# 下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# People really do what you did in exercise 04.2. torchtune can fine-tune large models with the optimizer inside
# backward, and the function that sets this up is called `register_optim_in_bwd_hooks`.
#
# PyTorch's FSDP uses `register_multi_grad_hook` for frozen parameters. It has to know when it may free their memory,
# but they have no gradient of their own that could tell. So FSDP waits until the gradients of their module's inputs are
# all there, and frees the memory then (in `_runtime_utils.py`). Below is your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
