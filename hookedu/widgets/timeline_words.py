"""What HookTimeline says, in both languages; js/hook_timeline.js takes its words from here by key."""

from collections import Counter

from hookedu.hooks.inspection import Hook
from hookedu.language import Text

# kind of event -> how the hook is registered, its signature, when it fires and what it may return
KINDS = {
    "forward_pre": (
        "module.register_forward_pre_hook(hook)",
        "hook(module, args)",
        Text(
            zh="模块的 forward 即将运行；钩子看到输入，返回值会替换输入。",
            en="The module's forward is about to run; the hook sees its input and may return another.",
        ),
    ),
    "forward": (
        "module.register_forward_hook(hook)",
        "hook(module, args, output)",
        Text(
            zh="模块的 forward 刚运行完；钩子看到输入和输出，返回值会替换输出。",
            en="The module's forward has run; the hook sees input and output and may return another output.",
        ),
    ),
    "output_grad": (
        "output.register_hook(hook)",
        "hook(grad)",
        Text(
            zh="输出张量的梯度算出来了；返回值会替换这个梯度。",
            en="The gradient of the output tensor is there; the hook may return another.",
        ),
    ),
    "backward_pre": (
        "module.register_full_backward_pre_hook(hook)",
        "hook(module, grad_output)",
        Text(
            zh="反向传播即将进入模块；钩子看到 grad_output，返回值会替换它。",
            en="Backward is about to enter the module; the hook sees grad_output and may return another.",
        ),
    ),
    "param_grad": (
        "parameter.register_hook(hook)",
        "hook(grad)",
        Text(
            zh="参数的梯度算出来了，还没有累加到 .grad；返回值会替换这个梯度。",
            en="The parameter's gradient is there, not yet added to .grad; the hook may return another.",
        ),
    ),
    "post_accumulate": (
        "parameter.register_post_accumulate_grad_hook(hook)",
        "hook(parameter)",
        Text(
            zh="梯度已累加到参数的 .grad；钩子收到的是参数本身。",
            en="The gradient has been added to the parameter's .grad; the hook gets the parameter itself.",
        ),
    ),
    "backward": (
        "module.register_full_backward_hook(hook)",
        "hook(module, grad_input, grad_output)",
        Text(
            zh="模块输入的梯度算出来了（输入不需要梯度时，反向传播才刚进入模块）；钩子看到两侧的梯度，返回值会替换 grad_input。",
            en="The gradient of the module's input is there (if it needs none, backward has only just entered the module); "
            "the hook sees the gradients on both sides and may return another grad_input.",
        ),
    ),
    "input_grad": (
        "input.register_hook(hook)",
        "hook(grad)",
        Text(
            zh="输入张量的梯度算出来了；返回值会替换这个梯度。",
            en="The gradient of the input tensor is there; the hook may return another.",
        ),
    ),
}
WORDS = {f"says_{kind}": says for kind, (_, _, says) in KINDS.items()} | {
    "modes": Text(zh="怎么看", en="What to do"),
    "watch": Text(zh="观看", en="Watch"),
    "predict": Text(zh="预测", en="Predict"),
    "again": Text(zh="重新运行", en="Run again"),
    "tip_again": Text(
        zh="模型或输入变了：重新运行一遍", en="The model or its input has changed: run it again"
    ),
    "failed": Text(
        zh="运行时出现异常，没有事件可看。修好模型、输入或 `loss`，再点“重新运行”。",
        en="The run raised an exception, so there are no events to show. Mend the model, the input or `loss`, and press "
        "“Run again”.",
    ),
    # The drawing.
    "drawing": Text(zh="模型，以及上面的钩子", en="The model and the hooks on it"),
    "mark": Text(zh="{where} 上的 {kind}", en="{kind} at {where}"),
    "mark_inside": Text(zh="{where} 里面的钩子", en="Hooks inside {where}"),
    "unfold": Text(zh="打开 {name}", en="Open {name}"),
    "fold": Text(zh="收起 {name}", en="Close {name}"),
    "parameters": Text(zh="参数", en="parameters"),
    "legend": Text(
        zh="蓝色向右：前向传播。紫色向左：反向传播。圆：模块上的钩子；菱形：张量上的钩子；方块：梯度累加之后的钩子。"
        "这些钩子是控件自己挂上的；你的钩子照常运行，但不画在图里。",
        en="Blue, to the right: forward. Purple, to the left: backward. Circle: a hook on a module; diamond: on a tensor; "
        "square: after the gradient was accumulated. "
        "These hooks are the widget's own; yours run as usual, but are not drawn.",
    ),
    "own": Text(zh="", en=""),  # there are none
    "jump": Text(
        zh="点一个标记，就跳到它下一次触发的时候。",
        en="Click a mark to jump to the next time that it fires.",
    ),
    # Going through the events.
    "controls": Text(zh="播放控制", en="Playback"),
    "play": Text(zh="播放", en="Play"),
    "pause": Text(zh="暂停", en="Pause"),
    "back": Text(zh="上一个", en="Back"),
    "next": Text(zh="下一个", en="Next"),
    "event": Text(zh="事件", en="Event"),
    "speed": Text(zh="速度", en="Speed"),
    "per_second": Text(zh="每秒 {n} 个", en="{n} per second"),
    "count": Text(zh="**{n} / {total}**", en="**{n} / {total}**"),
    "phase_forward": Text(zh="前向传播", en="forward pass"),
    "phase_backward": Text(zh="反向传播", en="backward pass"),
    "at": Text(
        zh="第 {n} 个，共 {total} 个：{where} 上的 {kind}，形状 {shape}",
        en="Event {n} of {total}: {kind} at {where}, shape {shape}",
    ),
    # About one event.
    "module": Text(zh="模块", en="Module"),
    "call": Text(zh="调用序号 {call}", en="call {call}"),
    "registration": Text(zh="注册", en="Registered by"),
    "signature": Text(zh="签名", en="Signature"),
    "shape": Text(zh="形状", en="Shape"),
    "values": Text(zh="数值", en="Values"),
    "too_large": Text(zh="这次运行太大，没有保留数值", en="this run is too large to keep values"),
    "note": Text(zh="", en=""),
    # Predict.
    "question": Text(
        zh="**下一个触发的是哪个钩子？**（第 {n} 个，共 {total} 个）",
        en="**Which hook fires next?** (event {n} of {total})",
    ),
    "answers": Text(zh="你的预测", en="Your prediction"),
    "right": Text(zh="✓ 正确：`{answer}`。", en="✓ Right: `{answer}`."),
    "wrong_later": Text(
        zh="✗ 不对：你选的是 `{guess}`，实际触发的是 `{answer}`。你选的要到第 {fires} 个才触发。",
        en="✗ Not this time: you chose `{guess}`, and `{answer}` fired. Yours fires later, as event {fires}.",
    ),
    "wrong_before": Text(
        zh="✗ 不对：你选的是 `{guess}`，实际触发的是 `{answer}`。你选的已经触发过了，是第 {fires} 个。",
        en="✗ Not this time: you chose `{guess}`, and `{answer}` fired. Yours has fired already, as event {fires}.",
    ),
    "why_backward_waits": Text(
        zh="整个模型的前向传播结束以后，反向传播才开始。",
        en="Backward begins only when the forward pass of the whole model has ended.",
    ),
    "why_forward_over": Text(
        zh="前向传播已经结束，它的钩子不会再触发。", en="The forward pass has ended: its hooks fire no more."
    ),
    "why_after": Text(
        zh="`forward_pre` 钩子在模块的 `forward` 之前触发，`forward` 钩子在它之后。",
        en="A `forward_pre` hook fires before the module's `forward`, a `forward` hook after it.",
    ),
    "why_inside": Text(
        zh="模块里面的都运行完了，它的 `forward` 钩子才触发。",
        en="The `forward` hook of a module fires only when everything inside the module has run.",
    ),
    "why_outside": Text(
        zh="外面的模块先开始，里面的才开始。", en="A module begins before what is inside of it."
    ),
    "why_order": Text(
        zh="前向传播里，先被调用的模块先触发。",
        en="In the forward pass, the module that is called first comes first.",
    ),
    "why_reverse": Text(
        zh="反向传播倒着走：后运行的模块先得到梯度。",
        en="Backward goes the other way: the module that ran last gets its gradient first.",
    ),
    "why_waits": Text(zh="你选的还在等：{moment}", en="Yours still waits for this: {moment}"),
    "score": Text(zh="得分：**{right} / {asked}**。", en="Score: **{right} / {asked}**."),
    "next_question": Text(zh="下一题", en="Next question"),
    "the_end": Text(zh="到此为止，没有更多事件。", en="That was the last event."),
}
_NAMED = 8  # hooks at most in a sentence


