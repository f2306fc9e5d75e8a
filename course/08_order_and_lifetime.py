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

from hookedu import LanguageToggle, check, hint, list_hooks, progress, solution

LanguageToggle()

# %% [markdown]
# ## 8.1 一层，一步，八个钩子 · One layer, one step, eight hooks
#
# <div lang="zh">
#
# 前几课的八种钩子，这次全部挂在一层上：模块上四个，权重上两个，输入和输出上各一个。注册的次序是故意倒过来的。
#
# **先猜一猜**：八个事件按什么次序发生？权重的 `.grad` 写好的时候（`post_accumulate`），模块的反向钩子（`backward`）触发过了吗？
#
# </div>
# <div lang="en">
#
# The eight kinds of hooks from the lessons so far, all on one layer: four on the module, two on the weight, one each on
# input and output. They are registered back to front, on purpose.
#
# **Guess first**: in which order do the eight events happen? When the weight's `.grad` has been written
# (`post_accumulate`), has the module's backward hook (`backward`) fired yet?
#
# </div>


# %% tags=["E8", "E18", "F20"]
class Layer(nn.Linear):
    def forward(self, x):
        print("forward itself")
        return super().forward(x)


layer = Layer(5, 3, bias=False)
x = torch.ones(6, 5, requires_grad=True)
handles = [  # gi, go: grad_input, grad_output
    x.register_hook(lambda grad: print("input_grad      ", grad.shape)),
    layer.register_full_backward_hook(lambda m, gi, go: print("backward        ", gi[0].shape, go[0].shape)),
    layer.weight.register_post_accumulate_grad_hook(lambda w: print("post_accumulate ", w.grad.shape)),
    layer.weight.register_hook(lambda grad: print("param_grad      ", grad.shape)),
    layer.register_full_backward_pre_hook(lambda m, go: print("backward_pre    ", go[0].shape)),
    layer.register_forward_hook(lambda m, args, out: print("forward         ", args[0].shape, out.shape)),
    layer.register_forward_pre_hook(lambda m, args: print("forward_pre     ", args[0].shape)),
]
y = layer(x)
y.register_hook(lambda grad: print("output_grad     ", grad.shape))
y.sum().backward()
for handle in handles:
    handle.remove()

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F20)
#
# <div lang="zh">
#
# 种类决定次序，注册的先后不算。`backward` 不是「反向传播开始」：输入需要梯度时，它要等 `grad_input`，那时权重的 `.grad` 早已写好
# （不需要时，见 7.3 节）。要赶在前面，用 `backward_pre`。
#
# </div>
# <div lang="en">
#
# The kind decides, not who registered first. `backward` does not mean "backward begins": where the input
# needs a gradient, it waits for `grad_input`, and by then the weight's `.grad` has long been written (if not, see section 7.3). To be
# earlier, use `backward_pre`.
#
# </div>
# </div>
#
# ## 8.2 整个模型的时间线 · The timeline of a model
#
# <div lang="zh">
#
# `HookTimeline` 运行一次模型，记下每个事件。选 **预测**，猜下一个是谁；选 **观看**，一步一步走。下面的图只画两个 `Linear`，绿色的是权重和偏置。
#
# </div>
# <div lang="en">
#
# `HookTimeline` runs a model once and notes every event. Choose **Predict** and guess which comes next, or **Watch** and go
# step by step. The picture below shows the two `Linear` only (green: weight and bias).
#
# </div>

# %%
from hookedu import HookTimeline, plot_timeline, timeline

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
x = torch.ones(1, 2, requires_grad=True)

ax = plot_timeline(timeline(net, x, layers=nn.Linear))
ax.set_ylabel("layer")
steps = HookTimeline(net, x)
steps

