# %% tags=["setup"]
import torch
from torch import nn

from hookedu import LanguageToggle, LayerPicker, check, course_map, guess, hint, progress, solution

LanguageToggle()

# %% [markdown]
# ## 0.1 选语言，运行单元 · Choose a language, run a cell
#
# <div lang="zh">
#
# 点一下上面那个单元，按 **Shift+Enter** 运行它；左边显示 `[*]` 就是还没运行完，第一次要等几秒。下面会出现三个按钮：中文、English、双语。
# 随时可以换，下一课会记得你的选择。
#
# 单元要从上往下逐个运行，后面的会用到前面的。看到 `NameError`，多半是跳过了前面的单元，或者内核重启过，什么都不记得了：从第一个单元起重新运行。
#
# 平常 `model(x)` 只给你最后的输出。下面的模型一行也没改，只多了一个函数 `look`。
#
# 先运行 `guess("00.a")` 这个单元，它问你一个问题。看看它下面的代码，**猜一猜**，再运行那段代码。猜错了没关系，不计分。
#
# </div>
# <div lang="en">
#
# Click the cell above and run it with **Shift+Enter**; `[*]` at its left means that it is still at work, for some seconds
# the first time. Three buttons appear: Chinese, English or both. Change your mind at any time; the next lesson
# remembers.
#
# Run the cells from top to bottom: later ones need earlier ones. A `NameError` usually means that you skipped one, or that
# the kernel was restarted and has forgotten everything: run the cells again from the first.
#
# Usually `model(x)` gives only the output. Below, the model stays as it is; only a function `look` is added.
#
# First run the cell `guess("00.a")`, which asks you a question. Look at the code below it, **guess**, and then run that
# code. A wrong guess does no harm: guesses are not graded.
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
# `look` 是一个普通函数，`register_forward_hook` 把它挂到一层上：那一层一算完，PyTorch 就替你调用它，
# 把这一层、它的输入和输出交给 `look` 的 3 个参数。这样的函数叫**钩子**。
#
# 每次挂上都会得到一个句柄，`remove()` 把钩子取下来。
#
# 钩子不止一种。用哪种，看你想要什么：
#
# </div>
# <div lang="en">
#
# `look` is an ordinary function, and `register_forward_hook` attaches it to a layer. As soon as that layer is done, PyTorch calls it for you with 3 arguments: the layer, its input and its
# output. Such a function is a **hook**.
#
# Each registration gives you a handle, and `remove()` takes the hook off.
#
# There are several kinds. Which one you take depends on what you want:
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
# `LayerPicker` 用钩子替你把一层画出来。下面就是开头那个网络，它学过六种形状，正看着一个十字。选一层，换一种视图，再点 **显示代码**：
# 它给出得到这些数字的那几行普通 PyTorch。
#
# </div>
# <div lang="en">
#
# `LayerPicker` uses hooks to draw a layer for you. Below is the net from the top of this page, which has learned six
# shapes, and it looks at a cross. Choose a layer, change the view, then click **Show code**: it shows the few lines of
# plain PyTorch that yield these numbers.
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
# 每个练习给你一个函数的开头。把 `raise NotImplementedError(...)` 那一行换成你的代码，运行那个单元，再运行它下面的 `check`：
# 它用新的输入试你的函数，告诉你对不对、错在哪里。改了函数，两个单元都要重新运行。标题下面的 ● 是难度，从一个到五个。代码里的括号、逗号和引号要用英文半角的：全角的 Python 不认。
#
# 先看一个有毛病的函数。**先猜。**
#
# </div>
# <div lang="en">
#
# Every exercise gives you the beginning of a function. Replace the line `raise NotImplementedError(...)` with your code,
# run its cell, then run `check` below: it tries your function on fresh input and tells you whether it is right, and if
# not, which mistake it was. After each change, run both cells again. The dots below a title say how hard it is: from one, ●,
# to five.
#
# First a function with a fault. **Guess first.**
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
# `broken` 想把 `grad` 翻倍，却没有做到。写一个 `double(grad)`：`grad` 的形状不限，返回翻倍后的新张量，`grad` 本身不变。
#
# 先什么都不写，就运行下面 2 个单元，看看 `check` 怎么说，也很好。
#
# </div>
# <div lang="en">
#
# `broken` means to double `grad`, and does not manage it. Write `double(grad)`: for `grad` of any shape it
# returns a new, doubled tensor and does not touch `grad` itself.
#
# Running the 2 cells below before you write anything is a fine way to begin: see what `check` says.
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
# ## 0.5 卡住了怎么办 · When you are stuck
#
# <div lang="zh">
#
# `hint("00.1")` 每运行一次多给一点提示，最后一条几乎就是答案。下面这个单元，运行两次试试：Shift+Enter 会走到下一个单元，
# 要再运行一次，先点回来。
#
# 真正试过之后，`solution("00.1")` 给出参考答案：用工具栏上的 **+** 添一个空单元，写进去，运行。想自己试点什么，也是这样。
#
# </div>
# <div lang="en">
#
# `hint("00.1")` gives a little more each time you run it, and the last one nearly gives it away. Run the cell below
# twice to see: Shift+Enter moves on to the next cell, so click this one before you run it again.
#
# Once you have really tried, `solution("00.1")` shows the reference answer: add an empty cell with **+** in the toolbar,
# write it there and run it. That is also how you try out an idea of your own.
#
# </div>

