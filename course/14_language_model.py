# %% tags=["setup"]
import random
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import permutations

import matplotlib.pyplot as plt
import torch
from torch import nn

from hookedu import LanguageToggle, check, guess, hint, progress, record, solution
from hookedu.models.stories import NAMES, PLACES, Cache, decode, encode, load_model, tell
from hookedu.models.stories.grammar import NUMBER

LanguageToggle()

# %% [markdown]
# ## 14.1 下一个词 · The next word
#
# <div lang="zh">
#
# 语言模型读一串词，猜下一个词。可是只看答案，看不出它是怎么猜到的。要知道这一点，就得在它运行的时候看看里面，而钩子正好能做到。
#
# 这一课的模型很小，结构却和大模型一样。每个词先变成向量，再依次经过 4 块。每一块里，先由注意力在词之间搬运信息，再由一个小网络（MLP）加工每个词。
#
# 这个模型是为这门课训练的，只会讲一种故事：晴天两个人去户外，雨天两个人去屋里，然后一个人给另一个人一样东西。有时第三个人又把它拿走，有时后面还有提问。下面先打印两个。
#
# 接着让模型猜词。在第一个提示里，Anna 和 Ben 去了公园，然后 Ben 把球给了一个人。模型会说是谁？如果它只读到 `Ben gave the ball to`，又会说什么？**先猜。**
#
# </div>
# <div lang="en">
#
# A language model reads some words and guesses the next one. Its answer alone does not tell you how it was found. For
# that you have to look inside the model while it runs, and hooks let you do exactly that.
#
# The model of this lesson is small, but it is built like the large ones. Every word becomes a vector, and the vectors
# pass through 4 blocks. In each block, attention first moves information between words, and then a small network (the
# MLP) works on every word.
#
# The model was trained for this course and tells only one kind of story. Two people go outdoors when it is sunny and
# indoors when it is rainy, and one gives the other something. Sometimes a third person takes it away, and sometimes a
# question follows. The cell below prints two.
#
# Then the model guesses a word. In the first prompt, Anna and Ben went to the park, and Ben gives the ball to
# somebody. Whom will it name? And what will it say if it reads only `Ben gave the ball to`? **Guess first.**
#
# </div>

# %%
guess("14.a")

# %%
torch.set_grad_enabled(False)  # no gradients are needed here
torch.manual_seed(0)
model = load_model()


def ids(text):
    return torch.tensor([encode(text)])


def likeliest(logits, n=3):
    """The n likeliest next words, with their probabilities."""
    top = logits.softmax(dim=-1).topk(n)
    pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
    return ", ".join(f"{decode([i])} {p:.2f}" for p, i in pairs)


# Two prompts that differ in one word.
clean = "Today is sunny . Anna and Ben went to the park . Ben gave the ball to"
corrupted = "Today is sunny . Anna and Ben went to the park . Anna gave the ball to"
print(tell(random.Random(7)), tell(random.Random(4)), sep="\n", end="\n\n")
for prompt in [clean, clean.replace("Anna", "Carl"), corrupted, "Ben gave the ball to"]:
    print(prompt, "->", likeliest(model(ids(prompt))[0, -1]))

# %% [markdown]
# <div lang="zh">
#
# 模型说的是 Anna。如果把 Anna 换成 Carl，虽然最后一句一个字也没有动，答案也跟着换。如果给球的是 Anna，答案就是 Ben。
#
# 如果只读最后半句，模型猜的根本不是名字。可见它刚才回头看了前面的句子，从两个人里挑出了**另一个**。这是在模型的哪里发生的，又是怎样做到的？这一课就来弄清楚。
#
# 要自己试别的提示，先要知道模型收到什么，给出什么。它收到的是词的编号，每个词一个整数：`encode` 把词变成编号，`decode` 把编号变回词。模型只认得 `hookedu.models.stories.WORDS` 里的 50 个词，句号也算一个词，所以前面要空一格。模型在每个位置上给出「下一个词」的 logit，我们要的是最后一个位置上的，也就是 `[0, -1]`。
#
# 整个模型的代码不长，都在 [`transformer.py`](../hookedu/models/stories/transformer.py) 里。
#
# </div>
# <div lang="en">
#
# The model says Anna. If we replace Anna by Carl, the answer changes as well, although the last sentence is the same
# word for word. And if Anna is the giver, the answer is Ben.
#
# From the last words alone, the model does not even guess a name. So it must have looked back at the earlier sentences
# and picked the **other** one of the two people. Where in the model does that happen, and how? This lesson is about
# finding out.
#
# To try prompts of your own, you need to know what goes into the model and what comes out. It receives word ids, one
# integer per word: `encode` turns words into ids, and `decode` turns ids back into words. The model knows only the 50
# words in `hookedu.models.stories.WORDS`, and a full stop is one of them, so put a space before it. At every position
# the model returns the logits of the next word. We want those at the last position, `[0, -1]`.
#
# The code of the whole model is short. You find it in [`transformer.py`](../hookedu/models/stories/transformer.py).
#
# </div>

# %% [markdown]
# ## 14.2 出来的是两样东西 · Two things come out
#
# <div lang="zh">
#
# 模型要挑出「另一个人」，就得从前面的句子里取来信息。在词之间搬运信息的是注意力，所以我们先看它。注意力有 4 个头同时工作，每个头自己决定看哪些词。
#
# 注意力的 `forward` 返回两样东西。一样是加到每个词上的向量。另一样是注意力权重，也就是一张「哪个词看哪个词」的表。
#
# 我们想把这两样都留下来看看。假如照 5.4 节的写法，在 `attention` 上挂一个钩子，那么钩子里会调用 `output.detach()`。这次调用会怎样？**先猜。**
#
# </div>
# <div lang="en">
#
# To pick the other person, the model needs information from earlier sentences. Attention is what moves information
# between words, so we look there first. It has 4 heads that work side by side, and each head decides for itself which
# words to look at.
#
# The `forward` of attention returns two things. One is the vector that it adds to each word. The other is the attention
# weights, a table of which word looks at which.
#
# We would like to keep both of them. Suppose we put a hook on `attention` that is written as in section 5.4, so that it
# calls `output.detach()`. What will this call do? **Guess first.**
#
# </div>

# %%
guess("14.b")


# %% tags=["F36"]
def keep(module, args, output):
    seen.append(output.detach())


seen = []
with model.blocks[0].attention.register_forward_hook(keep):
    try:
        model(ids(clean))
    except AttributeError as error:
        print("AttributeError:", error)


def keep_items(module, args, output):
    seen.append([item.detach().clone() for item in output])


with model.blocks[0].attention.register_forward_hook(keep_items):
    model(ids(clean))
added, pattern = seen[0]
print("added:  ", tuple(added.shape), "  batch, words, width")
print("pattern:", tuple(pattern.shape), "batch, heads, words, words looked at")

# %% [markdown] tags=["F36"]
# <div class="mistake">
#
# **常见错误 · Common mistake**
#
# <div lang="zh">
#
# 模块的输出不一定是张量，5.8 节就见过几种。这里的注意力返回的是元组，而元组没有 `detach()`，所以钩子里直接写 `output.detach()` 会出错。要先取出想要的那一项，再对它调用 `detach().clone()`。
#
# 在别的库里，还有的模块返回像字典一样的对象，或者返回缓存。做法也一样：先取出里面的张量。
#
# 用 `record()` 的话，这些事它会替你做。输出是元组，它留下的也是元组，里面的每个张量都是一份拷贝。14.8 节的 `Cache` 也是这样处理的。
#
# </div>
# <div lang="en">
#
# The output of a module need not be a tensor, as section 5.8 showed. Attention returns a tuple here, and a tuple has no `detach()`, so a plain `output.detach()` in a hook fails. First pick out the item that you want, and then call `detach().clone()` on it.
#
# In other libraries you will also meet modules that return objects like dictionaries, or caches. There, too, the tensors have to be taken out first.
#
# If you use `record()`, it does this work for you. Of a tuple it keeps a tuple, and each tensor in it is a copy. It treats the `Cache` of section 14.8 in the same way.
#
# </div>
# </div>