# %% [markdown]
# <div lang="zh">
#
# 前向传播时层号升，反向传播时层号降；反向时一层全部走完，才轮到下一层。
#
# </div>
# <div lang="en">
#
# Layer numbers rise in forward and fall in backward, where one layer is done before the next begins.
#
# </div>
#
# ### 练习 08.1：把事件排好 · Exercise 08.1: Put events in order
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `in_order(events)`：`events` 是打乱了的 `(kind, layer)`，来自一串没有偏置的 `Linear`，层号从 `0` 起，`kind` 用 8.1 的名字。
# 只有第 `0` 层有 `input_grad`：别的层，输入就是前一层的输出。把给出的事件排成触发的次序，作为列表返回，不多也不少；给出的可能缺了一些。
# `events` 可以就地排序，但一个也不能取走。
#
# </div>
# <div lang="en">
#
# Write `in_order(events)`: `events` are shuffled pairs `(kind, layer)` from a chain of `Linear` without bias, layers numbered
# from `0`, each `kind` named as in 8.1. Only layer `0` has an `input_grad`: any other's input is the previous output.
# Return exactly these events (some may be missing) as a list in order of firing. Sorting `events` in place is fine; take
# none out.
#
# </div>


# %% exercise="08.1"
def in_order(events):
    """返回同样的事件，按触发的次序排好，例如 [("forward_pre", 0), ("forward", 0), ("output_grad", 0)]。

    Return the same events in the order of firing, such as [("forward_pre", 0), ("forward", 0), ("output_grad", 0)].
    """
    ### BEGIN SOLUTION
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]

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
# 同一种钩子有好几个时，先注册的先触发，`prepend=True` 插到队首。6.10 节的**全局钩子**，每个模块都会触发。
#
# **先猜**：全局的排在模块自己的前面还是后面？前向传播抛出异常时，前向钩子还触发吗？
#
# </div>
# <div lang="en">
#
# Among hooks of one kind, the first registered fires first, and `prepend=True` goes to the head of the queue. Every module
# fires the **global hooks** of section 6.10.
#
# **Guess**: does a global hook come before or after the module's own? And when forward raises an exception, does a forward hook
# still fire?
#
# </div>


# %% tags=["E12", "F21"]
def say(text):
    return lambda module, *values: print(f"   {text:24} got {type(module).__name__} and {len(values)} more")


net, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
with contextlib.ExitStack() as stack:  # one with for many handles: it takes all of them off
    for handle in (
        net.register_forward_hook(say("own, first")),
        net.register_forward_hook(say("own, second")),
        net.register_forward_hook(say("own, prepend=True"), prepend=True),
        register_module_forward_pre_hook(say("global forward pre-hook")),
        register_module_forward_hook(say("global forward hook")),
        net.register_full_backward_hook(say("own backward hook")),
        register_module_full_backward_hook(say("global backward hook")),
    ):
        stack.enter_context(handle)
    net(x).sum().backward()
always = net.register_forward_hook(lambda m, args, output: print("   always_call:", output), always_call=True)
with always, net.register_forward_hook(say("plain")), contextlib.suppress(RuntimeError):
    print("forward fails:")
    net(torch.ones(1, 3))
with register_module_forward_pre_hook(lambda module, args: 10 * args[0]):
    with net.register_forward_pre_hook(lambda m, args: print("a tensor returned, now a", args)):
        net(torch.ones(1, 2))

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F21)
#
# <div lang="zh">
#
# 全局钩子总在前面，`prepend=True` 也越不过去。前向传播出错时，普通的前向钩子不触发；`always_call=True` 的照样触发，`output` 是 `None`。
# 全局前置钩子返回的张量，下一个钩子收到时已包成元组。
#
# </div>
# <div lang="en">
#
# Global hooks always come first; `prepend=True` cannot overtake them. Where forward fails, a plain forward hook stays silent; one with
# `always_call=True` fires all the same, its `output` being `None`. A tensor that a global pre-hook returns reaches the next hook as a tuple.
#
# </div>
# </div>
#
# ## 8.4 名字记在哪里 · Where to keep the name
#
# <div lang="zh">
#
# 钩子要报出自己那一层的名字。**先猜**：三种写法（`late`、`partial`、`mark`）里，哪一种报的名字不对，哪一种在模型上留下痕迹？
#
# </div>
# <div lang="en">
#
# A hook should say the name of its layer. **Guess**: which of three ways (`late`, `partial`, `mark`) says a wrong name, and which
# puts a lasting mark on the model?
#
# </div>

# %% tags=["F9"]
net = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.Linear(3, 1)))


