# %% tags=["setup"]
import warnings
from functools import partial

import matplotlib.pyplot as plt
import torch

from hookedu import HookTimeline, LanguageToggle, check, guess, hint, plot_graph, progress, solution

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
# **先猜一猜**：反向传播之后，`x.grad`、`y.grad`、`z.grad` 里各是什么？没有留下的梯度，还有办法看到吗？
#
# </div>
# <div lang="en">
#
# Below, $z=\frac{1}{4}\sum_i x_i^2$ is computed in two steps, and the result in between is called `y`. In backward,
# the gradient has to pass `y` before it can reach `x`.
#
# **Guess first**: what is in `x.grad`, `y.grad` and `z.grad` afterwards? And is there any way to see a gradient that
# was not kept?
#
# </div>

# %%
guess("02.a")

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
# 只有 `x.grad` 有值，因为三者之中只有 `x` 是**叶子**（1.2 节）。`y.grad` 和 `z.grad` 都是 `None`。
#
# 可是梯度明明经过了 `y`，不然到不了 `x`。想看到它，就得在它经过的那一刻守在旁边；这正是钩子要做的事。
#
# </div>
# <div lang="en">
#
# Only `x.grad` has a value, because only `x` is a **leaf** (section 1.2). `y.grad` and `z.grad` are `None`.
#
# And yet the gradient did pass `y`, or it could not have reached `x`. If we want to see it, somebody has to be there at
# the moment it passes, and that is the job of a hook.
#
# </div>
#
# ## 2.2 在路上挂一个钩子 · A hook on the path
#
# <div lang="zh">
#
# **钩子**是你写的一个函数，用 `register_hook` 注册到张量上。反向传播走到这个张量，PyTorch 就会调用它，把张量的梯度作为唯一的参数交给它。
#
# 下面的钩子叫 `keep`，它只做一件事：把收到的梯度放进列表 `seen`。
#
# 注册的时候，我们只写 `keep` 这个名字，后面没有括号。要是写了括号，当场就会调用它；而它该由 PyTorch 来调用，在梯度到来的时候。
#
# </div>
# <div lang="en">
#
# A **hook** is a function of yours that you register on a tensor with `register_hook`. When backward comes to that
# tensor, PyTorch calls the function and hands it the tensor's gradient, as its only argument.
#
# The hook below is called `keep`. All it does is put the gradient that it gets into the list `seen`.
#
# When we register it, we write just its name, `keep`, without parentheses. With parentheses we would call the function
# on the spot, but it is PyTorch that should call it, when the gradient comes.
#
# </div>

# %% tags=["E1"]
x = torch.full((4,), 2.0, requires_grad=True)
y = x**2
seen = []


def keep(grad):
    seen.append(grad)


y.register_hook(keep)
z = y.mean()
z.backward()
print("the hook saw:", seen[0])
print("y.grad:", y.grad)

# %% [markdown]
# <div lang="zh">
#
# 看到了！`z` 是 4 个数的平均，每个数只占四分之一，也就是 $\partial z/\partial y_i=\frac{1}{4}$，所以钩子看到的是 4 个 `0.25`。
#
# `y.grad` 依旧是 `None`，因为 PyTorch 没有替我们留下这个梯度。是钩子把它留了下来，放在 `seen` 里。
#
# </div>
# <div lang="en">
#
# There it is! `z` is the mean of 4 numbers, and each of them counts for a quarter:
# $\partial z/\partial y_i=\frac{1}{4}$. So the hook saw `0.25` for every one of them.
#
# `y.grad` is still `None`, because PyTorch did not keep this gradient for us. It was the hook that kept it, in `seen`.
#
# </div>
#
# ## 2.3 谁留下，谁路过 · Who keeps, who passes on
#
# <div lang="zh">
#
# 要是梯度从两条路来，钩子会看到什么？1.4 节的图就是这样：`w` 同时通向 `a` 和 `b`，两条路给它带来 2 和 3。
# `w` 上的钩子可能每条路运行一次，也可能一共只运行一次。
#
# 我们在 `w` 上挂一个钩子看看，`a` 上也挂一个。两个钩子都只看不改：它们调用的 `update` 和 `print` 返回 `None`，而钩子返回 `None`，梯度就不会被换掉。
#
# **先猜** `a` 上的钩子看到多少，再想一想：`w` 上的钩子运行几次，看到的又是多少？
#
# </div>
# <div lang="en">
#
# What does a hook see if gradients come along two paths? In the graph of section 1.4, `w` leads to both `a` and `b`,
# and the two paths bring it the gradients 2 and 3. A hook on `w` might run once for each path, or only once in all.
#
# To find out, we put a hook on `w`, and another one on `a`. Both of them only look: `update` and `print` return `None`,
# and a hook that returns `None` does not replace the gradient.
#
# **Guess** what the hook on `a` sees. And how often does the one on `w` run, and what does it see?
#
# </div>

# %%
guess("02.b")

# %% tags=["E13"] picture="hook_on_a"
w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
b = w + 1
y = a * b
seen = {}
a.register_hook(lambda grad: seen.update(a=grad))
w.register_hook(lambda grad: print("the hook on w saw:", grad))
y.backward(retain_graph=True)