# %% picture="attention"
with record(model, ["blocks.*.attention"]) as recording:  # * stands for one part of a name
    model(ids(clean))
words = clean.split()
fig, axes = plt.subplots(1, 4, figsize=(10, 3.2), sharey=True)
for number, ax in enumerate(axes):
    added, pattern = recording[f"blocks.{number}.attention"].activation
    image = ax.imshow(pattern[0].amax(dim=0), vmin=0, vmax=1, cmap="Blues")
    ax.set(title=f"block {number}", xticks=range(len(words)), yticks=range(len(words)))
    ax.set_xticklabels(words, rotation=90, fontsize=7)
    ax.set_yticklabels(words, fontsize=7)
_ = axes[0].set_ylabel("word that looks")
_ = axes[1].set_xlabel("word looked at", x=1.1)
_ = fig.colorbar(image, ax=axes, label="attention", shrink=0.6)

# %% [markdown]
# <div lang="zh">
#
# 四张图各画一块的注意力。图里的一行是一个词，格子的颜色越深，这个词就越看重那一列的词（几个头里取最大的值）。
#
# 这里最要紧的是最后一行，因为模型是在 `to` 上猜下一个词的。在第 2 块里，`to` 主要看两个人的名字；在第 3 块里，它主要看 `gave` 和给东西的 `Ben`。
#
# 这只是线索，还不是证据，因为一个词看了另一个词，不等于用了看到的东西。要有证据，就得改动一处，看答案变不变。14.4 节就这样做。
#
# </div>
# <div lang="en">
#
# Each picture shows the attention of one block. A row is a word, and the darker a square is, the more this word looks
# at the word of that column (the largest value over the heads is drawn).
#
# The last row matters most here, because it is at `to` that the model guesses the next word. In block 2, `to` looks
# mostly at the two names, and in block 3 mostly at `gave` and at `Ben`, who gives.
#
# This is a clue but not a proof, because a word may look at another without using what it sees. For a proof we have to
# change something and see whether the answer changes. Section 14.4 does that.
#
# </div>

# %% [markdown]
# ### 练习 14.1：什么结构都接得住 · Exercise 14.1: Whatever comes out
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 研究模型的时候，最好有一个工具，不论哪一层给出了什么，都能拿来看。可是各层给出的东西不一样：有的是张量，有的是元组、列表或字典，还可能层层嵌套。这个工具要什么都接得住。
#
# 请写 `outputs_of(model, names, *args, **kwargs)`。它用这些参数调用 `model` 一次，再返回一个字典，里面每个名字对应那一层的输出。你会遇到的元组、列表和字典都是普通的那种。
#
# - 结构要照旧，里面的每个张量都换成断开的拷贝，这样模型以后就改不到你留下的东西。别的东西原样留着。
# - 一层要是运行了几次，就只留最后一次的输出。没有运行的层不在字典里。每一层只有一个名字。
# - 不论出什么异常，都不要留下钩子，不然它们以后还会触发。
#
# </div>
# <div lang="en">
#
# To study any model, you want a tool that shows what any of its layers put out. But layers differ: one puts out a
# tensor, another a tuple, a list or a dictionary, and these may be nested inside each other. The tool has to cope with
# all of them.
#
# Write `outputs_of(model, names, *args, **kwargs)`. It calls `model` once with these arguments and returns a dictionary
# from each name to the output of that layer. The tuples, lists and dictionaries that you will meet are plain ones.
#
# - Keep the structure. Every tensor in it becomes a detached copy, so that the model cannot change later what you have
#   kept. Anything else stays as it is.
# - If a layer runs several times, keep only its last output. A layer that does not run is not in the dictionary. No
#   layer has two names.
# - Leave no hook behind, whatever is raised.
#
# </div>


# %% exercise="14.1"
def outputs_of(model, names, *args, **kwargs):
    """返回字典：名字 → 那一层的输出，结构照旧，张量是断开的拷贝。

    Return a dict from names to outputs of layers: the same structure, tensors as detached copies.
    """
    ### BEGIN SOLUTION
    seen = {}

    def copied(value):
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(copied(item) for item in value)
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    def tap(name, module, args, output):
        seen[name] = copied(output)

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(model.get_submodule(name).register_forward_hook(partial(tap, name)))
        model(*args, **kwargs)
    return seen
    ### END SOLUTION


# %% check="14.1"
check("14.1", outputs_of)

# %% [markdown]
# ## 14.3 残差流与 logit lens · The residual stream and the logit lens
#
# <div lang="zh">
#
# 模型走到哪里，才知道了答案？我们不必等它走完，在半路上就可以问它。能这样做，是因为一块并不替换它收到的向量，只往上面**加**东西：先是 `x + attention(norm1(x))[0]`，再是 `x + mlp(norm2(x))`。
#
# 这个从头流到尾的向量叫残差流（residual stream），起初是词的向量加上位置的向量。到了最后，有两层把它变成 logit：一层是 `norm`，和 `norm1`、`norm2` 一样是层归一化；另一层是线性层 `unembed`。
#
# 残差流在每一块之后都同样宽，所以不必等到最后，提前把它交给 `norm` 和 `unembed` 也行。这样就看得出，要是模型到此为止，它会说什么。这个办法叫 logit lens（透镜）。
#
# 下面用透镜看两个故事。第一个故事里 Ben 给球，答案是 Anna；第二个里 Anna 给球，答案是 Ben。在第一个故事里，过了几块透镜才说 Anna？在第二个里，过了几块才说 Ben？**先猜。**
#
# </div>
# <div lang="en">
#
# How far does the model have to go before it knows the answer? We can ask half-way, because a block does not replace
# the vector that it receives. It **adds** something to it: first `x + attention(norm1(x))[0]`, then
# `x + mlp(norm2(x))`.
#
# The vector that flows through all blocks in this way is called the residual stream. It starts as the vector of the
# word plus one for its position. At the end, two layers turn it into logits: `norm`, a layer normalisation like `norm1`
# and `norm2`, and `unembed`, a linear layer.
#
# The stream has the same width after every block. So we need not wait for the end, but can hand it to `norm` and
# `unembed` earlier. This shows what the model would say if it ended here, and it is called the logit lens.
#
# We look at two stories through it. In the first, Ben gives and the answer is Anna; in the second, Anna gives and the
# answer is Ben. After how many blocks does the lens say Anna in the first, and Ben in the second? **Guess first.**
#
# </div>

# %%
guess("14.c")

# %%
stream = []
handles = [model.blocks[0].register_forward_pre_hook(lambda module, args: stream.append(args[0]))]
for block in model.blocks:
    handles.append(block.register_forward_hook(lambda module, args, output: stream.append(output)))
for prompt in [clean, corrupted]:
    stream.clear()
    logits = model(ids(prompt))
    print(prompt)
    for depth, x in enumerate(stream):
        print(f"  after {depth} blocks:", likeliest(model.unembed(model.norm(x))[0, -1]))
    own = torch.equal(model.unembed(model.norm(stream[-1])), logits)
    print("  the last is the model's own:", own)
for handle in handles:
    handle.remove()

