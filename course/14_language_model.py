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
# 语言模型读一串词，猜下一个。光看答案，看不出它是怎么猜到的，得看它里面；这正是钩子的本事。
#
# 这一课的模型很小，结构却和大的一样：词变成向量，依次经过 4 块；每一块先用注意力在词之间搬运信息，再用一个小网络（MLP）加工每个词。它是这门课自己训练的，只会讲一种故事：晴天两个人去户外，雨天去屋里，一个给另一个一样东西，有时第三个人又把它拿走，有时还问一句东西在谁手里、人在哪里。下面先打印两个。
#
# **先猜一猜**：Anna 和 Ben 去了公园，Ben 把球给了谁？光看「Ben gave the ball to」，模型猜得到吗？
#
# </div>
# <div lang="en">
#
# A language model reads some words and guesses the next one. Its answer alone does not tell you how it was found. For
# that you have to look inside the model while it runs, and hooks let you do exactly that.
#
# The model of this lesson is small, but it is built like the large ones. Words become vectors and pass through 4
# blocks. In each block, attention first moves information between words, and then a small network (the MLP) works on
# every word. The model was trained for this course and tells one kind of story. Two people go outdoors when it is
# sunny and indoors when it is rainy, and one gives the other something. Sometimes a third person takes it away, and
# sometimes a question follows. The cell below prints two of these stories.
#
# **Guess first**: Anna and Ben went to the park, and Ben gives the ball to somebody. Who gets it? And could the model
# tell from "Ben gave the ball to" alone?
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
# 给了 Anna。把 Anna 换成 Carl，最后一句一个字没动，答案也跟着换；改成 Anna 来给，答案就是 Ben。光有最后半句，它连名字都不猜。可见模型回头看了前文，从两个人里挑出了**另一个**。它是在哪里、怎样做到的？
#
# 模型的输入是词的编号，每个词一个整数：`encode` 把词变成编号，`decode` 变回来。输出是每个位置上「下一个词」的 logit，我们要的是最后一个位置，`[0, -1]`。整个模型的代码不长，在 [`transformer.py`](../hookedu/models/stories/transformer.py) 里。
#
# </div>
# <div lang="en">
#
# The model says Anna. If we replace Anna by Carl, the answer changes as well, although the last sentence is the same
# word for word. If Anna is the giver, the answer is Ben. And from the last words alone, the model does not even guess
# a name. So it must have looked back and picked the **other** one of the two people. Where in the model does that
# happen, and how?
#
# The model receives word ids, one integer per word: `encode` turns words into ids, and `decode` turns ids back into
# words. At every position, the model returns the logits of the next word. We want those at the last position,
# `[0, -1]`. The code of the whole model is short: [`transformer.py`](../hookedu/models/stories/transformer.py).
#
# </div>

# %% [markdown]
# ## 14.2 出来的是两样东西 · Two things come out
#
# <div lang="zh">
#
# 信息靠注意力在词之间搬运，所以先看它。它有 4 个头，同时工作，各自决定看哪些词。它的 `forward` 返回两样东西：加到每个词上的向量，和一张「哪个词看哪个词」的表（注意力权重）。
#
# **先猜一猜**：在 `attention` 上挂一个照 5.4 节那样写的钩子，`output.detach()` 会怎样？
#
# </div>
# <div lang="en">
#
# Attention is what moves information between words, so we look there first. It has 4 heads that work side by side,
# and each head decides for itself which words to look at. The `forward` of attention returns two things: the vector
# that it adds to each word, and the attention weights, a table of which word looks at which.
#
# **Guess first**: suppose we put a hook on `attention` that is written as in section 5.4. What will its
# `output.detach()` do?
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
# 和 5.8 节一样，模块的输出不一定是张量：这里的注意力返回元组，别的库里还有字典一样的对象和缓存。钩子里直接写 `output.detach()`，就会出错；要先取出那一项，再 `detach().clone()`。`record()` 替你处理这些结构：元组还是元组，里面的张量各是一份拷贝；14.8 节的 `Cache` 也一样。
#
# </div>
# <div lang="en">
#
# As in section 5.8, the output of a module need not be a tensor: attention returns a tuple here, and in other libraries you will meet objects like dictionaries, and caches. A plain `output.detach()` then fails, so pick out the item that you want, and call `detach().clone()` on it. `record()` copes with these structures: a tuple stays a tuple, each tensor in it is a copy, and the same goes for the `Cache` of section 14.8.
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
    ax.imshow(pattern[0].amax(dim=0), vmin=0, vmax=1, cmap="Blues")
    ax.set(title=f"block {number}", xticks=range(len(words)), yticks=range(len(words)))
    ax.set_xticklabels(words, rotation=90, fontsize=6)
    ax.set_yticklabels(words, fontsize=6)