def note(name, module, args, output):
    seen.append(name)


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
    print(f"{way:8}", seen, " a copy has __name__:", marks)

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F9)
#
# <div lang="zh">
#
# 延迟绑定让两层都报最后的名字（2.8 节）。写到模块上的 `__name__` 会留下，还会跟着复制走。名字属于钩子：`partial`、默认参数或闭包。
#
# </div>
# <div lang="en">
#
# With late binding both report the last name (section 2.8). A `__name__` put on the module stays, and goes along with copies.
# The name belongs in the hook: `partial`, a default argument or a closure.
#
# </div>
# </div>
#
# ## 8.5 实例：ResNet-50 的形状 · Worked example: the shapes of ResNet-50
#
# <div lang="zh">
#
# 一个现成的大模型（随机权重），一批 `10×3×224×224` 的图：每个直接子模块的输出是什么形状？用完，模型要和原来一样。
#
# </div>
# <div lang="en">
#
# A large ready-made model (random weights) and a batch of `10×3×224×224`: which shape does each direct child put out?
# Afterwards the model must be as it was.
#
# </div>

# %% tags=["E9"]
from torchvision.models import resnet50

torch.manual_seed(0)
resnet = resnet50(weights=None).eval()
attributes = [set(vars(module)) for module in resnet.modules()]


def show(name, module, args, output):
    print(f"{name:8}", "×".join(str(size) for size in output.shape))


handles = [child.register_forward_hook(partial(show, name)) for name, child in resnet.named_children()]
try:
    with torch.no_grad():
        resnet(torch.randn(10, 3, 224, 224))
finally:
    for handle in handles:
        handle.remove()
print("hooks left:", len(list_hooks(resnet)))
print("attributes as before:", attributes == [set(vars(module)) for module in resnet.modules()])

# %% [markdown]
# ### 练习 08.2：按名字记下形状 · Exercise 08.2: Shapes by name
#
# ●● · 8 min
#
# <div lang="zh">
#
# 写 `output_shapes(model, x)`：运行一次 `model(x)`（它本身，不是副本），返回字典，键是每个直接子模块的名字，值是它输出的形状
# （元组或列表）。这里每个子模块恰好运行一次。
#
# 模型要和原来一样，抛出异常时也是：钩子不多也不少，不添属性，不换模块，每个模块的训练模式不变；途中的输出也不能改。
#
# </div>
# <div lang="en">
#
# Write `output_shapes(model, x)`: run `model(x)` once (itself, not a copy) and return a dictionary from the name of each direct
# child to the shape of its output (a tuple or a list). Each child runs exactly once here.
#
# The model must be as it was, also after an exception: no hook more and none less, no attribute added, no module replaced,
# every module in its mode; and no output may change on its way.
#
# </div>


# %% exercise="08.2"
def output_shapes(model, x):
    """返回字典：每个直接子模块的名字 → 输出的形状，例如 {"conv1": (10, 64, 112, 112), "fc": (10, 1000)}。

    Return a dict from each direct child's name to its output's shape: {"conv1": (10, 64, 112, 112), "fc": (10, 1000)}.
    """
    ### BEGIN SOLUTION
    shapes = {}

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    handles = [child.register_forward_hook(partial(note, name)) for name, child in model.named_children()]
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
# ## 8.6 同一个单元，运行三次 · One cell, run three times
#
# <div lang="zh">
#
# 在笔记本里，改一改钩子，再运行一次单元，是常有的事。下面的函数 `run_the_cell` 就代表这样一个单元。
#
# **先猜**：运行三次以后，做一次前向传播，钩子触发几次？
#
# </div>
# <div lang="en">
#
# In a notebook you change a hook and run its cell again, all the time. The function `run_the_cell` below stands for such a cell.
#
# **Guess**: after three runs of it, how often does the hook fire in one forward pass?
#
# </div>

