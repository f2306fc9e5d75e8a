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
# The next cell computes $z=\frac{1}{4}\sum_i x_i^2$ in two steps, and the result in between is called `y`. In backward,
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
# 只有 `x.grad` 有值，因为三者之中只有 `x` 是**叶子**（1.2 节）。`y.grad` 是 `None`，可是梯度明明经过了 `y`。想看到它，就得在它经过的那一刻守在旁边；
# 这正是钩子要做的事。
#
# </div>
# <div lang="en">
#
# Only `x.grad` has a value, because only `x` is a **leaf** (section 1.2). `y.grad` is `None`, and yet the gradient
# did pass `y`. If we want to see it, somebody has to be there at the moment it passes, and that is the job of a hook.
#
# </div>
#
# ## 2.2 在路上挂一个钩子 · A hook on the path
#
# <div lang="zh">
#
# **钩子**是你写的一个函数，用 `register_hook` 注册到张量上。反向传播走到这个张量，就会调用这个函数，把张量的梯度作为唯一的参数交给它。
#
# 下面的钩子叫 `keep`，它把梯度放进列表 `seen`。注册时写的是函数本身，后面没有括号：要由 PyTorch 来调用它，而不是我们。
#
# </div>
# <div lang="en">
#
# A **hook** is a function of yours that you register on a tensor with `register_hook`. When backward comes to that
# tensor, PyTorch calls the function with the tensor's gradient as its only argument.
#
# The hook below is called `keep`, and it puts the gradient into the list `seen`. We register the function itself,
# without parentheses after its name, because it is PyTorch that will call it, not we.
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
# 看到了：$\partial z/\partial y_i=\frac{1}{4}$，也就是 4 个 `0.25`。`y.grad` 依旧是 `None`，梯度是钩子替我们存在 `seen` 里的。
#
# </div>
# <div lang="en">
#
# There it is: $\partial z/\partial y_i=\frac{1}{4}$, so the hook saw `0.25` for each of the 4 numbers. `y.grad` is
# still `None`, because PyTorch kept nothing for us. It was the hook that kept the gradient, in `seen`.
#
# </div>
#
# ## 2.3 谁留下，谁路过 · Who keeps, who passes on
#
# <div lang="zh">
#
# 再看 1.4 节那张有岔路的图：`w` 同时通向 `a` 和 `b`，两条路给它带来 2 和 3。这一次，`a` 和 `w` 上各有一个钩子，而且都只看不改：
# `update` 和 `print` 都返回 `None`，钩子返回 `None`，梯度就不会被换掉。
#
# **先猜**，再想一想：`w` 上的钩子运行几次，是每条路一次吗？
#
# </div>
# <div lang="en">
#
# Let us go back to the graph of section 1.4 with its fork: `w` leads to both `a` and `b`, and the two paths bring it
# the gradients 2 and 3. This time there is a hook on `a` and one on `w`. Both of them only look: `update` and `print`
# return `None`, and a hook that returns `None` does not replace the gradient.
#
# **Guess** what the hooks see, and think about this as well: does the hook on `w` run once for each path, or only once?
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
# `a` 上的钩子看到 2。`w` 上的只运行一次，看到的是总和 5：两条路的梯度都到齐、加好之后，钩子才运行。
#
# 图里画双线框的是叶子，它们的 `.grad` 留了下来；`a` 的梯度只有钩子看到了；`b` 上没有钩子，它的梯度谁也没有留。
# 通向 `b` 的紫色箭头上的 3，是画图时用计算图重新算出来的，所以图要用 `retain_graph=True` 留着。
#
# </div>
# <div lang="en">
#
# The hook on `a` sees 2. The one on `w` runs only once and sees the total, 5, because a hook waits until the gradients
# of all paths have arrived and been added.
#
# In the picture, double frames mark the leaves, whose `.grad` was kept. We know the gradient of `a` only through its
# hook. There was no hook on `b`, so nobody kept its gradient. The 3 on the purple arrow to `b` had to be computed again
# from the graph when the picture was drawn, and this is why we kept the graph with `retain_graph=True`.
#
# </div>

