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
# 到目前为止，我们的钩子多半只是看。这一课它们要动手了：你会让梯度加倍，给太大的梯度设一个上限，还会只在一条路上让梯度反过来。
#
# 动手就有风险。梯度改过以后，反向传播会拿它接着往下算，改错一处，后面就跟着错。所以先要弄清楚：一个钩子改到的，究竟是谁的梯度？
#
# 从最简单的 `c = a + b` 开始，`a` 和 `b` 的梯度都是 1。我们只在 `a` 上挂一个钩子，`b` 上不挂。钩子用 `mul_` 把收到的梯度乘以 2。`mul_` 末尾的下划线表示**就地**操作：它不新建张量，而是直接改写原来那个张量里的数。
#
# 反向传播之后，`a.grad` 会是 2。**先猜** `b.grad`。
#
# </div>
# <div lang="en">
#
# So far most of our hooks have only watched. In this lesson they act: you will double a gradient, limit one that is too
# large, and turn one around on a single path.
#
# Acting has its risks. Backward goes on computing with the changed gradient, so a mistake travels on with it. Before
# anything else we should therefore find out whose gradient a hook really changes.
#
# Let us begin with the simplest case, `c = a + b`, where the gradients of `a` and `b` are both 1. We put a hook on `a`
# and none on `b`. The hook uses `mul_` to multiply the gradient it receives by 2. The underscore at the end of `mul_`
# means **in place**: instead of making a new tensor, it overwrites the numbers of the old one.
#
# After backward, `a.grad` will be 2. **Guess first** what `b.grad` will be.
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
# `a.grad` 是 2，这正是我们要的。可是 `b.grad` 也成了 2，而 `b` 上根本没有钩子！更糟的是，PyTorch 既没有报错，也没有警告。要是在训练里，模型就会拿着错误的梯度一直学下去。
#
# 原因留到 3.6 节揭晓。在那之前，先学一种不会出这种事的写法。
#
# </div>
# <div lang="en">
#
# `a.grad` is 2, just as we wanted. But `b.grad` became 2 as well, although there is no hook on `b`! Worse, there was no
# error and no warning. A model in training would simply go on learning from wrong gradients.
#
# Section 3.6 will explain why this happens. First, though, let us learn how to change a gradient so that it cannot
# happen.
#
# </div>
#
# ## 3.2 正路：返回一个新张量 · The right way: return a new tensor
#
# <div lang="zh">
#
# 这种写法不去碰收到的张量，而是另造一个新的，用 `return` 交出去。规则是这样的：
#
# **钩子返回一个张量，这个张量就取代原来的梯度，继续往下传。什么也不返回（也就是返回 `None`），往下传的就还是它收到的那个张量。**
#
# 下面的钩子返回梯度的平方。这一次会不会又惊动别人？第 01 课说过，`v.backward(g)` 就把 `g` 本身当作 `v` 的梯度，所以事后看一眼我们手里的 `g`，就知道了。现在 `g` 是 `[1, 2, 3]`。**先猜**：之后 `v.grad` 和 `g` 里是什么？
#
# </div>
# <div lang="en">
#
# The safe way is not to touch the tensor that the hook receives, but to make a new one and hand it over with `return`.
# This is the rule:
#
# **If a hook returns a tensor, that tensor takes the gradient's place and flows on. If it returns nothing (that is,
# `None`), the tensor that it received flows on.**
#
# The hook below returns the square of the gradient. Will anybody else notice this time? As lesson 01 showed,
# `v.backward(g)` takes `g` itself as the gradient of `v`, so afterwards we need only look at our own `g`. It starts as
# `[1, 2, 3]`. **Guess first**: what will be in `v.grad` and in `g`?
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
# `v.grad` 里是平方，`g` 却原封不动。这是因为 `grad**2` 只读 `grad`，把结果写进了一个新张量。不管还有谁拿着 `g`，都不会察觉到这个钩子。
#
# </div>
# <div lang="en">
#
# `v.grad` holds the squares, and `g` is still what it was. This is because `grad**2` only reads `grad` and writes its
# result into a new tensor. Whoever else holds `g` will never notice this hook.
#
# </div>
#
# ### 练习 03.1：用返回值加倍 · Exercise 03.1: Double by returning
#
# ●● · 5 min
#
# <div lang="zh">
#
# 现在轮到你来改一个梯度，而且不惊动别人。
#
# 写 `double_gradient(y)`。它让经过 `y` 的梯度加倍，并返回句柄，好让调用者以后能把钩子取下。
#
# - 你不知道谁会来用这个函数，所以 `y` 可以是任何形状、任何浮点 dtype。
# - 它可能被调用好几次，各次之间要互不影响。
#
# 怎么知道有没有惊动别人？检查的时候，会把另一个张量 `skip` 和 `y` 相加，它的处境就和 3.1 节的 `b` 一样。`skip` 那一边的梯度不许变。
#
# </div>
# <div lang="en">
#
# Now it is your turn to change a gradient without disturbing anyone.
#
# Write `double_gradient(y)`. It doubles the gradient that passes `y` and returns the handle, so that the caller can
# take the hook off again.
#
# - You do not know who will use your function, so `y` may have any shape and any floating-point dtype.
# - Your function may be called several times, and one call must not affect another.
#
# How can we tell whether your hook disturbs somebody else? The check adds another tensor, `skip`, to `y`. That puts
# `skip` in the position that `b` had in section 3.1, and the gradient on its side must not change.
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
# 返回新张量虽然安全，却也不是返回什么都行。我们来试五个钩子，每个都收到梯度 `[2, 3, 6]`。
#
# 先看前两个。第一个不改方向，只让梯度的范数变成 14。范数 `grad.norm()` 就是各元素平方和的平方根，原来是 7。第二个是谁都会犯的疏忽：它算出了加倍的梯度，却忘了写 `return`。**先猜**第二个会怎样。
#
# </div>
# <div lang="en">
#
# Returning a new tensor is safe, but a hook may not return just anything. Let us try five hooks, each of which receives
# the gradient `[2, 3, 6]`.
#
# Here are the first two. One keeps the direction of the gradient and makes its norm 14. (The norm, `grad.norm()`, is
# the square root of the sum of the squares, and it was 7.) The other is a slip that happens to everybody: it computes
# twice the gradient, but its `return` is missing. **Guess first** what the second one does.
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
# 忘写 `return` 的钩子没有报错，可是白忙了一场：它算出来的新张量没有交给任何人，梯度就原样通过了。
#
# 另外三个倒是都返回了东西，只是有点怪：一个元组、一个太短的张量，还有一个 dtype 不同的张量。PyTorch 会放过哪几个？**先猜。**
#
# </div>
# <div lang="en">
#
# The hook without a `return` raised no error, but its work was in vain: nobody was given the new tensor, so the
# gradient passed on just as it had come.
#
# The other three hooks do return something, but something odd: a tuple, a tensor that is too short, and a tensor of
# another dtype. Which of them will PyTorch accept? **Guess first.**
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
# 三个都报错，PyTorch 一个也没有放过，而且每次都说了错在哪里。
#
# 第三个本来只想用一个掩码把中间那个数变成零。最后一行说明怎样补救：掩码写明 `dtype=grad.dtype`，就通过了。
#
# </div>
# <div lang="en">
#
# PyTorch accepts none of the three, and each error says what is wrong.
#
# All that the third hook wanted was to turn the middle number into zero with a mask. The last run shows how to mend it:
# with `dtype=grad.dtype` in the mask it passes.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 忘写 `return` 最难发现，因为没有任何报错。下面两种错倒会报出来：如果钩子返回的既不是张量也不是 `None`，你会得到 `TypeError`；如果返回的张量形状或 dtype 和收到的梯度不同，你会得到 `RuntimeError`。
#
# dtype 多半是不知不觉变掉的。NumPy 的小数默认存成 `float64`，用它们做一个掩码，去乘 `float32` 的梯度，结果就成了 `float64`。所以做掩码时要写明 `dtype=grad.dtype`，或者用 `torch.ones_like(grad)` 来造。
#
# </div>
# <div lang="en">
#
# A missing `return` is the hardest of these mistakes to find, because no error points to it. If a hook returns anything
# but a tensor or `None`, you get a `TypeError`. If it returns a tensor whose shape or dtype differs from that of the
# gradient, you get a `RuntimeError`.
#
# The dtype mostly changes without your noticing: NumPy floats are usually `float64`, and a mask made from them turns a
# gradient of `float32` into `float64`. So make the mask with `dtype=grad.dtype` or `torch.ones_like(grad)`.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 03.2：按范数裁剪 · Exercise 03.2: Clip by norm
#
# ●● · 6 min
#
# <div lang="zh">
#
# 梯度偶尔会大得离谱，一步就把模型带偏。遇到这样的梯度，按范数裁剪只把它缩短，方向不变。
#
# 写 `clip_by_norm(y, max_norm)`。它裁剪经过 `y` 的梯度，并返回句柄。范数按整个梯度来算：
#
# - 范数超过 `max_norm` 时，错只在太长，所以把梯度缩小到范数等于 `max_norm`，方向不变。
# - 没有超过时，什么也不用做：梯度原样通过，很小的、全是 0 的也一样。
# - 你的函数要到处能用，所以 `y` 可以是任何形状、任何浮点 dtype。
#
# 有些事，检查时不计较：舍入、上溢、下溢，还有为了不除以 0 而加的小数，例如 `clip_grad_norm_` 的 `1e-6`。
#
# </div>
# <div lang="en">
#
# Now and then a gradient is so large that one step throws the model off course. Clipping by norm makes such a gradient
# shorter but keeps its direction.
#
# Write `clip_by_norm(y, max_norm)`, which clips the gradient that passes `y` and returns the handle. The norm is taken
# over the whole gradient:
#
# - If the norm is above `max_norm`, only the length is at fault. So scale the gradient down until its norm is
#   `max_norm`, and keep its direction.
# - In all other cases there is nothing to do: the gradient passes as it is, even if it is tiny or all 0.
# - Your function should work anywhere, so `y` may have any shape and any floating-point dtype.
#
# The check does not mind rounding, overflow and underflow. It does not mind a tiny number against division by 0 either,
# such as the `1e-6` of `clip_grad_norm_`.
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
# 一个钩子改了梯度，你想看看改成了什么样，就可以在同一个张量上再挂一个。钩子按**注册的次序**一个接一个地运行，连成一条链：每一个收到的，都是前一个交出来的梯度。
#
# 我们跟着一个梯度，把这样一条链走一遍。下面 $L=\sum_i v_i^2$，没有钩子的时候，`v` 的梯度是 `[2, 4, 6]`。我们依次挂上四个钩子：第一个加倍，第二个记录，第三个减半，第四个再记录。**先猜**两次各记下了什么。
#
# </div>
# <div lang="en">
#
# Once a hook changes a gradient, you may want to see what became of it. For that you can put another hook on the same
# tensor. The hooks run one after the other in the **order of registration**, and together they form a chain: each of
# them receives the gradient that the one before it handed on.
#
# Let us follow a gradient along such a chain. Below, $L=\sum_i v_i^2$, so that without hooks the gradient of `v` would
# be `[2, 4, 6]`. We register four hooks in this order: the first doubles, the second records, the third halves, and the
# fourth records again. **Guess first** what the two records say.
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
# 第一次是在加倍之后记的，记下 `[4, 8, 12]`；第二次又减了半，记下 `[2, 4, 6]`。负责记录的钩子什么也不改变，因为 `seen.append` 返回 `None`。
#
# 写进 `v.grad` 的，是最后一个钩子交出来的梯度。在这里，它恰好和没有钩子时一样。
#
# </div>
# <div lang="en">
#
# The first record was made after doubling, so it says `[4, 8, 12]`; the second, after halving as well, says
# `[2, 4, 6]`. The hooks that record change nothing, because `seen.append` returns `None`.
#
# What ends up in `v.grad` is the gradient that the last hook hands on. Here it happens to be the same as without any
# hooks.
#
# </div>
#
# ### 练习 03.3：搭一条系数链 · Exercise 03.3: Build a chain of factors
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 假设你想看看，同一个梯度乘以几个系数各是多少。在一条链上，这要动点脑筋，因为后面的钩子收到的，是前面改过的梯度。
#
# 写 `build_chain(y, factors, seen)`。它给每个系数各挂一个钩子，让 `seen` 依次记下**原来的**梯度乘以每个系数。例如 `y` 的梯度是 `g`，`factors` 是 `[2, -6]`：反向传播之后，`seen` 里应当是 `[2 * g, -6 * g]`，继续往下传的是最后那个 `-6 * g`。
#
# - 再做一次反向传播，就再添同样多的项；`seen` 里原有的东西要留着。
# - 按注册的次序返回所有句柄的列表。
# - 只取下最后一个句柄，`seen` 就只少最后一项。
# - 系数不会是 0。
#
# </div>
# <div lang="en">
#
# Suppose you want to see one gradient times several factors. In a chain this takes some thought, because later hooks
# receive what earlier ones have changed.
#
# Write `build_chain(y, factors, seen)`. It registers one hook for each factor, so that `seen` gets the **original**
# gradient times each factor in turn. Say the gradient of `y` is `g` and `factors` is `[2, -6]`. After backward, `seen`
# should be `[2 * g, -6 * g]`, and what flows on is the last of them, `-6 * g`.
#
# - Another backward adds as many items again, and whatever was in `seen` before stays there.
# - Return a list of all handles, in the order of registration.
# - If only the last hook is removed, `seen` should lack only its last item.
# - No factor is 0.
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
# 那么，钩子到底能不能就地修改梯度？去查一查，你会读到两种说法：有的教程就这么写，有的说绝对不行。我们自己来试两个例子。
#
# 第一个例子是四个数的平方的平均，`x.grad` 本来全是 1。我们把它跑三遍：第一遍的钩子不动梯度，第二遍返回加倍的，第三遍就地加倍。**先猜**第三遍的 `x.grad`。
#
# </div>
# <div lang="en">
#
# So may a hook change a gradient in place or not? If you look for advice, you will find two opinions: some tutorials do
# it without a word, and others tell you never to do it. Let us try two examples ourselves.
#
# The first example is the mean of the squares of four numbers, in which `x.grad` is 1 everywhere. We run it three
# times. The first hook does not touch the gradient, the second doubles it by returning, and the third doubles it in
# place. **Guess first** what `x.grad` will be in the third run.
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
# 两次都是 2。就地加倍和返回加倍的，结果一模一样，什么也没有出错。
#
# 也许是这个例子太简单，图里只有一条路。第二个例子就用第 01 课里那张有岔路的图：`w` 既通向 `w + x`，也通向 `w + 1`，没有人动它的时候，它的梯度是 5。在这里就地修改，会出事吗？
#
# </div>
# <div lang="en">
#
# Both times the gradient became 2. Doubling in place gives exactly what returning the double gives, and nothing went
# wrong.
#
# Perhaps that example was too simple, with a single path in its graph. So our second one is the graph with a fork from
# lesson 01. There `w` leads to both `w + x` and `w + 1`, and its gradient is 5 if it is left alone. Will a change in
# place do harm here?
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
# 会不会是因为，那里的几个梯度根本就是同一个张量？要查清楚，我们有三件工具。`is` 问两个名字是不是同一个对象，`data_ptr()` 给出数据在内存里的地址，`_version` 数一个张量被就地改写过几次。
#
# 带上这三件工具，我们再算一次 `a + b`。这一次，反向传播从我们自己的张量 `mine` 开始，`c`、`a`、`b` 的梯度都留下来。
#
# </div>
# <div lang="en">
#
# Again no harm was done: the gradient of `w` went from 5 to 10, and that of `x` is 2 every time. Then what went wrong
# in 3.1?
#
# Could it be that some of the gradients there are one and the same tensor? Three tools can tell us. `is` asks whether
# two names stand for one object. `data_ptr()` gives the address of the data in memory. And `_version` counts how often
# a tensor was overwritten in place.
#
# With these tools we compute `a + b` once more. This time backward starts from a tensor of our own, `mine`, and we keep
# the gradients of `c`, `a` and `b`.
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
# 正是这样：`a` 和 `b` 拿到的是同一个对象。没想到的是，连我们自己的 `mine` 也被改成了 `[10, 14]`。
#
# 画出来看得更清楚。下面有两张图：左边那张用的是就地修改的钩子，右边那张用的是返回新张量的钩子。每张图都在左边列出名字，右边的每个方框是一块内存。**先猜**两张图一共有几个方框。
#
# </div>
# <div lang="en">
#
# So it is: `a` and `b` were given one and the same object. What we did not expect is that even our own `mine` was
# changed, to `[10, 14]`.
#
# Pictures make this plain. Below there are two: in the left one the hook works in place, and in the right one it
# returns a new tensor. In each of them the names stand on the left, and on the right there is one box for each piece of
# memory. **Guess first** how many boxes there are in both together.
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
# 原因在加法。它对 `a` 和 `b` 的导数都是 1，没有什么要算的，PyTorch 便把收到的张量**原样**交给两边。谁就地改了它，就是替所有拿着它的人改了。
#
# 3.5 节的两个例子为什么没事？因为那里的钩子收到的是刚刚算出来的张量，没有别人拿着。
#
# 现在请你**存心把 `b` 的梯度弄坏**。下面又是 `a + b`，点一个张量，就可以给它挂一个钩子，只是不许挂在 `b` 上。坏了的梯度会变红。做到以后，再找一找：同一个钩子挂在哪里，谁也不会坏？
#
# </div>
# <div lang="en">
#
# The left picture has a single piece of memory, and all four names point to it. The right one has two, because the
# gradient of `a` lives in a new tensor of its own.
#
# The reason lies in the sum. Its derivative is 1 for `a` and for `b`, so there is nothing to compute, and PyTorch hands
# the tensor it received to both sides **as it is**. Whoever changes that tensor in place changes it for everybody who
# holds it.
#
# Why was there no harm in the two examples of 3.5? There the hook received a tensor that had just been computed and
# that nobody else held.
#
# Now **make the gradient of `b` wrong on purpose**. Below is `a + b` again. Click on a tensor to register a hook on it, on
# any tensor but `b`. A spoiled gradient turns red. When you have managed that, find a place where the very same hook
# spoils nobody's gradient.
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
# 挂在 `a` 上的钩子若是就地加倍或就地清零，就连 `b` 的梯度也一起改坏了。同一个钩子挂在 `c` 上没事，因为那时梯度还没有分给两边。奇怪的是，挂在 `b` 上也没事，可是 `a` 和 `b` 拿到的不是同一个张量吗？
#
# </div>
# <div lang="en">
#
# A hook on `a` that doubles or zeroes in place spoils `b`. On `c` the same hook does no harm, because the gradient has
# not yet been handed to both sides. But on `b` it does no harm either, and that is odd: does `a` not hold the very same
# tensor?
#
# </div>
#
# ## 3.7 三种下场 · Three outcomes
#
# <div lang="zh">
#
# `b` 上的钩子没有惹祸，因为它来晚了：它运行的时候，`a` 的梯度已经用过了。可见共用一个张量，也不一定会坏，还得看谁先谁后。
#
# 我们单独来看先后的作用。去掉岔路，令 $y=2(w+x)$；还是只有一个钩子，挂在 `w` 上，就地加倍；正确的 `x.grad` 是 2。这个和，我们先写成 `w + x` 跑一遍，再写成 `x + w` 跑一遍。`x.grad` 会是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# The hook on `b` does no harm because it comes too late: by the time it runs, the gradient of `a` has already been
# used. So sharing a tensor does not always end badly. It depends on who gets the gradient first.
#
# Let us look at the order by itself. We drop the fork and take $y=2(w+x)$. Again there is one hook, on `w`, and it
# doubles the gradient in place; the correct `x.grad` is 2. We write the sum once as `w + x` and once as `x + w`. What
# will `x.grad` be? **Guess first.**
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
# 两种写法在数学上是同一个和，这里却有差别：写成 `w + x`，`x.grad` 坏成了 4；写成 `x + w`，它却是对的 2。后一种写法里，先轮到的是 `x`。等 `w` 的钩子动手时，`x` 已经把梯度抄进了自己的 `.grad`。
#
# 下一个例子是真实网络里常有的残差连接：`x` 分成 `skip` 和 `branch` 两路，后来又加在一起。假设我们只想去掉 `branch` 这一路的梯度，那么 `x.grad` 应当剩下 `[1, 1]`。**先猜**就地清零之后它是什么。
#
# </div>
# <div lang="en">
#
# In mathematics both are the same sum, but here the order matters. With `w + x` the hook spoils `x.grad`, which becomes
# 4, while with `x + w` it stays 2, as it should. In the second case `x` gets its turn first, so by the time the hook of
# `w` runs, `x` has already copied the gradient into its own `.grad`.
#
# The next example comes from real networks. In a residual connection, `x` splits into `skip` and `branch`, which are
# then added up. Suppose we want to remove the gradient of `branch` only, so that `x.grad` should be `[1, 1]`. **Guess
# first** what it is after zeroing in place.
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
# 就地清零，得到的是 `[0, 0]`。怎么不是 `[1, 1]`？因为加法把同一个张量交给了 `branch` 和 `skip`。`branch` 上的钩子把它清零，`skip` 那一路的梯度也就一起没了，`x` 什么也学不到。
#
# 清零也可以写成 `mul_(0)`，算出来的同样是零。用它代替 `zero_()`，会有什么不同吗？**先猜。**
#
# </div>
# <div lang="en">
#
# Zeroing in place gives `[0, 0]`. Why not `[1, 1]`? The sum hands the very same tensor to `branch` and to `skip`. When
# the hook on `branch` fills it with zeros, the gradient of `skip` is gone as well, and `x` would learn nothing at all.
#
# Instead of `zero_()` we could write `mul_(0)`, which computes the same zeros. Will that make a difference? **Guess
# first.**
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
# `mul_` 报错了。`.sum()` 对每个元素的导数都是 1，PyTorch 为了省内存，只存一个 1，再把它**扩展**开来。步幅是 0，下一个元素还在原处，两个 `float32` 共用 4 个字节。
#
# `mul_` 不肯往这样重叠的内存里写。`zero_()` 可以，因为它给每个元素写的数都一样。
#
# </div>
# <div lang="en">
#
# `mul_` raises an error. The derivative of `.sum()` is 1 everywhere, so PyTorch saves memory: it stores a single 1 and
# **expands** it. With a stride of 0 the next element is at the same place, so the two numbers of `float32` share
# 4 bytes.
#
# `mul_` refuses to write to expanded memory. `zero_()` may, because it writes the same number everywhere.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 所以两种说法都只对了一半：就地修改有三种下场。没有别人拿着这个张量，或者他们已经用完了，就平安无事。还有人要用，他们的梯度就悄悄坏了。是前一种还是后一种，钩子看不出来。如果张量是扩展出来的，或者被 autograd 存了起来（如求二阶导数时），还可能报错。**所以一律返回新张量。**
#
# </div>
# <div lang="en">
#
# Both opinions are half right, because a change in place can end in three ways. All is well if nobody else holds the
# tensor, or if the others are done with it. If somebody still needs it, their gradient is silently spoiled. A hook
# cannot see which of these two it is. If the tensor is expanded, or autograd has saved it (for second
# derivatives), there may be an error. **So always return a new tensor.**
#
# </div>
# </div>
#
# ## 3.8 伪装的就地修改 · In place in disguise
#
# <div lang="zh">
#
# 就地修改不一定带着下划线。下面八行，每一行运行之前，`g` 都是原来的张量 `[-1, 2]`。哪几行会改到它？有没有哪一行改了，`_version` 却不知道？**先猜。**
#
# </div>
# <div lang="en">
#
# Not every change in place has an underscore in its name. Before each of the eight lines below, `g` is the original
# tensor `[-1, 2]`. Which lines change that tensor, and does one of them do so without `_version` noticing? **Guess
# first.**
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
# 有五行改到了它。`*=` 和对下标赋值没有下划线，却也是就地修改。`detach()` 得到的张量和原来的共用内存，改了一个，另一个也跟着变；只有 `clone()` 才是真正的拷贝。
#
# 最阴险的是 `.data`：数变了，`_version` 却还是 0，凡是靠 `_version` 来发现错误的检查，都会被它瞒过去。
#
# </div>
# <div lang="en">
#
# Five of the eight lines change the original. `*=` and assignment to an index work in place, although they have no
# underscore. `detach()` returns a tensor that shares memory with the original, so changing one changes the other, and
# only `clone()` makes a copy.
#
# The most treacherous of all is `.data`: the numbers change, yet `_version` is still 0, so every check that relies on
# it is deceived.
#
# </div>
#
# ### 练习 03.4：找出并修好就地修改 · Exercise 03.4: Find and mend the in-place change
#
# ●●● · 6 min
#
# <div lang="zh">
#
# 有人写了一个 `tame(branch)`，它给 `branch` 挂两个钩子：第一个把负的梯度变成 0，第二个把剩下的减半。注释里是他原来的写法。两行都是就地修改，所以可能弄坏另一条路的梯度，也就是和 `branch` 相加的那一条。
#
# 请把两个钩子都修好，按这个次序返回它们的句柄。调用者可能只取下其中一个，所以**单独留下任何一个时，也要是对的**。把负数变成 0，可以用 `clamp(min=0)`。
#
# </div>
# <div lang="en">
#
# Somebody has written `tame(branch)`, which registers two hooks: the first turns negative gradients into 0, and the
# second halves what is left. In the comments you see the lines as they were. Both work in place, and so they can spoil
# the gradient of the other path, the one that is added to `branch`.
#
# Mend both hooks and return their handles, in this order. Since a caller may remove just one of the two, **each must
# also be right when it is left alone**. You can use `clamp(min=0)`, which turns negative numbers into 0.
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
# 就算你自己从不就地修改，也未必安全。设想你只是把 `a` 的梯度记下来，别处的代码却在 `b` 上挂了一个就地乘以 7 的钩子。`a` 的梯度是 1。你的记录会说是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# Even if you never change anything in place yourself, you are not quite safe. Suppose you only record the gradient of
# `a`, while somewhere else a hook on `b` multiplies by 7 in place. The gradient of `a` is 1. What will your record
# say? **Guess first.**
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
# `a.grad` 是 1，没有错，你的记录却说是 7。原来你记下的不是一个数，而是张量本身；后来有人改了这个张量，你的记录也就跟着变了。我们再记一遍，这次用四种办法：
#
# </div>
# <div lang="en">
#
# `a.grad` is 1, which is right, and yet your record says 7. The reason is that you did not record a number but the
# tensor itself, and when somebody changed that tensor later, your record changed with it. So let us record it once
# more, this time in four ways:
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
# 只把 `grad` 本身留下来，这样的记录靠不住，因为留下的是同一块内存，别人就地一改，记录也跟着变。我们之前大多就是这么做的，没有出问题，只是因为没有人就地修改过它。
#
# 要留住那一刻的值，用 `grad.detach().clone()`。`clone()` 抄一份数。`detach()` 剪断图，因为在 `create_graph=True` 之下，梯度自己也可能连着一张计算图（看最后一行）。如果梯度只有一个数，`grad.item()` 就够了。
#
# </div>
# <div lang="en">
#
# `grad` itself is not a safe record. We have mostly kept just that, which is fine as long as nobody changes it in
# place.
#
# To keep the value of that moment, use `grad.detach().clone()`. `clone()` copies the numbers. `detach()` cuts the graph
# off, because under `create_graph=True` a gradient can itself be attached to a computation graph (see the last line).
# If the gradient is a single number, `grad.item()` is enough.
#
# </div>
# </div>
#
# ## 3.10 实例：只改一条路 · Worked example: change one path only
#
# <div lang="zh">
#
# 一个张量分出好几条路，有时候你只想改其中的一条。设 $L=3x+5x$，`x` 用了两次。我们不想让 5 的那条路把梯度传回 `x`，所以 `x.grad` 应当是 3。
#
# 先试看起来最直接的办法：在 `x` 上挂一个返回零的钩子。**先猜**它会收到什么。
#
# </div>
# <div lang="en">
#
# Sometimes a tensor is used on several paths, and you want to change only one of them. Let $L=3x+5x$, which uses `x`
# twice. We want the path with the 5 to pass no gradient back to `x`, so that `x.grad` becomes 3.
#
# First we try what seems obvious, a hook on `x` that returns zero. **Guess first** what it receives.
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
# 钩子收到 8，`x.grad` 是 0。挂在 `x` 上太晚了：到了这里，两条路的梯度已经加在一起，再也分不开。
#
# 所以要在它们汇合之前动手。办法是用 `x.view_as(x)` 造一个值相同的张量 `y`：它和 `x` 共用内存，在计算图里却是一个单独的节点。我们只让 5 的那条路经过 `y`，把钩子挂在 `y` 上。这回 `x.grad` 是多少？**先猜。**
#
# </div>
# <div lang="en">
#
# The hook receives 8, and `x.grad` is 0. A hook on `x` comes too late: by then the gradients of both paths have been
# added up, and nothing can take them apart again.
#
# So we have to act before the two gradients meet. With `x.view_as(x)` we make a tensor `y` with the same values: it
# shares memory with `x`, but in the computation graph it is a node of its own. We let only the path with the 5 run
# through `y`, and put the hook there. What is `x.grad` now? **Guess first.**
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
# 这回 `x.grad` 是 3：钩子只截住了经过 `y` 的那个 5，另一条路的 3 照常回到 `x`。（要是后面有一步会就地修改 `y`，就改用 `x.clone()`：`view_as` 得到的是视图，视图上的钩子那时可能不再触发，见 4.6 节。）
#
# 在你自己用这个办法之前，还有一个问题。在 `torch.no_grad()` 里不建图，那里的张量还肯收下钩子吗？我们试两个，一个用 `clone()` 造，一个用 `view_as` 造。
#
# </div>
# <div lang="en">
#
# Now `x.grad` is 3. The hook stopped only the 5 that passed through `y`, while the 3 of the other path got back to `x`
# as before. (If a later step changes `y` in place, take `x.clone()` instead: on a view, which is what `view_as` makes,
# the hook may then fall silent, as section 4.6 shows.)
#
# Before you use this trick yourself, one more question. Under `torch.no_grad()` no graph is built, so does a tensor
# take a hook there at all? Let us try two of them, one made with `clone()` and one made with `view_as`.
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
# 两个张量的反应不一样。克隆出来的不需要梯度，所以不接受钩子。视图却跟 `x` 一样是 `True`，也就是需要梯度，所以肯收下钩子。可是它没有 `grad_fn`，不会有梯度经它回到 `x`，钩子在那里也就无事可做。
#
# 所以拿不准的时候，挂之前先问 `y.requires_grad`，免得报错。
#
# </div>
# <div lang="en">
#
# The two tensors behave differently. The clone does not require a gradient, so it refuses the hook. The view takes over
# the `True` of `x` and accepts the hook. But since it has no `grad_fn`, no gradient will ever get back to `x` through
# it, and the hook has nothing to do there.
#
# So where you cannot be sure, ask `y.requires_grad` before you register: it spares you the error.
#
# </div>
#
# ### 练习 03.5：梯度反转 · Exercise 03.5: Gradient reversal
#
# ●●●● · 8 min
#
# <div lang="zh">
#
# 有一种层让值原样通过，只把梯度反过来。这是一个有名的技巧，课末还会遇到它。
#
# 写 `reverse_gradient(x, strength)`。它返回一个值和 `x` 相同的张量 `y`（舍入不计）。
#
# - 反向传播时，经过 `y` 的梯度要乘以 `-strength`。
# - 要反过来的只有这一条路，所以不经过 `y` 的路不受影响。
# - `x` 不需要梯度的时候也要能用，这时 `y` 也不需要。
# - 在 `torch.no_grad()` 里也要能用；那里已经关掉了建图，所以不许建图。
#
# </div>
# <div lang="en">
#
# There is a famous kind of layer that passes its values unchanged and turns only the gradient around. You will meet it
# again at the end of this lesson.
#
# Write `reverse_gradient(x, strength)`, which returns a tensor `y` with the values of `x` (rounding aside).
#
# - In backward, the gradient that passes `y` is multiplied by `-strength`.
# - Only this path is to be reversed, so paths that do not run through `y` are not affected.
# - Your function must also work when `x` requires no gradient, and then `y` requires none either.
# - It must also work under `torch.no_grad()`. Graphs are turned off there, so it must not build one.
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
# 1. 钩子返回的张量取代梯度。如果什么也不返回，继续往下传的就是它收到的那个张量，连同就地做过的改动。
# 2. 返回的张量，形状和 dtype 都要和收到的梯度一样。
# 3. 一个张量上的钩子按注册的次序运行，每一个都从前一个的结果开始。
# 4. 两边的形状和 dtype 相同时，`a + b` 把同一个张量交给两边。就地修改它，可能平安无事，也可能弄坏别人的梯度；张量要是扩展出来的，或者被 autograd 存了起来，还可能报错。所以要返回新张量。
# 5. 要留下记录，就用 `grad.detach().clone()`。只想改一条路，就给它一个自己的张量。
#
# </div>
# <div lang="en">
#
# 1. The tensor that a hook returns replaces the gradient. If the hook returns nothing, the tensor it received flows on,
#    with any change that was made to it in place.
# 2. A returned tensor must have the same shape and dtype as the gradient that the hook received.
# 3. The hooks of a tensor run in the order of registration, and each of them starts from the result of the one before.
# 4. `a + b`, of the same shape and dtype, hands one and the same tensor to both sides. Changing this tensor in place
#    may do no harm, or it may spoil somebody else's gradient. If the tensor is expanded, or saved by autograd, the
#    change may also raise an error. So return a new tensor.
# 5. To keep a record, use `grad.detach().clone()`. To change one path only, give that path a tensor of its own.
#
# </div>

