# %% tags=["setup"]
import contextlib
import copy
import io
import pickle
import warnings
from collections import Counter, OrderedDict
from functools import partial

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from torchvision.models import resnet50

from hookedu import LanguageToggle, check, guess, hint, list_hooks, progress, remove_hooks, solution

LanguageToggle()

# %% [markdown]
# ## 8.1 一层，一步，八个钩子 · One layer, one step, eight hooks
#
# <div lang="zh">
#
# 到这里，你已经认识了许多种钩子，它们在一步训练的不同时刻触发。几种一起用的时候，就会遇到一个新问题：谁先，谁后？
#
# 我们让一个层做一次前向传播和一次反向传播，挂上八个钩子：四个挂在模块上，两个挂在权重上，输入和输出上各一个。
#
# 注册的次序故意倒着来，好看出它有没有影响。只有输出上的那个留到最后，因为调用之后才有输出。
#
# 先在心里排一排这八个事件。最难排的有两个：一个是模块的反向钩子（`backward`），另一个是权重的 `.grad` 写好时触发的钩子（`post_accumulate`）。这两个里，哪一个先触发？**先猜。**
#
# </div>
# <div lang="en">
#
# By now you know many kinds of hooks, which fire at different moments of a training step. As soon as you use several of
# them together, a new question comes up: which fires first?
#
# To find out, we let one layer go through one forward and one backward pass and attach eight hooks: four on the module,
# two on its weight, and one each on input and output.
#
# We register them in reverse order on purpose, because then we can tell whether this matters. Only the hook on the
# output comes last, since there is no output before the call.
#
# Put the eight events in order in your mind. Two of them are the hardest to place: the module's backward hook
# (`backward`), and the hook that fires when the `.grad` of the weight has been written (`post_accumulate`). Which of
# the two fires first? **Guess first.**
#
# </div>


# %% tags=["E8", "E18", "F20"]
class Layer(nn.Linear):
    def forward(self, x):
        print("forward itself")
        return super().forward(x)


def say(kind):
    """Return a hook that prints its kind and the shapes of the tensors that it sees."""

    def hook(*values):
        order.append(kind)
        pairs = [value if isinstance(value, tuple) else (value,) for value in values]
        seen = [v for pair in pairs for v in pair if torch.is_tensor(v)]
        print(f"{kind:16}", *["×".join(map(str, tensor.shape)) for tensor in seen])

    return hook


# %%
guess("08.a")

# %% tags=["E8", "E18", "F20"]
layer, x, order = Layer(5, 3, bias=False), torch.ones(6, 5, requires_grad=True), []
handles = [
    x.register_hook(say("input_grad")),
    layer.register_full_backward_hook(say("backward")),
    layer.weight.register_post_accumulate_grad_hook(say("post_accumulate")),
    layer.weight.register_hook(say("param_grad")),
    layer.register_full_backward_pre_hook(say("backward_pre")),
    layer.register_forward_hook(say("forward")),
    layer.register_forward_pre_hook(say("forward_pre")),
]
y = layer(x)
y.register_hook(say("output_grad"))
y.sum().backward()
for handle in handles:
    handle.remove()

# %% [markdown] tags=["F20"]
# <div lang="zh">
#
# 注册的次序倒过来，也没有影响：在这里，谁先触发由钩子的种类决定。
#
# `backward` 排在倒数第二。这里的输入需要梯度，所以它要等 `grad_input` 算出来，而那时，这一层权重的 `.grad` 早已写好了。
#
# </div>
# <div lang="en">
#
# We registered the hooks in reverse, and it made no difference: here the kind of hook decides the order.
#
# Which of your two candidates was first? Not `backward`, although its name sounds like a beginning: it comes last but
# one. Here the input needs a gradient, so `backward` has to wait for `grad_input`. By then, the `.grad` of this layer's
# weight has been written.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 别把 `backward` 理解成「反向传播开始了」。想在反向传播经过这一层之前就看到，请用 `backward_pre`。
#
# 如果输入不需要梯度，`backward` 会提前触发，排在参数的事件之前（7.3 节）。
#
# </div>
# <div lang="en">
#
# Do not read `backward` as “backward begins”. If you want to be there before backward goes through the layer, use
# `backward_pre`.
#
# If the input needs no gradient, `backward` fires earlier, before the events of the parameters (section 7.3).
#
# </div>
# </div>

# %% [markdown]
# <div lang="zh">
#
# 输出上的张量钩子什么时候触发，也容易弄错。上面的 `output_grad` 是在调用 `layer(x)` **之后**挂的，它先于 `backward_pre` 触发。
#
# 7.8 节的办法却是在前向钩子**里面**挂张量钩子，那时调用还没有结束。这样挂的张量钩子，还会先于 `backward_pre` 触发吗？**先猜。**
#
# </div>
# <div lang="en">
#
# The tensor hook on the output has one more trap. Above, `output_grad` came before `backward_pre`. But there we had
# registered the hook **after** the call `layer(x)`.
#
# With the method of section 7.8, you register the tensor hook **inside** a forward hook, while the call is still going
# on. Can you rely on the same order then, or does `backward_pre` come first? **Guess first.**
#
# </div>


# %%
guess("08.b")


# %% tags=["F40"]
def events(inside):
    layer, seen = nn.Linear(2, 2), []

    def watch(tensor):
        tensor.register_hook(lambda grad: seen.append("output_grad"))

    layer.register_full_backward_pre_hook(lambda module, grads: seen.append("backward_pre"))
    if inside:
        layer.register_forward_hook(lambda module, args, output: watch(output))
    y = layer(torch.ones(1, 2))
    if not inside:
        watch(y)
    y.sum().backward()
    return seen


print("registered after the call:    ", events(inside=False))
print("registered in a forward hook: ", events(inside=True))