# %% [markdown]
# <div lang="zh">
#
# 一块之后，透镜还说不出什么。两块之后，它猜的都是名字，在两个故事里都把 Anna 排在第一；三块之后，它差不多认定了 Anna。可是其中一个故事的答案是 Ben。过了最后一块，它才在一个故事里说 Anna，在另一个里说 Ben。
#
# 所以三块之后的 Anna 还不是答案，只是模型偏爱的名字。你可以自己试一试：把提示开头的两个名字对调，三块之后，透镜还是说 Anna。
#
# 透镜告诉我们的，是模型到此为止会怎么猜。猜对了也可能只是碰巧，不等于模型已经知道答案。所以总要找一个答案不同的故事，比较一下。
#
# 在最后一个深度上，透镜和模型自己的 logit 一位不差。这并不奇怪，因为 `norm` 和 `unembed` 就是模型自己的最后两步。
#
# </div>
# <div lang="en">
#
# After one block the lens can hardly say anything. After two blocks it guesses names, and in both stories Anna comes
# first. After three it is fairly sure of Anna, although in one of the stories the answer is Ben. Only after the last
# block does it say Anna in one story and Ben in the other.
#
# So the Anna after three blocks is not yet the answer, but only a name that the model favours. You can try this
# yourself: swap the two names at the beginning of the prompts, and after three blocks the lens still says Anna.
#
# What the lens shows is what the model would guess so far, and such a guess may be right by luck. That is why you
# should always compare with a story whose answer is different.
#
# At the last depth, the lens equals the model's own logits to the last bit. This is no surprise, because `norm` and
# `unembed` are the model's own last two steps.
#
# </div>

# %% [markdown]
# ### 练习 14.2：透过透镜看 · Exercise 14.2: Through the lens
#
# ●● · 8 min
#
# <div lang="zh">
#
# 上面我们一次只看一个提示。可是只看一个提示，容易上当，刚才的 Anna 就是这样。同时看许多提示才可靠，所以我们把透镜写成一个函数，让它一次看一批。
#
# 请写 `logit_lens(model, ids)`，其中 `ids` 是各个提示的词的编号，形状是 `(batch, words)`。下一个词是在最后一个位置上猜的，所以函数只看那个位置上的残差流。
#
# 函数返回一个形状为 `(blocks + 1, batch, vocabulary)` 的张量，每个深度占一项。第一项对应第 0 块之前的残差流，后面各项依次对应每一块之后的残差流。每一项里放的，是把对应的残差流交给 `norm` 和 `unembed` 得到的 logit。
#
# 只让模型运行一次，因为运行一次就经过了所有的深度。不论出什么异常，都不要留下钩子，否则以后每次运行，它们还会触发。
#
# </div>
# <div lang="en">
#
# So far we have looked at one prompt at a time. But one prompt can mislead you, as that Anna did. It is safer to look
# at many prompts at once, so let us turn the lens into a function that takes a whole batch.
#
# Write `logit_lens(model, ids)`, where `ids` holds the word ids of the prompts and has the shape `(batch, words)`. The
# next word is guessed at the last position, so the function looks at the residual stream there.
#
# Return a tensor of shape `(blocks + 1, batch, vocabulary)` with one entry for each depth. The first entry belongs to
# the stream before block 0, and the others to the stream after each block. An entry holds the logits that `norm` and
# `unembed` make of that stream.
#
# Run the model only once, since a single run passes through all depths. Leave no hook behind, whatever is raised.
#
# </div>


# %% exercise="14.2"
def logit_lens(model, ids):
    """返回每个深度上最后一个位置的 logit：(块数 + 1, 批, 词表)。

    Return the logits at the last position at every depth: (blocks + 1, batch, vocabulary).
    """
    ### BEGIN SOLUTION
    stream = []

    def before(module, args):
        stream.append(args[0])

    def after(module, args, output):
        stream.append(output)

    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(before))
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(after))
        model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])
    ### END SOLUTION


# %% check="14.2"
check("14.2", logit_lens)

# %% [markdown]
# <div lang="zh">
#
# 两个故事说明不了什么。所以我们新讲 200 个，看看透镜在每个深度上答对多少。
#
# 不是每个词都能拿来问，因为故事在许多地方怎么讲下去都行。我们只问几个要靠前面的句子才能知道的词，它们的位置记在 `story.fixed` 里。其中 `to` 后面的名字，也就是谁收到东西，另外再数一遍。代码里的 `receives | True`，意思是所有的词都算。
#
# 透镜也要看第 0 块之前的残差流，那是第 0 块的输入。所以代码里写了 `inputs=True`，让 `record` 连每一层的输入也留下。`.calls[0].input` 是第一次调用时的参数，一个元组。
#
# 每一块之后的残差流，就是那一块的输出，字典 `.activations` 里都有。`blocks.*` 里的 `*` 只代表一段名字，不会跨过点，所以它选中的只有各块，选不到块里面的层。
#
# </div>
# <div lang="en">
#
# Two stories prove little. So let us tell 200 fresh ones, and see how often the lens is right at each depth.
#
# Not every word makes a fair question, because in many places a story could go on in several ways. So we ask only for a
# few words that can be known from earlier sentences; `story.fixed` lists their positions. The names after `to`, which
# say who receives something, are counted once more by themselves. In the code, `receives | True` means that all words
# count.
#
# The lens also needs the residual stream before block 0, and that is the input of block 0. This is why the code has
# `inputs=True`, which makes `record` keep what goes into each layer as well. `.calls[0].input` is the tuple of
# arguments of a layer's first call.
#
# After each block, the stream is simply the output of the block, and the dictionary `.activations` has all of these.
# The `*` in `blocks.*` stands for one part of a name, without dots, so it picks the blocks but none of the layers
# inside them.
#
# </div>


# %% tags=["E25"] picture="lens"
def depths(text):
    """The likeliest next word after 0 to 4 blocks."""
    with record(model, ["blocks.*"], inputs=True) as recording:  # inputs: also what goes in
        model(ids(text))
    stream = [recording["blocks.0"].calls[0].input[0], *recording.activations.values()]
    return torch.stack([model.unembed(model.norm(x))[0, -1].argmax() for x in stream])


rng = random.Random(14)
stories = [tell(rng) for _ in range(200)]
asked = [(story, place) for story in stories for place in story.fixed]
said = torch.stack([depths(" ".join(story.words[:place])) for story, place in asked])
truth = torch.tensor([[NUMBER[story.words[place]]] for story, place in asked])
receives = torch.tensor([story.words[place - 1] == "to" for story, place in asked])
fig, ax = plt.subplots(figsize=(4, 2.2))
for label, of_these in [("all", receives | True), ("who receives", receives)]:
    right = (said == truth)[of_these].float().mean(dim=0).tolist()
    print(f"{label}, right after 0 to 4 blocks:", [f"{share:.2f}" for share in right])
    _ = ax.plot(range(5), right, "o-", label=label)
_ = ax.set(xlabel="blocks", ylabel="share right", xticks=range(5), ylim=(0, 1.05))
_ = ax.legend()

# %% [markdown]
# <div lang="zh">
#
# 每过一块，透镜答对的词都多一些。可是要说出谁收到东西，得等到最后一块。三块之后，这些名字只对了一半，和在两个人里抛硬币差不多。过了最后一块，就全都对了。
#
# </div>
# <div lang="en">
#
# With every block, the lens gets more of the words right. But to say who receives something, it has to wait for the
# last block. After three blocks half of those names are right, about as many as you would get by tossing a coin between
# two people. After the last block all of them are right.
#
# </div>

