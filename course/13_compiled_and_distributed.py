# %% tags=["setup"]
import inspect
import logging
from contextlib import suppress

import torch
import torch._dynamo  # torch.compile needs it; loading takes seconds, better here than later
import torch.distributed as dist
from torch import nn

from hookedu import LanguageToggle, check, guess, hint, progress, solution
from hookedu.models.ranks import RanksFailed, run_ranks

LanguageToggle()

# %% [markdown]
# ## 13.1 编译：三个意外 · Compiled: three surprises
#
# <div lang="zh">
#
# `torch.compile` 会读懂 `forward` 的 Python 代码，把它换成一份更快的代码。可是这样一换，钩子不一定还在里面。
#
# 8.9 节就碰到过：模型编译过、运行过以后，我们才给一个原来没有钩子的层挂上钩子。编译好的代码是照没有钩子的层编的，所以不理会它。后来要是重新编译，例如批的大小变了，也只有新编译出来的那一份里才有这个钩子。
#
# 那时有两个办法：要么先挂钩子再编译，要么用 `set_stance("force_eager")`，让模型暂时照普通的 Python 运行。
#
# 那么，先挂钩子就保险了吗？我们拿两个模型来试，它们是同一个类的，各层也一样。`one` 和 8.9 节一样，先编译、运行；`two` 先挂钩子，再编译。**先猜**：`two` 的钩子触发不触发？然后再看看，挂在编译好的模型**自己**身上的钩子又怎样。
#
# </div>
# <div lang="en">
#
# To make a model faster, `torch.compile` reads the Python code of `forward` and puts faster code in its place. But your
# hooks are not always part of this new code.
#
# You saw an example in section 8.9. A model was compiled and run, and only then did we put a hook on one of its layers.
# The compiled code was made for a layer without hooks, so it ignores a hook that comes later. Only code that is compiled
# after that, for example for another batch size, contains the hook.
#
# You learned two ways out. Either you register the hook before you compile, or you use `set_stance("force_eager")`,
# which makes the model run as plain Python for a while.
#
# Are you safe, then, if you register the hook first? We try it with two models of the same class, with the same layers.
# `one` is compiled and run first, as in section 8.9. `two` gets its hook before it is compiled. **Guess first**: does
# the hook of `two` fire? Then see whether a hook on the compiled model **itself** fires.
#
# </div>

# %%
guess("13.a")

# %% tags=["F22", "F46"]
one, two = (nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(2))
seen, x = [], torch.ones(1, 2)


def keep(module, args, output):
    seen.append(output.detach())


compiled = torch.compile(one, backend="eager")
compiled(x)
with one[0].register_forward_hook(keep):
    compiled(x)
    print("registered after the first call, len(seen):", len(seen))
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    print("the same under force_eager, len(seen):     ", len(seen))
seen.clear()
with two[0].register_forward_hook(keep):
    output = torch.compile(two, backend="eager")(x)
    print("another model, registered before, len(seen):", len(seen))
    torch.compiler.reset()  # forget what was compiled
    torch.compile(two, backend="eager")(x)
print("the same after reset(), len(seen):          ", len(seen))
print("before reset(), was the output right?       ", torch.equal(output, two(x)))

# %% tags=["F22"]
seen.clear()
with compiled.register_forward_hook(keep):
    compiled(x)
print("on the compiled model itself, len(seen):", len(seen))

# %% [markdown] tags=["F22"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 编译的是类的代码，而同一个类、构造也相同的模型共用这份代码。编译 `one` 的时候还没有钩子，所以 `two` 运行的就是那份没有钩子的代码（torch 2.15.0）。想要稳妥，就先调用 `torch.compiler.reset()`，它会忘掉以前编译的代码。
#
# 结果倒一直是对的，因为每个模型用的都是自己的权重。
#
# 挂在编译好的模型自己身上的钩子照常触发，因为编译好的代码外面还包着一层，钩子就挂在那一层上。
#
# </div>
# <div lang="en">
#
# What gets compiled is the code of the class, and models of that class that are built alike share it. When `one` was
# compiled there was no hook, so `two` runs that code without a hook (torch 2.15.0). To be safe, first call
# `torch.compiler.reset()`, which forgets what was compiled.
#
# The results were right all the time, because each model uses its own weights.
#
# A hook on the compiled model itself fires as usual, because it is on a layer around the compiled code.
#
# </div>
# </div>

# %% [markdown]
# <div lang="zh">
#
# 为什么编译好的代码不理会挂晚了的钩子？每次调用之前，它要检查自己所依据的东西有没有变，变了就要重新编译。可是检查要花时间，所以默认有一样不检查：原来没有钩子的层，现在是不是还没有。这就是设置 `skip_nnmodule_hook_guards` 的意思。把它设成 `False`，这一样也会检查，`one` 上挂晚了的钩子就触发了，代价是每次调用多花一点时间。
#
# </div>
# <div lang="en">
#
# Why does compiled code ignore a hook that comes late? Before each call, it checks whether the things that it relies on
# are still the same, because otherwise the model has to be compiled anew. But checks take time, so one of them is left
# out by default: whether a layer without hooks still has none. This is what the setting `skip_nnmodule_hook_guards`
# means. If you set it to `False`, hooks are checked as well. Then the late hook on `one` fires, at the price of a
# little time in every call.
#
# </div>

# %% tags=["F22"]
torch.compiler.reset()
seen.clear()
with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
    checked = torch.compile(one, backend="eager")
    checked(x)
    with one[0].register_forward_hook(keep):
        checked(x)
print("a late hook, with hooks checked, len(seen):", len(seen))
torch.compiler.reset()