# %% [markdown] tags=["F40"]
# <div lang="zh">
#
# 这一次，次序反过来了。`backward_pre` 好比梯度路上的一道关卡。前向钩子运行的时候，输出还没有离开模块，PyTorch 之后才在输出上设下这道关卡。所以梯度往回走，先碰到外面的关卡，再碰到里面的张量钩子。
#
# </div>
# <div lang="en">
#
# This time the order is reversed. Think of `backward_pre` as a gate on the path of the gradient. While a forward hook
# runs, the output has not left the module yet, and PyTorch puts the gate behind it only afterwards. So a gradient on
# its way back meets the gate first, and then the tensor hook inside.
#
# </div>
#
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 输出上的张量钩子如果在调用之后挂，就先于 `backward_pre` 触发。如果在前向钩子里挂，就后于它触发。
#
# </div>
# <div lang="en">
#
# If you register a tensor hook on the output after the call, it fires before `backward_pre`. If you register it
# inside a forward hook, it fires after `backward_pre`.
#
# </div>
# </div>

# %% [markdown]
# ## 8.2 整个模型的时间线 · The timeline of a model
#
# <div lang="zh">
#
# 一个模型里，模块套着模块。那么，外面的模块和里面的模块，谁的事件在先？
#
# 下面用 `HookTimeline` 来看。它运行一次模型，记下每个事件：选 **预测**，就先猜下一个事件是谁；选 **观看**，就一步一步走。
#
# 这里的 `Sequential` 装着三层。它自己的 `forward_pre` 和 `forward`，是夹在三层的事件中间，还是把它们全部包在里面？它的 `backward_pre` 和 `backward` 呢？
#
# </div>
# <div lang="en">
#
# In a model, modules contain other modules. Which events come first then, those of the outer module or those of the
# inner ones?
#
# We look at this with `HookTimeline`. It runs a model once and notes every event. Choose **Predict** to guess which
# event comes next, or **Watch** to go through them step by step.
#
# The `Sequential` here holds three layers. Do its own `forward_pre` and `forward` fall between the events of the
# layers, or do they enclose them all? What about its `backward_pre` and `backward`?
#
# </div>

# %% picture="timeline"
from hookedu import HookTimeline, plot_timeline, timeline

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
x = torch.ones(1, 2, requires_grad=True)
HookTimeline(net, x)

# %% [markdown]
# <div lang="zh">
#
# `Sequential` 把三层的事件全包在里面，像一对括号。它的 `forward_pre` 最先，好比左括号；它的 `forward` 要等里面全部跑完，好比右括号。
#
# 反向传播也一样。`Sequential` 的 `backward_pre` 先于里面的一切。这里的输入需要梯度，所以里面的模块都触发过了 `backward`，才轮到它的 `backward`。
#
# 时间线里，同一个梯度为什么会出现两次？因为两层之间的张量有两个身份：它是前一层的输出，又是后一层的输入。所以它的梯度先是前一层的 `output_grad`，紧接着是后一层的 `input_grad`。
#
# </div>
# <div lang="en">
#
# The events of the `Sequential` enclose those of its layers, like a pair of brackets. Its `forward_pre` comes first and
# opens the bracket. Its `forward` waits until everything inside has run, and closes it.
#
# Backward works the same way. The `backward_pre` of the `Sequential` comes before everything inside. Its `backward`
# fires after all modules inside have fired theirs, because the input needs a gradient here.
#
# Why does the same gradient appear twice in the timeline? A tensor between two layers has two roles: it is the output
# of one layer and the input of the next. So you see its gradient first as `output_grad` of the earlier layer, and right
# after that as `input_grad` of the later one.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 再看一张图，它只画两个 `Linear` 的事件，绿色的是权重和偏置。ReLU 照样在它们之间运行，只是没有画出来。
#
# 第一个 `Linear` 的输出进了 ReLU，没有直接进第二个 `Linear`，所以画出来的这两层没有共同的张量。因此在反向传播里，一层的事件全部走完，才轮到另一层。
#
# </div>
# <div lang="en">
#
# The next picture shows only the events of the two `Linear` layers, with weight and bias in green. The ReLU still runs
# between them and is just not drawn.
#
# You will see that, in backward, all events of one layer are over before the other's turn comes. The reason is the
# ReLU. The output of the first `Linear` goes there and not straight into the second `Linear`, so the two layers in the
# picture have no tensor in common.
#
# </div>

# %% picture="linear_only"
ax = plot_timeline(timeline(net, x, layers=nn.Linear))
_ = ax.set_ylabel("layer")

# %% [markdown]
# ### 练习 08.1：把事件排好 · Exercise 08.1: Put events in order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 调试钩子时，得清楚谁先触发。这里就来练一练，把一串打乱了的事件排回去。
#
# 写 `in_order(events)`，把给出的事件排成触发的次序，作为列表返回。`events` 里是打乱了的 `(kind, layer)`，来自一串没有偏置的 `Linear`。层号从 `0` 起，`kind` 用 8.1 的名字。
#
# - 只有第 `0` 层有 `input_grad`。别的层，输入就是前一层的输出，那个梯度只算作前一层的 `output_grad`。
# - 给出的事件可能缺了几个。缺的不用补，给了哪些，就返回哪些。
# - `events` 可以就地排序，但一个也不能取走。
#
# </div>
# <div lang="en">
#
# When you debug hooks, you have to know which of them fires first. To practise this, imagine that the events of several
# layers are written on cards, one on each card, and that somebody has dropped the cards.
#
# Write `in_order(events)`, which puts them back in order. `events` holds shuffled pairs `(kind, layer)` from a chain of
# `Linear` layers without bias. Layers are numbered from `0`, and each `kind` is named as in 8.1. Return the events as a
# list, in the order in which they fire.
#
# - Only layer `0` has an `input_grad`. The input of any other layer is the output of the layer before it, and its
#   gradient counts only as the `output_grad` of that layer.
# - Some events may be missing. Do not fill them in, but return exactly the events that you are given.
# - You may sort `events` in place, but take none out.
#
# </div>


# %% exercise="08.1"
def in_order(events):
    """返回同样的事件，按触发的次序排好，例如 [("forward_pre", 0), ("forward", 0)]。

    Return the same events in the order of firing, such as [("forward_pre", 0), ("forward", 0)].
    """
    ### BEGIN SOLUTION
    up = ["forward_pre", "forward"]
    down = [
        "output_grad",
        "backward_pre",
        "param_grad",
        "post_accumulate",
        "backward",
        "input_grad",
    ]

    def place(event):
        kind, layer = event
        return (0, layer, up.index(kind)) if kind in up else (1, -layer, down.index(kind))

    return sorted(events, key=place)
    ### END SOLUTION