# %% [markdown]
# ## 14.4 换一个词的激活 · Patching one word
#
# <div lang="zh">
#
# 透镜说出模型会怎么猜，却说不出它凭的是哪里的信息。要知道这一点，光看不够，得做实验。
#
# 我们有两个提示，`clean` 和 `corrupted`，它们只差一个词，答案却相反。先让模型读 `clean`，把每一块之后的残差流留下来。再让它读 `corrupted`，半路上只改动一处：把**一块之后、一个词上**的残差流，换成刚才留下的。后面的块照常运行。
#
# 如果答案变成了 `clean` 的答案，那么只换这一处，就足以让答案翻过来。如果答案没有变，那么只换这一处还不够。这个办法叫激活修补（activation patching）。
#
# </div>
# <div lang="en">
#
# The lens shows what the model would guess, but not where it takes the information from. Looking is not enough to find
# that out. We need an experiment.
#
# We have two prompts, `clean` and `corrupted`, which differ in one word and have opposite answers. First the model
# reads `clean`, and we keep the residual stream after every block. Then it reads `corrupted`, and half-way we change
# one thing: after **one block, at one word**, we replace the stream by the one that we kept. The blocks that follow run
# as usual.
#
# If the answer turns into that of `clean`, then a change at this one place is enough to turn it round. If the answer
# stays as it was, then a change at this place alone is not enough. The method is called activation patching.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 这样的修补用钩子就能做，因为钩子返回的东西会取代输出，5.6 节用过这一点。
#
# 修补一处，能把答案挽回多少？我们想用一个数来回答，所以看 Anna 的 logit 比 Ben 的大多少。模型读 `clean` 时，这个差是 `good`；读 `corrupted` 时，它是 `bad`；读 `corrupted` 而修补了一处时，它是 `patched`。
#
# 修补使这个差从 `bad` 变到 `patched`，要是变到了 `good`，就算全部挽回。所以挽回的比例是 `(patched - bad) / (good - bad)`：如果什么也没有挽回，它是 0；如果全部挽回，它是 1。
#
# 两个提示里，只有倒数第五个词不同，一个是 `Ben`，一个是 `Anna`。在第 0 块之后，应该修补这个词，还是修补最后一个词，才能挽回答案？在最后一块之后呢？**先猜。**
#
# </div>
# <div lang="en">
#
# A hook can make such a patch, because what it returns takes the place of the output, as in section 5.6.
#
# How much of the answer comes back? To say it with a number, we look at how much larger the logit of Anna is than that
# of Ben. This difference is `good` when the model reads `clean`, and `bad` when it reads `corrupted`. When it reads
# `corrupted` with one patch, the difference is `patched`.
#
# The patch takes the difference from `bad` to `patched`, and all the way would be to `good`. So the share that comes
# back is `(patched - bad) / (good - bad)`. It is 0 if the patch restores nothing, and 1 if it restores everything.
#
# The prompts differ only in the fifth word from the end, which is `Ben` in one and `Anna` in the other. After block 0,
# does it help to patch this word, or rather the last word? And after the last block? **Guess first.**
#
# </div>

# %%
guess("14.d")


# %%
def difference(logits):
    """By how much the model prefers Anna to Ben."""
    return (logits[0, -1, NUMBER["Anna"]] - logits[0, -1, NUMBER["Ben"]]).item()


with record(model, ["blocks.*"]) as of_clean:
    good = difference(model(ids(clean)))
bad = difference(model(ids(corrupted)))
print(f"good {good:.2f}, bad {bad:.2f}")


def put(kept, place, module, args, output):
    output = output.clone()
    output[:, place] = kept[:, place]
    return output


shares = {}
for number, place in [(0, 12), (0, 16), (3, 12), (3, 16)]:
    patch = partial(put, of_clean[f"blocks.{number}"].activation, place)
    with model.blocks[number].register_forward_hook(patch):
        shares[number, place] = (difference(model(ids(corrupted))) - bad) / (good - bad)
    print(f"block {number}, word {place} ({clean.split()[place]}): {shares[number, place]:.2f}")

# %% [markdown]
# <div lang="zh">
#
# 第 0 块之后，起作用的差别还全在不同的那个词上。所以修补那个词挽回 1.00，修补最后一个词却毫无用处。
#
# 最后一块之后正好相反。在这样的模型里总是如此：后面不再有注意力，词与词之间也就不再传信息，而答案只从最后一个词读出。
#
# 可见在中间的某一块，差别从一个词搬到了另一个词。是哪一块搬的？要回答，就得把每一处都修补一遍，画成一张图。
#
# </div>
# <div lang="en">
#
# After block 0, all of the difference that matters is still at the word that differs. So a patch there restores 1.00,
# while a patch at the last word restores nothing.
#
# After the last block it is the other way round. In a model like this it always is: no attention follows any more that
# could move information between words, and the answer is read from the last word alone.
#
# So somewhere in between, a block has moved the difference from one word to the other. Which block was it? To find out,
# we have to patch every place in turn, and draw a map.
#
# </div>

# %% [markdown]
# ### 练习 14.3：换一处 · Exercise 14.3: One patch
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 刚才的实验只修补了一对故事，换一对也许就不一样了。要多试几对才放心，所以我们把实验写成一个函数，让它一次修补一批。
#
# 请写 `patched(model, clean, corrupted, number, place)`。`clean` 和 `corrupted` 里都是词的编号，一个词一个整数，形状都是 `(batch, words)`，同一行的两个提示是一对。
#
# 函数先让模型读 `clean`，把第 `number` 块的输出留下来。然后让模型读 `corrupted`，这一次，把这一块的输出在第 `place` 个词上换成刚才留下的值。最后返回第二次运行的 logit，形状是 `(batch, words, vocabulary)`。块和词都从 0 数起。
#
# - 只换这一处，别的词、别的块都不要换，否则就说不清是哪一处起了作用。
# - 输出只能在拷贝上改，因为别的钩子也许还留着原来的那一份。
# - 不要留下钩子，中途出了异常也一样，否则以后的运行也会被改动。
#
# </div>
# <div lang="en">
#
# The experiment above patched a single pair of stories, and with another pair the result might be different. So let us
# turn it into a function that patches a whole batch of pairs.
#
# Write `patched(model, clean, corrupted, number, place)`. `clean` and `corrupted` are word ids, one integer per word,
# both of shape `(batch, words)`, and the two prompts in the same row are a pair.
#
# The function first lets the model read `clean`, and keeps the output of block `number`. Then the model reads
# `corrupted`, and at word `place` the output of this block is replaced by what was kept. Return the logits of this
# second run, of shape `(batch, words, vocabulary)`. Blocks and words both count from 0.
#
# - Patch no other word and no other block, or you could not tell which place made the difference.
# - Change a block's output only in a copy, because other hooks may have kept it.
# - Leave no hook behind, even if something is raised half-way, or it would change later runs.
#
# </div>


# %% exercise="14.3"
def patched(model, clean, corrupted, number, place):
    """返回 corrupted 的 logit，其中一块的输出在一个词上换成 clean 的。

    Return the logits for corrupted, with the output of one block at one word taken from clean.
    """
    ### BEGIN SOLUTION
    block, kept = model.blocks[number], {}

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    with block.register_forward_hook(keep):
        model(clean)
    with block.register_forward_hook(patch):
        return model(corrupted)
    ### END SOLUTION


# %% check="14.3"
check("14.3", patched)

# %% [markdown]
# ### 练习 14.4：修补的地图 · Exercise 14.4: The map of patches
#
# ●●● · 12 min
#
# <div lang="zh">
#
# 信息在模型里走的是哪条路？要看出来，就得把每一处都修补一次，把结果画成一张地图：一行是一块，一列是一个词。
#
# 请写 `patching_map(model, clean, corrupted, right, wrong)`，它返回这张地图，也就是形状为 `(blocks, words)` 的浮点张量。提示的形状都是 `(1, words)`。`right` 和 `wrong` 是两个词的编号，不一定是 Anna 和 Ben。
#
# 每一格像 14.3 那样修补一处，再看最后一个词上，`right` 的 logit 比 `wrong` 的大多少。读 `clean` 时，这个差是 `good`；读 `corrupted` 时是 `bad`；修补以后是 `patched`。格子里填挽回的比例，`(patched - bad) / (good - bad)`。
#
# - 每一格单独修补，才看得出那一处的作用。
# - 小于 0、大于 1 的照样留着，它们说明修补帮了倒忙，或者过了头。
# - `clean` 只让模型读一次，读的时候就留下各块的输出。
# - 输出只在拷贝上改，因为别的钩子也许还留着它。
# - 不要留下钩子，中途出了异常也一样。
#
# </div>
# <div lang="en">
#
# Which way does the information take through the model? To see it, patch every place in turn and put the results on a
# map, with a row for each block and a column for each word.
#
# Write `patching_map(model, clean, corrupted, right, wrong)`, which returns this map, a tensor of floats of shape
# `(blocks, words)`. Both prompts have the shape `(1, words)`. `right` and `wrong` are two word ids, not always those of
# Anna and Ben.
#
# For each entry, make one patch as in 14.3, and look at the last word: how much larger is the logit of `right` than
# that of `wrong`? This difference is `good` for `clean`, `bad` for `corrupted`, and `patched` after the patch. Enter
# the share that comes back, `(patched - bad) / (good - bad)`.
#
# - Keep entries below 0 or above 1: such a patch made things worse, or did too much.
# - Make each patch without the others, so that every entry tells about one place.
# - Let the model read `clean` only once, and keep what all blocks put out.
# - Change a block's output only in a copy.
# - Leave no hook behind, even if something is raised half-way.
#
# </div>