# %% [markdown]
# <div lang="zh">
#
# 假设钩子挂得及时，已经编译进去了，这样就没事了吗？编译好的代码是有前提的：它所依据的东西不变，它才能用。可是我们的钩子每次调用都要改一样东西：`seen.append(...)` 让 `seen` 变长。
#
# 这要付出多大的代价？数一数编译了几次就知道。每编译一次，编译出来的图都会交给一个 `backend`，所以我们自己写一个 `backend`，把收到的图都留下来。
#
# 我们先后挂两种钩子，各调用模型 5 次。第一种就是 `keep`。第二种是 `torch.compiler.disable(keep)`，它做的事一样，只是留在编译之外。**先猜**：用 `keep` 做钩子，5 次调用一共编译几次？
#
# </div>
# <div lang="en">
#
# Suppose that the hook was registered in time and has been compiled in. Is all well then? Compiled code is valid only
# as long as everything that it relies on stays the same. But our hook makes a change in every call: its
# `seen.append(...)` makes the list `seen` longer.
#
# To see what that costs, we count how often the model is compiled. Every time, the finished graph is handed to a
# function, the `backend`. So we write a `backend` of our own that keeps each graph, and in the end we only have to
# count them.
#
# We try two hooks, one after the other, and call the model 5 times with each. The first is `keep` itself. The second is
# `torch.compiler.disable(keep)`, which does the same work but stays outside of the compiled code. **Guess first**: with
# `keep`, how many times is the model compiled during the 5 calls?
#
# </div>

# %%
guess("13.b")

# %% tags=["F22", "F46"]
graphs = []


def backend(graph, inputs):  # gets what was compiled, returns what is to run
    graphs.append(graph)
    return graph.forward


def run(hook, calls):
    torch.compiler.reset()
    seen.clear(), graphs.clear()
    expected = one(x)
    with one[0].register_forward_hook(hook):
        again = torch.compile(one, backend=backend)
        right = all([torch.equal(again(x), expected) for _ in range(calls)])
    print(f"{calls} calls, compiled {len(graphs)}x, fired {len(seen)}x, results right: {right}")


run(keep, 5)
times = len(graphs)
run(torch.compiler.disable(keep), 5)
print("in the graph:", [node.name for node in graphs[0].graph.nodes if node.op == "call_function"])

# %% [markdown]
# <div lang="zh">
#
# 用 `keep` 做钩子，每次调用都重新编译，因为这期间 `seen` 又变长了。把 `keep` 留在编译之外，就只编译 1 次，什么也没漏掉，钩子照样次次触发。
#
# 不过，把钩子留在外面也有代价。看最后一行：图里只剩 `linear`，`ReLU` 不见了。
#
# 为什么？不许编译的钩子在哪里，编译好的代码就在哪里断成两截。而 `Sequential` 是用一个循环来运行各层的，断口正好落在这个循环里，于是整个循环都照普通的 Python 运行，`ReLU` 也不例外。这里还编译着的只剩一小段：挂钩子的那一层里，钩子之前的部分。
#
# 如果循环里的层是你自己写的类，它们的代码还会编译，只是各编译各的。
#
# 这点代价要紧吗？如果你只看一眼，看完就取下钩子，那就不要紧。如果钩子要一直挂着，就先掂量一下。
#
# </div>
# <div lang="en">
#
# With `keep` as the hook, every call compiled the model anew, because the list `seen` was longer than before. With
# `keep` outside of the compiled code, there was only 1 compilation, and we missed nothing, because the hook fired just
# as often.
#
# But keeping the hook outside has its price. You can see it in the last line: only `linear` is left in the graph, and
# the `ReLU` is gone.
#
# Why? Since the hook must not be compiled, the compiled code breaks in two where the hook stands. Here that is inside
# the loop in which a `Sequential` runs its layers. So the whole loop runs as plain Python, and the `ReLU` with it. Only
# one small part stays compiled: what the layer with the hook does before the hook.
#
# If the loop held layers of a class of your own, they would still be compiled, each by itself.
#
# Does this matter? If you only want to look once and then take the hook off, it does not. But if the hook is to stay,
# think about the price first.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 用 `keep` 那样的钩子，5 次调用就编译了 5 次。难道调用多少次，就要编译多少次？我们调用 12 次看看。**先猜**：也会编译 12 次吗？
#
# </div>
# <div lang="en">
#
# With a hook like `keep`, 5 calls compiled the model 5 times. Does it go on in this way, however often we call the
# model? Let us call it 12 times. **Guess first**: will it be compiled 12 times as well?
#
# </div>

# %%
guess("13.c")

# %% tags=["F46"]
torch._logging.set_logs(dynamo=logging.ERROR)  # hides a long warning that names the limit
run(keep, 12)
print("torch._dynamo.config.recompile_limit:", torch._dynamo.config.recompile_limit)
torch.compile(nn.Linear(2, 2), backend=backend)(x)  # another class
print("compiled so far, with a separate Linear:", len(graphs))
torch._logging.set_logs()
torch.compiler.reset()