# %% check="08.1"
check("08.1", in_order)

# %% [markdown]
# ## 8.3 谁排在前面 · Who comes first
#
# <div lang="zh">
#
# 一个模块有好几个同种的钩子时，先注册的先触发，用 `prepend=True` 注册的则插到队首。可是还有 6.10 节的**全局钩子**，它们对所有模块都有效，又该排在哪里？
#
# 为了看清楚，我们给同一层挂三个前向钩子，第三个用 `prepend=True`，最后再注册一个全局的。这四个里，哪一个最先触发？**先猜。**
#
# </div>
# <div lang="en">
#
# If a module has several hooks of one kind, the one that was registered first fires first, and one with `prepend=True`
# goes to the head of the queue. But there are also the **global hooks** of section 6.10, which apply to all modules.
# Where do they stand?
#
# To see this, we give one layer three forward hooks, the third of them with `prepend=True`, and last of all we register
# a global one. Which of the four fires first? **Guess first.**
#
# </div>


# %%
guess("08.c")


# %% tags=["E12", "F21"]
def tell(text):
    def hook(module, *rest):
        told.append(text)
        print(f"{text:24} got {type(module).__name__} and {len(rest)} more")

    return hook


net, x, told = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True), []
with contextlib.ExitStack() as stack:  # one with-block for many handles: it removes all of them
    for handle in (
        net.register_forward_hook(tell("own, first")),
        net.register_forward_hook(tell("own, second")),
        net.register_forward_hook(tell("own, prepend=True"), prepend=True),
        register_module_forward_pre_hook(tell("global forward pre-hook")),
        register_module_forward_hook(tell("global forward hook")),
        net.register_full_backward_hook(tell("own backward hook")),
        register_module_full_backward_hook(tell("global backward hook")),
    ):
        stack.enter_context(handle)
    net(x).sum().backward()

# %% [markdown]
# <div lang="zh">
#
# 同一种里，全局钩子总在前面，`prepend=True` 也改不了，因为它只能排到模块自己那条队伍的最前面。
#
# 还有两种情形会让人意外。一种是 `forward` 抛出了异常。这时我们很想让钩子报出是哪里出的事，可是前向钩子还会触发吗？
#
# 另一种是全局的前置钩子返回了一个张量。下一个前置钩子收到的，是这个张量，还是元组？
#
# </div>
# <div lang="en">
#
# Among hooks of one kind, global ones always come first. `prepend=True` cannot change that, because it reaches only the
# head of the module's own queue.
#
# Now for two situations in which a hook may surprise you. In the first, `forward` raises an exception. You would like a
# hook to tell you where, but does a forward hook fire at all?
#
# In the second, a global pre-hook returns a tensor. Does the next pre-hook receive this tensor, or a tuple?
#
# </div>

# %% tags=["E12", "F21"]
always = net.register_forward_hook(
    lambda module, args, output: print("always_call:", output), always_call=True
)
with always, net.register_forward_hook(tell("plain")), contextlib.suppress(RuntimeError):
    print("forward fails:")
    net(torch.ones(1, 3))
with (
    register_module_forward_pre_hook(lambda module, args: 10 * args[0]),
    net.register_forward_pre_hook(lambda m, args: print("a tensor returned, now a", args)),
):
    net(torch.ones(1, 2))

# %% [markdown] tags=["F21"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `forward` 抛出异常时，普通的前向钩子不触发。注册时用了 `always_call=True`，钩子就照样触发，收到的 `output` 是 `None`。但是，你中断单元格时的 `KeyboardInterrupt` 不算，那时它也不触发。
#
# 全局钩子先于模块自己的同种钩子触发，`prepend=True` 也越不过去。
#
# 如果普通的前置钩子返回单个张量，下一个前置钩子收到的是装着它的元组。
#
# </div>
# <div lang="en">
#
# When `forward` raises an exception, a plain forward hook does not fire. A hook that was registered with
# `always_call=True` still fires, and its `output` is `None`. This does not hold for a `KeyboardInterrupt`, when you
# stop the cell.
#
# Global hooks fire before a module's own of the same kind, and `prepend=True` cannot overtake them.
#
# If a plain pre-hook returns a single tensor, the next pre-hook receives it as a tuple.
#
# </div>
# </div>

# %% [markdown]
# ## 8.4 名字记在哪里 · Where to keep the name
#
# <div lang="zh">
#
# 设想一个钩子要印出每一层的统计量。要是分不清哪个数是哪一层的，印了也没有多大用处，所以它还得报出层的名字。可是钩子收到的是模块，不是名字，而模块又不知道自己叫什么。
#
# 所以名字要从别处来。我们比较三种写法。`late` 直接用循环变量。`partial` 在做钩子的时候，就把名字绑定到函数上。`mark` 把名字写到模块上，钩子运行时再从那里读。
#
# 哪一种报的名字不对？**先猜**，再看哪一种会在模型上留下痕迹。
#
# </div>
# <div lang="en">
#
# Suppose that a hook prints statistics of every layer. The numbers are of little use if you cannot tell which layer
# they belong to, so the hook needs a name to print. But it receives the module and not its name, and modules do not know
# their names.
#
# So the name must come from somewhere else, and we compare three ways to supply it. `late` simply uses the variable of
# the loop. `partial` binds the name to the function when the hook is made. `mark` writes the name onto the module, and
# the hook reads it there when it runs.
#
# Which of them gives a wrong name? **Guess first.** Then see which way makes a lasting mark on the model.
#
# </div>


# %%
guess("08.d")


# %% tags=["F9"]
def note(name, module, args, output):
    seen.append(name)


net = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.Linear(3, 1)))
said = {}
for way in ("late", "partial", "mark"):
    seen, handles = [], []
    for name, child in net.named_children():
        if way == "mark":
            child.__name__ = name
        hooks = {
            "late": lambda module, args, output: seen.append(name),
            "partial": partial(note, name),
            "mark": lambda module, args, output: seen.append(module.__name__),
        }
        handles.append(child.register_forward_hook(hooks[way]))
    net(torch.ones(1, 2))
    for handle in handles:
        handle.remove()
    marks = [hasattr(child, "__name__") for child in copy.deepcopy(net)]
    said[way] = seen
    print(f"{way:8}", seen, " a copy has __name__:", marks)

