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
    "legend": Text(
        zh="小条是通道的贡献：从左边起的支持 {name}，从右边起的反对它。",
        en="Bars: what each channel contributes, from the left for {name}, from the right against it.",
    ),
    "channel": Text(
        zh="通道 {n}，对 {name} 的贡献是 {value}", en="channel {n}, contributes {value} to {name}"
    ),
    "channel_off": Text(
        zh="通道 {n} 已关掉；打开时对 {name} 的贡献是 {value}",
        en="channel {n} is off; switched on, it contributes {value} to {name}",
    ),
    "all_on": Text(zh="全部打开", en="Switch all on"),
    # Once there is a picture, FAILED_LATER.
    "failed": Text(
        zh="出现异常，所以还没有图可看。修好模型，或者改正 `layer`、`draw`、`classes`，再运行这个单元。",
        en="An exception was raised, so there is no picture yet. Mend the model, or correct `layer`, `draw` or `classes`, "
        "and run this cell again.",
    ),
}

FAILED_LATER = Text(
    zh="出现异常，图没有变；控件可以继续用。换一个选择，或者修好模型再移动一个形状。",
    en="An exception was raised, and the picture has not changed; the widget goes on. Choose something else, or mend "
    "the model and move a shape.",
)
NO_SHAPE = Text(
    zh="不是图里的形状：{got}。要写成 (类别, 列, 行)，类别是 {known} 之一，列小于 {width}，行小于 {height}。",
    en="No shape of this picture: {got}. It should be (class, column, row), the class one of {known}, the column below "
    "{width}, the row below {height}.",
)
NO_CLASS = Text(zh="没有 {got!r} 这一类，只有 {known}。", en="There is no class {got!r}, only {known}.")
FULL = Text(zh="最多放 {n} 个形状；请先移除一个。", en="There is room for {n} shapes; remove one first.")
NO_PICTURE = Text(
    zh="图应当是 3×高×宽 的浮点数，和别的图一样大，得到的是 {got}。",
    en="A picture is 3×height×width floating-point numbers, as large as the others; got {got}.",
)
OTHER_CLASSES = Text(
    zh="模型给出 {n} 个 logit，`classes` 却有 {of} 个名字。",
    en="The model gives {n} logits, but `classes` has {of} names.",
)
REFUSED = Text(
    zh="页面发来的不是这里能做的选择，什么也没有改：{what}",
    en="What the page sent is no choice that can be made here, and nothing was changed: {what}",
)