print("w.grad:", w.grad, " x.grad:", x.grad)
print("a.grad:", a.grad, " b.grad:", b.grad, " y.grad:", y.grad)
print("the hook on a saw:", seen["a"])
ax = plot_graph(y, {"w": w, "x": x, "a": a, "b": b, "y": y}, gradients=seen)

# %% [markdown]
# <div lang="zh">
#
# `a` 上的钩子看到 2。`w` 上的钩子只运行一次，看到的是总和 5：PyTorch 等两条路的梯度都到齐、加好了，才调用它。
#
# 图里看得出谁留下了梯度。画双线框的是叶子，它们的 `.grad` 留了下来。`a` 的梯度只有钩子看到了。`b` 上没有钩子，它的梯度谁也没有留。
#
# 那么，通向 `b` 的紫色箭头上怎么写着 3？这个数是画图的时候，用计算图重新算出来的。所以我们用 `retain_graph=True` 把图留着。
#
# </div>
# <div lang="en">
#
# The hook on `a` sees 2. The one on `w` runs only once and sees the total, 5. PyTorch waits until the gradients of both
# paths have arrived and been added, and only then does it call the hook.
#
# The picture shows who kept a gradient. Double frames mark the leaves, whose `.grad` was kept. We know the gradient of
# `a` only through its hook. There was no hook on `b`, so nobody kept its gradient.
#
# Where, then, does the 3 on the purple arrow to `b` come from? It had to be computed again from the graph when the
# picture was drawn, and this is why we kept the graph with `retain_graph=True`.
#
# </div>

# %% [markdown]
# ## 2.4 什么时候触发 · When it fires
#
# <div lang="zh">
#
# 钩子到底在什么时候运行？我们让下面的钩子 `tell` 自己来报告：每触发一次，它就打印一行 `hook`，并把梯度放进 `fired`。
# 我们先注册它，再做两次反向传播。
#
# **先猜**这一行会出现几次，每次的数一样不一样。再想一想，最后 `x.grad` 会是多少？
#
# </div>
# <div lang="en">
#
# When exactly does a hook run? We let the hook `tell` report it: each time it fires, it prints a line `hook` and puts
# the gradient into `fired`. We register it first, and then run backward twice.
#
# **Guess** how many such lines there will be, and whether they show the same number. And what will `x.grad` be in the
# end?
#
# </div>

# %%
guess("02.c")

# %%
x = torch.tensor(3.0, requires_grad=True)
y = 2 * x
z = y**2
fired = []


def tell(grad):
    fired.append(grad)
    print("   hook:", grad)


print("registering")
y.register_hook(tell)
print("backward")
z.backward(retain_graph=True)
print("backward again")
z.backward(retain_graph=True)
print("x.grad:", x.grad)

# %% [markdown]
# <div lang="zh">
#
# 钩子触发了两次，每次都是 `12`。注册的时候它不运行；反向传播每走到 `y` 一次，它就运行一次。
#
# 钩子看到的，只是**这一次**的梯度。`x.grad` 却是各次的总和：每次加上 24，两次就是 48。
#
# 那么反过来，什么时候钩子不运行？下面还有两次反向传播：第一次从 `5 * x` 出发；第二次之前，我们重新算了一遍 `y`。
# **先猜**，这两次里 `hook` 会出现几次。
#
# </div>
# <div lang="en">
#
# The hook fires twice, both times with `12`. It does not run when it is registered. It runs once each time backward
# comes to `y`.
#
# What the hook sees is the gradient of **this** pass only. `x.grad`, in contrast, is a sum: each pass added 24 to it,
# which makes 48.
#
# And when does a hook not run? Below are two more backward passes. The first starts from `5 * x`, and before the second
# we compute `y` anew. **Guess** how often `hook` will appear in these two.
#
# </div>

# %%
guess("02.d")

# %%
print("backward from another result of x")
(5 * x).backward()

y = 2 * x
print("backward through a new y")
(y**2).backward()

# %% [markdown]
# <div lang="zh">
#
# 一次也没有。第一次的原因一看就懂：`5 * x` 的梯度不经过 `y`，那里的钩子自然不触发。
#
# 第二次的原因更容易忘：钩子挂在张量上，不是挂在名字上。重新计算以后，`y` 这个名字指的是另一个张量，上面什么也没有。
#
# 所以，中间结果的钩子，每次前向传播都要重新注册。权重却一直是同一个张量，哪一步训练的反向传播经过它，它的钩子就在哪一步触发。
#
# 还有一种特殊情况值得知道。有的运算一次给出几个结果，例如 `chunk` 把一个张量切成几块。如果反向传播只用到其中一块，另一块上的钩子会触发吗？
#
# </div>
# <div lang="en">
#
# The hook does not fire at all. In the first pass the reason is plain: the gradient of `5 * x` does not come by `y`, so
# the hook there stays silent.
#
# In the second pass, the reason is easier to forget: a hook sits on a tensor, not on a name. Once computed anew, `y` is
# another tensor with nothing on it.
#
# This is why hooks on results in the middle have to be registered again in every forward pass. A weight, in contrast,
# stays the same tensor, and a hook on it fires in every training step in which backward comes by.
#
# One special case is worth knowing. Some operations have several results: `chunk`, for one, cuts a tensor into pieces.
# If backward uses only one of the pieces, will a hook on another one fire?
#
# </div>