# %% [markdown] tags=["F9"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 用 `late`，两层报的都是最后一个名字。钩子要到运行时才去读循环变量，那时循环早已结束（2.8 节的延迟绑定）。
#
# 用 `mark`，名字是对的，可是 `__name__` 写在了模块上：用句柄取下钩子以后它还在，复制模块时副本也带着它。
#
# 所以，名字应该放在钩子里：用 `partial`、默认参数或闭包。
#
# </div>
# <div lang="en">
#
# With `late`, both layers report the last name. The hook reads the variable of the loop only when it runs, and by then the
# loop is over (the late binding of section 2.8).
#
# With `mark` the names are right, but a `__name__` that you put onto a module does not go away with the handle, and
# copies carry it along.
#
# Keep the name in the hook instead: with `partial`, a default argument or a closure.
#
# </div>
# </div>

# %% [markdown]
# ## 8.5 实例：ResNet-50 的形状 · Worked example: the shapes of ResNet-50
#
# <div lang="zh">
#
# 一个现成的大模型里，每个直接子模块的输出是什么形状？我们用学到的办法来看 ResNet-50。它的权重是随机的，输入是一批 `10×3×224×224` 的图。
#
# 这样的模型往往是别人写的，所以我们不想动它：看完之后，它要和原来一模一样。
#
# </div>
# <div lang="en">
#
# Suppose you get a large model ready-made, and you want to know which shape the output of each direct child has. We use
# what we have learned to look into ResNet-50. It has random weights, and its input is a batch of pictures,
# `10×3×224×224`.
#
# Such a model is often the work of somebody else, so we do not want to disturb it. Afterwards it must be exactly as it
# was.
#
# </div>

# %% tags=["E9"]
torch.manual_seed(0)
resnet = resnet50(weights=None).eval()
attributes = [set(vars(module)) for module in resnet.modules()]


def show(name, module, args, output):
    print(f"{name:8}", "×".join(str(size) for size in output.shape))


children = dict(resnet.named_children())
handles = [child.register_forward_hook(partial(show, name)) for name, child in children.items()]
try:
    with torch.no_grad():
        resnet(torch.randn(10, 3, 224, 224))
finally:
    for handle in handles:
        handle.remove()
print("hooks left:", len(list_hooks(resnet)))
now = [set(vars(module)) for module in resnet.modules()]
print("attributes as before:", attributes == now)

# %% [markdown]
# ### 练习 08.2：按名字记下形状 · Exercise 08.2: Shapes by name
#
# ●● · 8 min
#
# <div lang="zh">
#
# 检查别人的模型，你的钩子不该留下痕迹。请把上面的单元格改成这样的工具。
#
# 写 `output_shapes(model, x)`。它运行一次 `model(x)`，返回一个字典：键是每个直接子模块的名字，值是它输出的形状（元组或列表）。这里每个子模块恰好运行一次。
#
# - 运行的是 `model` 本身，不是副本；途中的输出也不能改。
# - 模型要和原来一样：钩子不多也不少，不添属性，不换模块，每个模块的训练模式不变。
# - 抛出异常时也是这样。
#
# </div>
# <div lang="en">
#
# If you inspect somebody's model, your hooks should leave no trace. Make such a tool out of the cell above.
#
# Write `output_shapes(model, x)`. It runs `model(x)` once and returns a dictionary, from the name of each direct child
# to the shape of its output (a tuple or a list). Each child runs exactly once here.
#
# - Run `model` itself and not a copy. Your hooks only look, so let them change no output on its way.
# - When you are done, the model must be as it was: it has its old hooks, not one more and not one less, every module
#   is in the mode that it was in, no attribute is added and no module replaced.
# - All this must hold even if the model raises an exception.
#
# </div>