# %% [markdown]
# ## 2.4 什么时候触发 · When it fires
#
# <div lang="zh">
#
# 钩子到底在什么时候运行？下面的 `tell` 每触发一次，就打印一行 `hook`，并把梯度放进 `fired`。先注册，再做两次反向传播。**先猜**，也想一想 `x.grad` 会是多少。
#
# </div>
# <div lang="en">
#
# When exactly does a hook run? To find out, we let the hook `tell` print a line `hook` each time it fires, and also put
# the gradient into `fired`. We register it first, and then run backward twice. **Guess** how many lines there will be,
# and what `x.grad` will be in the end.
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
# 两次，每次都是 `12`。注册的时候钩子不运行，每次反向传播走到 `y` 时才运行一次，看到的只是**这一次**的梯度；而 `x.grad` 把两次的 24 加成了 48。
#
# 那么反过来：什么时候它不运行？下面两次反向传播，一次从 `5 * x` 出发，另一次之前，重新算了一遍 `y`。**先猜**。
#
# </div>
# <div lang="en">
#
# The hook fires twice, both times with `12`. It does not run when it is registered, but once each time backward comes
# to `y`. What it sees is the gradient of **this** pass only, whereas `x.grad` is a sum: each pass added 24 to it, which
# makes 48.
#
# And when does a hook not run? Below are two more backward passes. The first starts from `5 * x`, and before the second
# we compute `y` anew. How often will the hook fire in these two? **Guess** first.
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
# 一次也没有。`5 * x` 的梯度不经过 `y`，所以那里的钩子不触发。第二个原因更容易忘：钩子挂在张量上，不是挂在名字上。
# 重新计算以后，`y` 是另一个张量，上面什么也没有，所以中间结果的钩子每次前向传播都要重新注册。权重则一直是同一个张量，凡是用到它的训练步，它的钩子都会触发。
#
# 有一种特殊情况值得知道：`chunk` 把一个张量切成几块，如果反向传播只用到其中一块，别的块上的钩子会怎样？
#
# </div>
# <div lang="en">
#
# The hook does not fire at all. In the first pass, the gradient of `5 * x` does not come by `y`, so the hook there
# stays silent. In the second pass, the reason is easier to forget: a hook sits on a tensor, not on a name. Once computed
# anew, `y` is another tensor with nothing on it. This is why hooks on results in the middle have to be registered again
# in every forward pass. A weight, in contrast, stays the same tensor, and a hook on it fires in every step that uses
# it.
#
# One special case is worth knowing. `chunk` cuts a tensor into pieces. If backward uses only one of them, will a hook
# on another one fire?
#
# </div>

# %%
first, second = torch.ones(4, requires_grad=True).chunk(2)
second.register_hook(lambda grad: print("the hook on second got:", grad))
(2 * first).sum().backward()

# %% [markdown]
# <div lang="zh">
#
# 它触发了，收到的却是 `None`：两块出自同一步运算，反向传播经过那一步时，会叫上每一块的钩子，没有梯度的就给 `None`。所以，如果张量是一步运算的几个结果之一，
# 而钩子里要用 `grad.norm()` 这样的方法，就先问一句 `grad is not None`。
#
# </div>
# <div lang="en">
#
# It fired, but it received `None`. Both pieces come out of one operation, and when backward goes through that
# operation, it calls the hooks of every piece; a piece without a gradient gets `None`. So if your tensor is one of
# several results of an operation, and the hook uses something like `grad.norm()`, first ask whether
# `grad is not None`.
#
# </div>

