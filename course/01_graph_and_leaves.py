# %% tags=["setup"]
import warnings

import torch

from hookedu import GradientFlow, LanguageToggle, check, guess, hint, plot_graph, progress, solution

# We look at .grad where PyTorch would rather not have us look; it warns about that, and rightly so.
warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
LanguageToggle()

# %% [markdown]
# ## 1.1 两份一样的权重 · Two weights that look the same
#
# <div lang="zh">
#
# 神经网络的权重，一开始通常都是些小的数。这样的权重有两种写法，我们各造一份：`a` 直接写出 `0.5`；`b` 先建一串 `1`，再整个乘以 `0.5`。两者的值一样，也都说自己需要梯度（`requires_grad`）。
#
# 用哪一种写法，会有分别吗？我们把两者各乘以 `3`、求和，再各做一次反向传播。这时 `a.grad` 里会是两个 `3`。**先猜** `b.grad` 里是什么。
#
# </div>
# <div lang="en">
#
# The weights of a neural network usually start as small numbers. Here are two ways to make them: `a` writes `0.5` down
# directly, while `b` starts as a row of `1`s, which is then multiplied by `0.5`. Both hold the same values, and both say
# that they require a gradient (`requires_grad`).
#
# Does it matter which way you choose? To find out, we multiply each of them by `3`, sum it up, and run backward once
# for each. `a.grad` will hold two `3`s. **Guess first** what `b.grad` will hold.
#
# </div>

# %%
guess("01.a")

# %%
a = torch.tensor([0.5, 0.5], requires_grad=True)
b = 0.5 * torch.ones(2, requires_grad=True)

print("the same values:", torch.equal(a, b))
print("require a gradient:", a.requires_grad, b.requires_grad)

(3 * a).sum().backward()
(3 * b).sum().backward()
print("a.grad:", a.grad)
print("b.grad:", b.grad)

# %% [markdown]
# <div lang="zh">
#
# 值一样，都说需要梯度，留下梯度的却只有一个。这可不是小事，因为优化器要靠 `.grad` 来更新权重。我们把两者各交给一个优化器试试。
#
# </div>
# <div lang="en">
#
# Both hold the same values and require a gradient, and yet only one of them has kept its gradient. That matters,
# because an optimizer needs `.grad` to update a weight. Let us hand each of them to an optimizer and see.
#
# </div>

# %%
torch.optim.SGD([a], lr=0.1)
try:
    torch.optim.SGD([b], lr=0.1)
except ValueError as error:
    print("ValueError:", error)

ones = torch.ones(2, requires_grad=True)
b = 0.5 * ones  # as before, but this time the ones have a name
(3 * b).sum().backward()
print("ones.grad:", ones.grad)

# %% [markdown]
# <div lang="zh">
#
# 优化器收下了 `a`，却拒收 `b`，理由是它不是**叶子**（leaf）。`a` 是你直接建的张量，`b` 却是乘法算出来的，真正的叶子是乘法里那个全为 `1` 的张量。
#
# 我们给这个张量取个名字 `ones`，就看到留下了梯度的是它。它留下的是自己的梯度：`b` 的 `3` 再乘以 `0.5`，也就是 `1.5`。
#
# </div>
# <div lang="en">
#
# The optimizer took `a` and refused `b`, because `b` is not a **leaf**. You made `a` directly, whereas `b` came out of
# a multiplication. The leaf is the tensor of `1`s that went into the multiplication.
#
# Once you give that tensor a name, `ones`, you can see that it has kept a gradient. It is the gradient of `ones`
# itself: the `3` of `b` times `0.5`, which is `1.5`.
#
# </div>
#
# ## 1.2 PyTorch 在记账 · PyTorch keeps a record
#
# <div lang="zh">
#
# 反向传播要沿着计算的步骤往回走，所以 PyTorch 必须知道每个结果是怎样算出来的。运算里只要用到了需要梯度的张量，PyTorch 一般就会把这一步记在结果的 `grad_fn` 里；也有不记的时候，1.3 节会看到两种。这些记录前后相连，就是**计算图**。
#
# 没有 `grad_fn` 的张量，前面再没有任何记录，它就是叶子。
#
# 我们来看一张这样的图。下面从 `x` 算出 `y`，从 `y` 算出 `z`，再从 `z` 反向传播。三个里面，谁的梯度会留下？**先猜。**
#
# </div>
# <div lang="en">
#
# Backward retraces the steps of the computation, so PyTorch has to know how each result was made. When an operation
# uses a tensor that requires a gradient, PyTorch normally notes the step in the `grad_fn` of the result. Linked up,
# these notes are the **computation graph**. (Section 1.3 shows two cases in which no note
# is made.)
#
# A tensor without `grad_fn` has no record before it, and that makes it a leaf.
#
# Let us look at such a graph. Below, `y` is computed from `x`, and `z` from `y`, and backward starts at `z`. Which of
# the three will keep their gradient? **Guess first.**
#
# </div>

# %%
guess("01.b")