# %% exercise="08.2"
def output_shapes(model, x):
    """返回字典：每个直接子模块的名字 → 输出的形状，例如 {"conv1": (10, 64, 112, 112)}。

    Return a dict from each direct child's name to the shape of its output.
    """
    ### BEGIN SOLUTION
    shapes = {}

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    handles = [
        child.register_forward_hook(partial(note, name)) for name, child in model.named_children()
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes
    ### END SOLUTION


# %% check="08.2"
check("08.2", output_shapes)

# %% [markdown]
# ## 8.6 同一个单元格，运行三次 · One cell, run three times
#
# <div lang="zh">
#
# 在笔记本里，改一改钩子，再运行一次单元格，是常有的事。下面的函数 `run_the_cell` 就代表这样一个单元格。我们让它运行三次，再做一次前向传播。钩子一共触发几次？**先猜。**
#
# </div>
# <div lang="en">
#
# In a notebook, you often change a hook and run its cell again. Does the new hook replace the old one? The function
# `run_the_cell` below stands for such a cell. We run it three times, and then do one forward pass. How often does the
# hook fire in all? **Guess first.**
#
# </div>

# %%
guess("08.e")

# %% tags=["F12"]
layer, fired = nn.Linear(2, 2), Counter()


def run_the_cell():
    def count(module, args, output):
        fired["count"] += 1

    layer.register_forward_hook(count)


for _ in range(3):
    run_the_cell()
layer(torch.ones(1, 2))
print("one forward pass, fired:", fired["count"])

for hook in list_hooks(layer):
    print("  ", hook.kind, hook.index, hook.function)
print("removed:", len(remove_hooks(layer, owner="user")), " left:", len(list_hooks(layer)))

# %% [markdown] tags=["F12"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 钩子触发了三次，因为重新运行单元格只会再加一个钩子。旧的钩子还在，它们的句柄却已经丢了。
#
# `list_hooks` 仍然找得到它们，上面每一行就是一个钩子的种类、在队伍里的位置和函数。`remove_hooks` 写上 `owner="user"`，就能把它们取下：这样它只取函数是你自己写的钩子，不取 PyTorch 或别的库的。
#
# </div>
# <div lang="en">
#
# The hook fires three times, because running the cell again only adds one more hook. The old ones stay, and their
# handles are lost.
#
# `list_hooks` still finds them: each line above gives the kind of a hook, its place in the queue and its function.
# `remove_hooks` with `owner="user"` takes them off: it then removes only hooks whose function is yours, not PyTorch's
# or another library's.
#
# </div>
# </div>

# %% [markdown]
# ## 8.7 一个有毛病的模型 · A model with faults
#
# <div lang="zh">
#
# 接手一个模型，怎么知道它的钩子有什么毛病？本课程有两样工具。第一样是 `diagnose`，它盯着所有钩子运行模型，把毛病逐个说出来。
#
# 第二样是控件 `HookInspector`，选中一个钩子就能把它取下，按「撤销」就放回原处。下面交给它的是一个副本，可以放心试。
#
# 下面的 Transformer 层里，我们故意放了几处毛病。例如，有一个钩子叠了三层，还有一个把输出连着计算图留了下来。
#
# `out_proj` 是自注意力的最后一层，上面也挂了一个钩子。`block` 运行一次，这个钩子触发几次？**先猜。**
#
# </div>
# <div lang="en">
#
# How do you find out what is wrong with the hooks of a model that somebody hands you? This course has two tools for it.
# The first, `diagnose`, runs the model, watches its hooks and names the faults.
#
# The second, `HookInspector`, is a widget in which you can choose a hook, remove it, and put it back with “Undo”. Below
# we give it a copy, so feel free to try.
#
# We have put some faults into the Transformer layer below. One hook is stacked three times, for example, and another
# keeps outputs together with their graph.
#
# `out_proj` is the last layer of self-attention, and it has a hook as well. When `block` runs once, how often does that
# hook fire? **Guess first.**
#
# </div>

# %%
guess("08.f")

# %% tags=["F25"]
from hookedu import HookInspector, diagnose


def count(name, module, args, output):
    fired[name] += 1


def put_faults_in(model):
    for _ in range(3):
        model.linear1.register_forward_hook(partial(count, "linear1"))
    model.linear2.register_forward_hook(lambda module, args, output: kept.append(output))
    model.self_attn.out_proj.register_forward_hook(partial(count, "out_proj"))


block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
x, fired, kept = torch.randn(2, 3, 8), Counter(), []
put_faults_in(block)
with block.self_attn.register_forward_hook(partial(count, "self_attn")):
    block(x)
for name in ("linear1", "self_attn", "out_proj"):
    print(f"the hook on {name} fired: {fired[name]}")
for finding in diagnose(block, x):
    print("diagnose:", finding.id, finding.hook.path if finding.hook else "")
HookInspector(copy.deepcopy(block), x)  # a copy to play with, its hooks included

# %% [markdown] tags=["F25"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# `out_proj` 上的钩子一次也不触发（torch 2.15.0）。`MultiheadAttention` 只取这一层的权重和偏置，自己去算，并不调用这一层。要看注意力的输出，就把钩子挂在 `self_attn` 上。
#
# </div>
# <div lang="en">
#
# The hook on `out_proj` never fires (torch 2.15.0). `MultiheadAttention` takes the weight and bias of this layer and
# computes with them, without calling the layer. To see the output of attention, register your hook on `self_attn`.
#
# </div>
# </div>
#
# <div lang="zh">
#
# `diagnose` 还找到了别的毛病。`linear1` 上叠了钩子（8.6 节）。`kept` 留着计算图，每运行一次就多一份（5.4 节）。最后一条与保存有关，留到 8.8 节再说。
#
# 钩子看到什么，还取决于模块走哪条路。`TransformerEncoderLayer` 有一条快速路径：设了 `batch_first=True`，又处于 `eval()` 和 `no_grad()` 时，它就可能走这条路。
#
# 我们用一个全局钩子来数调用的次数。平常，它在这一层数到 9 次：这一层自己 1 次，里面的模块 8 次。走快速路径时，它数到几次？**先猜。**
#
# </div>
# <div lang="en">
#
# `diagnose` has found more. There is the stack of hooks on `linear1` (section 8.6). And `kept` holds graphs, to which
# every run adds one more (section 5.4). The last finding is about saving, and we come to it in section 8.8.
#
# What hooks see also depends on the path that a module takes. `TransformerEncoderLayer` has a fast path, which it may
# take if it was made with `batch_first=True` and runs under `eval()` and `no_grad()`.
#
# How can we tell which way it went? We let a global hook count the calls. Normally it counts 9 here, 1 of the layer
# itself and 8 of modules inside. How many does it count on the fast path? **Guess first.**
#
# </div>


# %%
guess("08.g")


# %% tags=["F41"]
def calls(model, x):
    counted = []
    with register_module_forward_hook(lambda *_: counted.append(1)):
        model(x)
    return len(counted)


encoder, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 3, 8)
print("with gradients:              ", calls(encoder, x))
with torch.no_grad():
    fast = calls(encoder, x)
    print("no_grad:                     ", fast)
    with encoder.linear1.register_forward_hook(lambda *_: None):
        print("no_grad, a hook on linear1:  ", calls(encoder, x))

# %% [markdown] tags=["F41"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 快速路径用一个融合的运算代替了所有子模块，所以全局钩子只数到 1 次调用。
#
# 可是，里面一有前向钩子，PyTorch 就不走快速路径，于是又数到 9 次。在这里，往里看一眼，就改变了模型的运行方式。
#
# </div>
# <div lang="en">
#
# The fast path replaces all children by one fused operation, so a global hook counts only 1 call.
#
# If there is a forward hook inside, PyTorch does not take the fast path, and the global hook counts 9 again. Here a look
# inside changes how the model runs.
#
# </div>
# </div>
#
# ### 练习 08.3：找出漏网的钩子 · Exercise 08.3: Find the leaked hook
#
# ●●● · 6 min
#
# <div lang="zh">
#
# 有人在模型上挂了钩子，忘了取下。其中有些还要用，它们的句柄在你手里；其余的都该清掉。
#
# 写 `remove_leaked(model, handles)`。它留下句柄在 `handles` 里的钩子，取下 `list_hooks(model)` 列出的其余钩子，再返回这些钩子所在模块的名字（列表或元组，每个钩子一项，次序不限）。
#
# - 不论种类都取，`model` 自己身上的也算。这里的钩子都在模块上，没有一个挂在参数上，也没有模型运行要靠的钩子。
# - 句柄有 `.id`；`list_hooks` 给出的每个钩子有 `.id`、`.path` 和 `.remove()`。
#
# </div>
# <div lang="en">
#
# Somebody has forgotten hooks on a model, and you want to clean up. But some hooks are still needed. You can recognise
# them, because you have their handles.
#
# Write `remove_leaked(model, handles)`. It keeps the hooks of `handles` and takes off all others that
# `list_hooks(model)` lists. Then it tells you where they were: it returns the names of their modules (a list or tuple,
# one entry per hook, any order).
#
# - Take off hooks of any kind, those on `model` itself included. All hooks here are on modules, none on a parameter,
#   and none is one that the model needs in order to work.
# - A handle has an `.id`. Each hook that `list_hooks` gives you has `.id`, `.path` and `.remove()`.
#
# </div>