# %% [markdown]
# ### 练习 02.1：监视一个梯度 · Exercise 02.1: Watch one gradient
#
# ●● · 6 min
#
# <div lang="zh">
#
# 先写一个最简单的钩子：只把看到的留下来。想查一个中间结果的梯度，有它往往就够了。
#
# 写 `watch(y, seen)`：在 `y` 上注册一个钩子，把每次的梯度添加到列表 `seen` 的末尾，梯度本身不要动。
# 最后返回 `register_hook` 给你的**句柄**，调用者以后要靠它取下钩子（见 2.5 节）。
#
# 本课练习里的梯度总会来，不必考虑 `None`。卡住了就运行 `hint("02.1")`。
#
# </div>
# <div lang="en">
#
# The simplest hook keeps what it sees. It is often all you need if you want to examine the gradient of a result in the
# middle.
#
# Write `watch(y, seen)`, which registers a hook on `y`. The hook adds every gradient at the end of the list `seen` and
# does not change the gradient itself. Return the **handle** that `register_hook` gives you, because your caller will
# need it to take the hook off (see section 2.5).
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
# 看完以后，钩子要取下来，否则以后每次反向传播经过这里，它都白白运行。`register_hook` 返回的句柄就是做这件事的：`handle.remove()`。
#
# 为了看出钩子还在不在，下面的钩子把梯度翻倍：钩子如果返回一个张量，它就取代原来的梯度（第 03 课细讲）。
# `x` 的梯度用 `torch.autograd.grad` 取得，它把梯度直接返回，不往 `x.grad` 里加。
#
# </div>
# <div lang="en">
#
# Once you have seen enough, take the hook off. Otherwise it will run for nothing whenever backward comes by. This is
# what the handle returned by `register_hook` is for: `handle.remove()`.
#
# We want to see whether a hook is on, so the one below doubles the gradient: if a hook returns a tensor, that tensor
# takes the place of the gradient (more in lesson 03). We get the gradient of `x` from `torch.autograd.grad`, which
# returns it and adds nothing to `x.grad`.
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
# 钩子把 24 翻倍成 48，取下以后又是 24。
#
# 句柄也可以用在 `with` 里。**先猜**块后面的梯度，也想一想：对一个已经取下的句柄再调用一次 `remove()`，会报错吗？
#
# </div>
# <div lang="en">
#
# With the hook on, the gradient is doubled: 48 instead of 24. Once the hook is off, it is 24 again.
#
# A handle also works in a `with` statement, and then nobody has to remember `remove()`. **Guess** what the gradient is
# after the block. And think about this, too: if you call `remove()` on that handle once more, will it raise an error?
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
# 离开 `with`，钩子就取下了，所以先是 48，后是 24；再 `remove()` 一次也没有坏处。常犯的错误是没有留下句柄：那就没有正规的办法取下钩子，
# 只要张量或者有它在内的计算图还在，钩子就一直挂着；在权重上，那就是整个训练。
#
# </div>
# <div lang="en">
#
# When the `with` block ends, the hook is taken off, so the gradient is 48 first and then 24, and one `remove()` too
# many does no harm. The mistake is not to keep the handle. Without it there is no proper way to take a hook off, and
# the hook stays as long as its tensor, or a graph with that tensor in it, is there. For a hook on a weight, that is the
# whole training.
#
# </div>
# </div>
#
# ## 2.6 哪种反向传播会触发它 · Which kind of backward fires it
#
# <div lang="zh">
#
# 刚才用的不是 `backward()`，而是 `torch.autograd.grad`，钩子照样触发了。叶子上还可以注册另一种钩子，叫 post-accumulate 钩子，
# 要等梯度加进 `.grad` 以后才运行。
#
# **先猜**，也想一想：post-accumulate 钩子的参数 `param` 是梯度，还是别的？
#
# </div>
# <div lang="en">
#
# A moment ago we did not call `backward()` but `torch.autograd.grad`, and the hook still fired. Is that true of every
# hook? On a leaf you can register another kind as well, the post-accumulate hook, which runs once the gradient has been
# added to `.grad`.
#
# **Guess** which of the two kinds fires when. And is `param`, the argument of the post-accumulate hook, the gradient,
# or something else?
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
# 这两种钩子常被混为一谈。张量钩子两次都触发；post-accumulate 钩子只在 `backward()` 时触发，因为 `torch.autograd.grad`
# 不往叶子的 `.grad` 里写东西，它等的那一刻就不会来。
#
# 它的参数也不是梯度，而是张量 `w` 本身，在模型里就是那个权重；梯度要从 `.grad` 里读，而且那是上次清零以来各次相加的总和。
#
# </div>
# <div lang="en">
#
# These two kinds of hooks are easily confused. The tensor hook fires both times, but the post-accumulate hook fires in
# `backward()` only. It waits until the gradient is added to the `.grad` of a leaf, and `torch.autograd.grad` writes
# nothing there.
#
# The argument of a post-accumulate hook is not the gradient either, but the tensor `w` itself, in a model the weight.
# The gradient has to be read from `.grad`, which holds the sum of all passes since it was last cleared.
#
# </div>
# </div>
#
# ## 2.7 太晚了，以及根本不行 · Too late, and not at all
#
# <div lang="zh">
#
# 反向传播做完了才注册钩子，还来得及吗？下面的列表 `late` 收集钩子看到的梯度。**先猜**。
#
# </div>
# <div lang="en">
#
# Suppose you remember the hook only after backward. Is it too late then? The list `late` below collects the gradients
# that such a hook sees. **Guess** first.
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
# 第一次是空的，`y.grad` 也是 `None`：已经过去的梯度，钩子和 `retain_grad` 都看不到。下一次反向传播，两者就都有了。
#
# 不需要梯度的张量呢？它永远没有梯度可看。
#
# </div>
# <div lang="en">
#
# After the first pass the list is empty, and `y.grad` is `None`: neither a hook nor `retain_grad` can see a gradient
# that has already passed. In the next backward pass, both of them get it.
#
# And what about a tensor that requires no gradient? It never has one that a hook could see.
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
# 有人在反向传播之后才注册钩子，这时梯度已经过去了。钩子和 `retain_grad` 一样（1.7 节），只看得到注册**以后**才来的梯度，所以要先注册。不需要梯度的张量则根本不接受钩子，因为永远不会有梯度到它那里。
#
# </div>
# <div lang="en">
#
# Some people register a hook only after backward, when the gradient has already passed. But like `retain_grad` (section
# 1.7), a hook sees only gradients that come **later**, so register it first. A tensor that requires no gradient does
# not accept a hook at all, because no gradient would ever reach it.
#
# </div>
# </div>