# %% tags=["F12"]
from hookedu import remove_hooks

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
print("taken off:", len(remove_hooks(layer, owner="user")), " left:", len(list_hooks(layer)))

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F12)
#
# <div lang="zh">
#
# 重跑只会再加一个，旧的还在，句柄却丢了。`list_hooks` 仍找得到它们（上面每行：种类、排第几个、函数），`remove_hooks` 能取下；
# `owner="user"` 指你自己挂的，不是 PyTorch 或 `hookedu` 的。
#
# </div>
# <div lang="en">
#
# Running again only adds one more: the old ones stay, and their handles are lost. `list_hooks` still finds them (each line above: kind,
# index in the queue, function), `remove_hooks` takes them off; `owner="user"` means yours, not those of PyTorch or `hookedu`.
#
# </div>
# </div>
#
# ## 8.7 一个有毛病的模型 · A model with faults
#
# <div lang="zh">
#
# 下面的 Transformer 层里放了几处毛病。`diagnose` 运行它一次，逐个说出来；`HookInspector` 还能取下选中的钩子，在一个副本上试试。
#
# **先猜**：`out_proj` 上的钩子触发几次？
#
# </div>
# <div lang="en">
#
# Some faults were put into the Transformer layer below. `diagnose` runs it once and names them; `HookInspector` can also take a chosen
# hook off: try it, it shows a copy.
#
# **Guess**: how often does the hook on `out_proj` fire?
#
# </div>


# %% tags=["F25"]
from hookedu import HookInspector, diagnose


def count(name, module, args, output):
    fired[name] += 1


def put_faults_in(model):
    for _ in range(3):
        model.linear1.register_forward_hook(partial(count, "linear1"))
    model.linear2.register_forward_hook(lambda module, args, output: kept.append(output))
    model.self_attn.out_proj.register_forward_hook(partial(count, "out_proj"))


block, x = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), torch.randn(2, 3, 8)
fired, kept = Counter(), []
put_faults_in(block)
with block.self_attn.register_forward_hook(partial(count, "self_attn")):
    block(x)
for name in ("linear1", "self_attn", "out_proj"):
    print(f"the hook on {name} fired: {fired[name]}")
for finding in diagnose(block, x):
    print("diagnose:", finding.id, finding.hook.path if finding.hook else "")
HookInspector(copy.deepcopy(block), x)  # a copy to play with, its hooks included

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F25)
#
# <div lang="zh">
#
# `out_proj` 从不触发（torch 2.15.0）：`MultiheadAttention` 只用它的权重，不调用它。挂到 `self_attn` 上。
#
# 另外几处：`linear1` 上叠了钩子（8.6）；`kept` 留着计算图（5.4 节）；`lambda` 存不了（8.8）。
#
# </div>
# <div lang="en">
#
# `out_proj` never fires (torch 2.15.0): `MultiheadAttention` uses its weights without calling it. Hook `self_attn` instead.
#
# Besides: hooks stacked on `linear1` (8.6), a graph held by `kept` (section 5.4), a `lambda` that cannot be saved (8.8).
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
# 写 `remove_leaked(model, handles)`：`handles` 里有句柄的钩子，还有人要；取下其余挂在模块上的，不论种类，`model` 自己身上的也算。
# 返回它们所在模块的名字（列表或元组，每个钩子一项，次序不限）。
# 句柄有 `.id`；`list_hooks` 给出的每个钩子有 `.id`、`.path` 和 `.remove()`。
#
# </div>
# <div lang="en">
#
# Write `remove_leaked(model, handles)`: hooks of `handles` are still needed; take all others off the modules, of any kind, `model`
# included. Return the names of their modules (a list or tuple, one entry per hook, any order). Handles have
# `.id`; hooks from `list_hooks` have `.id`, `.path`, `.remove()`.
#
# </div>


# %% exercise="08.3"
def remove_leaked(model, handles):
    """取下句柄不在 handles 里的钩子，返回它们所在模块的名字，例如 ["body.fc", ""]；"" 是 model 自己。

    Take off the hooks whose handle is not in handles; return their modules' names, such as ["body.fc", ""] ("" is model).
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
# 8.6 的毛病可以不犯：把句柄放在单元之外，注册之前先取下旧的。
#
# 写 `register_once(handles, name, module, hook)`：字典 `handles` 里若已有 `name`，先取下那个钩子；再把前向钩子 `hook` 挂到 `module`
# 上，句柄存进 `handles[name]`，并返回它。别的名字和别人的钩子都不要动。`name` 可以是空字符串；`hook` 在任何模式下都要触发，
# 它的返回值照样取代输出。
#
# </div>
# <div lang="en">
#
# The fault of 8.6 can be avoided: keep the handle outside of the cell, and take the old hook off before you register.
#
# Write `register_once(handles, name, module, hook)`. If the dictionary `handles` already has `name`, take that hook off; then register `hook` as a
# forward hook on `module`, store its handle in `handles[name]` and return it. Leave other names and other people's hooks alone.
# `name` may be empty; `hook` must fire in every mode, and what it returns still replaces the output.
#
# </div>


# %% exercise="08.4"
def register_once(handles, name, module, hook):
    """把 hook 挂到 module 上，取代 name 下旧的那个；句柄存进 handles[name] 并返回。

    Register hook on module in place of the old one under name; store the handle in handles[name] and return it.
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
# 给层和它的权重各挂一个钩子，然后用 `deepcopy` 复制。**先猜**：副本上有几个钩子？副本运行时，记到谁的列表里？
#
# 再下面的单元用 `torch.save` 保存 8.7 的 `block`，钩子还在上面。**先猜**：存得下来吗？
#
# </div>
# <div lang="en">
#
# A layer with a hook on it and one on its weight is copied with `deepcopy`. **Guess**: how many hooks does the copy have? When the copy runs,
# whose list does it write to?
#
# The cell after that saves the `block` of 8.7 with `torch.save`, its hooks still on. **Guess**: does that work?
#
# </div>