# %% exercise="08.3"
def remove_leaked(model, handles):
    """取下句柄不在 handles 里的钩子，返回所在模块的名字，如 ["body.fc", ""]；"" 是 model 自己。

    Remove the hooks whose handle is not in handles; return their modules' names, such as
    ["body.fc", ""] ("" is model).
    """
    ### BEGIN SOLUTION
    known = {handle.id for handle in handles}
    leaked = [hook for hook in list_hooks(model) if hook.id not in known]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]
    ### END SOLUTION


# %% check="08.3"
check("08.3", remove_leaked)

# %% [markdown]
# ### 练习 08.4：永不叠加的注册 · Exercise 08.4: Registration that never stacks
#
# ●●● · 6 min
#
# <div lang="zh">
#
# 8.6 节里，单元格每运行一次，就多叠一个钩子。要避免这个毛病，可以把句柄放在单元格之外，注册新的钩子之前先取下旧的。
#
# 写 `register_once(handles, name, module, hook)` 来做这件事。字典 `handles` 按名字存着句柄。如果里面已有 `name`，就先取下那个钩子。然后把前向钩子 `hook` 挂到 `module` 上，把句柄存进 `handles[name]`，并返回它。
#
# - 别的名字和别人的钩子都不要动。
# - `name` 可以是空字符串。
# - `hook` 在任何模式下都要触发，它的返回值照样取代输出。
#
# </div>
# <div lang="en">
#
# In 8.6, every run of the cell stacked one more hook. You can avoid that if you keep the handle outside of the cell,
# where the next run will find it, and take the old hook off before you register the new one.
#
# Write `register_once(handles, name, module, hook)` to do this. The dictionary `handles` holds one handle per name. If
# it already has `name`, take that hook off. Then register `hook` as a forward hook on `module`, store its handle in
# `handles[name]` and return it.
#
# - There may be other names in `handles`, and other people's hooks on `module`. Leave both alone.
# - `name` may be an empty string. It is a name like any other.
# - Whoever calls your function expects an ordinary forward hook. So `hook` must fire in every mode, and what it returns
#   still replaces the output.
#
# </div>


# %% exercise="08.4"
def register_once(handles, name, module, hook):
    """把 hook 挂到 module 上，取代 name 下旧的那个；句柄存进 handles[name] 并返回。

    Register hook on module in place of the old one under name; store its handle in
    handles[name] and return it.
    """
    ### BEGIN SOLUTION
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]
    ### END SOLUTION


# %% check="08.4"
check("08.4", register_once)

# %% [markdown]
# ## 8.8 复制与保存 · Copies and files
#
# <div lang="zh">
#
# 做实验之前，常常先复制一个模型，免得动了原来的。可是它的钩子会怎样？
#
# 下面给一层挂一个前向钩子，给它的权重挂一个张量钩子。然后用 `deepcopy` 复制这一层，只运行副本。副本上会有哪些钩子？**先猜。**
#
# </div>
# <div lang="en">
#
# Before an experiment it is a good habit to copy the model, so that the original stays as it is. But what happens to
# its hooks?
#
# Below, we register a forward hook on a layer and a tensor hook on its weight. Then we copy the layer with `deepcopy`,
# and run only the copy. Which hooks will the copy have? **Guess first.**
#
# </div>

# %%
guess("08.h")

# %% tags=["F23"]
net, seen = nn.Linear(2, 2), []


def keep(module, args, output):
    seen.append(output.detach())


def kinds(model):
    return [hook.kind for hook in list_hooks(model)]


handles = [net.register_forward_hook(keep), net.weight.register_hook(lambda grad: None)]
twin = copy.deepcopy(net)
taken_along = kinds(twin)
print("original:", kinds(net), " copy:", taken_along)
twin(torch.ones(1, 2))
print("only the copy ran, len(seen):", len(seen))
for handle in handles:
    handle.remove()
print("after the handles' remove(), original:", kinds(net), " copy:", kinds(twin))
taken = remove_hooks(twin, owner="user")

# %% [markdown]
# <div lang="zh">
#
# 副本也有模块的那个钩子。可是 `deepcopy` 不复制函数，两层调用的是同一个函数，所以副本一运行，结果就写进了**原来的**列表。（`partial` 则会复制，连同它绑定的参数；对象的方法也会，连同那个对象。）
#
# 张量钩子则丢了。`deepcopy` 用原来的数造了一个新参数，没有把钩子带过去。
#
# 保存模型时，钩子又会怎样？我们把 8.7 节的 `block` 交给 `torch.save`。那些钩子还在上面，其中有一个是 `lambda`。能存下来吗？**先猜。**
#
# </div>
# <div lang="en">
#
# The copy has the hook of the module, too. But `deepcopy` does not duplicate functions, so both layers call the same
# one. That is why the result goes into the **original's** list, although only the copy ran. (A `partial` is duplicated, with
# the arguments that it binds, and so is a method, with its object.)
#
# The tensor hook is lost. `deepcopy` builds a new parameter from the numbers of the old one and does not carry hooks
# over.
#
# What happens to hooks when a model is saved? We give the `block` of section 8.7 to `torch.save`. Its hooks are still
# on it, and one of them is a `lambda`. Can it be saved? **Guess first.**
#
# </div>


# %%
guess("08.i")


# %% tags=["F24"]
def try_to_save(what):
    try:
        torch.save(what, io.BytesIO())
        return "saved"
    except (AttributeError, pickle.PicklingError) as error:
        return f"{type(error).__name__}: {error}"