# %%
first, second = torch.ones(4, requires_grad=True).chunk(2)
second.register_hook(lambda grad: print("the hook on second got:", grad))
(2 * first).sum().backward()

# %% [markdown]
# <div lang="zh">
#
# 它触发了，收到的却是 `None`。两块出自同一步运算，反向传播经过这一步，就会把每一块的钩子都叫上；哪一块没有梯度，它的钩子收到的就是 `None`。
#
# 你自己的钩子可能会栽在这里：`grad` 要是 `None`，`grad.norm()` 这样的调用就出错了。
# 所以，如果张量是一步运算的几个结果之一，而钩子里要拿 `grad` 来算，就先问一句 `grad is not None`。
#
# </div>
# <div lang="en">
#
# It fired, but what it received was `None`. Both pieces come out of one operation, and when backward goes through that
# operation, it calls the hooks of every piece. A piece without a gradient gets `None`.
#
# This can trip up your own hooks: if `grad` is `None`, something like `grad.norm()` fails. So if your tensor is one of
# several results of an operation, and the hook computes with `grad`, first ask whether `grad is not None`.
#
# </div>

# %% [markdown]
# ### 练习 02.1：监视一个梯度 · Exercise 02.1: Watch one gradient
#
# ●● · 6 min
#
# <div lang="zh">
#
# 想查一个中间结果的梯度，往往有一个最简单的钩子就够了：它只把看到的留下来。我们就先写这样一个钩子。
#
# 写 `watch(y, seen)`，它收到一个张量 `y` 和一个列表 `seen`，在 `y` 上注册一个钩子。这个钩子每次收到梯度，就把它添加到 `seen` 的末尾。它只看不改，梯度本身不要动。
#
# 你的函数要返回 `register_hook` 给你的**句柄**，因为调用者以后要靠它取下钩子（见 2.5 节）。
#
# 本课练习里的梯度总会来，不必考虑 `None`。卡住了就运行 `hint("02.1")`。
#
# </div>
# <div lang="en">
#
# Suppose you want to examine the gradient of a result in the middle. Often the simplest hook is all you need, one that
# just keeps what it sees.
#
# Write `watch(y, seen)`. It gets a tensor `y` and a list `seen`, and it registers a hook on `y`. The hook adds every
# gradient at the end of `seen`. It only watches, so it does not change the gradient itself.
#
# Return the **handle** that `register_hook` gives you, because your caller will need it to take the hook off (see
# section 2.5).
#
# In the exercises of this lesson a gradient always comes, so do not worry about `None`. If you are stuck, run
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
# 看够了，就要把钩子取下来，否则以后每次反向传播经过这里，它都白白运行。`register_hook` 返回的句柄就是做这件事的：`handle.remove()`。
#
# 怎样看出钩子还在不在？我们让它做一件看得见的事：把梯度翻倍。它做得到，是因为钩子如果返回一个张量，这个张量就取代原来的梯度（第 03 课细讲）。
#
# `x` 的梯度，我们要看好几次，又不想让它们在 `x.grad` 里加起来。所以我们用 `torch.autograd.grad`，它把梯度直接返回，不往 `x.grad` 里加。
#
# </div>
# <div lang="en">
#
# Once you have seen enough, take the hook off. Otherwise it will run for nothing whenever backward comes by. This is
# what the handle returned by `register_hook` is for: `handle.remove()`.
#
# How can we see whether a hook is on? We let it do something visible: it doubles the gradient. It can do that because a
# tensor that a hook returns takes the place of the gradient (more in lesson 03).
#
# We are going to look at the gradient of `x` several times, and do not want it to add up in `x.grad`. So we get it from
# `torch.autograd.grad`, which returns the gradient and adds nothing to `x.grad`.
#
# </div>

# %% tags=["E22"]
x = torch.tensor(3.0, requires_grad=True)
y = 2 * x


def gradient_of_x():
    return torch.autograd.grad(y**2, x, retain_graph=True)[0]


print("no hook yet:   ", gradient_of_x())
handle = y.register_hook(lambda grad: 2 * grad)
print("with the hook: ", gradient_of_x())
handle.remove()
print("after remove():", gradient_of_x())

# %% [markdown]
# <div lang="zh">
#
# 挂着钩子，梯度翻倍，从 24 变成 48；取下以后，又是 24。
#
# 句柄也可以用在 `with` 里，这样谁也不必记着 `remove()`。**先猜**离开 `with` 块以后，`x` 的梯度是多少。
#
# 再想一想：块已经离开了，这时对那个句柄再调用一次 `remove()`，会报错吗？
#
# </div>
# <div lang="en">
#
# With the hook on, the gradient is doubled: 48 instead of 24. Once the hook is off, it is 24 again.
#
# A handle also works in a `with` statement, and then nobody has to remember `remove()`. **Guess** what the gradient of
# `x` is after the block.
#
# And think about this, too: if you call `remove()` on that handle once more, will it raise an error?
#
# </div>

# %%
guess("02.e")

# %% tags=["F6"]
with y.register_hook(lambda grad: 2 * grad) as handle:
    print("inside the with:", gradient_of_x())
print("after the with: ", gradient_of_x())

handle.remove()
print("removed again:  ", gradient_of_x())

