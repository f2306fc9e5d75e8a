# %% tags=["setup"]
import torch
from torch import nn

from hookedu import LanguageToggle, LayerPicker, check, course_map, guess, hint, progress, solution

LanguageToggle()

# %% [markdown]
# ## 0.1 选语言，运行单元格 · Choose a language, run a cell
#
# <div lang="zh">
#
# 点一下上面那个单元格，按 **Shift+Enter** 运行它。左边显示 `[*]`，就是还没运行完，第一次要等几秒。
# 然后下面会出现三个按钮：中文、English、双语。你随时可以换；在 JupyterLab 和 Jupyter Notebook 里，下一课会记得你的选择。
#
# 请从上往下逐个运行，因为后面的单元格会用到前面的。看到 `NameError`，多半是跳过了某个单元格，或者内核重启过，什么都不记得了。
# 不论是哪一种，都从第一个单元格起重新运行。
#
# 模型在算的时候，里面发生了什么？平常你看不到，因为 `model(x)` 只给你最后的输出。下面的模型一行也没改，我们只多写了一个函数 `look`。
#
# 先运行 `guess("00.a")` 这个单元格，它问你下面的代码会打印几行。看看那段代码，**猜一猜**，再运行它。猜错了没关系，不计分。
#
# </div>
# <div lang="en">
#
# Click the cell above and press **Shift+Enter** to run it. While `[*]` shows to its left, the cell is still running;
# the first time this takes some seconds. Then three buttons appear: Chinese, English or both. You can change your mind
# at any time; in JupyterLab and Jupyter Notebook, the next lesson remembers your choice.
#
# Run the cells from top to bottom, because later ones need earlier ones. If you see a `NameError`, you have usually
# skipped one, or the kernel was restarted and has forgotten everything. In either case, run the cells again from the
# first.
#
# What goes on inside a model while it computes? Usually you do not see it, because `model(x)` gives you the output and
# nothing else. Below, the model stays as it is, and we only add a function `look`.
#
# First run the cell `guess("00.a")`, which asks how many lines the code below it will print. Look at that code,
# **guess**, and then run it. A wrong guess does no harm, since guesses are not graded.
#
# </div>

# %%
guess("00.a")

# %%
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 10))
x = torch.randn(1, 1, 8, 8)


def look(module, args, output):
    print(f"{type(module).__name__:8}", tuple(output.shape))


handles = [layer.register_forward_hook(look) for layer in model]
print("the output:", tuple(model(x).shape))
for handle in handles:
    handle.remove()  # off again: lesson 02 tells why

# %% [markdown]
# ## 0.2 这就是钩子 · That was a hook
#
# <div lang="zh">
#
# 刚才打印了 5 行：4 层各一行，最后一行是整个模型的输出。可是再看看代码，里面没有一处调用了 `look`。那是谁在调用它？
#
# 是 PyTorch。`look` 只是一个普通函数，`register_forward_hook` 把它挂到一层上。那一层一算完，PyTorch 就替你调用它，
# 交给它 3 个参数：这一层、它的输入和输出。这样的函数叫**钩子**。
#
# 看够了，就把钩子取下来。每挂上一次，你都会得到一个句柄，对它调用 `remove()` 就行。
#
# 钩子不止一种。用哪种，看你想要什么：
#
# </div>
# <div lang="en">
#
# The cell printed 5 lines: one for each of the 4 layers, and a last one for the output of the model. But look at the
# code again. Nowhere in it is `look` called. So who calls it?
#
# PyTorch does. `look` is an ordinary function, and `register_forward_hook` attaches it to a layer. As soon as that
# layer is done, PyTorch calls the function for you, with 3 arguments: the layer, its input and its output. Such a
# function is a **hook**.
#
# When you have seen enough, you take the hook off again. Each registration gives you a handle, and its `remove()` does
# that.
#
# There are several kinds of hooks. Which one you take depends on what you want:
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# | 想做的事 | 用它 | 挂在 | 课 |
# |---|---|---|---|
# | 看或改一个张量的梯度 | `register_hook` | 张量 | [02](02_tensor_hooks.ipynb), [03](03_changing_gradients.ipynb) |
# | 参数的 `.grad` 一写好就用它 | `register_post_accumulate_grad_hook` | 参数 | [04](04_which_gradient.ipynb) |
# | 看或改一层的输出 | `register_forward_hook` | 层 | [05](05_forward_hooks.ipynb) |
# | 在一层运行之前看或改它的输入 | `register_forward_pre_hook` | 层 | [06](06_forward_pre_hooks.ipynb) |
# | 看或改流过一层的梯度 | `register_full_backward_hook` | 层 | [07](07_backward_hooks.ipynb) |
#
# </div>
# <div lang="en">
#
# | You want to | Take | It goes on | Lesson |
# |---|---|---|---|
# | see or change the gradient of one tensor | `register_hook` | a tensor | [02](02_tensor_hooks.ipynb), [03](03_changing_gradients.ipynb) |
# | use a parameter's `.grad` as soon as it is written | `register_post_accumulate_grad_hook` | a parameter | [04](04_which_gradient.ipynb) |
# | see or change what a layer gives out | `register_forward_hook` | a layer | [05](05_forward_hooks.ipynb) |
# | see or change what a layer is given, before it runs | `register_forward_pre_hook` | a layer | [06](06_forward_pre_hooks.ipynb) |
# | see or change the gradient that flows through a layer | `register_full_backward_hook` | a layer | [07](07_backward_hooks.ipynb) |
#
# </div>