# %% tags=["F23"]
net, seen = nn.Linear(2, 2), []


def keep(module, args, output):
    seen.append(output.detach())


def kinds(model):
    return [hook.kind for hook in list_hooks(model)]


handles = [net.register_forward_hook(keep), net.weight.register_hook(lambda grad: None)]
twin = copy.deepcopy(net)
print("original:", kinds(net), " copy:", kinds(twin))
twin(torch.ones(1, 2))
print("only the copy ran, len(seen):", len(seen))
for handle in handles:
    handle.remove()
print("after the handles' remove(), original:", kinds(net), " copy:", kinds(twin))
taken = remove_hooks(twin, owner="user")


# %% tags=["F24"]
def try_to_save(what):
    try:
        torch.save(what, io.BytesIO())
        return "saved"
    except (AttributeError, pickle.PicklingError) as error:
        return f"{type(error).__name__}: {error}"


print("the model:    ", try_to_save(block))
print("state_dict(): ", try_to_save(block.state_dict()))
taken = remove_hooks(block, owner="user")
print("without hooks:", try_to_save(block))

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F23, F24)
#
# <div lang="zh">
#
# 副本带走模块的钩子，写进**原来的**列表，原来的句柄取不下它，要用 `remove_hooks`；参数的张量钩子则丢了。
#
# `torch.save(model)` 连钩子一起存，`lambda` 存不了：只存 `state_dict()`。
#
# </div>
# <div lang="en">
#
# The copy takes the module's hooks along and writes into the **original's** list, and the original's handle cannot take them off:
# use `remove_hooks`. Tensor hooks of parameters are lost.
#
# `torch.save(model)` includes hooks, and fails for a `lambda`: save the `state_dict()` only.
#
# </div>
# </div>
#
# ## 8.9 编译之后 · After compiling
#
# <div lang="zh">
#
# 模型编译并运行过一次，再挂钩子。**先猜**：它触发吗？有警告吗？（`backend="eager"` 不需要 C++ 编译器。）
#
# </div>
# <div lang="en">
#
# A model is compiled and has run once; then a hook is registered. **Guess**: does it fire? Is there a warning? (`backend="eager"` needs no
# C++ compiler.)
#
# </div>

# %% tags=["F22"]
net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)
seen = []


def keep(module, args, output):
    seen.append(output.detach())


compiled = torch.compile(net, backend="eager")
compiled(x)
with net[0].register_forward_hook(keep), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    compiled(x)
    print("registered after the first call, len(seen):", len(seen), " warnings:", len(caught))
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    print("the same under force_eager, len(seen):     ", len(seen))

torch.compiler.reset()  # forget what was compiled
seen.clear()
with net[0].register_forward_hook(keep):
    torch.compile(net, backend="eager")(x)
    print("registered before compiling, len(seen):    ", len(seen))
torch.compiler.reset()

