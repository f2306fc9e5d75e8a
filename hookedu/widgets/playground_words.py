"""What GradCamPlayground says, in both languages; js/grad_cam_playground.js takes its words from here by key."""

from hookedu.language import Text

WORDS = {
    # The picture.
    "picture": Text(
        zh="图，上面是 {name} 的热图，最亮的是第 {x} 列、第 {y} 行",
        en="Picture under the heat map of {name}, which is brightest at column {x}, row {y}",
    ),
    "cold": Text(zh="图；{name} 的热图处处是 0", en="Picture; the heat map of {name} is 0 everywhere"),
    "plain": Text(zh="图", en="Picture"),
    "stage": Text(
        zh="图上的形状：拖动它，或者用方向键移动（加 Shift 走得快），Delete 移除",
        en="Shapes in the picture: drag one, or move it with the arrow keys (with Shift faster); Delete removes it",
    ),
    "shape": Text(zh="{name}，第 {x} 列，第 {y} 行", en="{name}, column {x}, row {y}"),
    "brightest": Text(zh="最亮处 {value}", en="brightest place {value}"),
    "add": Text(zh="添加：", en="Add:"),
    "add_shape": Text(zh="添加 {name}", en="Add {name}"),
    "remove": Text(zh="移除", en="Remove"),
    "upload": Text(zh="上传图片", en="Upload a picture"),
    "drop": Text(zh="去掉上传的图片", en="Drop the uploaded picture"),
    "no_picture": Text(
        zh="浏览器读不了这个文件：它不是图片，或者是不认识的格式。",
        en="The browser cannot read this file: it is no picture, or has a format that is unknown.",
    ),
    "heat": Text(zh="热图", en="Heat map"),
    "code": Text(zh="显示代码", en="Show code"),
    # Classes.
    "classes": Text(
        zh="**logit**：点一类，热图就解释哪一类", en="**Logits**: click a class, and the heat map explains it"
    ),
    "class": Text(zh="{name}，logit 是 {value}", en="{name}, logit {value}"),
    "class_before": Text(
        zh="{name}，logit 是 {value}；通道全开时是 {before}",
        en="{name}, logit {value}; with all channels on {before}",
    ),
    "follow": Text(zh="总是最高的那一类", en="Always the highest"),
    "usual": Text(zh="竖线：通道全开时", en="Upright lines: with all channels on"),
    "top": Text(zh="最高的是 {name}：{value}", en="The highest is {name}: {value}"),
    "top_off": Text(
        zh="最高的是 {name}：{value}（关掉了 {n} 个通道）",
        en="The highest is {name}: {value} (channels off: {n})",
    ),
    # Channels.
    "channels": Text(
        zh="`{layer}` 的 **{n} 个通道**：点一下就关掉，再点就打开",
        en="**{n} channels** of `{layer}`: click to switch off or on",
    ),
    "sort": Text(zh="排序", en="Sort"),
    "by_share": Text(zh="按贡献", en="by contribution"),
    "by_number": Text(zh="按编号", en="by number"),
    "legend": Text(
        zh="条是通道对 {name} 的贡献：向右是支持，向左是反对。箭头后面是单独切换这个通道之后最高的一类。",
        en="Bars: what each channel contributes to {name}, to the right for it, to the left against it. Behind an arrow: the "
        "highest class once this channel alone is switched.",
    ),
    "channel": Text(
        zh="通道 {n}，对 {name} 的贡献是 {value}", en="channel {n}, contributes {value} to {name}"
    ),
    "channel_turns": Text(
        zh="通道 {n}，对 {name} 的贡献是 {value}；单独切换它，最高的就变成 {to}",
        en="channel {n}, contributes {value} to {name}; switched alone, it makes {to} the highest",
    ),
    "channel_off": Text(
        zh="通道 {n} 已关掉；打开时对 {name} 的贡献是 {value}",
        en="channel {n} is off; switched on, it contributes {value} to {name}",
    ),
    "channel_off_turns": Text(
        zh="通道 {n} 已关掉；打开时对 {name} 的贡献是 {value}，最高的就变成 {to}",
        en="channel {n} is off; switched on, it contributes {value} to {name} and makes {to} the highest",
    ),
    "stays": Text(zh="", en=""),
    "turns": Text(zh="→ {to}", en="→ {to}"),
    "is_off": Text(zh="已关", en="off"),
    "is_off_turns": Text(zh="已关 → {to}", en="off → {to}"),
    "turn": Text(
        zh="单独切换就能改变结论的通道有 {n} 个：{which}",
        en="Channels that change the verdict when switched alone: {n} ({which})",
    ),
    "turn_none": Text(
        zh="没有哪个通道单独切换就能改变结论。挪一挪形状，让两类的分数靠近，就可能有了。",
        en="No channel changes the verdict when switched alone. Move a shape until two classes are close, and one may.",
    ),
    "trying": Text(
        zh="正在逐个试：{of} 个通道试过 {tried} 个。",
        en="Trying them one by one: {tried} of {of} channels so far.",
    ),
    "mixed": Text(
        zh="这个模型不能把一张图和一批图同样对待（例如训练模式的批归一化），所以没有逐个去试通道。",
        en="This model does not treat one picture and a batch of them alike (as with batch norm in training mode), so the "
        "channels have not been tried one by one.",
    ),
    "all_on": Text(zh="全部打开", en="Switch all on"),
    # Once there is a picture, FAILED_LATER.
    "failed": Text(
        zh="出现异常，所以还没有图可看。修好模型，或者改正 `layer`、`draw`、`classes`，再运行这个单元格。",
        en="An exception was raised, so there is no picture yet. Mend the model, or correct `layer`, `draw` or `classes`, "
        "and run this cell again.",
    ),
}

FAILED_LATER = Text(
    zh="出现异常，图没有变；控件可以继续用。换一个选择，或者修好模型再移动一个形状。",
    en="An exception was raised, and the picture has not changed; the widget goes on. Choose something else, or mend "
    "the model and move a shape.",
)
NO_CLASS = Text(zh="没有 {got} 这一类，只有 {known}。", en="There is no class {got}, only {known}.")
FULL = Text(zh="最多放 {n} 个形状；请先移除一个。", en="There is room for {n} shapes; remove one first.")
NO_CHANNEL = Text(
    zh="没有通道 {got}：`off` 是通道序号的列表，序号从 0 到 {last}。",
    en="There is no channel {got}: `off` is a list of whole numbers from 0 to {last}.",
)
NO_CLASSES = Text(
    zh="`classes` 是空的；模型给出几个 logit，就要有几个名字。",
    en="`classes` is empty; give as many names as the model gives logits.",
)
NO_DRAW = Text(
    zh="`draw` 应当是函数，由形状和背后的图画出一张图，如 `hookedu.models.shapes.draw_shapes`，得到的是 {got}。",
    en="`draw` is a function that makes a picture of shapes and a picture behind them, such as "
    "`hookedu.models.shapes.draw_shapes`; got {got}.",
)
OTHER_CLASSES = Text(
    zh="模型给出 {n} 个 logit，`classes` 却有 {of} 个名字：请给一样多的名字。",
    en="The model gives {n} logits, but `classes` has {of} names: give as many names as logits.",
)
REFUSED = Text(
    zh="页面发来的不是这里能做的选择，什么也没有改：{what}",
    en="What the page sent is no choice that can be made here, and nothing was changed: {what}",
)