_ = axes[0].set_ylabel("word that looks")

# %% [markdown]
# <div lang="zh">
#
# 每张图里，一行是一个词，颜色表示它看了哪些词（几个头里取最大的）。最后一行是 `to`：第 2 块里它主要看两个人的名字，第 3 块里主要看 `gave` 和给东西的 `Ben`。这只是线索，还不是证据：看了，不等于用了。要证据，就得动手改一改，14.4 节就来改。
#
# </div>
# <div lang="en">
#
# In each picture, a row is a word, and the colours show which words it looks at (the largest value over the heads).
# The last row belongs to `to`. In block 2 this word looks mostly at the two names, and in block 3 mostly at `gave`
# and at `Ben`, who gives. This is a clue but not a proof, because a word may look at another without using what it
# sees. For a proof we have to change something, and section 14.4 does.
#
# </div>

# %% [markdown]
# ### 练习 14.1：什么结构都接得住 · Exercise 14.1: Whatever comes out
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 一个工具要对任何模型都管用，就得什么输出都接得住。写 `outputs_of(model, names, *args, **kwargs)`：用这些参数调用 `model` 一次，返回字典：名字 → 那一层的输出。
#
# 输出可能是张量，也可能是普通的元组、列表、字典，层层嵌套。
#
# - 结构照旧。里面的每个张量都换成断开的拷贝，模型以后改不到它；别的东西不动。
# - 一层运行了几次，只留最后一次的输出；没有运行的不在字典里。每一层只有一个名字。
# - 不论出什么异常，都不留下钩子。
#
# </div>
# <div lang="en">
#
# A tool that is to work on any model must not be surprised by what its layers put out. Write
# `outputs_of(model, names, *args, **kwargs)`, which calls `model` once with these arguments and returns a dictionary
# from each name to the output of that layer.
#
# An output may be a tensor, or plain tuples, lists and dictionaries, nested inside each other.
#
# - Keep the structure. Every tensor in it becomes a detached copy, so that the model cannot change later what you
#   have kept. Anything else stays as it is.
# - If a layer runs several times, keep only its last output. A layer that does not run is not in the dictionary.
#   No layer has two names.
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
# 每一块都往同一个向量上**加**东西：先 `x + attention(norm1(x))[0]`，再 `x + mlp(norm2(x))`。这个从头流到尾的向量叫残差流（residual stream），起初是词的向量加上位置的向量。最后，`norm`（层归一化，和 `norm1`、`norm2` 一样）和 `unembed`（线性层）把它变成 logit。
#
# 每一块之后，它都是同样宽的向量，所以不必等到最后，可以提前问：要是模型到这里为止，它会说什么？把残差流直接交给 `norm` 和 `unembed` 就行，这叫 logit lens。
#
# **先猜一猜**：过了几块，透镜会说 Anna？在 Anna 给球、答案是 Ben 的那个故事里呢？
#
# </div>
# <div lang="en">
#
# A block does not replace the vector that it receives, it **adds** something to it: first
# `x + attention(norm1(x))[0]`, then `x + mlp(norm2(x))`. The vector that flows through all blocks in this way is
# called the residual stream. It starts as the vector of the word plus one for its position. At the end, two layers
# turn it into logits: `norm`, a layer normalisation like `norm1` and `norm2`, and `unembed`, a linear layer.
#
# Because the stream has the same width after every block, we need not wait for the end. We can ask early: if the
# model ended here, what would it say? To find out, hand the residual stream to `norm` and `unembed` right away. This
# is called the logit lens.
#
# **Guess first**: after how many blocks does the lens say Anna? And what does it say in the story in which Anna gives
# and the answer is Ben?
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
# 一块之后，透镜还说不出什么；两块之后，它猜的都是名字。三块之后，两个故事里它都说 Anna，可是其中一个的答案是 Ben：Anna 只是它偏爱的名字，还不是答案（把提示开头的两个名字对调，它还是说 Anna，不妨试试）。过了最后一块，才一个说 Anna，一个说 Ben。
#
# 可见透镜说的是模型到此为止会怎么猜；猜中了不等于知道，要换一个答案不同的故事来比。最后一个深度的透镜，和模型自己的 logit 一位不差，因为它走的就是模型的最后两步。
#
# </div>
# <div lang="en">
#
# After one block the lens can hardly say anything, and after two blocks it guesses names. After three it says Anna in
# both stories, although in one of them the answer is Ben. So Anna is only a name that the model favours, and not the
# answer. (Try it: swap the two names at the beginning of the prompts, and the lens still says Anna.) Only after the
# last block does it say Anna in one story and Ben in the other.
#
# The lens shows what the model would guess so far, and a right guess is not yet knowledge. That is why you should
# always compare with a story whose answer is different. At the last depth, the lens equals the model's own logits to
# the last bit, because it consists of the model's own last two steps.
#
# </div>