# %% tags=["E1"] picture="chain"
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
# 留下梯度的只有 `x`，就是图里画着双线框的那个。灰色箭头是前向传播，从左往右算出 `z`。紫色箭头是反向传播，从右往左把梯度传回来，箭头上写着它带来的梯度。框下面是留下来的梯度，没有留下的写着 `not kept`。
#
# 梯度一定经过了 `z` 和 `y`，否则到不了 `x`，那么它为什么没有留在那里？中间结果往往又多又大，梯度全都留着太占内存。所以 PyTorch 用过就扔，只有叶子留住自己的那一份。
#
# </div>
# <div lang="en">
#
# Only `x` keeps its gradient. In the picture it is the one with the double frame. The grey arrows are the forward
# pass, which computed `z` from left to right. The purple arrows are the backward pass, which runs from right to left,
# and on each of them you can read the gradient that it brings. Below a box stands the gradient that was kept, or
# `not kept`.
#
# The gradient of `x` must have passed `z` and `y`, because there is no other way to `x`. Why did nothing stay there?
# Results in the middle tend to be many and large, and keeping all their gradients would take too much memory. So
# PyTorch throws each away once it has been used, and only the leaf keeps its own.
#
# </div>

# %% [markdown]
# ## 1.3 叶子也分两种 · Two kinds of leaves
#
# <div lang="zh">
#
# 那么，凡是叶子都会有梯度吗？下面拿 8 个张量来查，每个都看两样：需不需要梯度，是不是叶子。多数张量一看就懂，只有两个要先说一说。
#
# `quiet` 是在 `torch.no_grad()` 里算的，PyTorch 在那里面不作记录。`cured` 则是 1.1 节的 `b` 换了一种写法：先算好数值，最后才用 `requires_grad_()` 说需要梯度。
#
# **先猜**有几个是叶子，再逐行核对那两个布尔值，尤其是 `data`、`2 * data` 和 `quiet` 的。
#
# </div>
# <div lang="en">
#
# Does every leaf get a gradient, then? To find out, we take 8 tensors and ask two questions about each: does it
# require a gradient, and is it a leaf? Most of them speak for themselves, but two need a word of explanation.
#
# `quiet` is computed under `torch.no_grad()`, where PyTorch records nothing. `cured` is the `b` of section 1.1,
# written in another way: first the values are computed, and only then does `requires_grad_()` ask for a gradient.
#
# **Guess first** how many of them are leaves. Then compare the two booleans line by line, above all for `data`,
# `2 * data` and `quiet`.
#
# </div>

# %%
guess("01.c")

# %%
w = torch.ones(2, requires_grad=True)
data = torch.tensor([3.0, 4.0])
with torch.no_grad():
    quiet = 2 * w
cured = (0.5 * torch.ones(2)).requires_grad_()

tensors = {"w": w, "cured": cured, "2 * w": 2 * w, "w.double()": w.double()}
tensors |= {"data": data, "2 * data": 2 * data, "w.detach()": w.detach(), "quiet": quiet}
for name, tensor in tensors.items():
    print(f"{name:11} requires_grad {tensor.requires_grad!s:5}  is_leaf {tensor.is_leaf}")

# %% [markdown]
# <div lang="zh">
#
# 8 个张量里有 6 个是叶子，不需要梯度的那四个也在其中。`data` 是直接建的，不奇怪。可是 `2 * data`、`quiet` 和 `w.detach()` 都是算出来的，为什么也算叶子？因为 PyTorch 没有记下它们是怎样来的，而没有记录就算叶子。
#
# 三个张量没有记录，原因各不相同。`2 * data` 没有用到需要梯度的张量；算 `quiet` 的时候，记录关着；`detach()` 本来就是用来和计算图断开的。
#
# 不需要梯度的叶子，得不到梯度。所以**张量要自己留住梯度，两样缺一不可**：`requires_grad` 为真，`is_leaf` 也为真。这里只有 `w` 和 `cured` 做到了。
#
# 常有人栽在 `w.double()` 上：它要转换数值，只好算出一个新的张量，优化器也就不收了。`w.to(device)` 真要换设备时也一样。治法就是 `cured` 的写法：先转换，最后再 `requires_grad_()`。
#
# </div>
# <div lang="en">
#
# Of the 8 tensors 6 are leaves, and among them are the four that require no gradient. For `data` this is no surprise,
# since it was made directly. But `2 * data`, `quiet` and `w.detach()` were computed. They count as leaves because
# PyTorch has no record of how they were made.
#
# The record is missing for three different reasons. `2 * data` uses no tensor that requires a gradient. While `quiet`
# was computed, recording was off. And `detach()` is there to cut a tensor off from its graph.
#
# A leaf that requires no gradient gets none. So **a tensor keeps its gradient by itself only if two things are true**:
# `requires_grad` and `is_leaf`. Here only `w` and `cured` qualify.
#
# People often trip over `w.double()`. It has to convert the numbers, so it computes a new tensor, and an optimizer
# refuses that one. The same happens with `w.to(device)` when it really changes the device. The cure is what `cured`
# does: convert first, and call `requires_grad_()` last.
#
# </div>