# %% [markdown] tags=["F46"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 编译到第 8 次，就到了上限 `recompile_limit`，这个类的代码以后不再编译。上限是 `torch.nn` 里各个类共用的，所以连单独的 `Linear` 也编译不了（torch 2.15.0）。一次调用如果那 8 份代码都不适用，就照普通的 Python 运行。`seen` 只会越来越长，所以以后的调用全是这样，编译也就没有了好处。
#
# 这种事很难发现：钩子次次触发，结果也都对，告诉你的只有一条警告，而我们在上面把它藏起来了。
#
# </div>
# <div lang="en">
#
# After compiling 8 times, the limit `recompile_limit` is reached, and the code of this class is not compiled any more.
# Classes of `torch.nn` share this limit, so not even a `Linear` by itself is compiled now (torch 2.15.0).
#
# If none of the 8 versions fits a call, the call runs as plain Python. Because `seen` only grows, this happens in every
# call from then on, and nothing is gained by compiling.
#
# This is hard to notice, because the hook fires in every call and the results are right. Only one warning tells you,
# and we have hidden it above.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 13.1：编译之后，钩子照样触发 · Exercise 13.1: A hook that compiling cannot silence
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 你已经见过编译给钩子添的两种麻烦：钩子可能不触发，也可能让每次调用都重新编译。请写一个函数，把两种都避开。有了它，编译好的模型里的一层，你想看多久就看多久。
#
# 这个函数是 `watched(model, name, hook)`。它用 `torch.compile(model, backend="eager")` 编译 `model`，钩子就在名为 `name` 的那一层上。它返回 `(compiled, handle)`，前者是编译好的模型，后者是钩子的句柄。
#
# - 以后每次调用 `compiled`，只要运行了那一层，`hook(module, args, output)` 就触发一次。哪怕同一个类的另一个模型以前编译过，也是这样。
# - 钩子返回的若不是 `None`，就照常取代那一层的输出。
# - 钩子里的列表不管变得多长，第一次调用之后都不再编译。
# - 调用 `handle.remove()`，钩子就取下来了。
#
# </div>
# <div lang="en">
#
# You would like to watch a layer of a compiled model for as long as you like. As you have seen, compiling can get in
# the way of this in two ways: the hook may not fire, or every call may compile the model anew. Write a function that
# avoids both.
#
# The function `watched(model, name, hook)` puts the hook on the layer called `name`, and compiles `model` by
# `torch.compile(model, backend="eager")`. It returns `(compiled, handle)`: the compiled model, and the handle that
# takes the hook off again.
#
# - Whenever a call of `compiled` runs that layer, `hook(module, args, output)` fires once. This must hold even if
#   another model of the same class has been compiled before, whose code your model might share.
# - Nothing is compiled anew after the first call, however long the lists in the hook grow. Otherwise compiling would
#   soon be of no use, as you have just seen.
# - What the hook returns replaces the output of the layer as usual, unless it is `None`. So the hook may also change
#   what it watches.
# - When you have seen enough, `handle.remove()` takes the hook off.
#
# </div>


# %% exercise="13.1"
def watched(model, name, hook):
    """返回 (compiled, handle)：编译好的模型，每次运行名为 name 的层都触发 hook，不用重新编译。

    Return (compiled, handle): hook fires whenever the layer called name runs, without recompiling.
    """
    ### BEGIN SOLUTION
    torch.compiler.reset()  # what was compiled for another model of the class has no hook
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle
    ### END SOLUTION


# %% check="13.1"
check("13.1", watched)

# %% [markdown]
# ## 13.2 只看一眼 · Just one look
#
# <div lang="zh">
#
# 有时候模型早就编译好，正在使用，你只想看一眼某一层，又不想惊动它：不要重新编译，也不要留下痕迹。这时候 `set_stance("force_eager")` 最合适。它是上下文管理器，在它里面，调用照普通的 Python 运行，每次都会去找钩子，所以钩子会触发。出来以后，下一次调用接着用原来编译好的代码，不用重新编译。
#
# </div>
# <div lang="en">
#
# Sometimes a model was compiled long ago and is in use, and you only want to look at one of its layers once. This
# should not disturb the model: nothing should be compiled anew, and no trace should be left.
#
# For this, `set_stance("force_eager")` is the best choice. You use it as a context manager. Inside it, calls run as
# plain Python, which looks for hooks in every call, so your hook fires. When you leave it, the next call uses the code
# that was compiled before, and nothing has to be compiled anew.
#
# </div>

# %% [markdown]
# ### 练习 13.2：看进编译好的模型 · Exercise 13.2: Look into a compiled model
#
# ●●● · 8 min
#
# <div lang="zh">
#
# 一个编译好的模型正在使用，你想知道其中一层对某个输入给出了什么，又不能惊动模型。
#
# 写 `layer_output(compiled, name, x)`，让它告诉你。其中 `compiled` 已经编译过、运行过。模型收到输入 `x` 的时候，名为 `name` 的那一层输出了什么，函数就返回什么，不连计算图。这一层用 `compiled.get_submodule(name)` 取。
#
# - 这一层后面可能有就地的操作，会改写它的输出。要返回的是改写之前的。
# - 不要重新编译，不要留下钩子，不要改 `training`，调用者用 `set_stance` 设定的也要照旧。就算模型出了异常，这些也要做到。
# - 之后，编译好的代码照常运行。
#
# </div>
# <div lang="en">
#
# A compiled model is in use, and you want to know what one of its layers puts out for a certain input. Whoever uses the
# model should not notice that you have looked.
#
# Write the function `layer_output(compiled, name, x)`, where `compiled` is a model that has been compiled and has run.
# The function gives the input `x` to the model, and returns what the layer called `name` puts out meanwhile, without
# the computation graph. You get this layer with `compiled.get_submodule(name)`.
#
# - Return the output as the layer gave it. This needs care, because the layer that follows may work in place and
#   overwrite it.
# - Do not compile the model again, because compiling takes time.
# - Leave no hook behind, and change neither `training` nor what the caller chose by `set_stance`, because each of these
#   would affect later runs.
# - All of the above must hold even if the model raises an exception.
# - Afterwards the compiled code must run as before, because the model is still in use.
#
# </div>