# %% [markdown]
# ### 练习 14.2：透过透镜看 · Exercise 14.2: Through the lens
#
# ●● · 8 min
#
# <div lang="zh">
#
# 上面一次只看一个提示；写成函数 `logit_lens(model, ids)`，就能一次看一批。`ids` 的形状是 `(batch, words)`。
#
# 返回形状为 `(blocks + 1, batch, vocabulary)` 的张量，每个深度一项：先是第 0 块之前的残差流，再是每一块之后的。每一项都是残差流在最后一个位置上，经过 `norm` 和 `unembed` 得到的 logit：下一个词就是在那里猜的。
#
# 模型只运行一次，因为一次就经过了所有的深度。不论出什么异常，都不留下钩子。
#
# </div>
# <div lang="en">
#
# So far we have read the lens for one prompt at a time. To read it for a whole batch, write `logit_lens(model, ids)`,
# where `ids` holds the word ids of the prompts and has the shape `(batch, words)`.
#
# Return a tensor of shape `(blocks + 1, batch, vocabulary)` with one entry for each depth: first for the residual
# stream before block 0, then for the stream after each block. An entry holds the logits that `norm` and `unembed`
# make of the stream at the last position, because that is where the next word is guessed.
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
# 两个故事说明不了什么，下面新讲 200 个。每个故事里挑几个要靠前面的句子才知道的词（`story.fixed` 记着它们的位置），数一数每个深度答对多少；`to` 后面的名字，也就是谁收到东西，另外再数一遍（`receives | True` 是全部都要）。
#
# 代码里，`inputs=True` 让 `record` 连每一层的输入也留下：`.calls[0].input` 是第一次调用的参数，一个元组；`.activations` 是字典，列出每一层的输出。`blocks.*` 里的 `*` 代表一段名字，不跨过点。
#
# </div>
# <div lang="en">
#
# Two stories prove little, so let us tell 200 fresh ones. In each of them, `story.fixed` lists the positions of a few
# words that can be known only from earlier sentences, and we count the share of these words that each depth gets
# right. We count once more for the names after `to` alone, which say who receives something (`receives | True` takes
# all words).
#
# In the code, `inputs=True` makes `record` keep what goes into each layer as well. `.calls[0].input` is the tuple of
# arguments of its first call, and `.activations` is a dictionary with the output of every layer. The `*` in
# `blocks.*` stands for one part of a name, without dots.
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
# 每过一块，答对的都多一些。谁收到东西，却要等到最后一块：三块之后只对了一半，和在两个人里抛硬币差不多，过了最后一块全对。
#
# </div>
# <div lang="en">
#
# With every block, more of the words are right. But the question of who receives something has to wait for the last
# block. After three blocks half of those names are right, about as many as you would get by tossing a coin between
# two people. After the last block all of them are right.
#
# </div>