# %% [markdown]
# ### 练习 01.1：给张量分类 · Exercise 01.1: Classify tensors
#
# ●● · 6 min
#
# <div lang="zh">
#
# 梯度不见了，先别急着找，先问一问它本来会不会留下。这件事看张量就知道，不用真的做反向传播。现在就来写一个回答它的函数。
#
# `classify(tensors)` 收到一个字典，由名字对应张量；它也返回一个字典，每个名字对应一个词。要选对词，就设想反向传播从张量后面的某个结果出发：
#
# - `"keeps"`：梯度会留在它的 `.grad` 里；
# - `"passes"`：梯度只是路过；
# - `"none"`：梯度不会来。
#
# 卡住了就运行 `hint("01.1")`。
#
# </div>
# <div lang="en">
#
# When a gradient is missing, first ask whether it could be there at all. You can tell from the tensor itself, without
# running backward, and now you write a function that does.
#
# `classify(tensors)` takes a dictionary from names to tensors, and returns a dictionary from the same names to words.
# To choose the word, imagine that backward starts from some result computed from the tensor. The word is
#
# - `"keeps"` if the gradient stays in its `.grad`,
# - `"passes"` if the gradient only passes,
# - `"none"` if no gradient comes.
#
# If you are stuck, run `hint("01.1")`.
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
# 刚才的计算图只有一条链。现在 `w` 有两条路通向 `y`：一条经过 `a`，一条经过 `b`，所以 $y=(w+x)(w+1)$。
#
# 这时 `w` 的梯度是多少？设 $w=1$、$x=2$，**拿支笔算一算**。代码里的 `retain_graph=True` 只是为了画图，1.5 节再讲。
#
# </div>
# <div lang="en">
#
# So far the graph was a single chain. Now `w` has two paths to `y`, one through `a` and one through `b`, so that
# $y=(w+x)(w+1)$.
#
# What is the gradient of `w` now? **Take a pencil** and work it out, with $w=1$ and $x=2$. In the code,
# `retain_graph=True` is there for the picture only, and section 1.5 explains it.
#
# </div>

# %%
guess("01.d")

# %% tags=["E13"] picture="two_paths"
w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
b = w + 1
y = a * b
y.backward(retain_graph=True)

print("w.grad:", w.grad, " x.grad:", x.grad)
print("a.grad:", a.grad, " b.grad:", b.grad, " y.grad:", y.grad)
ax = plot_graph(y, {"w": w, "x": x, "a": a, "b": b, "y": y})

# %% [markdown]
# <div lang="zh">
#
# `w` 的梯度是 `5`。前向传播算出 `a` 是 `3`，`b` 是 `2`。因为 `y` 是两者的积，`a` 增加多少，`y` 就增加它的 `b` 倍，所以经过 `a` 的路给 `w` 带来 `2`。同理，经过 `b` 的路带来 `3`。图里指向 `w` 的两个紫色箭头就写着它们。
#
# **各条路**带来的梯度，在它们汇合的地方相加：$2+3=5$。`x` 只有经过 `a` 的一条路，所以是 `2`。
#
# </div>
# <div lang="en">
#
# The gradient of `w` is `5`. In forward, `a` became `3` and `b` became `2`. Since `y` is their product, it grows by
# the value of `b` for each unit by which `a` grows. So the path through `a` brings `w` a `2`, and in the same way the
# path through `b` brings a `3`. You find both on the two purple arrows that end at `w`.
#
# Where **paths** meet, the gradients that they bring are added: $2+3=5$. `x` has only the path through `a`, so its
# gradient is `2`.
#
# </div>

# %% [markdown]
# ## 1.5 再走一遍 · Once more through the graph
#
# <div lang="zh">
#
# 刚才相加的，是同一次反向传播里的几条路。叶子的 `.grad` 还会把**各次**反向传播的梯度加在一起：新来的不替换旧的，而是加上去。
#
# 反向传播会用到前向传播时存在图里的数，一边用，一边就释放了。所以，如果同一张图还要再走一遍，就写 `retain_graph=True`。
#
# 下面令 $y=w^2$，$w=3$，所以一次的梯度是 `6`。我们对同一个 `y` 做三次 `backward`，只有第一次写了 `retain_graph=True`。三次之后，`w.grad` 是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# In the last section, the paths of a single backward pass were added up. The `.grad` of a leaf also adds up the
# gradients of all backward **passes**: a new gradient does not replace the old one but is added to it.
#
# Backward uses values that forward stored in the graph, and frees them as it goes. So if you mean to go through the
# same graph again, say `retain_graph=True`.
#
# Let us try both. Below, $y=w^2$ and $w=3$, so one pass brings `6`. We call `backward` three times for the same `y`,
# and only the first call says `retain_graph=True`. What is `w.grad` after the third? **Guess first.**
#
# </div>

# %%
guess("01.e")

# %%
w = torch.tensor(3.0, requires_grad=True)
y = w**2

y.backward(retain_graph=True)
print("first time: ", w.grad)
y.backward()
print("second time:", w.grad)
try:
    y.backward()
except RuntimeError as error:
    print("third time:  RuntimeError:", str(error).split(" (")[0])

# %% [markdown]
# <div lang="zh">
#
# 第一次得到斜率 $2w=6$。第二次走得通，因为第一次把图留住了；又来一个 6，加起来是 12。可是第二次没有写 `retain_graph=True`，于是释放了图里的数。第三次只好报错，`w.grad` 仍是 12。
#
# 训练时每一步的梯度都要重新算起，所以要先用优化器的 `zero_grad()` 清零。清零以后，`w.grad` 是什么？再做一次反向传播，又是什么？**再猜。**
#
# </div>
# <div lang="en">
#
# The first pass finds the slope, $2w=6$. The second is possible because the first kept the graph. It brings another 6,
# and together they are 12. But the second call did not say `retain_graph=True`, so it freed the values in the graph.
# That is why the third can only fail, and `w.grad` is still 12.
#
# In training, every step should start afresh, so the gradients are cleared first, by the optimizer's `zero_grad()`.
# What will `w.grad` be then, and what after one more pass? **Guess again.**
#
# </div>