# %% [markdown]
# <div class="mistake">
#
# **常见错误 · Common mistake** (F22)
#
# <div lang="zh">
#
# 编译好的代码不再查看有没有新钩子，也不警告（torch 2.15.0）。先挂再编译，或者用 `set_stance("force_eager")`，
# 它暂时绕开编译好的代码。
#
# </div>
# <div lang="en">
#
# Compiled code never looks for new hooks, nor warns (torch 2.15.0). Register before compiling, or use
# `set_stance("force_eager")`, which sets compiled code aside for a while.
#
# </div>
# </div>
#
# ### 练习 08.5：数一数谁在运行 · Exercise 08.5: Count what runs
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 写 `count_calls(model, x)`：运行一次 `model(x)`（它本身，不是副本，输出不改），返回字典：类名（`type(module).__name__`）→ 这类
# 模块被调用的次数。放在普通列表里、`model.modules()` 看不见的也要算，所以用全局钩子。模型抛出异常时，也要取下它，
# 并让这个异常传出去；别人的钩子和模型的模式都不变。
#
# </div>
# <div lang="en">
#
# Write `count_calls(model, x)`: run `model(x)` once (no copy, no output changed); return a dictionary from class names
# (`type(module).__name__`) to how often their modules were called. Those in a plain list, unseen by `model.modules()`, count
# too: use a global hook. Take it off even after an exception, which comes through unchanged; leave other hooks and modes alone.
#
# </div>


# %% exercise="08.5"
def count_calls(model, x):
    """运行 model(x)，返回每类模块被调用的次数，例如 {"Model": 1, "Linear": 3}；不留下全局钩子。

    Run model(x); return how often modules of each class were called, such as {"Model": 1, "Linear": 3}; leave no hook.
    """
    ### BEGIN SOLUTION
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts
    ### END SOLUTION


# %% check="08.5"
check("08.5", count_calls)

# %% [markdown]
# ## 8.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 前向传播：`forward_pre`、`forward`；反向传播：`output_grad`、`backward_pre`、参数的两个、`backward`、`input_grad`。
# 2. 全局钩子先于模块自己的；用完马上取下。
# 3. 名字放在钩子里，不放在模块上。
# 4. 句柄放在单元之外，注册前先取下旧的。
# 5. 钩子不触发、触发太多：先看 `list_hooks`，再用 `diagnose`。
#
# </div>
# <div lang="en">
#
# 1. Forward: `forward_pre`, `forward`; backward: `output_grad`, `backward_pre`, the parameter's two, `backward`, `input_grad`.
# 2. Global hooks fire before a module's own; take them off as soon as you are done.
# 3. The name goes into the hook, not onto the module.
# 4. Keep the handle outside of the cell, and take the old hook off before you register.
# 5. A hook never fires, or too often: look at `list_hooks`, then `diagnose`.
#
# </div>

# %% [markdown]
# ## 8.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 模块的 <code>backward</code> 钩子触发时，权重的 <code>.grad</code> 写好了吗？</summary>输入需要梯度时，写好了；否则还没有（7.3 节）。</details>
# <details><summary>2. 重跑一个挂钩子的单元，怎样不让钩子叠加？</summary>句柄存在单元之外，先 <code>remove()</code> 旧的。</details>
# <details><summary>3. 说出两个原因，为什么挂好的钩子从不触发。</summary>模块没有被调用（如 <code>out_proj</code>）；模型先编译过，钩子后挂。</details>
# </div>
# <div lang="en">
# <details><summary>1. When a module's <code>backward</code> hook fires, has the weight's <code>.grad</code> been written?</summary>Yes, where the input needs a gradient; otherwise not yet (section 7.3).</details>
# <details><summary>2. A cell that registers a hook is run again. How do you keep hooks from stacking?</summary>Store the handle outside of the cell; <code>remove()</code> the old one first.</details>
# <details><summary>3. Give two reasons why a registered hook never fires.</summary>Its module is never called (such as <code>out_proj</code>); the model was compiled before the hook came.</details>
# </div>

# %% [markdown]
# ## 8.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# PyTorch 自己的 `FlopCounterMode` 要知道眼下是哪个模块在运行。它用的 `ModuleTracker` 挂全局钩子，离开 `with` 就取下：搜索
# `torch/utils/module_tracker.py`。下面是你到目前为止的进度。
#
# </div>
# <div lang="en">
#
# PyTorch's own `FlopCounterMode` has to know which module is running right now. Its `ModuleTracker` registers global hooks and takes them off when
# the `with` is left: search for `torch/utils/module_tracker.py`. Below is your progress so far.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