# %% [markdown]
# ## 14.4 换一个词的激活 · Patching one word
#
# <div lang="zh">
#
# 透镜说出模型会怎么猜，没有说凭的是哪里的信息。要找原因，就做实验：`clean` 和 `corrupted` 只差一个词，答案相反。模型读 `corrupted` 时，把残差流在**一块、一个词**的位置上，换成读 `clean` 时的，看答案挽回多少。这叫激活修补（activation patching）。
#
# 钩子返回的东西取代输出，5.6 节用过。挽回的比例这样算：`(patched - bad) / (good - bad)`，三个数都是 Anna 与 Ben 的 logit 之差：`good` 是读 `clean` 时的，`bad` 是读 `corrupted` 时的，`patched` 是读 `corrupted`、只换一处时的。
#
# **先猜一猜**：两个提示不同的只有倒数第五个词，一个是 `Ben`，一个是 `Anna`。第 0 块之后，在哪个位置修补有用？最后一块之后呢？
#
# </div>
# <div lang="en">
#
# The lens shows what the model would guess, but not where it takes the information from. To find that out, we need an
# experiment. `clean` and `corrupted` differ in one word and have opposite answers. While the model reads `corrupted`,
# we replace the residual stream after **one block at one word** by that of the run on `clean`, and see how much of
# the answer comes back. This is called activation patching.
#
# A hook can do this, because what it returns takes the place of the output, as in section 5.6. We measure how much
# comes back by `(patched - bad) / (good - bad)`. All three are differences between the logits of Anna and of Ben:
# `good` when the model reads `clean`, `bad` when it reads `corrupted`, and `patched` when it reads `corrupted` with
# that one change.
#
# **Guess first**: the prompts differ only in the fifth word from the end, which is `Ben` or `Anna`. At which position
# does a patch help after block 0? And at which after the last block?
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
# 第 0 块之后，起作用的差别还全在不同的那个词上：修补它挽回 1.00，修补最后一个词毫无用处。最后一块之后正好相反，而且在这样的模型里都如此：后面不再有注意力，答案只从最后一个词读出。差别是在中间哪一块搬过去的，要看下面整张图。
#
# </div>
# <div lang="en">
#
# After block 0, all of the difference that matters is still at the word that differs. So a patch there restores 1.00,
# while a patch at the last word restores nothing. After the last block it is the other way round, and this is so in
# any such model: no attention follows any more, and the answer is read from the last word alone. Somewhere in
# between, the difference has moved from one word to the other. To see which block moved it, we need the whole map
# below.
#
# </div>