# %% exercise="14.4"
def patching_map(model, clean, corrupted, right, wrong):
    """返回 (块数, 词数)：每处修补挽回的 logit 之差的比例。

    Return (blocks, words): the share of the difference of logits that each patch restores.
    """

    ### BEGIN SOLUTION
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}"].activation
        for place in range(clean.shape[1]):
            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares
    ### END SOLUTION


# %% check="14.4"
check("14.4", patching_map)


# %% tags=["E26"] picture="patching"
def restored(number, place):
    patch = partial(put, of_clean[f"blocks.{number}"].activation, place)
    with model.blocks[number].register_forward_hook(patch):
        return (difference(model(ids(corrupted))) - bad) / (good - bad)


share = torch.tensor([[restored(n, place) for place in range(len(words))] for n in range(4)])
print("every word patched:", [restored(number, slice(None)) for number in range(4)])
print("no word patched:   ", [restored(number, slice(0)) for number in range(4)])
print("the last word after each block:", [f"{abs(value):.2f}" for value in share[:, -1].tolist()])
fig, ax = plt.subplots(figsize=(7, 2.2))
image = ax.imshow(share, vmin=-1, vmax=1, cmap="RdBu")
_ = ax.set(yticks=range(4), ylabel="after block", xticks=range(len(words)))
_ = ax.set_xticklabels(corrupted.split(), rotation=90)
_ = fig.colorbar(image, label="restored")

# %% [markdown]
# <div lang="zh">
#
# 图上看得出信息换了地方。前三块的每一块之后，都只有修补第二个 `Anna`，也就是给球的那个，才有用；最后一块之后，只有修补 `to` 才有用。所以「谁给的」这个信息，是最后一块送到 `to` 那里的。在那以前，透镜在 `to` 上只能碰运气。
#
# 修补别的词都没有用，连 `gave` 也一样。在注意力的图上，`to` 确实看了 `gave`，可是它并不是从那里知道谁给的。
#
# 不过要记住，这样的图只显示两个故事的**差别**。前面的两个名字，模型也要用。但是它们在两个故事里一样，所以图上看不见。
#
# 相信一张图之前，先检查两件事。修补所有的词（`slice(None)`），应该正好挽回 1.0；一个词也不修补（`slice(0)`），应该正好是 0.0。代码里的 `abs` 只是为了不印出 `-0.00`。
#
# </div>
# <div lang="en">
#
# The picture shows where the information moves. After each of the first three blocks, a patch helps only at the second
# `Anna`, the one who gives, and after the last block only at `to`. So it is the last block that brings to `to` who
# gives. Until then, the lens at `to` could only be lucky.
#
# A patch at any other word does not help, not even at `gave`. In the picture of attention, `to` looked at `gave`, but
# it did not learn there who gives.
#
# Keep in mind that such a map shows only the **difference** between two stories. The model needs the two names further
# up as well. But they are the same in both stories, so the map cannot show them.
#
# Before you believe a map, check two things. Patching every word (`slice(None)`) should restore exactly 1.0, and
# patching none (`slice(0)`) exactly 0.0. The `abs` in the code only avoids printing `-0.00`.
#
# </div>

# %% [markdown]
# ## 14.5 关掉一个头 · Switch off a head
#
# <div lang="zh">
#
# 修补说出了信息在哪里，却没有说是谁搬的。能在词之间搬信息的只有注意力，而每一块的注意力有 4 个头。要知道一个头要不要紧，可以关掉它，看答案怎样变。
#
# 在 `attention.out` 的输入里，各个头的结果并排放着，每个头占 16 列。所以用前置钩子把一个头的 16 列改成 0，就关掉了这个头。
#
# 第二段代码倒过来做，不是去掉一个头的结果，而是换上它在另一个故事里的结果。模型读 `corrupted` 时，`put_head` 把一个头在最后一个词上的结果，换成读 `clean` 时的。
#
# 在 Anna 给球的故事里，模型说 Ben，所以 Anna 与 Ben 的 logit 之差是负的。如果 16 个头每次只关掉一个，有几个头能让这个差变成正的？**先猜。**
#
# </div>
# <div lang="en">
#
# Patching shows where the information is, but not who carried it there. Only attention can carry it from word to word,
# and the attention of each block has 4 heads. To see whether a head matters, we can switch it off and watch what
# happens to the answer.
#
# In the input of `attention.out`, the results of the heads stand side by side, 16 columns each. So a pre-hook can
# switch a head off by setting its 16 columns to 0.
#
# The second cell does the reverse: instead of taking a head's result away, it puts in the one from the other story.
# While the model reads `corrupted`, `put_head` replaces the result of one head at the last word by its result for
# `clean`.
#
# In the story in which Anna gives, the model says Ben, so the logit of Anna minus that of Ben is negative. If the 16
# heads are switched off one at a time, how many of them make this difference positive? **Guess first.**
#
# </div>

# %%
guess("14.e")


# %%
def silence(head, module, args):
    heads = args[0].clone()
    heads[..., 16 * head : 16 * (head + 1)] = 0
    return heads


left = []
for number, block in enumerate(model.blocks):
    for head in range(4):
        with block.attention.out.register_forward_pre_hook(partial(silence, head)):
            left.append(difference(model(ids(corrupted))))
    print(f"block {number}, without head 0 to 3:", [f"{value:5.1f}" for value in left[-4:]])
with model.blocks[3].attention.out.register_forward_pre_hook(partial(silence, 3)):
    print(f"Ben gives, without head 3 of block 3: {difference(model(ids(clean))):.1f}")


def put_head(kept, head, module, args):
    heads = args[0].clone()
    columns = slice(16 * head, 16 * (head + 1))
    heads[:, -1, columns] = kept[:, -1, columns]
    return heads


# %%
out = model.blocks[3].attention.out
with record(model, ["blocks.3.attention.out"], inputs=True) as recording:
    model(ids(clean))
kept = recording["blocks.3.attention.out"].calls[0].input[0]
for head in range(4):
    with out.register_forward_pre_hook(partial(put_head, kept, head)):
        share = (difference(model(ids(corrupted))) - bad) / (good - bad)
    print(f"block 3, head {head} from the story in which Ben gives: {abs(share):.2f} restored")