# %%
guess("01.f")

# %%
torch.optim.SGD([w], lr=0.1).zero_grad()
cleared = w.grad
print("cleared:  ", cleared)

y = w**2
y.backward()
print("new graph:", w.grad)

# %% [markdown]
# <div lang="zh">
#
# 清零以后，`w.grad` 是 `None`，不是 0，因为优化器的 `zero_grad()` 默认就是 `w.grad = None`。接着重新做前向传播，得到的是一张新的图，所以它的反向传播不会报错。这时没有旧的梯度可加，`w.grad` 又是 6。
#
# 所以训练循环里一般都有一行 `zero_grad()`。不过有时候，我们要的恰恰是累加，比如下面的练习。
#
# </div>
# <div lang="en">
#
# After clearing, `w.grad` is `None` and not 0, because by default this is what an optimizer's `zero_grad()` does:
# `w.grad = None`. The new forward pass has built a new graph, so its backward raises nothing. And since there is no old
# gradient to add to, `w.grad` is 6 again.
#
# That is why training loops usually call `zero_grad()`. Sometimes, though, adding up is just what you want, as in the
# next exercise.
#
# </div>

# %% [markdown]
# ### 练习 01.2：累加与清零 · Exercise 01.2: Add up and zero
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 一个权重往往要同时照顾几个损失，这时它要的就是这些损失的梯度之和。请写一个函数 `sum_gradients(w, losses)` 来求这个和。列表 `losses` 里的损失都由 `w` 算出，而且**共用**计算图里的一段。
#
# 调用之后，`w.grad` 应当是这些损失的梯度之和；调用之前 `w.grad` 里已有的值不算在内。不需要返回什么。
#
# </div>
# <div lang="en">
#
# Often a weight has to serve several losses at once, and then it needs the sum of their gradients. Write a function
# `sum_gradients(w, losses)` that collects this sum. The losses in the list `losses` were all computed from `w`, and
# they **share** a part of the computation graph.
#
# After the call, `w.grad` should be the sum of the gradients of these losses, without what it held before the call.
# Nothing needs to be returned.
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
# 在 1.4 节，我们说 `5` 是 `2` 加 `3`，但那是用笔算的，`a` 和 `b` 的梯度并没有留下来作证。其实可以要求它们留下。**在反向传播之前**，对一个非叶子调用 `retain_grad()`，梯度经过时就会在 `.grad` 里存一份。
#
# 名字别弄混：`retain_grad` 留住梯度，`retain_graph` 留住图。
#
# 我们再算一次，还是 $w=1$、$x=2$。这回 `a.grad` 是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# In section 1.4 a pencil told us that the `5` is `2` plus `3`, but the gradients of `a` and `b` were not kept as
# evidence. You can ask for them. If you call `retain_grad()` on a non-leaf **before backward**, its gradient is
# stored in `.grad` as it passes.
#
# Mind the names, which are easily confused: `retain_grad` keeps a gradient, and `retain_graph` keeps the graph.
#
# We compute the same again, with $w=1$ and $x=2$. What will `a.grad` be this time? **Guess first.**
#
# </div>

# %%
guess("01.g")

# %% tags=["E13"] picture="two_paths_kept"
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
# `a.grad` 是 `2`，也就是另一个因子 `b` 的值；`b.grad` 是 `a` 的值 `3`。两者之和正是 `w.grad`。
#
# 这里用的就是链式法则：沿着每条路，把一步步的斜率乘起来；到了路汇合的地方，再把各条路的结果加起来。
#
# </div>
# <div lang="en">
#
# `a.grad` is `2`, the value of the other factor, `b`, and `b.grad` is the value of `a`, `3`. Their sum is `w.grad`,
# just as the pencil had it.
#
# This is the chain rule at work: along each path, multiply the slopes of its steps; where paths meet, add up what they
# bring.
#
# </div>
#
# ## 1.7 什么时候说才来得及 · When to ask
#
# <div lang="zh">
#
# 如果反向传播做完了，才想起来调用 `retain_grad()` 呢？下面就这样做，然后打印一次 `y.grad`。接着再做一次反向传播，又打印一次。两次各打印出什么？**先猜。**
#
# </div>
# <div lang="en">
#
# And what if you remember `retain_grad()` only when backward is over? That is what happens below. First we print
# `y.grad`, then we run backward again and print it once more. What do you expect each time? **Guess first.**
#
# </div>

# %%
guess("01.h")

# %% tags=["F5"]
x = torch.ones(2, requires_grad=True)
y = x**2
y.sum().backward(retain_graph=True)
y.retain_grad()
late = y.grad
print("asked after backward, y.grad:", late)

y.sum().backward()
print("after the next backward, y.grad:", y.grad)