# %% [markdown] tags=["F6"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 在 `with` 块里，梯度是 48。离开块的时候，钩子就取下了，梯度又是 24。多 `remove()` 一次也没有坏处。
#
# 常犯的错误是没有留下句柄。没有句柄，就没有正规的办法取下钩子；只要张量还在，或者有它在内的计算图还在，钩子就一直挂着。
# 钩子要是挂在权重上，那就是整个训练。
#
# </div>
# <div lang="en">
#
# Inside the `with` block the gradient is 48. When the block ends, the hook is taken off, and the gradient is 24 again.
# One `remove()` too many does no harm.
#
# The mistake is not to keep the handle. Without it there is no proper way to take a hook off, and the hook stays as
# long as its tensor, or a graph with that tensor in it, is there. For a hook on a weight, that is the whole training.
#
# </div>
# </div>
#
# ## 2.6 哪种反向传播会触发它 · Which kind of backward fires it
#
# <div lang="zh">
#
# 刚才我们调用的不是 `backward()`，而是 `torch.autograd.grad`，钩子照样触发了。别的钩子也都这样吗？
#
# 叶子上还可以注册另一种钩子，叫 post-accumulate 钩子。它要等梯度加进 `.grad` 以后才运行。
#
# **先猜** `torch.autograd.grad` 会触发两种里的哪些。再想一想：post-accumulate 钩子的参数 `param` 是梯度，还是别的？
#
# </div>
# <div lang="en">
#
# A moment ago we did not call `backward()` but `torch.autograd.grad`, and the hook still fired. Is that true of every
# hook?
#
# On a leaf you can register another kind as well, the post-accumulate hook. It runs once the gradient has been added to
# `.grad`.
#
# **Guess** which of the two kinds `torch.autograd.grad` fires. And is `param`, the argument of the post-accumulate
# hook, the gradient, or something else?
#
# </div>

# %%
guess("02.f")

# %% tags=["F3"]
w = torch.tensor(3.0, requires_grad=True)
fired = []
w.register_hook(lambda grad: fired.append("tensor hook"))
w.register_post_accumulate_grad_hook(lambda param: fired.append("post-accumulate hook"))
w.register_post_accumulate_grad_hook(lambda param: print("param is w:", param is w))

torch.autograd.grad(w**2, w)
by_grad = fired.copy()
print("autograd.grad fires:", by_grad)

fired.clear()
(w**2).backward()
print("backward fires:     ", fired)
print("w.grad:", w.grad)

# %% [markdown] tags=["F3"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 这两种钩子常被混为一谈。张量钩子两次都触发；post-accumulate 钩子只在 `backward()` 时触发。它等的是梯度加进叶子的 `.grad`，
# 而 `torch.autograd.grad` 什么也不往那里写。
#
# 两者的参数也不一样。张量钩子收到的是梯度，post-accumulate 钩子收到的却是张量本身：这里是 `w`，在模型里就是权重。
# 梯度要从它的 `.grad` 里读，读到的是上次清零以来各次相加的总和。
#
# </div>
# <div lang="en">
#
# These two kinds of hooks are easily confused. The tensor hook fires both times, but the post-accumulate hook fires in
# `backward()` only. It waits until the gradient is added to the `.grad` of a leaf, and `torch.autograd.grad` writes
# nothing there.
#
# Their arguments differ as well. A tensor hook is handed the gradient. A post-accumulate hook is handed the tensor
# itself: here `w`, and in a model the weight. The gradient has to be read from its `.grad`, which holds the sum of all
# passes since it was last cleared.
#
# </div>
# </div>
#
# ## 2.7 太晚了，或者根本不行 · Too late, or not possible at all
#
# <div lang="zh">
#
# 反向传播做完了，才想起来注册钩子，还来得及吗？下面就来试一试。钩子把它看到的每个梯度都放进列表 `late`，然后我们再做一次反向传播。
#
# **先猜**，最后 `late` 里有几个梯度？
#
# </div>
# <div lang="en">
#
# Suppose you remember the hook only after backward. Is it too late then? We try it below. The hook puts every gradient
# that it sees into the list `late`, and then backward runs once more.
#
# **Guess** how many gradients `late` holds in the end.
#
# </div>

# %%
guess("02.g")

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

# %% [markdown]
# <div lang="zh">
#
# 最后只有一个，是第二次反向传播的。注册之前的那一次，钩子和 `retain_grad` 都没有赶上：列表起初是空的，`y.grad` 也是 `None`。
# 到了下一次，两者就都有了。
#
# 那么不需要梯度的张量呢？它永远没有梯度可看。你还能在它上面注册钩子吗？
#
# </div>
# <div lang="en">
#
# In the end there is just one, from the second pass. Neither the hook nor `retain_grad` could see the gradient that had
# already passed, so at first the list is empty and `y.grad` is `None`. In the next backward pass, both of them get the
# gradient.
#
# And what about a tensor that requires no gradient? It never has one that a hook could see. Can you register a hook
# on it all the same?
#
# </div>