# %% [markdown]
# <div lang="zh">
#
# 大多数头关掉了，也没有什么要紧。可是一关掉第 3 块的 3 号头，差就变了号，在两个故事里 Anna 都远远超过 Ben。模型这时分不出是谁给的，就说它偏爱的名字。
#
# 光凭这一点，还不能下结论。关掉一样东西，结果变坏了，也可能只是碰坏了别的。
#
# 所以我们又倒过来做：让模型读 `corrupted`，只把一个头在 `to` 上的结果换成读 `clean` 时的。换 3 号头，答案就全部挽回；换这一块的另外三个头，什么也没有挽回。可见把「谁给的」告诉最后一个词的，就是 3 号头。
#
# </div>
# <div lang="en">
#
# Most heads can be switched off without much harm. But without head 3 of block 3, the difference changes its sign, and
# Anna is far ahead of Ben in both stories. The model cannot tell who gives any more, and falls back on the name that it
# favours.
#
# This alone is no proof. When you switch something off and the result gets worse, you may simply have broken something
# else.
#
# So we also did the reverse: while the model reads `corrupted`, we replaced the result of one head at `to` by its
# result for `clean`. With head 3, all of the answer comes back. With any of the other three heads of this block,
# nothing does. So head 3 is the one that tells the last word who gives.
#
# </div>

# %% [markdown]
# ## 14.6 探针，和它的对照 · A probe and its control
#
# <div lang="zh">
#
# 修补查的是模型用了什么。我们还可以问：不管模型用不用，一层里装着什么信息？比如天气，从它的激活里还读得出来吗？
#
# 要回答，就用激活训练一个很简单的分类器，叫线性探针，看它能不能答对。我们的探针是岭回归，也就是在最小二乘上加一点惩罚（`+ eye`），不让权重太大。
#
# 可是探针会骗人。这里的向量有几十维，故事只有几百个，所以在训练用过的故事上，就连打乱的标签，探针也能「读」出一些。因此要换别的故事来测验。
#
# 还要有一个对照，它告诉我们瞎猜是什么样子：同样的探针，照样训练和测验，只是标签全部打乱。
#
# 下面的提示都停在「went to the」的 `the` 上。在这里，从哪一层起读得出天气？对照又会答对多少？**先猜。**
#
# </div>
# <div lang="en">
#
# Patching asks what the model uses. We can also ask what information a layer holds, whether the model uses it or not.
# Can the weather, for example, still be read from its activations?
#
# To find out, train a very simple classifier on them, a linear probe, and see whether it is right. Ours is a ridge
# regression, which means least squares with a penalty (`+ eye`) that keeps the weights small.
#
# But a probe can mislead. With dozens of dimensions and a few hundred stories, it "reads" even shuffled labels to some
# degree in the stories it was fitted to. So we test it on other stories.
#
# We also need a control: the same probe, fitted and tested alike, but with all labels shuffled. The control shows what
# guessing looks like.
#
# All prompts below end at the `the` of "went to the". At this word, from which layer on can the weather be read? And
# how often is the control right? **Guess first.**
#
# </div>


# %% tags=["E28"]
def examples(visits):
    """Activations at the last word, by layer, and the weather as 1 or -1."""
    texts = [
        f"Today is {weather} . {first} and {second} went to the"
        for weather, first, second in visits
    ]
    with record(model, ["embed", "blocks.*"]) as recording:
        model(torch.cat([ids(text) for text in texts]))
    labels = torch.tensor([1.0 if weather == "sunny" else -1.0 for weather, *_ in visits])
    return {name: layer.activation[:, -1] for name, layer in recording.items()}, labels


def fit(x, labels):
    """A probe: a ridge regression, as a function that guesses labels."""
    mean, eye = x.mean(dim=0), torch.eye(x.shape[1])
    weights = torch.linalg.solve((x - mean).T @ (x - mean) + eye, (x - mean).T @ labels)
    return lambda x: torch.where((x - mean) @ weights > 0, 1.0, -1.0)


def accuracy(guesses, labels):
    return (guesses == labels).float().mean().item()


# %%
guess("14.f")

# %% tags=["E28"]
# All prompts of this kind that there are.
visits = [(weather, *pair) for weather in PLACES for pair in permutations(NAMES, 2)]
random.Random(6).shuffle(visits)
(x, labels), (x_test, labels_test) = examples(visits[:240]), examples(visits[240:])
mixed, mixed_test = torch.cat([labels, labels_test])[torch.randperm(480)].split(240)
for name in x:
    told = accuracy(fit(x[name], labels)(x_test[name]), labels_test)
    read = fit(x[name], mixed)
    control, fitted = accuracy(read(x_test[name]), mixed_test), accuracy(read(x[name]), mixed)
    print(f"{name:9} probe {told:.2f}   control {control:.2f} (where it was fitted {fitted:.2f})")

# %% [markdown]
# <div lang="zh">
#
# 从词嵌入里读不出天气，因为在哪个故事里 `the` 都是同一个 `the`。第 0 块之后，探针就读得出来了，而且一个也没有读错。对照却在哪一层都是瞎猜。
#
# 再看括号里的数，它们是在训练用过的故事上测的。在那里，从第 0 块往后，就连对照看上去也知道些什么，可见光看这些数是不够的。所以一定要换别的故事来测。
#
# 不过，探针读得出来，不等于模型用了它。模型用没用，要靠修补或者引导来查。
#
# </div>
# <div lang="en">
#
# From the embedding the weather cannot be read, because `the` is the same `the` in every story. After block 0, however,
# the probe reads it without a mistake, while the control only guesses at every layer.
#
# The numbers in brackets come from the stories that the probe was fitted to. There, after block 0, even the control
# seems to know something. That is why we test on other stories.
#
# Still, the model need not use what a probe can read. Whether it does, patching or steering can show.
#
# </div>

# %% [markdown]
# ## 14.7 引导 · Steering
#
# <div lang="zh">
#
# 探针能从一层里读出天气。那么反过来，我们能把天气写进去吗？
#
# 要写进去，先得知道晴天和雨天差在哪里。我们分别取晴天和雨天激活的平均，两者之差就是一个方向。模型运行时，用前向钩子把这个方向加到一块的输出上，这就叫引导（steering）。方向是在 `the` 上量的，我们却把它加在每个词上。
#
# 加多少，由强度来定，因为钩子加上去的是强度乘以方向。强度是 1 的时候，加上去的正好是晴天与雨天之差。
#
# 提示里下着雨，大家本该去屋里。强度从 0 升到 2，去户外的概率会怎样变？强度是 1 时，它是多少？**先猜。** 再留意一下，强度是 0 的时候，输出是不是和没有钩子时一位不差。
#
# </div>
# <div lang="en">
#
# A probe can read the weather from a layer. Can we also write it there?
#
# Take the mean activation on sunny days and the mean on rainy days: the difference of the two is a direction. While the
# model runs, a forward hook adds that direction to the output of a block, and this is called steering. We measure the
# direction at `the`, but we add it to every word.
#
# How much is added is set by a strength, by which the hook multiplies the direction. At strength 1, it adds exactly the
# difference between sunny and rainy days.
#
# In the prompt it rains, and people should go indoors. When the strength grows from 0 to 2, how does the probability of
# going outdoors change, and what is it at 1? **Guess first.** Notice, too, whether at strength 0 the output is the same
# to the last bit as without the hook.
#
# </div>

# %%
guess("14.g")

# %% tags=["E27"]
name = "blocks.2"
direction = x[name][labels == 1].mean(dim=0) - x[name][labels == -1].mean(dim=0)
rainy = ids("Today is rainy . Lily and Hugo went to the")
outdoors = [NUMBER[place] for place in PLACES["sunny"]]
before = model(rainy)
stream_length = x[name].norm(dim=1).mean()
print(f"length of the direction {direction.norm():.0f}, of the stream {stream_length:.0f}")
shares = {}
for strength in [0, 0.5, 1, 2]:
    with model.blocks[2].register_forward_hook(lambda m, args, out: out + strength * direction):
        logits = model(rainy)
    shares[strength] = share = logits[0, -1].softmax(dim=-1)[outdoors].sum()
    print(f"strength {strength}: outdoors {share:.3f}, says {likeliest(logits[0, -1], 1)}")
    if strength == 0:
        print("  bit for bit the same:", torch.equal(logits, before))
print("hook off, as before:", torch.equal(model(rainy), before))