# %% [markdown]
# ### 练习 14.3：换一处 · Exercise 14.3: One patch
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 刚才的实验只修补了一对故事；写成函数 `patched(model, clean, corrupted, number, place)`，一次就能做一批。`clean` 和 `corrupted` 是词的编号，一个词一个整数，形状都是 `(batch, words)`，同一行的两个提示是一对。
#
# 返回模型读 `corrupted` 的 logit，`(batch, words, vocabulary)`，只改一处：第 `number` 块的输出，在第 `place` 个词上，换成读 `clean` 时的值。块和词都从 0 数起。
#
# - 别的词、别的块都不换，否则说不清是哪一处起了作用。
# - 输出只在拷贝上改：别的钩子也许还留着它。
# - 不留下钩子，中途出了异常也一样，否则以后的运行也会被改动。
#
# </div>
# <div lang="en">
#
# The experiment above patched one pair of stories. To patch a whole batch of pairs, write
# `patched(model, clean, corrupted, number, place)`. `clean` and `corrupted` are word ids, one integer per word, both
# of shape `(batch, words)`, and the two prompts in the same row are a pair.
#
# Return the model's logits for `corrupted`, of shape `(batch, words, vocabulary)`, with one change: at word `place`,
# the output of block `number` is replaced by its value when the model reads `clean`. Blocks and words both count
# from 0.
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
# 信息在模型里走的是哪条路？每一处都修补一次，画成地图，就看得出来。写 `patching_map(model, clean, corrupted, right, wrong)`：两个提示都是 `(1, words)`，`right` 和 `wrong` 是两个词的编号，不一定是 Anna 和 Ben。返回形状为 `(blocks, words)` 的浮点张量。
#
# 每一格像 14.3 那样修补一处，看最后一个词上，`right` 的 logit 比 `wrong` 的大多少。这个差，读 `clean` 时是 `good`，读 `corrupted` 时是 `bad`，修补以后是 `patched`。什么也没有挽回应该是 0，全部挽回应该是 1，所以这一格填 `(patched - bad) / (good - bad)`。
#
# - 小于 0、大于 1 的照样留着：那是帮了倒忙，或者过了头。
# - 每一格单独修补，才看得出那一处的作用。
# - `clean` 只让模型读一次，各块的输出都留下来。
# - 输出只在拷贝上改。
# - 不留下钩子，中途出了异常也一样。
#
# </div>
# <div lang="en">
#
# Which way does the information take through the model? To see it, patch every place in turn and put the results on a
# map. Write `patching_map(model, clean, corrupted, right, wrong)`. Both prompts have the shape `(1, words)`, and
# `right` and `wrong` are two word ids, not always those of Anna and Ben. Return a tensor of floats of shape
# `(blocks, words)`.
#
# For each entry, make one patch as in 14.3, and look at the last word: by how much is the logit of `right` larger than
# that of `wrong`? This difference is `good` for `clean`, `bad` for `corrupted`, and `patched` after the patch. An entry
# of 0 means that the patch restores nothing, and 1 that it restores everything: `(patched - bad) / (good - bad)`.
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
# 图上看得见搬家：前三格在 `Anna` 那个词，最后一格在 `to`。谁给的，到最后一块才搬过来，所以透镜在那以前只能碰运气。别的词修补了也没用，`gave` 也一样：`to` 看了它，谁给的却不是从它那里知道的。
#
# 不过，这张图量的是两个故事的**差别**：前面的两个名字模型也要用，可是两个故事里一样，图上就看不见。这样的地图要先查两样才可信：全部修补（`slice(None)`）正好挽回 1.0，一处不修补（`slice(0)`）正好是 0.0。代码里的 `abs` 只是免得印出 `-0.00`。
#
# </div>
# <div lang="en">
#
# The picture shows the move: after the first three blocks, the square that counts is at the word `Anna`, and after
# the last one at `to`. So it is the last block that carries over who gives, and until then the lens could only be
# lucky. Patching any other word does not help, not even `gave`: `to` looked at it, but did not learn there who gives.
#
# Keep in mind that a map shows the **difference** between two stories. The model needs the two names further up as
# well, but they are the same in both stories, so the map cannot show them. Before you believe a map, let it pass two
# checks: patching every word (`slice(None)`) restores exactly 1.0, and patching none (`slice(0)`) exactly 0.0. The
# `abs` in the code only avoids printing `-0.00`.
#
# </div>

# %% [markdown]
# ## 14.5 关掉一个头 · Switch off a head
#
# <div lang="zh">
#
# 修补说出了信息在哪里，还没说是谁搬的。注意力有 4 个头，在 `attention.out` 的输入里，各个头的结果并排放着，每个头占 16 列。用前置钩子把一个头的 16 列改成 0，就关掉了它。第二段代码倒过来做：模型读 `corrupted`，`put_head` 只把一个头在最后一个词上的结果，换成读 `clean` 时的。
#
# **先猜一猜**：Anna 给球的那个故事，差是负的，模型说 Ben。16 个头，关掉一个，差会变多少？都差不多，还是只有几个要紧？
#
# </div>
# <div lang="en">
#
# Patching shows where the information is, but not who carried it there. The suspects are the 4 heads of attention. In
# the input of `attention.out` their results stand side by side, 16 columns each, so a pre-hook can switch a head off
# by setting its 16 columns to 0. The second cell does the reverse: while the model reads `corrupted`, `put_head`
# replaces the result of one head at the last word by its result for `clean`.
#
# In the story in which Anna gives, the difference is negative and the model says Ben. **Guess first**: if you switch
# off one of the 16 heads, by how much does that difference change? By about the same for each of them, or do only a
# few matter?
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
# 大多数头，关掉也没有什么。关掉第 3 块的 3 号头，差却变了号，两个故事里 Anna 都远远超过 Ben：模型分不出是谁给的，就说偏爱的名字。
#
# 不过关掉一样东西，结果变坏，也可能只是碰坏了别的。所以再倒过来做：读 `corrupted`，只把一个头在 `to` 上的结果换成读 `clean` 时的。换 3 号头，答案就全部挽回；换这一块的另外三个，一点用也没有。可见把谁给的告诉最后一个词的，就是 3 号头。
#
# </div>
# <div lang="en">
#
# Most heads can be switched off without much harm. But without head 3 of block 3 the difference changes its sign, and
# Anna is far ahead of Ben in both stories: the model cannot tell who gives and falls back on the name that it
# favours.
#
# Yet this alone is no proof, because switching something off may simply break something else. So we also did the
# reverse: while the model reads `corrupted`, we replaced the result of one head at `to` by its result for `clean`.
# With head 3, all of the answer comes back, and with any of the other three heads of this block, nothing does. So
# head 3 is the one that tells the last word who gives.
#
# </div>