result = try_to_save(block)
print("the model:    ", result)
print("state_dict(): ", try_to_save(block.state_dict()))
taken = remove_hooks(block, owner="user")
print("without hooks:", try_to_save(block))

# %% [markdown] tags=["F23", "F24"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 句柄只管原来那个模型上的钩子，取不下副本上的，所以在副本上要用 `remove_hooks`，写上 `owner="user"`。参数的张量钩子不会复制，要在副本上重新注册。
#
# `torch.save(model)` 连模块的钩子一起存，而函数只存名字。如果钩子是 `lambda`，或者是在函数里定义的函数，就按名字找不到它，保存就会出错。请改存 `state_dict()`，里面没有钩子。
#
# </div>
# <div lang="en">
#
# The handle belongs to the original, so it cannot remove the hook on the copy: use `remove_hooks` there, with
# `owner="user"`. Tensor hooks of parameters are not copied, so you have to register them again on the copy.
#
# `torch.save(model)` saves the hooks of modules too, and of each function it saves only the name. So saving fails if a
# hook is a `lambda` or a function defined inside another, which cannot be found by name. Save the `state_dict()`
# instead, which contains no hooks.
#
# </div>
# </div>

# %% [markdown]
# ## 8.9 编译之后 · After compiling
#
# <div lang="zh">
#
# 最后看看编译过的模型。我们用 `torch.compile` 编译一个模型，运行一次，然后才在它的第一层上挂一个前向钩子。这里用 `backend="eager"`，因为它不需要 C++ 编译器，而前向钩子的行为和默认后端一样。
#
# 再运行一次，这个钩子会触发吗？不触发的话，PyTorch 会警告吗？**先猜。**
#
# </div>
# <div lang="en">
#
# Finally, we look at compiled models. Suppose that your model has been compiled and has run, and only now do you want
# to look inside. Below we compile a model with `torch.compile`, run it once, and then register a forward hook on its
# first layer. We use `backend="eager"`, because it needs no C++ compiler, and forward hooks behave as with the default
# one.
#
# When the model runs again, will the hook fire? If it does not, will PyTorch warn you? **Guess first.**
#
# </div>

# %%
guess("08.j")

# %% tags=["F22"]
net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)
seen = []
compiled = torch.compile(net, backend="eager")
compiled(x)
handle = net[0].register_forward_hook(lambda m, args, output: seen.append(output.detach()))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    compiled(x)
late, warned = len(seen), len(caught)
print("registered after the first call, len(seen):", late, " warnings:", warned)
with torch.compiler.set_stance("force_eager"):
    compiled(x)
print("the same under force_eager, len(seen):     ", len(seen))
seen.clear()
compiled(torch.ones(3, 2))
print("compiled again for a new shape, len(seen): ", len(seen))

torch.compiler.reset()  # forget what was compiled
seen.clear()
torch.compile(net, backend="eager")(x)
print("registered before compiling, len(seen):    ", len(seen))
handle.remove()
torch.compiler.reset()

# %% [markdown] tags=["F22"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 如果模型里的一个层在编译时一个钩子也没有，编译好的代码就不会再查看这个层有没有新的，也不警告（torch 2.15.0）。只有重新编译以后（例如输入换了形状），才会看到。
#
# 所以要先挂钩子，再编译。或者用 `set_stance("force_eager")`，它起作用的时候，模型照没有编译的样子运行。
#
# </div>
# <div lang="en">
#
# If a layer inside a model had no hooks when the model was compiled, the compiled code does not look for new ones on
# it, and gives no warning (torch 2.15.0). They are found only when it is compiled again, as for an input of another
# shape.
#
# So register hooks before you compile, or use `set_stance("force_eager")`, which sets compiled code aside for as long
# as it is in force.
#
# </div>
# </div>

# %% [markdown]
# ## 8.10 数括号 · Counting brackets
#
# <div lang="zh">
#
# 此刻是谁在谁里面运行？这可以用钩子来回答，因为嵌套的模块像括号（8.2 节），而括号是可以数的。一个模块开始运行，就多一个左括号；它运行完了，就多一个右括号。数一数还没有合上的括号，就知道现在在第几层里面。
#
# 不必给每个模块都挂上钩子。一个全局的前置钩子，看得见每个左括号；一个全局的前向钩子，看得见每个右括号。连 `model.modules()` 不认识的模块，它们也看得见。
#
# 但是要当心三种情形。`forward` 抛出异常时，普通的前向钩子看不见它的右括号（8.3 节）。走快速路径时，里面的模块根本没有被调用，也就没有括号（8.7 节）。在早已编译好的代码里面，可能什么括号都看不见（8.9 节）。
#
# </div>
# <div lang="en">
#
# Who is running inside whom at a given moment? Hooks can answer this, because nested modules are like brackets (section
# 8.2), and brackets can be counted. When a module begins to run, a bracket opens, and when the module is done, its
# bracket closes. The brackets that are open at a given moment tell you how deep inside the model you are.
#
# You need not hook every module for this. One global pre-hook sees each bracket open, and one global forward hook sees
# it close. They even see modules that `model.modules()` does not know.
#
# Three cases can mislead you. If `forward` raises an exception, a plain forward hook does not see its bracket close
# (section 8.3). On a fast path, the modules inside are not called and have no brackets (section 8.7). And inside code
# that was compiled before, you may see no bracket at all (section 8.9).
#
# </div>