# %%
for strength in [0, 1, 2]:
    with model.blocks[2].register_forward_hook(lambda m, args, out: out + strength * direction):
        print(f"strength {strength}:", decode(model.generate(rainy, 8)[0, 10:].tolist()))

# %% [markdown]
# <div lang="zh">
#
# 强度升到 1，去户外的概率就从几乎是 0 变到接近 1：本该去屋里的人，去了户外。强度是 0 的时候，输出一位不差。钩子一取下，一切恢复原样。
#
# 不过，这一下推得很重。印出来的两个长度是向量的范数，都是在 `the` 上量的。从它们看得出，强度是 1 的时候，加上去的向量和那里的残差流自己差不多长。
#
# 推得这么重是有代价的，因为故事接着讲下去，钩子会把每个词都往同一个方向推。强度到了 1，句子就散了；到了 2，只剩下户外的地方。
#
# </div>
# <div lang="en">
#
# As the strength grows to 1, the probability of going outdoors rises from almost 0 to nearly 1: people who went indoors
# now go outdoors. At strength 0 the output is the same to the last bit. Once the hook is off, everything is as before.
#
# This took a strong push. The two lengths printed are norms of vectors, both measured at `the`. They show that at
# strength 1 the vector that the hook adds is about as long as the residual stream itself there.
#
# Such a push has its price. As the story goes on, the hook pushes every single word in the same direction. At strength
# 1 the sentences fall apart, and at strength 2 nothing remains but places outdoors.
#
# </div>

# %% [markdown]
# ### 练习 14.5：引导，不留痕迹 · Exercise 14.5: Steer and leave nothing
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 引导一个模型的时候，总要和没有引导的时候比较。所以引导要能随时打开，关掉以后又什么都不留下。上下文管理器正适合做这件事。
#
# 请写 `steering(model, number, direction, strength)`，它返回一个上下文管理器。在它里面运行模型，第 `number` 块的输出处处都加上 `strength * direction`，方向原样使用，不另外归一化。出来以后一切照旧，不论中间有没有出异常。
#
# - 强度是 0 的时候，输出必须和没有引导时一位不差，这样才能拿它来比较。
# - 这样的上下文可以一个套一个，这时它们各加各的，谁也不顶替谁。
# - 不要就地改动块的输出，因为别的钩子也许还拿着残差流的这个张量。
# - 梯度要照常流过这一块；`direction` 自己不需要梯度。这一课关掉了梯度，所以自己试的时候要用 `with torch.enable_grad():`。
#
# </div>
# <div lang="en">
#
# When you steer a model, you want to compare it with the same model unsteered. So steering should be easy to switch on,
# and leave no trace when it is off. This is a job for a context manager.
#
# Write `steering(model, number, direction, strength)`, which returns one. Inside it, `strength * direction` is added
# everywhere to the output of block `number`, with the direction as given and not normalised. Afterwards everything is
# as before, whether something was raised or not.
#
# - At strength 0 the output must be the same to the last bit, so that you can compare with it.
# - One such context may stand inside another, and then each adds its own.
# - Gradients flow through the block as usual; `direction` itself needs none. This lesson has switched gradients off, so
#   use `with torch.enable_grad():` to try.
# - Do not change a block's output in place, because other hooks may hold this tensor of the residual stream as well.
#
# </div>


# %% exercise="14.5"
@contextmanager
def steering(model, number, direction, strength):
    """在 with 里，一块的输出加上 strength * direction。

    Inside a with block, add strength * direction to what one block puts out.
    """

    ### BEGIN SOLUTION
    def add(module, args, output):
        return output + strength * direction

    with model.blocks[number].register_forward_hook(add):
        yield
    ### END SOLUTION


# %% check="14.5"
check("14.5", steering)

# %% [markdown]
# ## 14.8 一次一个词 · One word at a time
#
# <div lang="zh">
#
# 模型要生成一段话，就反复猜下一个词，每次把猜到的词接在后面。
#
# 如果每猜一个词，都把前面的词重新读一遍，就太浪费了。后面的词要看前面的一个词，需要的只是两个向量，叫键和值，它们是每块的注意力为前面那个词算出来的。所以每块都把键和值存进缓存（`Cache`），下一步只要送一个新词进去。
#
# 这样一来，一块每次看到的词就不一样多了。假设提示有 10 个词，要生成 5 个词，那么挂在一块上的钩子会触发几次，每次看到几个词？**先猜。**
#
# </div>
# <div lang="en">
#
# To generate text, a model guesses the next word again and again, and appends each one to what it has read.
#
# It would be wasteful to read all earlier words anew for every guess. What later words need from an earlier one are, in
# each block, two vectors that attention has computed for it: its key and its value. So each block stores keys and
# values in a `Cache`, and the next step sends in just one new word.
#
# This means that a block does not see equally many words in every call. Suppose the prompt has 10 words, and 5 words
# are to be generated. How often does a hook on a block fire, and how many words does it see each time? **Guess first.**
#
# </div>

# %%
guess("14.h")

# %% tags=["E29"]
lengths, kept = [], []


def look(module, args, output):
    lengths.append(output.shape[1])
    kept.append(args[1].keys[0])  # the second argument is the cache


cache, prompt = Cache(), ids("Today is rainy . Lily and Hugo went to the")
# record() notes what goes into block 1; by then block 0 has stored its keys.
seen_by_record = record(model, ["blocks.1"], inputs=True)
with model.blocks[0].register_forward_hook(look), seen_by_record as recording:
    told = model.generate(prompt, 5, cache=cache)
print("says:", decode(told[0, 10:].tolist()))
print("words in each call:", lengths)
recorded = recording["blocks.1"].calls[-1].input[1].keys[0]
print("record() has what the cache has:", torch.equal(recorded, cache.keys[0]))
cache.keys[0].zero_()  # what a careless hook might do
print("and later? kept by the hook:", kept[-1].any().item(), " by record():", recorded.any().item())

# %% [markdown]
# <div lang="zh">
#
# 钩子一共触发 5 次。第一次，它看到整个提示，模型由此给出第一个新词。以后的 4 次，它每次只看到一个词，就是刚刚接上去的那个。
#
# 所以，如果用这样的钩子做引导，模型读到的每个词都会加上方向，而且只加一次。提示里的词和后来的新词都是这样。只有最后一个新词没有加，因为生成到它就结束了，模型没有再读它。
#
# </div>
# <div lang="en">
#
# The hook fires 5 times. In the first call it sees the whole prompt, and from that the model gives the first new word.
# In each of the other 4 calls it sees a single word, the one that was appended last.
#
# So if such a hook steers, it adds its direction once to every word that the model reads, in the prompt and after it.
# Only the last new word gets nothing. Generation ends with it, so the model never reads it.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 再来看缓存，这里有一点要当心。钩子留下了 `keys[0]`，却没有拷贝，所以它最后一次留下的，就是缓存自己的张量。后来我们把缓存里的这个张量就地清零，钩子最后一次留下的也就跟着全成了零。`any()` 查的是还有没有不是零的数，在这里它给出 `False`。
#
# `record()` 留下的是一份拷贝，所以那些数都还在，`any()` 给出 `True`。
#
# 模型要接着生成，就还要用到缓存。所以在钩子里可以看缓存，但不要就地改它。如果想留下里面的张量，就留一份拷贝。
#
# </div>
# <div lang="en">
#
# The cache needs care. The hook kept `keys[0]` without copying it, so what it kept in the last call is the cache's own
# tensor. Then we set this tensor of the cache to zero in place, and so what the hook had kept last became zero as well.
# `any()` tells whether some number is not zero, and here it gives `False`.
#
# `record()` had made a copy, so its numbers are still there, and `any()` gives `True`.
#
# To go on generating, the model needs its cache. So a hook may look at it, but should not change it in place. If you
# want to keep a tensor of it, keep a copy.
#
# </div>