# %% tags=["F5"]
data = torch.ones(2)
try:
    data.register_hook(late.append)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown] tags=["F5"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 有人做完反向传播才注册钩子，这时梯度已经过去了。钩子和 `retain_grad` 一样（1.7 节），只看得到注册**以后**才来的梯度，所以要先注册。
#
# 不需要梯度的张量根本不接受钩子，因为永远不会有梯度到它那里。
#
# </div>
# <div lang="en">
#
# Some people register a hook only after backward, when the gradient has already passed. But like `retain_grad` (section
# 1.7), a hook sees only gradients that come **later**, so register it first.
#
# A tensor that requires no gradient does not accept a hook at all, because no gradient would ever reach it.
#
# </div>
# </div>

# %% [markdown]
# ## 2.8 许多钩子，各有各的名字 · Many hooks, each with its name
#
# <div lang="zh">
#
# 要监视的往往不止一个张量，这时你得分清哪个梯度是谁的。可是钩子只收到梯度，不知道自己在哪个张量上，所以名字要由我们给它。
#
# 下面的循环给两个张量各注册一个钩子，想让每个钩子在触发的时候记下自己那个张量的名字。**先猜** `seen` 里会有什么。
#
# </div>
# <div lang="en">
#
# Often there are several tensors to watch, and then you need to know which gradient is whose. But a hook gets only a
# gradient and does not know which tensor it is on, so it needs a name from us.
#
# The loop below registers a hook on each of two tensors. Each hook should note the name of its tensor when it fires.
# **Guess** what `seen` will hold.
#
# </div>

# %%
guess("02.h")

# %% tags=["F9"]
x = torch.tensor([1.0, 2.0], requires_grad=True)
tensors = {"double": 2 * x, "triple": 3 * x}

seen = []
for name, tensor in tensors.items():
    tensor.register_hook(lambda grad: seen.append(name))

(tensors["double"] + tensors["triple"]).sum().backward()
print(seen)

# %% [markdown] tags=["F9"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 两个钩子都报 `triple`！这叫**延迟绑定**：函数到运行的时候，才去查 `name` 的值。钩子在反向传播时才运行，那时循环早已走完，`name` 停在最后一个值上。
#
# 要让每个钩子报自己的名字，就得在循环的当下把名字固定住。下面是三种办法：默认参数、工厂函数（闭包）和 `functools.partial`。
#
# </div>
# <div lang="en">
#
# Both hooks say `triple`! This is called **late binding**: a function looks `name` up when it runs. Hooks run in
# backward, when the loop is long over and `name` has its last value.
#
# Here are three ways to pin the name down inside the loop: a default argument, a factory function (a closure), and
# `functools.partial`.
#
# </div>
# </div>
#
# <div lang="zh">
#
# 先看默认参数。`name=name` 在定义函数的那一刻就求值，所以每个函数留住的，是循环走到它那一轮的名字。
#
# （下面打印前先排序，因为反向传播不一定按循环的次序来。）
#
# </div>
# <div lang="en">
#
# We begin with the default argument: `name=name` is evaluated at the moment the function is defined, so each function
# keeps the name of its own turn of the loop.
#
# (The names are sorted before printing, because backward need not follow the order of the loop.)
#
# </div>

# %% tags=["F9"]
seen = []
tensors = {"double": 2 * x, "triple": 3 * x}
for name, tensor in tensors.items():
    tensor.register_hook(lambda grad, name=name: seen.append(name))

(tensors["double"] + tensors["triple"]).sum().backward()
print("default:", sorted(seen))

# %% [markdown]
# <div lang="zh">
#
# 还剩两种，我们一起试：每个张量上各挂两个钩子，一个由 `named` 造出来，一个由 `partial` 造出来。
#
# 工厂函数 `named` 每调用一次，就有一个属于那次调用的变量 `name`。它返回的函数记住的就是这一个。
#
# 用 `partial` 就不必在函数里再写函数。`partial(note, name)` 把 `note` 的第一个参数先填好，给你一个新的函数，它只等第二个参数，也就是梯度。
#
# </div>
# <div lang="en">
#
# Two of the three ways are left. We try them together, so each tensor gets two hooks, one made by `named` and one made
# by `partial`.
#
# Each call of the factory function `named` has a variable `name` of its own, and the function that it returns remembers
# that variable.
#
# With `partial` you need no function inside another. `partial(note, name)` fills in the first argument of `note` and
# gives you a function that only waits for the second, the gradient.
#
# </div>


# %% tags=["F9"]
def named(name):
    return lambda grad: seen.append(f"factory {name}")


def note(name, grad):
    seen.append(f"partial {name}")


seen, tensors = [], {"double": 2 * x, "triple": 3 * x}
for name, tensor in tensors.items():
    tensor.register_hook(named(name))
    tensor.register_hook(partial(note, name))
(tensors["double"] + tensors["triple"]).sum().backward()
print(sorted(seen))

# %% [markdown]
# ### 练习 02.2：按名字监视许多张量 · Exercise 02.2: Watch many tensors by name
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 查一个模型时，要看的往往是一批张量，还得分清哪个梯度是谁的。有了名字，就分得清了。
#
# 写 `watch_many(tensors, seen)`。`tensors` 是「名字 → 张量」的字典，你的函数给里面的张量各注册一个钩子，让它们把梯度放进字典 `seen`。
# 最后返回一个列表，装着所有句柄，调用者要靠它们取下钩子。
#
# - 每当一个张量的梯度到来，`seen[name]` 就应当成为**这一次**的梯度，不与以前的相加；
# - 反向传播没有经过的张量，没有新的梯度，它那一项可以留着旧的；
# - 跳过 `requires_grad` 为 `False` 的张量，因为它们不接受钩子。
#
# </div>
# <div lang="en">
#
# If you examine a model, you usually want to watch a whole set of tensors, and to know which gradient belongs to which
# of them. Names make this possible.
#
# Write `watch_many(tensors, seen)`, where `tensors` is a dictionary from names to tensors. It registers a hook on each
# of them, and the hooks put the gradients into the dictionary `seen`. Return a list of all handles, so that your caller
# can take the hooks off.
#
# - Whenever the gradient of a tensor arrives, `seen[name]` should become the gradient of **this** pass, not added to
#   earlier ones.
# - Where backward does not come by, there is no new gradient, and the old entry may stay.
# - Skip tensors whose `requires_grad` is `False`, because they do not accept a hook.
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
# 网络学不动的时候，该从哪里查起？可以看看到了每一层，梯度还剩多少。办法你已经会了：每层挂一个钩子。
#
# 下面的网络有 8 层全连接，每层后面有一个 sigmoid。我们只想知道梯度有多大，所以每层输出上的钩子只记下梯度的范数。
#
# 离损失最远的是 `h1`，最近的是 `h8`。**先猜** `h1` 的梯度大约是 `h8` 的几分之一。
#
# </div>
# <div lang="en">
#
# When a network does not learn, where do you start to look? You can see how much of the gradient arrives at each layer,
# and you already know how: with a hook on each.
#
# The network below has 8 linear layers, with a sigmoid after each. All we need to know about a gradient here is how
# large it is, so a hook on the output of every layer notes just its norm.
#
# `h1` is furthest from the loss, and `h8` is nearest. **Guess** roughly what part of the gradient of `h8` will arrive
# at `h1`.
#
# </div>

# %%
guess("02.i")

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
print(f"h8 / h1: {norms['h8'] / norms['h1']:.0e}")

# %% picture="norms"
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.bar(list(reversed(norms)), list(reversed(norms.values())))
ax.set(yscale="log", ylabel="gradient norm", xlabel="layer output, from input to loss")
print("order of firing:", *norms)

# %% [markdown]
# <div lang="zh">
#
# `h1` 的梯度，大约只有 `h8` 的百万分之一！钩子从 `h8` 到 `h1` 依次触发，每过一层，梯度只剩七分之一左右。
#
# 为什么会这样？sigmoid 的导数不超过 $\frac{1}{4}$，这里的初始权重又小。链式法则把它们一层层乘起来，所以靠近输入的层几乎得不到梯度。
#
# 想亲眼看钩子怎样依次触发，可以用 `HookTimeline`。它记下模型的一次前向传播和反向传播，然后让你一步一步地看。
#
# 其中的 `output_grad`、`param_grad` 和 `input_grad` 是张量钩子，分别在一层的输出、参数和输入上。
# `post_accumulate` 你也认识，其余几种从第 05 课起再讲。先选 **观看** 走一遍，再选 **预测**，猜下一个是谁。
#
# **先猜一猜**：这个网络的三层里，有一层没有 `input_grad`。是哪一层，又为什么没有？
#
# </div>
# <div lang="en">
#
# The gradient at `h1` is only about a millionth of the one at `h8`! The hooks fire in turn from `h8` to `h1`, and each
# layer lets only about a seventh of the gradient through.
#
# Why is that? The slope of a sigmoid is never more than $\frac{1}{4}$, and the initial weights here are small. The
# chain rule multiplies these factors, layer by layer, so the layers near the input get almost no gradient.
#
# To watch hooks fire one after the other, use `HookTimeline`, which records one forward and one backward pass of a
# model and lets you step through them.
#
# Its events `output_grad`, `param_grad` and `input_grad` are tensor hooks, on the output, the parameters and the input
# of a layer. You already know `post_accumulate`, and the others come in lesson 05 and later. First choose **Watch** and
# go through it once. Then choose **Predict** and guess which hook is next.
#
# **Guess first**: of the three layers of this net, one has no `input_grad`. Which one, and why?
#
# </div>

# %%
guess("02.j")

# %% picture="timeline"
small = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid(), torch.nn.Linear(2, 1))
steps = HookTimeline(small, torch.ones(1, 2))
steps