# %% [markdown]
# <div lang="zh">
#
# 第一行是 `None`：那次反向传播的梯度早已扔掉，事后要求也找不回来。第二行有了值，但那是第二次反向传播的梯度。
#
# 那么 `data` 这样不需要梯度的张量，又会怎么说？
#
# </div>
# <div lang="en">
#
# The first line says `None`. The gradient of that backward pass is gone, and asking afterwards does not bring it
# back. The second line does have a value, but it is the gradient of the second pass.
#
# And what happens with a tensor such as `data`, which requires no gradient?
#
# </div>

# %% tags=["F5"]
data = torch.ones(2)
try:
    data.retain_grad()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown] tags=["F5"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 有人在反向传播之后才调用 `retain_grad()`，然后奇怪为什么没有梯度。它只留得住**以后**才来的梯度：想要已经过去的，只能再做一次反向传播。
# 不需要梯度的张量则会直接报错。
#
# </div>
# <div lang="en">
#
# Some people call `retain_grad()` after backward and wonder where the gradient is. `retain_grad()` keeps only a
# gradient that comes **later**: to get one that has passed, all you can do is to run backward again. A tensor that
# requires no gradient raises an error at once.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 01.3：留住每一个梯度 · Exercise 01.3: Keep every gradient
#
# ●● · 5 min
#
# <div lang="zh">
#
# 核对一串计算的时候，你想看到途中每一个梯度，不只是叶子的。可是中间结果的梯度用过就扔，所以得让它们都留下来。
#
# 写 `keep_all(tensors, loss)` 来做这件事。`loss` 已经由字典 `tensors` 里的张量算好了，谁也没有对它们调用过 `retain_grad()`；还差一次反向传播，由你的函数来做。不需要返回什么。
#
# - 之后每个张量的 `.grad` 里都有自己的梯度；
# - 跳过 `requires_grad` 为 `False` 的张量，它们没有梯度可留；
# - 这里用不着挂钩子（1.11 节才讲）；要是挂了，就取下来，别人的不要动。
#
# </div>
# <div lang="en">
#
# Suppose that you want to check a computation step by step. Then you need the gradients of all its tensors, and not
# only those of the leaves. But the gradients in the middle are thrown away once they have been used, so each of these
# tensors has to be asked to keep its own.
#
# Write `keep_all(tensors, loss)`, which does that for the tensors in the dictionary `tensors`. The `loss` has already
# been computed from them, nobody has called `retain_grad()` on them, and your function runs backward once. Nothing needs
# to be returned.
#
# - Afterwards each of these tensors has its gradient in `.grad`.
# - Skip tensors whose `requires_grad` is `False`, because they have no gradient to keep.
# - You need no hooks for this (section 1.11 is about them). If you register some, take them off again, and do not
#   touch those of others.
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
# ## 1.8 选学：一个数不够 · Optional: when the output is not one number
#
# <div lang="zh">
#
# 到现在为止，反向传播都从标量出发：损失是一个数，梯度说的是它怎样变。下面的 `x` 是 3 个数，`y = x**2` 也是。这时反向传播该从哪里出发？
#
# （1.8 到 1.10 节和练习 01.4 可以以后再读；想马上认识钩子，就先去 1.11 节。）
#
# </div>
# <div lang="en">
#
# So far, backward always started from a scalar: the loss is one number, and a gradient says how that number changes.
# Below, `x` holds 3 numbers, and so does `y = x**2`. Where should backward start now?
#
# (You can leave sections 1.8 to 1.10 and exercise 01.4 for later. If you would rather meet a hook now, go to section
# 1.11 first.)
#
# </div>

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x**2

try:
    y.backward()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# <div lang="zh">
#
# PyTorch 不肯，因为 3 个数各有各的梯度，它不知道该用哪一个。所以要由你给每个输出一个权重，这些权重组成向量 `v`。`y.backward(v)` 得到的梯度，等于 `(v * y).sum().backward()` 得到的，这就又是从一个数出发了。
#
# $x^2$ 的斜率是 $2x$，也就是 2、4、6。我们试三个向量：`v` 先全是 `1`，再是 `[1, 0, 0]`，最后是 `[0, 10, 1]`。用最后一个，`x.grad` 中间的数是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# PyTorch refuses, because each of the 3 numbers has a gradient of its own, and it cannot know which of them is meant.
# So you give each output a weight, in a vector `v`. Then `y.backward(v)` finds the same gradient as
# `(v * y).sum().backward()`, and this sum is again one number to start from.
#
# Here the slopes of $x^2$ are $2x$, that is 2, 4 and 6. We try three vectors: first `v` is full of `1`s, then it is
# `[1, 0, 0]`, and last `[0, 10, 1]`. With the last of them, what is the number in the middle of `x.grad`? **Guess
# first.**
#
# </div>

# %%
guess("01.i")

# %%
for v in ([1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 10.0, 1.0]):
    x.grad = None
    y.backward(torch.tensor(v), retain_graph=True)
    print("v =", v, "->", x.grad)

x.grad = None
(torch.tensor(v) * y).sum().backward(retain_graph=True)
print("(v * y).sum(), last v  ->", x.grad)

# %% [markdown]
# <div lang="zh">
#
# 全 1 的向量给出的就是斜率，因为这里 `y[i]` 只依赖 `x[i]`。权重不是 1 的时候，斜率要乘以权重：在第三行里，权重 `10` 把 4 变成了 40。权重是 `0` 的输出则不起作用，只要它的斜率是有限的数。
#
# 最后一行证实了两种写法相等。
#
# 如果只想拿到梯度，不想写进 `x.grad`，可以用 `torch.autograd.grad`：它把梯度装在元组里返回。
#
# </div>
# <div lang="en">
#
# A vector of 1s gives the slopes themselves, because here each `y[i]` depends on `x[i]` only. Another weight
# multiplies the slope: in the third line, the weight `10` has turned 4 into 40. An output with weight `0` has no say,
# as long as its slope is finite.
#
# The last line confirms that both ways of writing it agree.
#
# If you want a gradient returned instead of written into `x.grad`, use `torch.autograd.grad`, which returns it in a
# tuple.
#
# </div>

# %%
x.grad = None
(slope,) = torch.autograd.grad(y, x, torch.ones(3))
print("returned:", slope)
print("x.grad:  ", x.grad)

# %% [markdown]
# ## 1.9 三次，全在一起 · Three times, all at once
#
# <div lang="zh">
#
# 现在把学过的放到一起：给反向传播一个向量，让梯度累加，再清零。你能说出每一步之后的数吗？
#
# `inp` 有 4 行 5 列，对角线上是 1，其余是 0；`out` 是 $(inp+1)^2$ 的转置。我们从 `out` 做三次反向传播，每次 `v` 全是 1，第三次之前把梯度清零。
#
# **先猜**，再看每次之后 `inp.grad` 的对角线上是几，其余是几。
#
# </div>
# <div lang="en">
#
# Now you can put it all together: a vector for backward, gradients that add up, and clearing. Can you tell the numbers
# after each step?
#
# `inp` has 4 rows and 5 columns, with 1 on the diagonal and 0 elsewhere, and `out` is $(inp+1)^2$, transposed.
# Backward runs from `out` three times, each time with a `v` of all 1s, and the gradient is zeroed before the third.
#
# **Guess first**, then see after each of them what `inp.grad` holds on the diagonal and elsewhere.
#
# </div>

# %%
guess("01.j")

# %% tags=["E7"]
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).T
v = torch.ones_like(out)