# %% [markdown]
# ## 14.6 探针，和它的对照 · A probe and its control
#
# <div lang="zh">
#
# 还可以换个问题：某样东西，比如天气，在某一层的激活里还读得出来吗？训练一个很简单的分类器（线性探针），试试就知道。这里用岭回归，也就是最小二乘加一点惩罚（`+ eye`），不让权重太大。
#
# 可是要当心：几十维的向量、几百个故事，就连打乱的标签，探针在训练用过的故事上也能「读」出一些。所以要在别的故事上测验；还要有对照：标签全部打乱，照样训练，照样测验，看看瞎猜是什么样子。
#
# **先猜一猜**：在「went to the」的 `the` 上，天气从第几层起读得出来？打乱标签的对照呢？
#
# </div>
# <div lang="en">
#
# We can also ask what information a layer holds. Can the weather, for example, still be read from its activations? To
# find out, train a very simple classifier on them, a linear probe. Ours is a ridge regression, which means least
# squares with a penalty (`+ eye`) that keeps the weights small.
#
# But beware: with dozens of dimensions and a few hundred stories, a probe "reads" even shuffled labels to some degree
# in the stories it was fitted to. So we test the probe on other stories, and we give it a control: the same probe,
# fitted and tested alike, but with all labels shuffled. The control shows what guessing looks like.
#
# **Guess first**: at the `the` of "went to the", from which layer on can the weather be read? And what does the
# control say?
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
# 从词嵌入里读不出天气，因为 `the` 总是同一个 `the`。第 0 块之后就读得出来了，而且一个也没有读错，对照却在哪一层都是瞎猜。括号里的数说明，为什么要换别的故事来测：在训练用过的故事上，连对照也像知道些什么。不过，读得出来，不等于模型用了它；用没用，要靠修补或引导来查。
#
# </div>
# <div lang="en">
#
# From the embedding the weather cannot be read, because `the` is always the same `the`. After block 0, however, the
# probe reads it without a mistake, while the control only guesses at every layer. The numbers in brackets show why we
# test on other stories: in the stories it was fitted to, even the control seems to know something. Still, the model
# need not use what a probe can read. Whether it does, patching or steering can show.
#
# </div>