# %% [markdown]
# <div lang="zh">
#
# 是第 `0` 层。它的输入是数据，数据不需要梯度，也就没有人去算。其余两层的输入是前一层的输出，梯度要从那里经过。
#
# </div>
# <div lang="en">
#
# It is layer `0`. Its input is the data, which needs no gradient, so nobody computes one. The inputs of the other two
# layers are the outputs of the layers before them, and the gradient has to pass there.
#
# </div>
#
# ### 练习 02.3：只看一次 · Exercise 02.3: Observe once
#
# ●●● · 6 min
#
# <div lang="zh">
#
# 有时你只想看第一次反向传播。可是钩子要是一直挂着，列表就会越来越长，所以它触发一次之后，就该自己下来。
#
# 写 `observe_once(y, seen)`，在 `y` 上注册这样一个钩子。仍然返回句柄，调用者靠它可以提前取消。
#
# - 钩子把 `y` 的第一个梯度添加到列表 `seen` 末尾，列表里原有的留着；
# - 然后它**自己取下自己**；
# - 别人挂在 `y` 上的钩子不受影响，因为他们也许还要用。
#
# </div>
# <div lang="en">
#
# Sometimes the first backward pass is all you want to see. A hook that stays on would go on filling your list, so it
# should take itself off as soon as it has fired.
#
# Write `observe_once(y, seen)`, which registers such a hook on `y`. Return the handle as before, so that a caller can
# cancel early.
#
# - The hook appends the first gradient of `y` to the list `seen` and keeps what is in it already.
# - Then the hook **takes itself off**.
# - Hooks that others registered on `y` stay, because they may still be needed.
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
# ●●●● · 12 min
#
# <div lang="zh">
#
# 在练习 02.1 和 02.2 里，调用者得自己记着取下钩子。要是先出了异常，就根本走不到那一行。
# `with` 块可以替他做好这件事，就像 `with open(...)` 保证文件会关上。
#
# 写一个上下文管理器，让人可以这样用它：`with watching(tensors) as seen:`。
#
# - 进入块的时候才注册钩子，免得没有人进入块，钩子却已经挂着；
# - 在块里面，`seen` 像 02.2 那样收集梯度；
# - 离开的时候，取下**自己注册的**所有钩子，别人的留着；
# - **哪怕块里抛出了异常**，也要取下。异常要照常传出去，好让调用者知道；
# - 每次 `with watching(...)` 都给出新的字典，离开之后还能读。
#
# 你可以用 `contextlib.contextmanager`：`yield` 之前的代码管进入，之后的管离开。
# 你也可以写一个带 `__enter__` 和 `__exit__` 的类，那就删掉 `@contextmanager` 那一行。
#
# </div>
# <div lang="en">
#
# In exercises 02.1 and 02.2 the caller has to remember to take the hooks off. If an exception comes first, that line is
# never reached. A `with` block can look after it, just as `with open(...)` makes sure that a file is closed.
#
# Write a context manager that can be used like this: `with watching(tensors) as seen:`.
#
# - It registers hooks only when the block is entered, so that none are on if nobody enters it.
# - Inside the block, `seen` collects gradients as in 02.2.
# - At the end, all hooks **of its own** come off, while those of others stay.
# - They come off **even if the block raised an exception**. The exception must still propagate, so that the caller
#   learns of it.
# - Each `with watching(...)` yields a new dictionary, which can still be read after the block.
#
# You may use `contextlib.contextmanager`: the code before the `yield` belongs to entering the block, and the code after
# it to leaving. Or write a class with `__enter__` and `__exit__`, and delete the line `@contextmanager`.
#
# </div>