def own_hooks(hooks: list[Hook], twice: bool) -> Text:
    """Return in words which hooks of a run the user has registered, each function once for every place.

    Where the model ran twice, for shapes and for values, what they print stands there twice, which needs saying.
    """
    own = Counter(
        (
            hook.function,
            hook.kind,
            hook.path or "(model)",
            hook.file,
            hook.line,
        )  # there may be many a <lambda>
        for hook in hooks
        if hook.owner == "user" and hook.path is not None and "state_dict" not in hook.kind
    )
    if not own:
        return WORDS["own"]
    more = f", … (+{len(own) - _NAMED})" if len(own) > _NAMED else ""
    said = [
        OWN_HOOK.format(hook=function, times=f" ×{n}" if n > 1 else "", kind=kind, where=where)
        for (function, kind, where, *_), n in list(own.items())[:_NAMED]
    ]
    listed = Text(zh="；".join(one.zh for one in said) + more, en=", ".join(one.en for one in said) + more)
    return (OWN_TWICE if twice else OWN).format(hooks=listed)


OWN = Text(zh="你的钩子：{hooks}。", en="Your own hooks: {hooks}.")
OWN_TWICE = Text(
    zh="你的钩子：{hooks}。为了画这张图，模型运行了两遍，它们也跟着运行了两遍。",
    en="Your own hooks: {hooks}. The model ran twice to make this picture, and they ran with it.",
)
OWN_HOOK = Text(zh="`{hook}`{times}（{kind}，位于 `{where}`）", en="`{hook}`{times} ({kind} on `{where}`)")