out.backward(v, retain_graph=True)
print("first call:\n", inp.grad)
out.backward(v, retain_graph=True)
print("second call: diagonal", inp.grad.diagonal(), " elsewhere", inp.grad[inp == 0].unique())
inp.grad.zero_()
out.backward(v, retain_graph=True)
print("third call:  diagonal", inp.grad.diagonal(), " elsewhere", inp.grad[inp == 0].unique())

# %% [markdown]
# <div lang="zh">
#
# 第一次得到斜率 $2(inp+1)$：对角线上是 4，其余是 2。转置只是换了位置，不改变斜率。第二次把同样的数加上去，成了 8 和 4。第三次之前，`zero_()` 把它们都变成 0，所以又是 4 和 2。
#
# </div>
# <div lang="en">
#
# The first pass finds the slopes, $2(inp+1)$, which are 4 on the diagonal and 2 elsewhere. Transposing moves numbers
# around but changes none. The second pass adds the same again, which makes 8 and 4. Before the third, `zero_()` sets
# everything to 0, and so it is 4 and 2 once more.
#
# </div>
#
# ## 1.10 实例：逐行读出雅可比矩阵 · Worked example: read a Jacobian row by row
#
# <div lang="zh">
#
# 如果每个输出都依赖好几个输入，斜率就排成一张表，叫**雅可比矩阵** $J$：第 $i$ 行是 $y_i$ 对各个输入的导数。
# `backward(v)` 算出的是 $v^\top J$，所以叫**向量-雅可比积**，而整张 $J$ 从来不用建出来。
#
# 想看 $J$ 的第 $i$ 行，就让 `v` 只有第 $i$ 个数是 1，其余是 0。这样的三个 `v`，正是单位矩阵的三行。
#
# </div>
# <div lang="en">
#
# If each output depends on several inputs, the slopes form a table, the **Jacobian** $J$: its row $i$ holds the
# derivatives of $y_i$ with respect to each input. What `backward(v)` computes is $v^\top J$. Hence it is called a
# **vector-Jacobian product**, and the whole of $J$ is never built.
#
# To see row $i$ of $J$, set number $i$ of `v` to 1 and the others to 0. The three `v` that do this are the rows of the
# identity matrix.
#
# </div>

# %%
x = torch.tensor([2.0, 3.0, 5.0], requires_grad=True)
y = torch.stack([x[0] * x[1], x[1] * x[2], x.sum()])

J = torch.stack([torch.autograd.grad(y, x, row, retain_graph=True)[0] for row in torch.eye(3)])
print(J)

v = torch.tensor([1.0, 2.0, 3.0])
y.backward(v)
print("v @ J:        ", v @ J)
print("y.backward(v):", x.grad)

# %% [markdown]
# <div lang="zh">
#
# 第一行可以用笔来验：`x[0] * x[1]` 对 `x[0]` 的导数是 `x[1]` 的值 3，对 `x[1]` 的导数是 2，和 `x[2]` 无关。
#
# 最后两行一样：`y.backward(v)` 不用建出 $J$，就得到了 $v^\top J$。
#
# </div>
# <div lang="en">
#
# You can check the first row with a pencil. The derivative of `x[0] * x[1]` with respect to `x[0]` is the value of
# `x[1]`, 3. With respect to `x[1]` it is 2. And `x[2]` plays no part.
#
# The last two lines agree: without ever building $J$, `y.backward(v)` arrived at $v^\top J$.
#
# </div>