# %% [markdown]
# ## 14.9 换成大模型 · On a large model
#
# <div lang="zh">
#
# 这一课做过的事，在 transformers 库的模型上也能做。步骤大致一样，只是各处的名字不同。下面的表列出了名字。
#
# | 这里 | GPT-2 | Llama |
# |---|---|---|
# | `model.blocks[2]` | `model.transformer.h[2]` | `model.model.layers[2]` |
# | `attention` | `attn` | `self_attn` |
# | `model.norm`、`model.unembed` | `model.transformer.ln_f`、`model.lm_head` | `model.model.norm`、`model.lm_head` |
# | `model(ids)` 是 logit | `model(ids).logits` | `model(ids).logits` |
# | `Cache` | `DynamicCache` | `DynamicCache` |
#
# 有一处不同容易看漏，就是块的输出。在 5.x 版里，这两种模型的块都输出张量。在 4.x 版里，GPT-2 的块输出元组，它的第一项才是残差流，那时的许多模型也是这样。
#
# </div>
# <div lang="en">
#
# What we did in this lesson can be done with models of the transformers library as well. The steps are much the same,
# but the names differ. The table lists them.
#
# | here | GPT-2 | Llama |
# |---|---|---|
# | `model.blocks[2]` | `model.transformer.h[2]` | `model.model.layers[2]` |
# | `attention` | `attn` | `self_attn` |
# | `model.norm`, `model.unembed` | `model.transformer.ln_f`, `model.lm_head` | `model.model.norm`, `model.lm_head` |
# | `model(ids)` gives logits | `model(ids).logits` | `model(ids).logits` |
# | `Cache` | `DynamicCache` | `DynamicCache` |
#
# One difference is easily missed, and that is what a block puts out. In version 5.x, a block of these two models puts
# out a tensor. In 4.x, a block of GPT-2 puts out a tuple whose first item is the residual stream, and so did the blocks
# of many other models then.
#
# </div>

# %% [markdown]
# <div lang="zh">
#
# 在那里，有两样东西要多写一点代码才拿得到。一样是注意力权重，只有用了 `attn_implementation="eager"` 才会有。另一样是 Llama 的缓存。它的块是按关键字参数收到缓存的，所以钩子只有用 `with_kwargs=True` 注册，才看得到它。
#
# 下面的程序把透镜、引导和生成在 GPT-2 的结构上各做一遍。权重是随机的，所以什么都不用下载，装了 `transformers` 就能运行。
#
# </div>
# <div lang="en">
#
# Two things take a little more work there. One is the attention weights, which you get only with
# `attn_implementation="eager"`. The other is the cache of Llama. Its blocks receive the cache as a keyword argument, so
# a hook sees it only if you register the hook with `with_kwargs=True`.
#
# The program below uses the lens, steering and generation once each, on the architecture of GPT-2. The weights are
# random, so there is nothing to download, and the program runs wherever `transformers` is installed.
#
# </div>
#
# ```python
# import torch
# from hookedu import record
# from transformers import GPT2Config, GPT2LMHeadModel
#
# config = GPT2Config(n_layer=4, n_embd=64, n_head=4, vocab_size=100, bos_token_id=0, eos_token_id=None)
# gpt = GPT2LMHeadModel(config).eval()
# prompt, push = torch.arange(9)[None], torch.randn(64)
# with record(gpt, ["transformer.h.*"]) as recording, torch.no_grad():
#     logits = gpt(prompt).logits
# stream = [layer.activation for layer in recording.values()]
# lens = [gpt.lm_head(gpt.transformer.ln_f(x)) for x in stream]  # after each block
#
# def add(module, args, output):
#     return output + 3 * push
#
# lengths = []
# with gpt.transformer.h[2].register_forward_hook(add):
#     steered = gpt(prompt).logits
# with gpt.transformer.h[0].register_forward_hook(lambda m, args, out: lengths.append(out.shape[1])):
#     gpt.generate(prompt, max_new_tokens=5, do_sample=False, pad_token_id=0)
# print(lengths)  # [9, 1, 1, 1, 1]
# ```

# %% [markdown]
# ## 14.10 小结 · Recap
#
# <div lang="zh">
#
# 1. 模块的输出可以是元组、字典或缓存：取出要的张量，断开，再拷贝。
# 2. 每块都往残差流上加东西；提前把残差流交给 `norm` 和 `unembed`，就是 logit lens，它显示模型到此为止会怎么猜。
# 3. 修补一处，看答案挽回多少：在前面的块之后，要紧的是不同的那个词；到最后，要紧的是最后一个词。
# 4. 探针要有对照，还要在没见过的例子上测；就算读得出来，也不等于模型用上了。
# 5. 引导就是在钩子里加一个方向；生成时，每个新词调用模型一次，钩子每次都触发。
#
# </div>
# <div lang="en">
#
# 1. The output of a module may be a tuple, a dictionary or a cache: take out the tensor that you want, detach it, and copy it.
# 2. Every block adds to the residual stream; if you hand the stream to `norm` and `unembed` early, the logit lens shows what the model would guess so far.
# 3. Patch one place and see how much of the answer comes back: early in the model, the word that differs is what counts, and late in the model, the last word.
# 4. A probe needs a control and examples that it has not seen; even then, the model need not use what the probe can read.
# 5. Steering adds a direction in a hook; during generation the model is called once for each new word, and the hook fires every time.
#
# </div>

# %% [markdown]
# ## 14.11 回想一下 · Recall
#
# <div lang="zh">
# <details><summary>1. 为什么可以在半路上就用 <code>norm</code> 和 <code>unembed</code>？</summary>每块只往残差流上加东西，宽度不变，所以哪里都可以当作最后。</details>
# <details><summary>2. 注意力图上的高值，为什么不能证明原因？</summary>看了不等于用了；要把激活换掉，看答案变不变。</details>
# <details><summary>3. 对照的探针为什么必不可少？</summary>它告诉我们瞎猜是什么样子：探针要高出它，才算读出了东西。训练用过的例子上，就连打乱的标签，探针也能读出一些。</details>
# </div>
# <div lang="en">
# <details><summary>1. Why may <code>norm</code> and <code>unembed</code> be used half-way?</summary>Each block only adds to the residual stream and keeps its width, so you can treat any place as if it were the last.</details>
# <details><summary>2. Why is a high value in a picture of attention no proof of a cause?</summary>A word may look at another without using what it sees; replace the activation, and see whether the answer changes.</details>
# <details><summary>3. Why is a control indispensable for a probe?</summary>The control shows what guessing looks like, and a probe has read something only if it does better. Where it was fitted, a probe reads even shuffled labels to some degree.</details>
# </div>

# %% [markdown]
# ## 14.12 真实世界里 · In the wild
#
# <div lang="zh">
#
# 这一课的实验，在真正的大模型上也有人做，而且有现成的工具。TransformerLens 给几十种语言模型里的这些位置起了统一的名字，所以同一段代码可以用在不同的模型上。nnsight 可以在远程服务器上的大模型里做这样的实验，模型不必放进你自己的机器。
#
# 用探针的时候，先要想好找的是哪一样信息。稀疏自编码器（SAE）却不必先想好，因为它会把残差流拆成许多特征，其中不少是人看得懂的。
#
# 如果你对引导感兴趣，可以搜索 activation addition 和 contrastive activation addition。不论读什么，都看看作者怎样做对照。
#
# </div>
# <div lang="en">
#
# People do the experiments of this lesson on really large models, and there are tools for it. TransformerLens gives
# these places the same names in dozens of language models, so that one program can serve for different models. With
# nnsight you can run such experiments on large models on remote servers, and the model need not fit into your own
# machine.
#
# For a probe, you have to decide beforehand what to look for. A sparse autoencoder (SAE) needs no such decision: it
# takes the residual stream apart into features, many of which people can understand.
#
# If steering is what interests you, search for activation addition and contrastive activation addition. Whatever you
# read, look at how the authors use controls.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