# %% [markdown]
# ## 14.7 引导 · Steering
#
# <div lang="zh">
#
# 读得出来，就写得进去吗？取晴天和雨天激活的平均，两者之差是一个方向。模型运行时，用前向钩子把这个方向加到一块的输出上，这叫引导（steering）。方向是在 `the` 上量的，却加在每个词上。
#
# **先猜一猜**：下雨天，大家去屋里。加上「晴天减雨天」的方向，强度从 0 到 2，去户外的概率怎样变？强度是 0 的时候，输出和没有钩子时一位不差吗？
#
# </div>
# <div lang="en">
#
# If we can read something from a layer, can we write it there as well? Take the mean activation on sunny days and the
# mean on rainy days: the difference of the two is a direction. While the model runs, a forward hook adds that
# direction to the output of a block, and this is called steering. Here we measure the direction at `the`, but add it
# to every word.
#
# On a rainy day people go indoors. **Guess first**: if you add the direction "sunny minus rainy" with a strength from
# 0 to 2, how does the probability of going outdoors change? And at strength 0, is the output the same to the last
# bit?
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
# 强度加到 1，概率就从几乎是 0 变到接近 1，该去屋里的人去了户外。这一把推得很重：强度是 1 时，加上去的向量和残差流自己差不多长（印出来的长度，就是向量的范数）。强度是 0 时，输出一位不差；钩子一取下，一切恢复原样。
#
# 代价也看得见：故事接着讲下去，每个词都被往同一个方向推一把，强度到了 1，句子就散了，到了 2，只剩下户外的地方。
#
# </div>
# <div lang="en">
#
# As the strength grows to 1, the probability of going outdoors rises from almost 0 to nearly 1: people who went indoors
# now go outdoors. That takes a strong push. At strength 1, the vector that the hook adds is about as long as the
# residual stream to which it is added (the length printed is the norm of a vector). At strength 0 the output is the
# same to the last bit, and once the hook is off, everything is as before.
#
# But there is a price. As the story goes on, the hook pushes every single word in the same direction. At strength 1 the
# sentences fall apart, and at strength 2 nothing remains but places outdoors.
#
# </div>

# %% [markdown]
# ### 练习 14.5：引导，不留痕迹 · Exercise 14.5: Steer and leave nothing
#
# ●●● · 10 min
#
# <div lang="zh">
#
# 引导要能随时打开，关了又不留痕迹，正适合用上下文管理器。写 `steering(model, number, direction, strength)`，返回这样一个：在它里面，第 `number` 块的输出处处加上 `strength * direction`，方向不另外归一化；出来以后，不论有没有异常，一切照旧。
#
# - 强度是 0 时，输出一位不差，正好拿来比较。
# - 可以一个套一个，各加各的。
# - 梯度照样流过（这一课关掉了梯度，自己试时用 `with torch.enable_grad():`）。
# - 不要就地改动块的输出：残差流里，别人也拿着它。
#
# </div>
# <div lang="en">
#
# Steering should be easy to switch on, and leave no trace when it is off: a job for a context manager. Write
# `steering(model, number, direction, strength)`, which returns one. Inside it, `strength * direction` is added
# everywhere to the output of block `number`, with the direction as given and not normalised. Afterwards everything is
# as before, whether something was raised or not.
#
# - At strength 0 the output must be the same to the last bit, so that you can compare with it.
# - One such context may stand inside another, and then each adds its own.
# - Gradients flow as usual. (This lesson has switched them off: use `with torch.enable_grad():` to try.)
# - Do not change a block's output in place, because others hold the residual stream as well.
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
# 生成就是反复猜下一个词，再把它接上。已经读过的词不必再读：每块把它们的键和值（注意力为每个词算出的两个向量，后面的词靠它们来看它）存进缓存（`Cache`），下一步只送一个新词进去。
#
# **先猜一猜**：提示有 10 个词，生成 5 个。挂在一块上的钩子触发几次，每次看到几个词？
#
# </div>
# <div lang="en">
#
# To generate text, a model guesses the next word again and again, and appends it each time. To read all earlier words
# anew for every guess would waste time. Instead, each block stores their keys and values, two vectors per word
# through which later words look at it, in a `Cache`, and the next step sends in just one new word.
#
# **Guess first**: with a prompt of 10 words and 5 words to generate, how often does a hook on a block fire, and how
# many words does it see each time?
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
# 一共触发 5 次：第一次看到整个提示，并给出第一个新词；以后的 4 次，每次只看到一个词。所以在这样的钩子里加引导，读进去的每个词都加一次：提示里的词，还有每个新词，只除了最后一个，它没有再读进去。
#
# 再看缓存。最后一次，钩子留下的不是 `keys[0]` 的拷贝，而是缓存自己的张量。所以缓存一被就地清零，它也全成了零，`False` 就是说没有一个数不是零。`record()` 留的是拷贝，所以那些数还在（`True`）。模型还要用缓存，所以只看，不要就地改；要留下，就留一份拷贝。
#
# </div>
# <div lang="en">
#
# The hook fires 5 times. In the first call it sees the whole prompt, and the model gives the first new word. In each of
# the other 4 calls it sees a single word. So if such a hook steers, it adds its direction once to every word that the
# model reads: to those of the prompt, and to each new word except the last, which is never read.
#
# The cache needs care. What the hook kept in the last call is not a copy of `keys[0]` but the cache's own tensor. So
# when we set the cache to zero in place, what the hook kept becomes zero too, and `False` says that no other number is
# left. `record()` made a copy, so its numbers are still there (`True`). The model still needs its cache. So only look
# at it, never change it in place, and if you want to keep something, keep a copy.
#
# </div>