# %% [markdown]
# ### 练习 01.4：选一个向量 · Exercise 01.4: Choose the vector
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 到现在为止，都是你选好 `v`，再看得到什么梯度。这回反过来：要得到的梯度是给定的，你来找 `v`。
#
# `x` 和 `y` 都在你手上，但 `y` 是用什么公式从 `x` 算出来的，你不知道。只知道它是**逐元素**算的，也就是 `y[i]` 只依赖 `x[i]`，而且斜率都不是 0。
#
# 写 `choose_vector(x, y, wanted)` 来找这个 `v`，把它返回。调用者接着会执行 `y.backward(v)`，这以后 `x.grad` 应当等于 `wanted`。
#
# 调用之前 `x.grad` 是 `None`，请让它仍是 `None`。也不要释放计算图，因为调用者还要用；`torch.autograd.grad` 和反向传播一样，也会释放它。
#
# </div>
# <div lang="en">
#
# So far you chose `v` and looked at the gradient that came out. Now it goes the other way round: the gradient is
# given, and you look for the `v` that brings it.
#
# You have `x` and `y`, but you do not know the formula by which `y` was computed from `x`. You only know that it works
# **element by element**, so `y[i]` depends on `x[i]` only, and that no slope is 0.
#
# Write `choose_vector(x, y, wanted)`, which finds this `v` and returns it. Your caller then runs `y.backward(v)`, and
# after that `x.grad` should equal `wanted`.
#
# Before the call `x.grad` is `None`, and it should still be `None` after it. Do not free the computation graph either,
# because your caller still needs it. Remember that `torch.autograd.grad` frees the graph just as backward does.
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
# `retain_grad` 只会把梯度留下。若想趁梯度经过时自己做点什么，就用 `register_hook` 注册一个**钩子**。钩子是你写的函数，PyTorch 会把梯度交给它。它可以返回一个新的梯度，换掉原来的。
#
# 我们用最简单的情形来看它怎样工作。下面的 `v` 是叶子，前面没有任何计算。`v.backward(g)` 就是说「`v` 的梯度是 `g`」，所以 `g` 的数直接写进 `v.grad`。
#
# 第二次，`g` 还是 `[1, 2, 3]`，半路上多了一个钩子，它把梯度平方。这时 `v.grad` 的最后一个数是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# `retain_grad` can only keep a gradient. To do something of your own while the gradient passes, register a **hook**
# with `register_hook`. It is a function of yours to which PyTorch hands the gradient, and it may return a new gradient
# to take its place.
#
# To see one at work, we take the simplest case: `v` is a leaf, with no computation before it. `v.backward(g)` says
# that `g` is the gradient of `v`, so the numbers of `g` go straight into `v.grad`.
#
# The second time `g` is `[1, 2, 3]` as before, but there is a hook on the way, which squares the gradient. What will
# be the last number of `v.grad` then? **Guess first.**
#
# </div>

# %%
guess("01.k")

# %% tags=["E6"]
v = torch.zeros(3, requires_grad=True)
g = torch.tensor([1.0, 2.0, 3.0])
v.backward(g)
print("without a hook, v.grad:", v.grad)

v.grad = None
v.register_hook(lambda grad: grad**2)
v.backward(g)
print("with the hook,  v.grad:", v.grad)

# %% [markdown]
# <div lang="zh">
#
# 没有钩子时，`v.grad` 里就是 `g` 的那几个数；有了钩子，留在 `v.grad` 里的是它们的平方，因为钩子返回什么，什么就取代原来的梯度。
#
# 钩子也可以只看不改：它返回 `None`，梯度就照旧。那么没有人留下的梯度，这样的钩子看得到吗？
#
# 这样的梯度我们已经见过，例如 1.2 节的 `y` 的，和 1.4 节的 `a` 的。下面给 `y` 和 `a` 各挂一个钩子，只调用 `print`，而 `print` 返回 `None`。
#
# </div>
# <div lang="en">
#
# Without a hook, `v.grad` holds the numbers of `g`. With the hook, it holds their squares, because what a hook returns
# takes the place of the gradient.
#
# A hook need not change anything. If it returns `None`, the gradient goes on as it was. Could such a hook see a
# gradient that nobody keeps?
#
# We have met such gradients already, for example that of `y` in section 1.2 and that of `a` in section 1.4. Below, `y` and `a`
# each get a hook that just calls `print`, which returns `None`.
#
# </div>

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
# 这样的钩子看得到。`y` 的梯度是 4 个 `0.25`；`a` 的是 `2`，和 1.6 节用 `retain_grad` 留住的一样。`y.grad` 和 `a.grad` 仍然是 `None`，因为只看的钩子什么也没有存。
#
# 钩子也可以用鼠标来挂。`GradientFlow` 画出 1.4 节的图，数会沿着箭头走。点一个张量，选一个钩子，它就在这张图上真的做一次反向传播，然后把一切放回原样。
#
# `w` 的梯度现在是 `5`。**试一试**：只挂一个钩子，怎样让它变成 `7`？又怎样变成 `3`？
#
# <details><summary>答案</summary>给 <code>a</code> 加倍，两条路带来的是 4 和 3；让 <code>a</code> 的梯度变成零，就只剩下经过 <code>b</code> 的 3。</details>
#
# </div>
# <div lang="en">
#
# The two hooks can see them. The gradient of `y` is `0.25`, 4 times, and that of `a` is `2`, as `retain_grad` told us
# in section 1.6. `y.grad` and `a.grad` are still `None`, because a hook that only looks stores nothing.
#
# You can also attach a hook with the mouse. `GradientFlow` draws the graph of section 1.4, and its numbers travel
# along the arrows. Click a tensor and choose a hook. Backward then really runs on this graph, and everything is put
# back afterwards.
#
# The gradient of `w` is `5` now. **Try it**: with a single hook, how can you make it `7`? And how `3`?
#
# <details><summary>Answer</summary>Double at <code>a</code>, and the two paths bring 4 and 3. Make the gradient of <code>a</code> zero, and only the 3 of the path through <code>b</code> is left.</details>
#
# </div>