# %% [markdown]
# ## 3.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么 <code>grad *= 2</code> 危险，<code>grad * 2</code> 却不危险？</summary>前者改写收到的张量，而别人也许正拿着它；后者把结果写进一个新张量。</details>
# <details><summary>2. 就地修改有哪三种下场？</summary>没有别人拿着，或者他们已经用完：平安无事。还有人要用：悄悄弄坏他们的。张量是扩展出来的，或者被 autograd 存了起来：可能报错。</details>
# <details><summary>3. 钩子忘了写 <code>return</code>，会怎样？</summary>不报错；如果它只算出了新张量，梯度就原样通过。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why is <code>grad *= 2</code> dangerous and <code>grad * 2</code> not?</summary>The first overwrites the tensor it received, and somebody else may hold that tensor. The second writes its result into a new one.</details>
# <details><summary>2. In which three ways can a change in place end?</summary>It does no harm if nobody else holds the tensor, or if the others are done with it. If somebody still needs it, their gradient is silently spoiled. If it is expanded, or autograd has saved it, there may be an error.</details>
# <details><summary>3. A hook lacks its <code>return</code>. What happens?</summary>There is no error. If all the hook did was compute a new tensor, the gradient passes as it is.</details>
# </div>

# %% [markdown]
# ## 3.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 域对抗训练（DANN）靠的正是练习 03.5 的梯度反转：它学出来的特征，要让域分类器看不出数据来自哪里。可以搜索 `gradient reversal layer`。
#
# MuZero 里也有我们这样的钩子。它的不少实现里都有这样一行：`hidden_state.register_hook(lambda grad: grad * 0.5)`。模型在那里要一连展开好几步，所以每退回一步，梯度就减半，免得越积越大。这个钩子返回的也是新张量。
#
# </div>
# <div lang="en">
#
# Domain-adversarial training (DANN) rests on the gradient reversal of exercise 03.5: it learns features from which a
# domain classifier cannot tell where the data come from. You can search for `gradient reversal layer`.
#
# Hooks like ours also appear in MuZero. Quite a few implementations of it contain the line
# `hidden_state.register_hook(lambda grad: grad * 0.5)`. There the model is unrolled over several steps, and the
# gradient is halved at each step back so that it does not pile up. This hook, too, returns a new tensor.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