# %% [markdown]
# ## 14.9 换成大模型 · On a large model
#
# <div lang="zh">
#
# 换成 transformers 库里的模型，步骤大致一样，只是名字不同。（注意力权重要用 `attn_implementation="eager"` 才有；Llama 的块按关键字参数收到缓存。）下面的程序用 GPT-2 的结构和随机的权重，不用下载；装了 `transformers` 就能运行，课程的测试也运行它。
#
# | 这里 | GPT-2 | Llama |
# |---|---|---|
# | `model.blocks[2]` | `model.transformer.h[2]` | `model.model.layers[2]` |
# | `attention` | `attn` | `self_attn` |
# | `model.norm`、`model.unembed` | `model.transformer.ln_f`、`model.lm_head` | `model.model.norm`、`model.lm_head` |
# | `model(ids)` 是 logit | `model(ids).logits` | `model(ids).logits` |
# | `Cache` | `DynamicCache` | `DynamicCache` |
#
# 有一处不同，容易看漏：5.x 版里，这两种模型的块输出张量；4.x 版里，GPT-2 的块输出元组，第一项才是残差流，那时的许多模型也一样。
#
# </div>
# <div lang="en">
#
# With models of the transformers library, the steps are much the same, but the names differ. (Attention weights are
# there only with `attn_implementation="eager"`, and the blocks of Llama get their cache as a keyword argument.) The
# program below has the architecture of GPT-2 but random weights, so there is nothing to download. It runs wherever
# `transformers` is installed, and the tests of this course run it.
#
# | here | GPT-2 | Llama |
# |---|---|---|
# | `model.blocks[2]` | `model.transformer.h[2]` | `model.model.layers[2]` |
# | `attention` | `attn` | `self_attn` |
# | `model.norm`, `model.unembed` | `model.transformer.ln_f`, `model.lm_head` | `model.model.norm`, `model.lm_head` |
# | `model(ids)` gives logits | `model(ids).logits` | `model(ids).logits` |
# | `Cache` | `DynamicCache` | `DynamicCache` |
#
# One difference is easily missed. In version 5.x, a block of these two models puts out a tensor. In 4.x, a block of
# GPT-2 puts out a tuple whose first item is the residual stream, and so did the blocks of many other models then.
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
# 2. 每块都往残差流上加东西；提前交给 `norm` 和 `unembed`，就是 logit lens：看模型到此为止会怎么猜。
# 3. 修补一处，看答案挽回多少：起初是在不同的词上，到头来是在最后一个词上。
# 4. 探针要有对照，还要在没见过的例子上测；读得出来，不等于用上了。
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
# TransformerLens 给几十种语言模型的这些位置起了统一的名字，nnsight 可以在远程服务器上的大模型里做同样的实验；稀疏自编码器（SAE）把残差流拆成看得懂的特征。对引导感兴趣，就搜索 activation addition 和 contrastive activation addition。读的时候，看看他们怎样做对照。
#
# </div>
# <div lang="en">
#
# TransformerLens gives these places the same names in dozens of language models, and nnsight runs such experiments on
# large models on remote servers. Sparse autoencoders (SAEs) take the residual stream apart into features that people
# can understand. If steering is what interests you, search for activation addition and contrastive activation
# addition. Whatever you read, look at how the authors use controls.
#
# </div>

# %% tags=["nbval-ignore-output"]
progress()