# %% picture="flow"
w = torch.tensor(1.0, requires_grad=True)
x = torch.tensor(2.0, requires_grad=True)
a = w + x
b = w + 1
y = a * b
GradientFlow(y, {"w": w, "x": x, "a": a, "b": b, "y": y})

# %% [markdown]
# ## 1.12 小结 · Recap
#
# <div lang="zh">
#
# 1. 张量要自动留住梯度，两样都得为真：`requires_grad` 和 `is_leaf`。
# 2. 想让非叶子也留住梯度，要在反向传播之前调用 `retain_grad()`。
# 3. 一次反向传播之内，各条路的梯度在汇合处相加。各次之间，`.grad` 继续累加，直到你用 `w.grad = None` 清掉。
# 4. 同一张图要走两遍，就在第一遍写 `retain_graph=True`。
# 5. `y.backward(v)` 算的是 $v^\top J$。输出是一个数时，不用写 `v`。
#
# </div>
# <div lang="en">
#
# 1. A tensor keeps its gradient by itself only if two things are true: `requires_grad` and `is_leaf`.
# 2. To make a non-leaf keep its gradient, call `retain_grad()` before backward.
# 3. Within one backward pass, the gradients of paths add up where the paths meet. From pass to pass, `.grad` keeps adding, until you clear it with `w.grad = None`.
# 4. To go through the same graph twice, write `retain_graph=True` the first time.
# 5. `y.backward(v)` computes $v^\top J$. If the output is a single number, you need no `v`.
#
# </div>

# %% [markdown]
# ## 1.13 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. <code>b = 0.5 * torch.ones(2, requires_grad=True)</code>，为什么反向传播之后 <code>b.grad</code> 是 <code>None</code>？</summary>它是乘法算出来的，不是叶子；叶子是那个没有名字、全为 1 的张量，留下来的只有它的梯度。</details>
# <details><summary>2. 不清零，对同一个损失再做一次反向传播，叶子的梯度为什么翻倍？</summary>因为 <code>.grad</code> 会累加：第二次的梯度加在第一次的上面。</details>
# <details><summary>3. 怎样读出雅可比矩阵的一行？</summary>让 <code>v</code> 里与那一行对应的数是 1，其余是 0，再用 <code>y.backward(v)</code> 做反向传播。</details>
# </div>
# <div lang="en">
# <details><summary>1. <code>b = 0.5 * torch.ones(2, requires_grad=True)</code>: why is <code>b.grad</code> <code>None</code> after backward?</summary>It was computed by a multiplication, so it is not a leaf. The leaf is the nameless tensor of 1s, and only its gradient is kept.</details>
# <details><summary>2. Nothing is cleared, and backward runs again from the same loss. Why does the gradient of a leaf double?</summary>Because <code>.grad</code> adds up: the second gradient is added to the first.</details>
# <details><summary>3. How do you read one row of a Jacobian?</summary>Set the number in <code>v</code> for that row to 1 and the others to 0, then run <code>y.backward(v)</code>.</details>
# </div>

# %% [markdown]
# ## 1.14 真实世界里 · In the wild
#
# <div lang="zh">
#
# 显存放不下一个大批次时，可以把它拆成几个同样大的小批次，每个都做一次反向传播，梯度自己会累加。走完最后一份，才更新权重并清零。这叫**梯度累积**，许多训练框架都有这个选项（搜索 `gradient_accumulation_steps`）。
#
# 有一点要当心：损失若是平均值，就先除以份数，否则加起来的梯度会太大。
#
# 下一站是[第 02 课](02_tensor_hooks.ipynb)，主角是钩子。下面是你的进度。
#
# </div>
# <div lang="en">
#
# If a large batch does not fit into memory, you can split it into small ones of equal size and run backward for each.
# The gradients add up by themselves. Only after the last part are the weights updated and the gradients cleared. This
# is **gradient accumulation**, an option of many training frameworks (search for `gradient_accumulation_steps`).
#
# One thing needs care. If the loss is a mean, first divide it by the number of parts, because otherwise the sum of the
# gradients is too large.
#
# Next comes [lesson 02](02_tensor_hooks.ipynb), where hooks take the stage. Below you see your progress.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