# %% exercise="13.2"
def layer_output(compiled, name, x):
    """返回编译过的模型里名为 name 的层的输出，例如 layer_output(compiled, "encoder.fc", x)。

    Return what a layer of a compiled model puts out: layer_output(compiled, "encoder.fc", x).
    """
    ### BEGIN SOLUTION
    seen = {}

    def keep(module, args, output):
        seen["output"] = output.detach().clone()  # what comes after it may be in place

    layer = compiled.get_submodule(name)
    with layer.register_forward_hook(keep), torch.compiler.set_stance("force_eager"):
        compiled(x)
    return seen["output"]
    ### END SOLUTION


# %% check="13.2"
check("13.2", layer_output)

# %% [markdown]
# ## 13.3 两个进程 · Two processes
#
# <div lang="zh">
#
# 数据很多的时候，可以让几个进程分担训练。用 `DistributedDataParallel`（DDP）时，每个进程都有模型的一份拷贝，开始时都收到进程 0 的权重。
#
# 之后各个进程算自己的那份数据，算出来的梯度各不相同。不过反向传播的时候，DDP 会把它们取平均，每份拷贝都照这个平均走一步。开始时一样，每一步也一样，所以每走一步之后，各份拷贝还是一样的。
#
# 为了看个明白，`run_ranks` 真的启动 2 个进程，返回它们各自打印的内容。进程之间用 gloo 通信，不需要显卡。要等几秒，因为每个进程都要导入 torch。
#
# 每个进程有一个编号，叫 rank，这里是 0 或 1。自己是几号，一共有几个进程，用哪个文件碰头，脚本都从 `sys.argv` 得知。
#
# </div>
# <div lang="en">
#
# When there is a lot of data, several processes can share the work of training. With `DistributedDataParallel` (DDP)
# each process has a copy of the model, and all copies start with the weights of process 0.
#
# Each process then works on its own data, so the gradients differ from one process to the next. But during backward DDP
# averages them, and every copy takes its step with this average. Since all copies start with the same weights and take
# the same steps, they are still the same after every step.
#
# To let you see this at work, `run_ranks` starts 2 real processes and returns what each of them has printed. The
# processes talk to each other through gloo, which needs no GPU. You will have to wait some seconds, because each
# process imports torch.
#
# To tell the processes apart, each of them has a number, which is called its rank. Here it is 0 or 1. The script reads
# its own rank from `sys.argv`, together with the number of processes and the file through which the processes find each
# other.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 平均是在你的钩子之前取，还是在它们之后取？我们在参数上挂两个钩子看看：一个张量钩子，一个 post-accumulate 钩子，后者还当场更新权重。进程 1 的输入是进程 0 的 10 倍，这样两边的梯度才分得清。
#
# **先猜**：两个钩子看到的是自己这个进程的梯度，还是平均后的？然后再看看，两个进程的权重是不是还一样。
#
# </div>
# <div lang="en">
#
# Does DDP take the average before your hooks run or after them? To find out, we put two hooks on the parameter, a
# tensor hook and a post-accumulate hook, and the latter also updates the weights on the spot. The input of rank 1 is 10
# times that of rank 0, so that we can tell their gradients apart.
#
# **Guess first**: do the hooks see the gradient of their own rank, or the average? Then see whether both ranks still
# have the same weights.
#
# </div>

# %% tags=["F47", "F48", "F49"]
start = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, n = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=sys.argv[3], rank=rank, world_size=n)
layer = torch.nn.Linear(2, 1, bias=False)
torch.nn.init.zeros_(layer.weight)
model = DistributedDataParallel(layer)
x = torch.tensor([[1.0, 2.0]]) * 10**rank
"""

# %%
guess("13.d")

# %%
script = """
def update(weight):
    print("  post-accumulate hook:", weight.grad.tolist())
    weight.data -= weight.grad  # a step of gradient descent, in the hook