# %% [markdown]
# ## 2.8 许多钩子，各有各的名字 · Many hooks, each with its name
#
# <div lang="zh">
#
# 要监视的往往不止一个张量，而钩子只收到梯度，不知道自己在哪个张量上，所以名字要由我们给它。下面的循环给两个张量各注册一个钩子，触发时记下名字。
# **先猜**。
#
# </div>
# <div lang="en">
#
# Often there are several tensors to watch. But a hook gets only a gradient and does not know which tensor it is on, so
# it needs a name from us. The loop below registers a hook on each of two tensors, and each hook should note the name of
# its tensor when it fires. What will they note? **Guess** first.
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
# 两个钩子都报 `triple`！这叫**延迟绑定**：函数到运行时才去查 `name` 的值，而钩子在反向传播时才运行，那时循环早已走完，`name` 停在最后一个值上。
#
# 下面三种改法，都在循环的当下就把名字固定住：默认参数、工厂函数（闭包）和 `functools.partial`。
#
# </div>
# <div lang="en">
#
# Both hooks say `triple`! This is called **late binding**: a function looks `name` up when it runs. Hooks run in
# backward, when the loop is long over and `name` has its last value.
#
# There are three ways to fix the name inside the loop: a default argument, a factory function (a closure), and
# `functools.partial`.
#
# </div>
# </div>
#
# <div lang="zh">
#
# 先看默认参数：`name=name` 在定义函数的那一刻就求值。（下面打印前先排序，因为反向传播不一定按循环的次序来。）
#
# </div>
# <div lang="en">
#
# We begin with the default argument: `name=name` is evaluated at the moment the function is defined, so each function
# keeps the name of its own turn of the loop. (The names are sorted before printing, because backward need not follow
# the order of the loop.)
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
# 还剩两种，我们一起试：每个张量上各挂两个钩子，一个出自 `named`，一个出自 `partial`。
#
# 工厂函数 `named` 每调用一次，就有一个属于那次调用的 `name`，它返回的函数记住的是这一个。`partial(note, name)` 不用在函数里再写函数：它把 `note` 的第一个参数先填好，得到的函数只等第二个，也就是梯度。
#
# </div>
# <div lang="en">
#
# Two of the three ways are left. We try them together, so each tensor gets two hooks, one made by `named` and one made
# by `partial`.
#
# Each call of the factory function `named` has a variable `name` of its own, and the function that it returns remembers
# that variable. `partial(note, name)` needs no function inside another. It fills in the first argument of `note` and
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
# 查一个模型时，要看的往往是一批张量，还得分清哪个梯度是谁的。有了名字就能做到。
#
# 写 `watch_many(tensors, seen)`，`tensors` 是「名字 → 张量」的字典；返回一个列表，装着所有句柄。
#
# - 每当一个张量的梯度到来，`seen[name]` 就应当成为**这一次**的梯度，不与以前的相加；
# - 反向传播没有经过的张量，它那一项可以留着旧的；
# - 跳过 `requires_grad` 为 `False` 的张量，它们不接受钩子。
#
# </div>
# <div lang="en">
#
# If you examine a model, you usually want to watch a whole set of tensors, and to know which gradient belongs to which
# of them. Names make this possible.
#
# Write `watch_many(tensors, seen)`, where `tensors` is a dictionary from names to tensors. Return a list of all
# handles.
#
# - Whenever the gradient of a tensor arrives, `seen[name]` should become the gradient of **this** pass, not added to
#   earlier ones.
# - Where backward does not come by, the old entry may stay.
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
# 用同样的办法，可以给一个网络做检查。下面是 8 层全连接，每层后面有一个 sigmoid；每层的输出上都有一个钩子，只记下梯度有多大（范数）。
#
# 离损失最远的是 `h1`，最近的是 `h8`。**先猜**。
#
# </div>
# <div lang="en">
#
# In the same way you can examine a network, for instance one that does not learn. The one below has 8 linear layers,
# with a sigmoid after each. All we need to know about a gradient here is how large it is, so a hook on the output of
# every layer notes its norm.
#
# `h1` is furthest from the loss, and `h8` is nearest. How much smaller is the gradient at `h1`? **Guess** first.
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
# 大约百万分之一！钩子从 `h8` 到 `h1` 依次触发，每过一层，梯度只剩七分之一左右。原因有两个：sigmoid 的导数不超过 $\frac{1}{4}$，这里的初始权重又小，
# 而链式法则把它们一层层乘起来。靠近输入的层，几乎得不到梯度。
#
# 想亲眼看钩子怎样依次触发，可以用 `HookTimeline`：它记下模型的一次前向传播和反向传播，然后让你一步一步地看。其中 `output_grad`、`param_grad` 和 `input_grad` 是张量钩子，
# 分别在一层的输出、参数和输入上；`post_accumulate` 你也认识；其余几种从第 05 课起再讲。先选 **观看** 走一遍，再选 **预测**，猜下一个是谁。
#
# **先猜一猜**：这个网络的三层里，有一层没有 `input_grad`。为什么会没有？
#
# </div>
# <div lang="en">
#
# The gradient at `h1` is only about a millionth of the one at `h8`! The hooks fire in turn from `h8` to `h1`, and each
# layer lets only about a seventh of the gradient through. There are two reasons for this: the slope of a sigmoid is
# never more than $\frac{1}{4}$, and the initial weights here are small. The chain rule multiplies these factors, layer
# by layer, so the layers near the input get almost no gradient.
#
# To watch hooks fire one after the other, use `HookTimeline`, which records one forward and one backward pass of a
# model and lets you step through them. Its events `output_grad`, `param_grad` and `input_grad` are tensor hooks, on the
# output, the parameters and the input of a layer. You already know `post_accumulate`, and the others come in lesson 05
# and later. First choose **Watch** and go through it once. Then choose **Predict** and guess which hook is next.
#
# **Guess first**: of the three layers of this net, one has no `input_grad`. Why would that be?
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
# 是第 `0` 层：它的输入是数据，不需要梯度，也就没有人去算。其余两层的输入是前一层的输出，梯度要从那里经过。
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
# 有时只想看第一次反向传播。钩子要是一直挂着，列表会越来越长，所以它触发一次之后就该自己下来。写 `observe_once(y, seen)`：在 `y` 上注册这样一个钩子，仍然返回句柄，好让调用者提前取消。
#
# - 钩子把 `y` 的第一个梯度添加到列表 `seen` 末尾，原有的留着；
# - 然后**自己取下自己**；
# - 别人挂在 `y` 上的钩子不受影响，他们也许还要用。
#
# </div>
# <div lang="en">
#
# Sometimes the first backward pass is all you want to see. A hook that stays on would go on filling your list, so it
# should take itself off as soon as it has fired. Write `observe_once(y, seen)`, which registers such a hook on `y`.
# Return the handle as before: with it, a caller can cancel early.
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
# 练习 02.1 和 02.2 都要靠调用者记得取下钩子；要是先出了异常，就走不到那一行。`with` 块可以替他做好这件事，就像 `with open(...)` 保证文件会关上。
#
# 写一个这样的上下文管理器：`with watching(tensors) as seen:`。
#
# - 进入块时才注册钩子；
# - 在块里面，`seen` 像 02.2 那样收集梯度；
# - 离开时取下**自己注册的**所有钩子，别人的留着；
# - **哪怕块里抛出了异常**，也要取下。异常要照常传出去，好让调用者知道；
# - 每次 `with watching(...)` 都给出新的字典，离开之后还能读。
#
# 可以用 `contextlib.contextmanager`：`yield` 之前的代码管进入，之后的管离开。也可以写一个带 `__enter__` 和 `__exit__` 的类，那就删掉 `@contextmanager` 那一行。
#
# </div>
# <div lang="en">
#
# In exercises 02.1 and 02.2 the caller has to remember to take the hooks off. If an exception comes first, that line is
# never reached. A `with` block can look after it, just as `with open(...)` makes sure that a file is closed.
#
# Write a context manager for this: `with watching(tensors) as seen:`.
#
# - It registers hooks only when the block is entered.
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
# 现在用钩子破一个真实的案子。一个网络把样本变成平面上的点，训练的目标是让成对的点靠近：算出差、平方和，再开方，得到距离。
# 这样的代码到处都有，看上去毫无问题。请运行它。
#
# </div>
# <div lang="en">
#
# Now you can solve a real case with hooks. A network turns samples into points in the plane. It is trained to bring the
# points of each pair together, so we take their difference, the sum of squares and the square root, which gives the
# distance. There is code like this everywhere, and it looks harmless. Run it.
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
# **先猜**凶手是哪一行。下面用一个新的网络重演第一步，三个张量上各注册一个钩子，把经过的梯度打印出来。
#
# </div>
# <div lang="en">
#
# The loss of the first step is fine, and that of the second is `nan`. Since the first forward pass gave normal
# numbers, suspicion falls on the first backward pass.
#
# **Guess** which line is to blame. Below, the first step is replayed with a new network, and a hook on each of the
# three tensors prints the gradient that passes.
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
# 顺着反向传播读证词：到 `distance` 为止一切正常，到了 `squared` 出现一个 `inf`，到了 `difference` 就成了 `nan`。凶手在前两者之间：开方。
# $\sqrt{s}$ 的斜率是 $\frac{1}{2\sqrt{s}}$，在 0 处是无穷大；第三对的两个样本恰好相同，`squared` 正是 0。再往回一步，平方的斜率也是 0，无穷大乘以 0 就是 `nan`，
# 它流进权重的梯度，一对坏样本就毁了整个网络。
#
# 治法是让开方永远碰不到 0：先加上一个很小的数。
#
# </div>
# <div lang="en">
#
# Read the evidence in the order of backward. At `distance` all is well, at `squared` there is an `inf`, and at
# `difference` it has become `nan`. So the culprit stands between the first two: it is the square root. The slope of
# $\sqrt{s}$ is $\frac{1}{2\sqrt{s}}$, which is infinite at 0. The third pair happens to be two equal samples, so its
# `squared` is exactly 0. One step further back, the slope of the square is 0 as well, and infinity times 0 is `nan`.
# That `nan` enters the gradients of the weights, and so one bad pair has ruined the whole network.
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
# 损失一步步下降，案子结了。这办法在别处也能用：在一串中间结果上都挂上钩子，找到第一个不正常的梯度，凶手就是它和上一个正常的之间的那一步。
#
# </div>
# <div lang="en">
#
# The loss falls, and the case is closed. The same method works elsewhere, too. Put hooks on a chain of results and find
# the first bad gradient: the culprit is the operation between it and the last good one.
#
# </div>
#
# ## 2.11 小结 · Recap
#
# <div lang="zh">
#
# 1. 张量钩子是一个函数；梯度到达它的张量、各条路都加好之后，PyTorch 用梯度调用它。
# 2. 只看不改的钩子，什么也不返回。
# 3. `backward()` 和 `torch.autograd.grad` 都会触发它，从注册之后开始。反向传播不路过，它就不触发；每次重新算出的张量都是新的。
# 4. 在循环里写钩子，要当场把名字固定住。
# 5. 留住句柄；用 `with` 或 `finally` 取下钩子。
#
# </div>
# <div lang="en">
#
# 1. A tensor hook is a function. When the gradient has arrived at its tensor, and all paths have been added, PyTorch calls it with that gradient.
# 2. A hook that only watches returns nothing.
# 3. A tensor hook fires in `backward()` and in `torch.autograd.grad`, from its registration on. It stays silent where backward does not come by, and a tensor that is computed again is a new one, without the hook.
# 4. When you write hooks in a loop, fix the name on the spot.
# 5. Keep the handle, and take hooks off with `with` or `finally`.
#
# </div>