# %% [markdown]
# ### 练习 08.5：谁在谁里面运行 · Exercise 08.5: Who runs inside whom
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 面对陌生的模型，最先想知道的是谁调用谁。把括号数出来，就有了一份这样的提纲。
#
# 写 `outline(model, x)`。它运行一次 `model(x)`，返回一个列表，每次调用一对：深度和类名，例如 `(0, "Linear")`。各对按调用**开始**的次序排列。
#
# - `model` 的深度是 `0`，它直接调用的模块是 `1`，依此类推：看谁调用的，不看名字。
# - 类名是 `type(module).__name__`。
# - 运行的是 `model` 本身，不是副本，输出不改。
# - 全局钩子忘了取下，就会对每个模型一直触发。所以两个都要取下，模型抛出异常时也一样，异常原样传出去。（`model` 里面不会接住异常。）
# - 别人的钩子和模型的模式都不变。
#
# </div>
# <div lang="en">
#
# In an unfamiliar model, you first want to see who calls whom. Counting brackets gives you an outline, which you can
# read like a table of contents.
#
# Write `outline(model, x)`, which runs `model(x)` once. It returns a list with a pair for each call, its depth and the
# class name, such as `(0, "Linear")`. The pairs stand in the order in which the calls **begin**.
#
# - `model` is at depth `0`, the modules that it calls directly are at `1`, and so on. What counts is who calls, not the
#   names.
# - The class name is `type(module).__name__`.
# - Run `model` itself, not a copy. You only look, so change no output.
# - A forgotten global hook goes on firing, for every model. So take both off, even after an exception, which reaches
#   the caller unchanged. (No exception is caught inside `model`.)
# - Leave other people's hooks alone, and every module in its mode.
#
# </div>


# %% exercise="08.5"
def outline(model, x):
    """运行 model(x)，返回每次调用的 (深度, 类名)，例如 [(0, "Sequential"), (1, "Linear")]。

    Run model(x); return (depth, class name) of each call, such as
    [(0, "Sequential"), (1, "Linear")].
    """
    ### BEGIN SOLUTION
    rows, running = [], []

    def begin(module, args):
        rows.append((len(running), type(module).__name__))
        running.append(module)

    def end(module, args, output):
        running.pop()

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows
    ### END SOLUTION


# %% check="08.5"
check("08.5", outline)

# %% [markdown]
# ## 8.11 小结 · Recap
#
# <div lang="zh">
#
# 1. `Linear` 这样的层，事件的次序是：`forward_pre`、`forward`；然后是 `output_grad`、`backward_pre`、参数的两个、`backward`、`input_grad`。在前向钩子里挂的 `output_grad` 在 `backward_pre` 之后。输入不需要梯度时，`backward` 没有什么要等，就会提前。
# 2. 模块像括号一样嵌套：前置钩子看见它打开，前向钩子看见它合上。每个被调用的模块，全局钩子都看得见（例外见 8.10 节），而且先于模块自己的同种钩子触发。它对所有模型都有效，所以用完要马上取下。
# 3. 名字放在钩子里，不放在模块上。放在模块上，取下钩子以后它还在，还会跟着副本走。
# 4. 句柄放在单元格之外，注册之前先取下旧的。不然单元格每运行一次，就多叠一个钩子。
# 5. 钩子从不触发，或者触发太多次时，先用 `list_hooks` 看看挂着哪些钩子，再问问 `diagnose`，毛病在哪里。
#
# </div>
# <div lang="en">
#
# 1. For a layer such as `Linear`, events come in this order: `forward_pre`, `forward`; then `output_grad`,
#    `backward_pre`, the two of the parameter, `backward`, `input_grad`. An `output_grad` set inside a forward hook
#    comes after `backward_pre`. If the input needs no gradient, `backward` has nothing to wait for and comes earlier.
# 2. Modules nest like brackets: a pre-hook sees each open, and a forward hook sees it close. Global hooks see every
#    call of a module (but see section 8.10), and fire before its own of the same kind. They fire for every model, so
#    remove them after use.
# 3. Keep the name in the hook, not on the module. On the module it would stay when the hook is gone, and copies would
#    carry it along.
# 4. Keep the handle outside of the cell, and remove the old hook before you register a new one. Otherwise each run of
#    the cell stacks one more hook.
# 5. If a hook never fires, or fires too often, let `list_hooks` tell you which hooks are on. Then ask `diagnose`
#    what is wrong.
#
# </div>

# %% [markdown]
# ## 8.12 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 模块的 <code>backward</code> 钩子触发时，这一层权重的 <code>.grad</code> 写好了吗？</summary>像 <code>Linear</code> 这样的层，若权重只用到一次，输入又需要梯度，就已经写好了。输入不需要梯度时，还没有（7.3 节）。</details>
# <details><summary>2. 重新运行一个挂钩子的单元格，怎样不让钩子叠加？</summary>把句柄存在单元格之外，先 <code>remove()</code> 旧的，再注册新的。</details>
# <details><summary>3. 说出三个原因，为什么挂好的钩子从不触发。</summary>一是模块没有被调用，例如 <code>out_proj</code>。二是它是反向钩子，而模块返回的是字典（7.7 节）。三是那一层在编译好、已经运行过的模型里面，钩子是后来才挂的，编译好的代码不知道有它。</details>
# </div>
# <div lang="en">
# <details><summary>1. When a module's <code>backward</code> hook fires, has the <code>.grad</code> of the layer's weight been written?</summary>Yes, for a layer such as <code>Linear</code> whose weight is used once, if the input needs a gradient. If the input needs none, it has not been written yet (section 7.3).</details>
# <details><summary>2. You run a cell again that registers a hook. How do you keep hooks from stacking?</summary>Store the handle outside of the cell, and <code>remove()</code> the old hook before you register the new one.</details>
# <details><summary>3. Give three reasons why a registered hook never fires.</summary>Its module may never be called, as with <code>out_proj</code>. It may be a backward hook whose module returns a dictionary (section 7.7). Its layer may be inside a model that was compiled and had run before the hook was registered; the compiled code does not know of it.</details>
# </div>

# %% [markdown]
# ## 8.13 真实世界里 · In the wild
#
# <div lang="zh">
#
# 全局钩子，PyTorch 自己也在用。`FlopCounterMode` 统计模型的运算量时，要知道眼下是哪个模块在运行。为此它用 `ModuleTracker`，这个类注册的正是练习 08.5 里的那一对全局钩子，离开 `with` 时就取下。
#
# 这一对你自己写过，所以它的源代码你也看得懂，就在 `torch/utils/module_tracker.py` 里。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# Global hooks are at work in PyTorch itself. When `FlopCounterMode` counts the operations of a model, it has to know
# which module is running at the moment. So it uses a `ModuleTracker`, which registers the same pair of global hooks as
# exercise 08.5 and removes them at the end of the `with` block.
#
# You wrote that pair yourself, so you can read its source, which is in `torch/utils/module_tracker.py`. Below you see
# your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