# %% [markdown]
# ## 0.3 用眼睛看一层 · See a layer with your own eyes
#
# <div lang="zh">
#
# `look` 只告诉你输出有多大，没有说里面是什么。一层到底看到了什么？`LayerPicker` 用钩子替你画出来。
#
# 下面就是开头那个网络，它学过六种形状，现在正看着一个十字。选一层，再换一种视图试试。
#
# 想要图背后的数字，就点 **显示代码**：算出它们的那几行普通 PyTorch 就在那里。
#
# </div>
# <div lang="en">
#
# `look` told you how large an output is, but not what is in it. What does a layer really see? `LayerPicker` uses hooks
# to draw it for you.
#
# Below is the net from the top of this page. It has learned six shapes, and now it is looking at a cross. Choose a
# layer and change the view.
#
# Would you like the numbers behind the picture? Click **Show code**, and you see the few lines of plain PyTorch that
# compute them.
#
# </div>

# %% picture="channels"
from hookedu.models.shapes import Shapes, load_model

net, cross = load_model(), Shapes(60, seed=11)[46].image[None]
picker = LayerPicker(net, cross)
picker.value = "block2"
picker

# %% [markdown]
# ## 0.4 练习怎么做 · How exercises work
#
# <div lang="zh">
#
# 学钩子，最好的办法是自己写，所以每个练习给你一个函数的开头，余下的由你来写。标题下面的 ● 是难度，从一个到五个。
#
# 把 `raise NotImplementedError(...)` 那一行换成你的代码，运行那个单元格，再运行它下面的 `check`。
# 它用新的输入试你的函数，告诉你写得对不对；要是不对，还告诉你错在哪里。
#
# 每次改了函数，两个单元格都要重新运行，不然 `check` 试的还是旧的。代码里的括号、逗号和引号要用英文半角的，全角的 Python 不认。
#
# 一行代码也会出错。下面的函数想把参数翻倍，却有毛病，它返回什么？**先猜。**
#
# </div>
# <div lang="en">
#
# You learn hooks best by writing them. So every exercise gives you the beginning of a function, and you write the rest.
# The dots below a title say how hard an exercise is: from one, ●, to five.
#
# Replace the line `raise NotImplementedError(...)` with your code, run its cell, and then run `check` below. It tries
# your function on fresh input and tells you whether it is right, and if it is not, what is wrong.
#
# After each change, run both cells again, or `check` tries the old version.
#
# Even one line can go wrong. The function below is meant to double its argument, but it has a fault. What does it
# return? **Guess first.**
#
# </div>


# %%
guess("00.b")


# %%
def broken(grad):
    2 * grad


print(broken(torch.ones(2)))