# %% [markdown]
# ## 2.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 反向传播之后 <code>y.grad</code> 是 <code>None</code>，怎样才看得到它的梯度？</summary>在反向传播之前，用 <code>y.register_hook</code> 注册一个钩子（或者调用 <code>y.retain_grad()</code>），再做一次。</details>
# <details><summary>2. 循环里写的钩子，为什么都报最后一个名字？</summary>因为延迟绑定：钩子运行时才去查 <code>name</code>，那时循环已经走完。</details>
# <details><summary>3. 哪种钩子在 <code>torch.autograd.grad</code> 下不触发，为什么？</summary>post-accumulate 钩子：它等的是梯度加进叶子的 <code>.grad</code>，而这里不写它。</details>
# </div>
# <div lang="en">
# <details><summary>1. After backward <code>y.grad</code> is <code>None</code>. How do you get to see its gradient?</summary>Before backward, register a hook with <code>y.register_hook</code> (or call <code>y.retain_grad()</code>), then run it again.</details>
# <details><summary>2. Why do all hooks written in a loop report the last name?</summary>Because of late binding: the hooks look <code>name</code> up when they run, and by then the loop is over.</details>
# <details><summary>3. Which hook does not fire under <code>torch.autograd.grad</code>, and why?</summary>The post-accumulate hook. It waits until the gradient has been added to the <code>.grad</code> of a leaf, and <code>torch.autograd.grad</code> writes nothing there.</details>
# </div>

# %% [markdown]
# ## 2.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 第 11 课的 Grad-CAM 要用到特征图的梯度，而特征图是中间结果，`.grad` 不会留下。有名的实现 `pytorch-grad-cam` 就是在前向传播里给它注册一个张量钩子
# （搜索 `ActivationsAndGradients`）。到时候我们自己来写一个。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# Grad-CAM, the topic of lesson 11, needs the gradient of a feature map. A feature map is a result in the middle, so its
# `.grad` is not kept. That is why a well-known implementation, `pytorch-grad-cam`, registers a tensor hook on it during
# forward (search for `ActivationsAndGradients`). In that lesson we shall write our own. Below is your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