layer.weight.register_hook(lambda grad: print("  tensor hook:         ", grad.tolist()))
layer.weight.register_post_accumulate_grad_hook(update)
model(x).sum().backward()
print("  weight.grad in the end:", layer.weight.grad.tolist())
print("  weight, which was 0:   ", layer.weight.tolist())
dist.destroy_process_group()
"""
for rank, printed in enumerate(run_ranks(start + script)):
    print(f"rank {rank}\n{printed}", end="")

# %% [markdown]
# <div lang="zh">
#
# 两个钩子看到的，都是自己这个进程的梯度：一边是 `[1, 2]`，一边是 `[10, 20]`。等它们都触发过了，梯度才取平均，最后两边都是 `[5.5, 11]`。
#
# 所以，如果你在这样的钩子里裁剪，裁的是各个进程自己的梯度，而不是平均后的梯度。
#
# 在这样的钩子里更新权重就更糟了。每个进程都照自己的梯度走了一步，原来一样的两份拷贝从此各走各的：第一个权重一边是 `-1`，一边是 `-10`。而且没有任何报错，因为 DDP 只平均梯度，不比较权重。
#
# </div>
# <div lang="en">
#
# Both hooks see the gradient of their own rank, `[1, 2]` in one process and `[10, 20]` in the other. The gradients are
# averaged only after the hooks, and in the end both processes have `[5.5, 11]`.
#
# This matters if you clip in such a hook, because you then clip each rank's own gradient, and not the average.
#
# Updating the weights in a hook of this kind is even worse, because each rank then uses its own gradient for the step.
# The copies were the same before, but now the first weight is `-1` in one process and `-10` in the other. From there on
# the copies drift apart. You get no error, because DDP averages gradients but does not compare weights.
#
# </div>

# %% [markdown]
# ## 13.4 通信钩子 · A communication hook
#
# <div lang="zh">
#
# 发送梯度要花时间，你也许想少发些字节，或者换一种办法取平均。这一步你可以自己来定，因为它有自己的钩子，用 `model.register_comm_hook(group, hook)` 注册。
#
# DDP 不是一个一个地发送梯度。为了少发几次，它把许多梯度首尾相接，放进一个桶，`bucket.buffer()` 就是这个长长的张量。一个桶里的梯度齐了，它就调用 `hook(group, bucket)`。
#
# 这里的 `group` 代表互相通信的各个进程。DDP 把它原样交给钩子，文档里管它叫 `state`。
#
# 钩子返回的不是平均值，而是一个 Future：它现在还没有值，将来会装着平均值。这样做省时间，因为通信的时候，反向传播可以接着算。
#
# </div>
# <div lang="en">
#
# Sending gradients takes time, so you may want to send fewer bytes than DDP does. Or you may want to average in a way
# of your own. Both are possible, because this step has a hook, which you register by
# `model.register_comm_hook(group, hook)`.
#
# DDP does not send gradients one by one, because that would take very many messages. Instead it puts many gradients end
# to end into a bucket, and `bucket.buffer()` is this long tensor. When all gradients of a bucket are there, DDP calls
# `hook(group, bucket)`.
#
# Here `group` stands for the processes that talk to each other. DDP hands it to your hook just as you gave it. In the
# documentation it is called `state`.
#
# To save time, backward goes on while the processes communicate. So when the hook returns, the average is not there
# yet. That is why it returns a Future instead: an object that has no value now and will hold the average later.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 下面的钩子求的是平均。它先把一个桶里的梯度除以进程数，再调用 `all_reduce`，把各个进程的张量就地加起来。因为写了 `async_op=True`，这次调用不等结果就返回。
#
# 那么结果到了以后做什么？把一个函数交给 `.then(...)`，结果一到就调用它。它从 `done.value()` 里取出结果。那是一个列表，因为一次通信可以有几个张量，这里只有我们发送的一个。
#
# 下面的模型有 4 层，走三步。**先猜**：每一步里，钩子被调用几次？
#
# </div>
# <div lang="en">
#
# The hook below computes the average. It divides the gradients of a bucket by the number of processes and then calls
# `all_reduce`, which adds up the tensors of all ranks in place. With `async_op=True`, this call returns at once,
# without waiting for the sum.
#
# The sum arrives later. To say what should happen then, we pass a function to `.then(...)`, and it is called as soon as
# the sum is there. It finds the sum in `done.value()`. This is a list, because one communication can carry several
# tensors, and here it holds only the one that we sent.
#
# The model below has 4 layers and takes three steps. **Guess first**: how often is the hook called in each step?
#
# </div>

# %%
guess("13.e")

# %% tags=["F47"]
script = """
def average(group, bucket):
    names = [f"layer {i}" for p in bucket.parameters() for i in range(4) if p is net[i].weight]
    print("    bucket", bucket.index(), "with", names)
    sent = bucket.buffer() / group.size()  # the number of processes
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])

net = torch.nn.Sequential(*(torch.nn.Linear(300, 300, bias=False) for _ in range(4)))
model = DistributedDataParallel(net, bucket_cap_mb=0.8)  # full at 0.84 MB; each gradient has 0.36
model.register_comm_hook(dist.group.WORLD, average)  # WORLD: all processes
for step in range(3):
    print("  step", step)
    model(torch.ones(1, 300)).sum().backward()