# %% exercise="02.4"
from contextlib import contextmanager


@contextmanager
def watching(tensors):
    """在 with 块内监视这些张量：给出新的字典 seen，离开时取下自己的钩子。

    Watch these tensors inside a with block: yield a new dict seen; at the end take own hooks off.
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
# ## 2.10 破案：凶手是哪一行 · A bug hunt: which line did it?
#
# <div lang="zh">
#
# 现在用钩子破一个真实的案子。一个网络把样本变成平面上的点，训练的目标是让成对的点靠近，所以损失就是各对点的平均距离。
# 距离怎么算？先作差，再求平方和，最后开方。
#
# 这样的代码到处都有，看上去毫无问题。请运行它，看看损失。
#
# </div>
# <div lang="en">
#
# Now you can solve a real case with hooks. A network turns samples into points in the plane. It is trained to bring the
# points of each pair together, so the loss is their mean distance. To get a distance, we take the difference, the sum
# of squares and the square root.
#
# There is code like this everywhere, and it looks harmless. Run it, and watch the loss.
#
# </div>

# %%
torch.manual_seed(0)
left = torch.randn(4, 3)
right = torch.cat([torch.randn(2, 3), left[2:3], torch.randn(1, 3)])
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for step in range(3):
    difference = net(left) - net(right)
    squared = difference.pow(2).sum(dim=1)
    distance = squared.sqrt()
    optimizer.zero_grad()
    distance.mean().backward()
    optimizer.step()
    print("step", step, "loss", round(distance.mean().item(), 3))

# %% [markdown]
# <div lang="zh">
#
# 第一步的损失好好的，第二步就成了 `nan`。第一次前向传播的数都正常，嫌疑便落在第一次反向传播上。
#
# 所以下面用一个新的网络重演第一步。这一回，三个张量上各有一个钩子，把经过的梯度打印出来。**先猜**凶手是哪一行。
#
# </div>
# <div lang="en">
#
# The loss of the first step is fine, and that of the second is `nan`. Since the first forward pass gave normal
# numbers, suspicion falls on the first backward pass.
#
# So we replay the first step below, with a new network. This time, a hook on each of the three tensors prints the
# gradient that passes. **Guess** which line is to blame.
#
# </div>

# %%
guess("02.k")

# %%
net = torch.nn.Linear(3, 2)
difference = net(left) - net(right)
squared = difference.pow(2).sum(dim=1)
distance = squared.sqrt()

distance.register_hook(partial(print, "distance  "))
squared.register_hook(partial(print, "squared   "))
difference.register_hook(partial(print, "difference"))
distance.mean().backward()
print("net.bias.grad", net.bias.grad)

# %% [markdown]
# <div lang="zh">
#
# 顺着反向传播读证词。到 `distance` 为止，一切正常；到了 `squared`，出现一个 `inf`；到了 `difference`，就成了 `nan`。所以凶手在前两者之间，就是开方。
#
# $\sqrt{s}$ 的斜率是 $\frac{1}{2\sqrt{s}}$，在 0 处是无穷大。而第三对的两个样本恰好相同，它的 `squared` 正是 0。
#
# 再往回一步，平方的斜率也是 0，无穷大乘以 0 就是 `nan`。它流进权重的梯度，于是一对坏样本就毁了整个网络。
#
# 治法是让开方永远碰不到 0：先加上一个很小的数。
#
# </div>
# <div lang="en">
#
# Read the evidence in the order of backward. At `distance` all is well, at `squared` there is an `inf`, and at
# `difference` it has become `nan`. So the culprit stands between the first two: it is the square root.
#
# The slope of $\sqrt{s}$ is $\frac{1}{2\sqrt{s}}$, which is infinite at 0. And the third pair happens to be two equal
# samples, so its `squared` is exactly 0.
#
# One step further back, the slope of the square is 0 as well, and infinity times 0 is `nan`. That `nan` enters the
# gradients of the weights, and so one bad pair has ruined the whole network.
#
# The cure is to keep the root away from 0, by adding a tiny number first.
#
# </div>

# %%
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for step in range(3):
    squared = (net(left) - net(right)).pow(2).sum(dim=1)
    distance = (squared + 1e-12).sqrt()
    optimizer.zero_grad()
    distance.mean().backward()
    optimizer.step()
    print("step", step, "loss", round(distance.mean().item(), 3))

# %% [markdown]
# <div lang="zh">
#
# 损失一步步下降，案子结了。
#
# 这个办法在别处也能用。在一串中间结果上都挂上钩子，顺着反向传播找到第一个不正常的梯度。凶手就是它和上一个正常的梯度之间的那一步运算。
#
# </div>
# <div lang="en">
#
# The loss falls, and the case is closed.
#
# The same method works elsewhere, too. Put hooks on a chain of results, and find the first bad gradient in the order of
# backward. The culprit is the operation between it and the last good one.
#
# </div>
#
# ## 2.11 小结 · Recap
#
# <div lang="zh">
#
# 1. 张量钩子是一个函数。等梯度到了它的张量，各条路的也都加好了，PyTorch 就调用它，把梯度交给它。
# 2. 只看不改的钩子，什么也不返回。
# 3. 从注册之后开始，`backward()` 和 `torch.autograd.grad` 都会触发张量钩子。反向传播不路过，它就不触发；重新算出的张量是新的，上面没有钩子。
# 4. 在循环里写钩子，要当场把名字固定住。
# 5. 留住句柄；用 `with` 或 `finally` 取下钩子。
#
# </div>
# <div lang="en">
#
# 1. A tensor hook is a function. When the gradient has arrived at its tensor, and all paths have been added, PyTorch calls it with that gradient.
# 2. A hook that only watches returns nothing.
# 3. A tensor hook fires in `backward()` and in `torch.autograd.grad`, from its registration on. It stays silent where backward does not come by, and a tensor that is computed again is a new one, without the hook.
# 4. When you write hooks in a loop, pin the name down on the spot.
# 5. Keep the handle, and take hooks off with `with` or `finally`.
#
# </div>

# %% [markdown]
# ## 2.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 反向传播之后 <code>y.grad</code> 是 <code>None</code>，怎样才看得到它的梯度？</summary>在反向传播之前，用 <code>y.register_hook</code> 注册一个钩子（或者调用 <code>y.retain_grad()</code>），然后再做一次反向传播。</details>
# <details><summary>2. 循环里写的钩子，为什么都报最后一个名字？</summary>因为延迟绑定：钩子运行时才去查 <code>name</code>，那时循环已经走完。</details>
# <details><summary>3. 哪种钩子在 <code>torch.autograd.grad</code> 下不触发，为什么？</summary>post-accumulate 钩子。它等的是梯度加进叶子的 <code>.grad</code>，而 <code>torch.autograd.grad</code> 什么也不往那里写。</details>
# </div>
# <div lang="en">
# <details><summary>1. After backward <code>y.grad</code> is <code>None</code>. How do you get to see its gradient?</summary>Before backward, register a hook with <code>y.register_hook</code> (or call <code>y.retain_grad()</code>), then run backward again.</details>
# <details><summary>2. Why do all hooks written in a loop report the last name?</summary>Because of late binding: the hooks look <code>name</code> up when they run, and by then the loop is over.</details>
# <details><summary>3. Which hook does not fire under <code>torch.autograd.grad</code>, and why?</summary>The post-accumulate hook. It waits until the gradient has been added to the <code>.grad</code> of a leaf, and <code>torch.autograd.grad</code> writes nothing there.</details>
# </div>

# %% [markdown]
# ## 2.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 第 11 课的 Grad-CAM 要用到特征图的梯度。可是特征图是中间结果，它的 `.grad` 不会留下。所以有名的实现 `pytorch-grad-cam` 在前向传播里给它注册一个张量钩子
# （搜索 `ActivationsAndGradients`）。到了那一课，我们自己来写一个。
#
# 下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# Grad-CAM, the topic of lesson 11, needs the gradient of a feature map. A feature map is a result in the middle, so its
# `.grad` is not kept. That is why a well-known implementation, `pytorch-grad-cam`, registers a tensor hook on it during
# forward (search for `ActivationsAndGradients`). In that lesson we shall write our own.
#
# Below is your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
