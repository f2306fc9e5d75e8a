"""What LayerPicker says, in both languages; js/layer_picker.js and the files beside it take their words from here by key."""

from hookedu.language import Text

VIEWS = {
    "maps": Text(zh="特征图", en="Feature maps"),
    "gradients": Text(zh="梯度", en="Gradients"),
    "statistics": Text(zh="统计", en="Statistics"),
    "weights": Text(zh="权重", en="Weights"),
}
WORDS = {f"view_{view}": words for view, words in VIEWS.items()} | {
    "tip_maps": Text(zh="这一层的输出", en="What the layer gives out"),
    "tip_gradients": Text(zh="得分对这一层输出的梯度", en="The gradient of the score for the layer's output"),
    "tip_statistics": Text(zh="均值、标准差、零的比例、直方图", en="Mean, std, share of zeros, histogram"),
    "tip_weights": Text(zh="这一层自己的权重", en="The layer's own weights"),
    "views": Text(zh="看什么", en="What to see"),
    # The list.
    "search": Text(zh="搜索层", en="Search layers"),
    "example": Text(zh="名字或类型，如 conv", en="name or type, such as conv"),
    "layers": Text(zh="层：{n} / {total}", en="Layers: {n} of {total}"),
    "name": Text(zh="名字", en="Name"),
    "type": Text(zh="类型", en="Type"),
    "shape": Text(zh="输出形状", en="Output"),
    "calls": Text(zh="调用", en="Calls"),
    "why": Text(zh="", en=""),  # there is no picture
    # Choices.
    "input": Text(zh="输入", en="Input"),
    "part": Text(zh="输出的部分", en="Part of the output"),
    "call": Text(zh="调用序号", en="Call"),
    "sample": Text(zh="样本", en="Sample"),
    "in_channel": Text(zh="输入通道", en="Input channel"),
    "page": Text(zh="通道页", en="Page of channels"),
    "per_map": Text(zh="每图独立色标", en="A scale for each map"),
    "again": Text(zh="重新运行", en="Run again"),
    "tip_again": Text(
        zh="模型或输入变了：重新运行一遍", en="The model or its input has changed: run it again"
    ),
    "code": Text(zh="显示代码", en="Show code"),
    "pin": Text(zh="钉住", en="Pin"),
    "tip_pin": Text(
        zh="把这幅图留在旁边，再去看别的层或别的输入（最多 3 幅）",
        en="Keep this picture beside the next: another layer, another input (3 at most)",
    ),
    "unpin": Text(zh="取下 {layer}", en="Unpin {layer}"),
    "pinned": Text(zh="已钉住 {layer}", en="Pinned {layer}"),
    "save": Text(zh="存成 PNG", en="Save as PNG"),
    "all": Text(zh="← 全部", en="← All"),
    # Above a picture.
    "of_input": Text(zh="输入 {name}", en="input {name}"),
    "named": Text(zh="{axis} {n}", en="{axis} {n}"),
    "of_view": Text(zh="{view}：{layer}", en="{view}: {layer}"),
    "score_highest": Text(zh="对最高的得分", en="of the highest score"),
    "score_class": Text(zh="对类别 {target} 的得分", en="of the score of class {target}"),
    "score_classes": Text(zh="对 target 里各类别的得分", en="of the scores of the classes in target"),
    "score_sum": Text(zh="对输出之和", en="of the sum of the output"),
    "score_target": Text(zh="对 target(output)", en="of target(output)"),
    "of_call": Text(zh="第 {n} 次调用（共 {total} 次）", en="call {n} of {total}"),
    "of_sample": Text(zh="样本 {n}（共 {total} 个）", en="sample {n} of {total}"),
    "of_in_channel": Text(zh="输入通道 {n}（共 {total} 个）", en="input channel {n} of {total}"),
    "of_channel": Text(zh="通道 {n}", en="ch {n}"),
    "of_page": Text(zh="通道 {first}–{last}（共 {total} 个）", en="channels {first} to {last} of {total}"),
    "of_row": Text(zh="{axis} {n}（共 {total} 个）", en="{axis} {n} of {total}"),
    "of_depth": Text(zh="深度 {n}（共 {total} 层）", en="depth {n} of {total}"),
    "each_own": Text(zh="每图独立色标", en="each map on a scale of its own"),
    "is_pinned": Text(zh="已钉住", en="pinned"),
    # Below it.
    "numbers": Text(
        zh="所示数值：均值 {mean} · 标准差 {std} · 最小 {min} · 最大 {max} · 零的比例 {zeros}",
        en="Values shown: mean {mean} · std {std} · min {min} · max {max} · zeros {zeros}",
    ),
    "odd": Text(
        zh="**NaN {nan} 个（品红），Inf {inf} 个（+ 橙，− 青）**",
        en="**{nan} NaN (magenta), {inf} Inf (+ orange, − cyan)**",
    ),
    "thinned": Text(
        zh="这一层很大：每 {rows} 行、每 {columns} 列取一个",
        en="A large layer: 1 in {rows} rows and 1 in {columns} columns drawn",
    ),
    "by_page": Text(
        zh="这一层很大：翻页时才从内核取这一页", en="A large layer: each page is fetched when you turn to it"
    ),
    "constant": Text(zh="所有的数都是 {value}", en="all values are {value}"),
    "top": Text(zh="最大的 {n} 个", en="The {n} highest"),
    "top_signed": Text(zh="绝对值最大的 {n} 个", en="The {n} largest in absolute value"),
    "keys": Text(
        zh="方向键移动，Enter 放大，Esc 返回，PageUp 和 PageDown 翻页",
        en="Arrow keys move, Enter enlarges, Esc goes back, PageUp and PageDown turn pages",
    ),
    "hint_maps": Text(zh="指着看数值，点一下放大", en="Point at a map for its values; click to enlarge it"),
    "hint_one": Text(zh="指着看数值，点一下回到全部", en="Point for values; click to see all again"),
    "hint_matrix": Text(
        zh="指着看数值，点一行看成条形", en="Point for values; click a row to see it as bars"
    ),
    "hint_bars": Text(zh="指着看数值", en="Point for values"),
    "at_map": Text(
        zh="通道 {channel} · 行 {row}，列 {column} · {value}",
        en="ch {channel} · row {row}, column {column} · {value}",
    ),
    "at_cell": Text(
        zh="{rows} {row} · {columns} {column} · {value}", en="{rows} {row} · {columns} {column} · {value}"
    ),
    "at_bar": Text(zh="{columns} {column} · {value}", en="{columns} {column} · {value}"),
    "at_bin": Text(zh="{low} 到 {high}：{n} 个", en="{low} to {high}: {n} values"),
    "at_tile": Text(zh="通道 {channel}：{low} 到 {high}", en="ch {channel}: {low} to {high}"),
    "histogram": Text(
        zh="非零的 {rest} 个画成直方图，零 {zeros} 个是带圆点的竖线；虚线是均值",
        en="{rest} values that are not 0; the line with a dot: {zeros} zeros; dashed: the mean",
    ),
    # The input beside it.
    "picture_in": Text(zh="输入 {shape}", en="Input {shape}"),
    "mean_of": Text(zh="{n} 个通道的平均", en="the mean of its {n} channels"),
    "field": Text(
        zh="感受野 {height}×{width}，步长 {stride}。框出的是这个位置看得见的部分：行 {top}–{bottom}，列 {left}–{right}。",
        en="Receptive field {height}×{width}, stride {stride}. The frame is what this position can see: rows {top} to "
        "{bottom}, columns {left} to {right}.",
    ),
    "field_padding": Text(
        zh="感受野 {height}×{width}，步长 {stride}：这个位置看见的全是填充。",
        en="Receptive field {height}×{width}, stride {stride}: this position sees nothing but padding.",
    ),
    "field_whole": Text(
        zh="感受野 {height}×{width}，步长 {stride}：大过整幅输入。",
        en="Receptive field {height}×{width}, stride {stride}: larger than the input.",
    ),
    "field_unknown": Text(
        zh="不知道这一层的感受野：虚线框只按比例标出大概的位置。",
        en="This layer's receptive field is not known: the dashed frame only marks the place in proportion.",
    ),
    # Names of axes.
    "axis_sample": Text(zh="样本", en="sample"),
    "axis_feature": Text(zh="特征", en="feature"),
    "axis_channel": Text(zh="通道", en="channel"),
    "axis_token": Text(zh="位置", en="position"),
    "axis_row": Text(zh="行", en="row"),
    "axis_column": Text(zh="列", en="column"),
    "axis_unit": Text(zh="单元", en="unit"),
    "axis_class": Text(zh="类别", en="class"),
    "axis_out": Text(zh="输出单元", en="output unit"),
    "axis_in": Text(zh="输入单元", en="input unit"),
}
NO_WEIGHT = Text(zh="`{layer}` 自己没有权重", en="`{layer}` has no weight of its own")
LAZY_WEIGHT = Text(
    zh="`{layer}` 的权重还没有初始化：模型第一次正式运行时才会有",
    en="`{layer}` has no weight yet: it is made when the model runs for the first time",
)
NO_VALUES = Text(
    zh="这个张量只有形状，没有可以画的数值：它在 meta 设备上，或者在 vmap、grad、jvp 里面",
    en="This tensor has a shape and no values to draw: it is on the meta device, or inside of vmap, grad or jvp",
)
NO_TENSOR = Text(zh="这次调用的输出里没有张量", en="This call's output holds no tensor")
NO_GRADIENT = Text(
    zh="反向传播没有经过输出的这一部分", en="No backward pass went through this part of the output"
)
EMPTY = Text(zh="空张量：{shape}", en="Empty: {shape}")