# %%
hint("00.1")

# %% [markdown]
# ## 0.6 走到哪儿了 · How far you are
#
# <div lang="zh">
#
# `progress()` 记着你在所有课里试过什么、解出了什么；关机再来也还在。一行是一课，一格是一个练习，粗框是接下来该做的；
# 点一下就打开那一课；已经开始学的课，点格子会直接到那个练习。运行一下：
#
# </div>
# <div lang="en">
#
# `progress()` keeps what you tried and solved in all lessons, also after a restart. A row is a lesson, a box in it an
# exercise, and the one with the thick frame is what to do next. A click opens the lesson; once you have begun it, a click
# on a box goes straight to the exercise. Run it:
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()

# %% [markdown]
# ## 0.7 课程地图 · The map of the course
#
# <div lang="zh">
#
# 箭头从一课指向直接用到它的课。从上往下走；想早点画特征图，学完第 03 课和第 05 课就可以去第 09 课。
#
# </div>
# <div lang="en">
#
# An arrow leads from a lesson to those that build on it. Go from the top down. If you cannot wait to draw feature maps:
# lesson 09 needs no more than lessons 03 and 05, and what leads to them.
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
# First where gradients live, then hooks on tensors. A click opens the lesson.
#
# <!-- lessons 01-04 -->
#
# </div>

# %% [markdown]
# ### 层 · Layers
#
# <div lang="zh">
#
# 钩子挂到 `nn.Module` 的各层上，看进去的、出来的和流回来的。
#
# <!-- lessons 05-08 -->
#
# </div>
# <div lang="en">
#
# Hooks on the layers of an `nn.Module`: what goes in, comes out and flows back.
#
# <!-- lessons 05-08 -->
#
# </div>

# %% [markdown]
# ### 用起来 · At work
#
# <div lang="zh">
#
# 把学到的用在真正的任务上。
#
# <!-- lessons 09- -->
#
# </div>
# <div lang="en">
#
# What you learned, put to real work.
#
# <!-- lessons 09- -->
#
# </div>

# %% [markdown]
# ## 0.8 小结 · Recap
#
# <div lang="zh">
#
# 1. Shift+Enter 运行一个单元；按钮切换语言。
# 2. 钩子是 PyTorch 替你调用的普通函数。
# 3. 想要什么，决定用哪种钩子。
# 4. `check` 说对错，`hint` 给提示，`solution` 给答案。
# 5. `progress()` 记得你走到了哪儿，地图说接下来能学什么。
#
# </div>
# <div lang="en">
#
# 1. Shift+Enter runs a cell; the buttons switch the language.
# 2. A hook is an ordinary function that PyTorch calls for you.
# 3. What you want decides which kind you take.
# 4. `check` judges, `hint` helps, `solution` shows the answer.
# 5. `progress()` knows how far you are; the map shows where you can go.
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
# 列出网络各层的 `torchinfo`、解释图像分类的 Grad-CAM 的常见实现、许多看语言模型内部的工具，靠的都是钩子。下一课：[01 计算图与叶子](01_graph_and_leaves.ipynb)。
#
# </div>
# <div lang="en">
#
# `torchinfo`, which prints a network's layers, most code for Grad-CAM, which explains an image classifier, and many
# tools that look into large language models rest on hooks. Next: [01 Graph and leaves](01_graph_and_leaves.ipynb).
#
# </div>