dist.destroy_process_group()
"""
printed = run_ranks(start + script)[0]  # both print the same
print(printed)

# %% [markdown] tags=["F47"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 钩子不是每个参数调用一次，也不是每一步调用一次，而是每个**桶**调用一次。
#
# 第一步里，DDP 还不知道梯度会按什么次序到，所以四层都在一个桶里。看过一次之后，它默认会照真实的次序，从最后一层开始，重新分桶（torch 2.15.0）。
#
# 这里三个 0.36 MB 的梯度就装满一个桶，所以从第二步起有两个桶：一个装第 3、2、1 层，一个装第 0 层。
#
# 因此，如果你在钩子里数它被调用了几次，把这个数当作步数，从第二步起就错了。按 `bucket.index()` 存东西也不行，因为第 0 个桶里已经不是原来那几层。
#
# </div>
# <div lang="en">
#
# The hook is called once for each **bucket**, not once for each parameter or once for each step.
#
# In the first step, DDP does not know yet in which order gradients arrive, and all four layers share a bucket. Once it
# has seen them, by default it builds its buckets anew in the real order, beginning with the last layer (torch 2.15.0).
#
# Three gradients of 0.36 MB fill a bucket here, so from the second step on there are two: one for layers 3, 2 and 1,
# and one for layer 0.
#
# A hook that counts its calls as steps is therefore wrong from the second step on. Storing things by `bucket.index()`
# goes wrong as well, because bucket 0 no longer holds the same layers.
#
# </div>
# </div>

# %% [markdown]
# <div lang="zh">
#
# 通信常常是一步里最慢的部分，所以少发一些很划算。梯度是 float32，如果用 float16 发送，就只有一半的字节。可是 float16 有个上限，最大只能到 65504。
#
# 平均没有超过这个上限，就不会出事了吗？我们让两个进程的梯度都是 40000，那么平均也是 40000，float16 装得下。下面用三种写法求这个平均，最后一种是 `AVG`，让 `all_reduce` 自己去求。**先猜**：哪几种写法得到 40000？
#
# </div>
# <div lang="en">
#
# Communication is often the slowest part of a step, so it pays to send less. Gradients are float32, and sent as float16
# they take half of the bytes. But float16 has a limit: its largest number is 65504.
#
# Can this limit do harm although the average itself is below it? We try it with a gradient of 40000 in both ranks, so
# their average is 40000 as well, which float16 can hold. Below, we compute this average in three ways. In the last one,
# `AVG`, we leave it to `all_reduce` to divide. **Guess first**: which of the three ways give 40000?
#
# </div>

# %%
guess("13.f")

# %% tags=["F48"]
script = """
grad = torch.tensor([40000.0]).half()
total = grad.clone()
dist.all_reduce(total)
print("  sum, then divide:", (total / n).item())
part = grad / n
dist.all_reduce(part)
print("  divide, then sum:", part.item())
total = grad.clone()
dist.all_reduce(total, op=dist.ReduceOp.AVG)
print("  AVG:             ", total.item())
dist.destroy_process_group()
"""
printed = run_ranks(start + script)[0]
print(printed)

# %% [markdown] tags=["F48"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 如果先求和，`40000 + 40000` 超出上限，成了 `inf`，再怎么除也回不来。gloo 的 `AVG` 也是先求和（torch 2.15.0）。如果先除以进程数，再求和，得到的和就是平均，这里装得下。
#
# </div>
# <div lang="en">
#
# If the sum comes first, `40000 + 40000` is already `inf`, and no division brings it back. The `AVG` of gloo adds up
# first as well (torch 2.15.0). If you divide by the number of processes before you sum, the sum is the average, which
# fits here.
#
# </div>
# </div>

# %% [markdown]
# ### 练习 13.3：只传一半的字节 · Exercise 13.3: Half the bytes
#
# ●●●● · 10 min
#
# <div lang="zh">
#
# 通信慢的时候，少传一半的字节很划算。PyTorch 自带的 `fp16_compress_hook` 就这样做，现在你自己来写一个。
#
# 写 `half_hook(group, bucket)`。它像 `average` 一样，返回平均梯度的 Future。不同的是，它用 float16 发送，字节只有一半，结果到了再变回 float32。
#
# - `inf` 和 `nan` 要照样传过去，因为看到它们，才知道训练出了问题。
# - 上一个桶还没传完，DDP 就可能为下一个桶又调用你的钩子。所以一次调用还要用的东西，另一次绝不能改写。
# - 当心 float16 的范围。即使平均装得下，大的梯度也可能超出范围，几个进程的和也可能超出。
#
# 检查时不启动进程。
#
# </div>
# <div lang="en">
#
# When communication is slow, it pays to send only half as many bytes. PyTorch has a hook that does this,
# `fp16_compress_hook`, and now you write one yourself.
#
# Your hook is `half_hook(group, bucket)`. Like `average`, it returns a Future of the averaged gradients. The difference
# lies in what travels between the processes: your hook sends float16, which takes half of the bytes, and turns the
# result back into float32 when it has arrived.
#
# - Watch the range of float16, because what does not fit becomes `inf`. Large gradients may exceed it, and so may sums
#   over several ranks, even where their averages fit.
# - A call must never overwrite anything that another call still needs, because DDP may call the hook again while an
#   earlier bucket is still being sent.
# - Pass on `inf` and `nan` as they are, because they are the sign by which you notice that training went wrong.
#
# The check itself does not start any processes.
#
# </div>


# %% exercise="13.3"
def half_hook(group, bucket):
    """用 float16 发送，返回装着平均梯度（float32）的 Future。

    Send float16; return a Future that holds the averaged gradients (float32).
    """
    ### BEGIN SOLUTION
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())
    ### END SOLUTION


# %% check="13.3"
check("13.3", half_hook)

# %% [markdown]
# ## 13.5 切成片的参数 · Parameters in pieces
#
# <div lang="zh">
#
# 用 DDP 的时候，每个进程都有整个模型。如果模型大得装不下，怎么办？可以把每个参数切开，一个进程只留一片。`fully_shard`（FSDP2）做的就是这件事，切开的参数叫 `DTensor`。
#
# 它自己就是用钩子做的。一层运行之前，前置钩子把各片凑齐；运行之后，前向钩子又把别的片放掉，只留自己的一片。默认只有最外层的模块例外，它自己的参数要完整地留到反向传播。
#
# 那么你自己的钩子看到的，是整个参数，还是其中一片？我们启动两个进程，看第一层的权重，它是 6×4。要看的有三处：你的前置钩子里，你的前向钩子里，还有反向传播之后的 `.grad`。
#
# 我们还在这个参数上挂了两个钩子，一个张量钩子，一个 post-accumulate 钩子。**先猜**：这两个里，哪一个会触发？
#
# </div>
# <div lang="en">
#
# Under DDP every process holds the whole model. When a model is too large for that, each parameter can be cut up, so
# that a process keeps only one piece of it. This is what `fully_shard` (FSDP2) does. A parameter in pieces is called a
# `DTensor`.
#
# But a layer needs its whole weight when it runs, so the pieces have to come together. `fully_shard` does this with
# hooks of its own. Before a layer runs, a pre-hook gathers the pieces. Afterwards, a forward hook lets go of
# all but the process's own piece.
#
# By default, only the outermost module differs: it keeps its own parameters whole until backward.
#
# Do your own hooks see the whole parameter or only a piece? To find out, we take two processes and look at the weight
# of the first layer, which is 6×4, in your own pre-hook and in your forward hook. After backward, we look at its `.grad`.
#
# We also put two hooks on the parameter itself, a tensor hook and a post-accumulate hook. **Guess first**: which of
# these two fires?
#
# </div>

# %% tags=["F49"]
sharding = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

def look(when, weight):
    here = weight.to_local() if hasattr(weight, "to_local") else weight
    print(f"  {when}: {type(weight).__name__} {tuple(weight.shape)}, here {tuple(here.shape)}")

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 6, bias=False), torch.nn.Linear(6, 1, bias=False))
mesh = init_device_mesh("cpu", (n,))
for module in [*net, net]:  # every layer for itself, then the rest
    fully_shard(module, mesh=mesh)
first = net[0]
x = torch.ones(1, 4) * 10**rank
"""