# %% [markdown]
# ### 练习 00.1：修好一行 · Exercise 00.1: Mend one line
#
# ● · 3 min
#
# <div lang="zh">
#
# `broken` 想把 `grad` 翻倍，返回的却是 `None`。往后你写的钩子，常常就是这样的小函数，所以我们先来修好它。
#
# 写一个 `double(grad)`。它收到张量 `grad`，形状不限；它返回一个新的张量，是 `grad` 的两倍。`grad` 本身不能变，因为别处也许还要用它。
#
# 你也可以先什么都不写，就运行下面 2 个单元格，看看 `check` 怎么说。这样开始也很好。
#
# </div>
# <div lang="en">
#
# `broken` was meant to double `grad`, but what it returned was `None`. Your hooks will often be small functions like
# this one, so let us repair it first.
#
# Write `double(grad)`. It gets a tensor `grad` of any shape, and it returns a new, doubled tensor. It does not touch
# `grad` itself, which may still be needed elsewhere.
#
# You can run the 2 cells below even before you write anything, just to see what `check` says. That is a fine way to
# begin.
#
# </div>


# %% exercise="00.1"
def double(grad):
    """返回 grad 的两倍。

    Return twice grad.
    """
    ### BEGIN SOLUTION
    return 2 * grad
    ### END SOLUTION


# %% check="00.1"
check("00.1", double)

# %% [markdown]
# <div lang="zh">
#
# 这样的函数，挂到一个张量上，就成了钩子。我们用一个乘以 3 的函数试试，它叫 `triple`。
#
# 没有钩子时，`x.grad` 里的每个数都是 `5`。挂上 `triple` 之后再做一次反向传播，PyTorch 会先把梯度交给 `triple`。它返回什么，`x.grad` 里就是什么。
#
# 等你的 `double` 通过了检查，就把 `register_hook(triple)` 里的 `triple` 换成 `double`，再运行一次：改梯度的，就是你自己写的钩子了。
#
# </div>
# <div lang="en">
#
# A function like this becomes a hook as soon as you register it on a tensor. Let us try it with one that multiplies
# by 3, `triple`.
#
# Without a hook, each number in `x.grad` is `5`. Then we register `triple` and run backward once more. Now PyTorch first
# hands the gradient to `triple`, and what `triple` returns is what you find in `x.grad`.
#
# When your `double` has passed its check, write `double` for `triple` in `register_hook(triple)` and run the cell again.
# Then it is your own hook that changes the gradient.
#
# </div>


# %%
def triple(grad):
    return 3 * grad


x = torch.ones(2, requires_grad=True)
(5 * x).sum().backward()
print("without a hook:", x.grad)

x.grad = None
x.register_hook(triple)
(5 * x).sum().backward()
print("with a hook:   ", x.grad)

# %% [markdown]
# ## 0.5 卡住了怎么办 · When you are stuck
#
# <div lang="zh">
#
# 卡住了，就运行 `hint("00.1")`。每运行一次，它多给一点提示，最后一条几乎就是答案。
# 下面这个单元格，你运行两次试试。（Shift+Enter 会走到下一个单元格，要再运行一次，先点回来。）
#
# 要是真正试过还是想不出，就看参考答案：用工具栏上的 **+** 添一个空单元格，写上 `solution("00.1")`，运行它。
# 你想自己试点什么，也可以这样添一个单元格。
#
# </div>
# <div lang="en">
#
# Are you stuck? Then run `hint("00.1")`. Each run gives you a little more, and the last hint nearly gives the answer
# away. Run the cell below twice to see this. (Shift+Enter moves on to the next cell, so click this one again first.)
#
# If you have really tried and still do not see it, `solution("00.1")` shows the reference answer. Add an empty cell
# with **+** in the toolbar, write it there and run it. An extra cell is also the place to try out an idea of your own.
#
# </div>

# %%
hint("00.1")

# %% [markdown]
# ## 0.6 走到哪儿了 · How far you are
#
# <div lang="zh">
#
# 这门课不必一口气学完。`progress()` 记着你在所有课里试过什么、解出了什么，关机再来也还在。
#
# 一行是一课，一格是一个练习，粗框标出接下来该做的。
# 点一下就打开那一课；要是那一课你已经开始学了，点格子会直接到那个练习。运行一下：
#
# </div>
# <div lang="en">
#
# You need not take the whole course at once. `progress()` remembers what you have tried and solved in all lessons, even
# after a restart.
#
# Each row is a lesson, and each box in it is an exercise. The box with the thick frame is what to do next. A click on a
# title or a box opens the lesson, and once you have begun that lesson, a box takes you straight to the exercise. Run it:
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()