# %%
guess("13.g")

# %% tags=["F49"]
script = """
fired = []
first.register_forward_pre_hook(lambda module, args: look("pre-hook     ", module.weight))
first.register_forward_hook(lambda module, args, output: look("forward hook ", module.weight))
first.weight.register_hook(lambda grad: fired.append("tensor hook"))
first.weight.register_post_accumulate_grad_hook(lambda weight: fired.append("post-accumulate"))
net(x).sum().backward()
look(".grad        ", first.weight.grad)
print("  fired:", fired)
grad = first.weight.grad
piece, whole = grad.to_local(), grad.full_tensor()
print(f"  norm of the piece {piece.norm():.2f}, of the whole {whole.norm():.2f}")
dist.destroy_process_group()
"""
for rank, printed in enumerate(run_ranks(start + sharding + script)):
    print(f"rank {rank}\n{printed}", end="")

# %% [markdown] tags=["F49"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 这三处里，只有前置钩子看得到整个权重。你的前向钩子来晚了：`fully_shard` 的前向钩子注册在先，所以先触发，已经把别的片放掉了。
#
# 因此在你的前向钩子里，`weight` 又是 `DTensor`。它的 `.shape` 说的是整个权重的形状，可是这个进程手里只有一片。`.grad` 也是这样。
#
# 参数上的张量钩子，在这里一次也没有触发。它等的是流到这个参数的梯度，可是这一层计算时，顶替它的是另一个张量，由各片凑齐，梯度就流到那里去了。也不会报错，因为在 PyTorch 看来，钩子不触发不算错。
#
# post-accumulate 钩子则照常触发（torch 2.15.0）。
#
# </div>
# <div lang="en">
#
# Of these three places, only the pre-hook sees the whole weight. Your forward hook comes too late: the forward hook of
# `fully_shard` was registered first, so it fires before yours and lets go of the other pieces.
#
# In your hook, `weight` is therefore a `DTensor` again. Its `.shape` is that of the whole, but the process holds only
# one piece. The same goes for `.grad`.
#
# Here, a tensor hook on the parameter does not fire. It waits for a gradient that flows into this parameter, but while
# the layer computes, another tensor stands in its place, which was gathered from all pieces. The gradient flows into
# that one. You get no error, because for PyTorch it is no mistake if a hook never fires.
#
# A post-accumulate hook fires as usual (torch 2.15.0).
#
# </div>
# </div>

# %% [markdown]
# <div lang="zh">
#
# 如果你要裁剪梯度，就要当心输出的最后一行，那里藏着一个陷阱。两个进程的范数不一样，也都不是整个梯度的范数。如果每个进程都按自己那一片的范数裁剪，每片缩小的倍数就不同，梯度的方向也变了。
#
# `torch.nn.utils.clip_grad_norm_` 认得 `DTensor`，会替你算对。如果你自己算范数，各个进程就得通信一次。
#
# </div>
# <div lang="en">
#
# If you want to clip gradients, look closely at the last line of the output, because there is a trap. The two ranks
# have different norms, and neither of them is the norm of the whole gradient, because each rank knows only its own
# piece. If each rank clips by the norm of its piece, the pieces shrink by different factors, and so the direction of
# the gradient changes.
#
# `torch.nn.utils.clip_grad_norm_` knows `DTensor` and computes the norm of the whole for you. But if you compute the
# norm yourself, the processes have to communicate once, to put together what they know.
#
# </div>

# %% [markdown]
# ### 练习 13.4：谁也没有整个的梯度 · Exercise 13.4: A gradient that nobody has whole
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 要裁剪，每个进程都得知道整个梯度的范数，可是它手里只有几片。各个进程只好把自己知道的凑到一起，这件事现在由你来写。
#
# 写 `whole_norm(shards, group)`，每个进程都拿自己的几片来调用它。它返回整个模型的梯度的 L2 范数，各个进程得到的都一样。`shards` 是这个进程手里的各片梯度（float32 张量的列表），`group` 代表各个进程。
#
# - 片可以是空的，列表也可以是空的。例如上面第二层的权重只有一行，两个进程分，就有一个分到空的。
# - 通信恰好一次，用 `dist.all_reduce(tensor, group=group)`，它把各个进程的张量就地相加。哪个进程要是少通信一次，别的进程就白等它（gloo 默认最多 30 分钟），或者把它的下一次当成这一次，加错了也不报错。
# - 不要改动 `shards` 里的张量，裁剪的时候还要用。
#
# </div>
# <div lang="en">
#
# To clip, every process needs the norm of the whole gradient. But each process has only some pieces of it, so they have
# to put together what they know. Now you write this step yourself.
#
# Write `whole_norm(shards, group)`, a function that every process calls with its own pieces. It returns the L2 norm of
# the gradient of the whole model, so all of them get the same number. The pieces are in `shards`, a list of float32
# tensors, and `group` stands for the processes.
#
# - Communicate exactly once, by `dist.all_reduce(tensor, group=group)`, which adds up the tensors of all processes in
#   place. If one process makes one call fewer than the others, they wait for it in vain (with gloo up to 30 minutes by
#   default). Or they take its next call for this one, and get wrong sums without any error.
# - Be prepared for empty pieces and an empty list. Above, the weight of the second layer has a single row, so one of
#   the two processes gets an empty piece.
# - Do not change the tensors in `shards`, because clipping still needs them.
#
# </div>


# %% exercise="13.4"
def whole_norm(shards, group):
    """返回整个梯度的 L2 范数：每个进程只有其中几片。

    Return the L2 norm of the whole gradient, of which each process has some pieces.
    """
    ### BEGIN SOLUTION
    squares = torch.zeros(())
    for shard in shards:
        squares += shard.square().sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()
    ### END SOLUTION


# %% check="13.4"
check("13.4", whole_norm)

# %% [markdown]
# <div lang="zh">
#
# 检查的时候没有别的进程，看不出各个进程是不是真的一致。现在让你的函数在两个真的进程里运行，和 `clip_grad_norm_` 比一比：两个数应当一样。
#
# </div>
# <div lang="en">
#
# The check did not start any other processes, so it could not test whether they really agree. Now let your function run
# in two real processes, and compare it with `clip_grad_norm_`: the two numbers should be the same.
#
# </div>

# %%
script = f"""
{inspect.getsource(whole_norm)}
net(x).sum().backward()
pieces = [weight.grad.to_local() for weight in net.parameters()]
print("  whole_norm:     ", round(float(whole_norm(pieces, dist.group.WORLD)), 4))
norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
print("  clip_grad_norm_:", round(norm.to_local().item(), 4))
dist.destroy_process_group()
"""
with suppress(RanksFailed):  # until you have written it
    for rank, printed in enumerate(run_ranks(start + sharding + script)):
        print(f"rank {rank}\n{printed}", end="")

# %% [markdown]
# ## 13.6 小结 · Recap
#
# <div lang="zh">
#
# 1. 给原来没有钩子的层再挂上钩子，编译好的代码默认不理会它。同一个类、构造也相同的模型还共用这份代码，所以编译之前先调用 `reset()`。
# 2. 钩子里的列表一变长，下次调用就重新编译，编译到 8 次为止。`torch.compiler.disable` 让钩子留在编译之外，代价是编译好的代码在那里断开。
# 3. 用 DDP 的时候，参数上的钩子看到的是自己这个进程的梯度，因为平均要到后来才取。
# 4. 通信钩子每个桶调用一次，返回一个 Future。求平均要先除再求和，结果到了才能读。
# 5. 用 `fully_shard` 的时候，一个进程手里只有参数的一片。层里的计算触发不了参数上的张量钩子；要算范数，就得通信。
#
# </div>
# <div lang="en">
#
# 1. By default, compiled code ignores new hooks on layers that had none. Models of one class that are built alike share this code, so call `reset()` before you compile.
# 2. If a list in a hook grows, the next call compiles anew, up to 8 times. `torch.compiler.disable` keeps the hook outside, at the price of a break in the compiled code.
# 3. Under DDP, hooks on a parameter see the gradient of their own rank, because the average is taken later.
# 4. A communication hook is called once for each bucket and returns a Future. Divide before you sum, and read only what has arrived.
# 5. Under `fully_shard`, a process holds only one piece of a parameter. Tensor hooks on parameters do not fire for what the layers compute. To compute a norm, the processes have to communicate.
#
# </div>

# %% [markdown]
# ## 13.7 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 编译好的模型里，怎样临时看一层的输出？</summary>挂上钩子，在 <code>set_stance("force_eager")</code> 里运行，再取下。</details>
# <details><summary>2. 为什么不要在 post-accumulate 钩子里更新 DDP 的权重？</summary>那时梯度还没有取平均，各份拷贝会各走各的。</details>
# <details><summary>3. 为什么不能各按自己那一片的范数裁剪？</summary>每片缩小的倍数不同，梯度的方向就变了；要先把各片的平方和加起来。</details>
# </div>
# <div lang="en">
# <details><summary>1. How do you look at a layer of a compiled model for a moment?</summary>Register a hook, run the model inside <code>set_stance("force_eager")</code>, and take the hook off again.</details>
# <details><summary>2. Why not update the weights of DDP in a post-accumulate hook?</summary>At that time the gradients are not averaged yet, so the copies of the model would drift apart.</details>
# <details><summary>3. Why must a process not clip by the norm of its own piece?</summary>Each piece would shrink by a different factor, which changes the direction of the gradient. First add up the squares of all pieces.</details>
# </div>

# %% [markdown]
# ## 13.8 真实世界里 · In the wild
#
# <div lang="zh">
#
# 有的集群网络很慢，少传一半的字节也还不够。`powerSGD_hook` 就是为这种情形准备的，走过开头若干步以后，大权重的梯度它就只传低秩近似了。
#
# 在 vLLM、torchtitan 这样的项目里，编译、切片和钩子天天碰在一起。想知道它们是怎么相处的，可以在 PyTorch 的文档和源代码里一样一样地查：想看编译，就搜索 `torch.compiler.disable`；想看通信，就搜索 `ddp_comm_hooks`；想看切片，就搜索 `fully_shard`。
#
# 下一课换个题目：走进一个语言模型。
#
# </div>
# <div lang="en">
#
# On a cluster with a slow network, sending half of the bytes may still take too long. `powerSGD_hook` is made for this
# case: once the first steps are over, it sends the gradients of large weights as low-rank approximations.
#
# In projects such as vLLM and torchtitan, compiling, sharding and hooks meet every day. If you want to know how they
# get along, take up one question at a time and search the documentation and the source of PyTorch: for hooks in
# compiled code look for `torch.compiler.disable`, for communication `ddp_comm_hooks`, and for sharding `fully_shard`.
#
# The next lesson turns to a new subject: the inside of a language model.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