# %% [markdown]
# ## 0.7 课程地图 · The map of the course
#
# <div lang="zh">
#
# 从哪里开始？地图上的箭头从一课出发，指向直接用到它的课。所以你从上往下学，每一课要用的，总是已经学过了。
#
# 想早点画特征图，可以提前去第 09 课。那只要先学第 03 课和第 05 课，以及地图上通向这两课的课。
#
# </div>
# <div lang="en">
#
# Where should you begin? An arrow leads from a lesson to those that build directly on it, so if you go from the top
# down, you always have what you need.
#
# If you cannot wait to draw feature maps, you can go to lesson 09 early. For that you need only lessons 03 and 05, and
# the lessons that lead to these two on the map.
#
# </div>

# %%
course_map()

# %% [markdown]
# ### 张量 · Tensors
#
# <div lang="zh">
#
# 先看梯度在哪里，再把钩子挂到张量上。点一下就打开那一课。
#
# <!-- lessons 01-04 -->
#
# </div>
# <div lang="en">
#
# First you see where gradients live, and then you put hooks on tensors. A click opens the lesson.
#
# <!-- lessons 01-04 -->
#
# </div>

# %% [markdown]
# ### 层 · Layers
#
# <div lang="zh">
#
# 这回把钩子挂到 `nn.Module` 的各层上，看什么进了一层，什么从里面出来，又有什么流回来。
#
# <!-- lessons 05-08 -->
#
# </div>
# <div lang="en">
#
# Now hooks go on the layers of an `nn.Module`. They see what goes in, what comes out and what flows back.
#
# <!-- lessons 05-08 -->
#
# </div>

# %% [markdown]
# ### 用起来 · At work
#
# <div lang="zh">
#
# 工具你都认识了，现在拿来做真正的事：网络在看哪里？训练在哪里出错，内存又用到哪里去了？
#
# <!-- lessons 09- -->
#
# </div>
# <div lang="en">
#
# You know the tools by now, so put them to real work. What does a net look at? Where does training go wrong, and where
# does its memory go?
#
# <!-- lessons 09- -->
#
# </div>

# %% [markdown]
# ## 0.8 小结 · Recap
#
# <div lang="zh">
#
# 1. Shift+Enter 运行一个单元格；按钮切换语言。
# 2. 钩子是 PyTorch 替你调用的普通函数。
# 3. 想要什么，决定用哪种钩子。
# 4. `check` 说对错，`hint` 给提示，`solution` 给答案。
# 5. `progress()` 记得你走到了哪儿，地图说接下来能学什么。
#
# </div>
# <div lang="en">
#
# 1. Shift+Enter runs a cell, and the buttons switch the language.
# 2. A hook is an ordinary function that PyTorch calls for you.
# 3. Which kind of hook you take depends on what you want.
# 4. `check` tells you whether you are right, `hint` helps, and `solution` shows the answer.
# 5. `progress()` knows how far you are, and the map shows where you can go.
#
# </div>

# %% [markdown]
# ## 0.9 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 想看一层的输出，用哪种钩子？</summary><code>register_forward_hook</code>。</details>
# <details><summary>2. 函数忘了 <code>return</code> 会得到什么？</summary><code>None</code>。</details>
# <details><summary>3. 卡住了，先运行什么？</summary><code>hint</code>。</details>
# </div>
# <div lang="en">
# <details><summary>1. Which hook shows what a layer gives out?</summary><code>register_forward_hook</code>.</details>
# <details><summary>2. What does a function without <code>return</code> give?</summary><code>None</code>.</details>
# <details><summary>3. You are stuck: what do you run first?</summary><code>hint</code>.</details>
# </div>
#
# ## 0.10 真实世界里 · In the wild
#
# <div lang="zh">
#
# 你会在许多地方遇到钩子。`torchinfo` 靠它列出网络的各层。Grad-CAM 用来解释图像分类，常见的实现也建立在钩子上。
# 许多查看大语言模型内部的工具，用的还是钩子。下一课：[01 计算图与叶子](01_graph_and_leaves.ipynb)。
#
# </div>
# <div lang="en">
#
# You will meet hooks in many places. `torchinfo` uses them to list the layers of a network. The usual code for
# Grad-CAM, which explains an image classifier, is built on hooks as well, and so are many tools that look into large
# language models. Next: [01 Graph and leaves](01_graph_and_leaves.ipynb).
#
# </div>
