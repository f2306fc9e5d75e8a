"""What TrainingPanel says, in both languages; js/training_panel.js takes its words from here by key."""

from collections.abc import Callable

from hookedu.hooks.monitor import Reading, Source
from hookedu.language import Text, counted
from hookedu.plots.strips import LOG, STATISTICS

_NAMED = 8  # layers at most in a sentence, for those who have hundreds

WORDS = {
    **{name: title for name, title, _ in STATISTICS},
    "loss": Text(zh="损失", en="loss"),
    "log": LOG,
    # The same in a sentence and in the head of a column.
    "short_loss": Text(zh="损失", en="loss"),
    "short_mean": Text(zh="均值", en="mean"),
    "short_std": Text(zh="标准差", en="std"),
    "short_gradient": Text(zh="梯度范数", en="gradient norm"),
    "short_ratio": Text(zh="更新比例", en="update ratio"),
    "short_dead": Text(zh="从不为正的单元", en="units not positive"),
    "layer": Text(zh="层", en="layer"),
    "none": Text(zh="没有", en="none"),
    "chart": Text(zh="{title}：{rows} 层，{columns} 步", en="{title}: layers {rows}, steps {columns}"),
    "curve": Text(zh="损失曲线，{columns} 步", en="Curve of the loss, steps {columns}"),
    "keys": Text(
        zh="左右键换一步（加 Shift 十步），上下键换一层，Home 和 End 到最前和最后一步，Esc 放开",
        en="Left and right change the step (with Shift by ten), up and down the layer, Home and End lead to the first and "
        "last step, Escape lets go",
    ),
    "hint": Text(
        zh="每行一层，每列一步。用鼠标指着一步，或者点一下再按方向键（加 Shift 十步），就看到它的数。",
        en="A row per layer, a column per step. Point at a step with the mouse, or click it and use the arrow keys (with "
        "Shift by ten), to read its numbers.",
    ),
    "thinned": Text(zh="一列是 {n} 步里的一步。", en="A column is one step in {n}."),
    "reading": Text(zh="第 {step} 步，层 `{layer}`：{values}", en="Step {step}, layer `{layer}`: {values}"),
    "reading_loss": Text(zh="第 {step} 步：{values}", en="Step {step}: {values}"),
    "is_none": Text(zh="没有值", en="none"),
    "is_zero": Text(zh="恰好是 0", en="exactly 0"),
    "is_odd": Text(zh="nan 或 inf", en="nan or inf"),
    "table": Text(zh="第 {step} 步的全部数值", en="All numbers of step {step}"),
    "failed": Text(
        zh="更新面板时出现异常；训练没有停，数都在 `panel.rows` 里。",
        en="Updating the panel raised an exception; training has gone on, and all numbers are in `panel.rows`.",
    ),
}


def summary(rows: list[Reading], source: Source | None) -> Text:
    """Return in words what matters most in the strips."""
    steps, layers = rows[-1].step + 1, len({row.layer for row in rows})
    said = {"steps_en": counted(steps, "step"), "layers_en": counted(layers, "layer")}
    parts = [STATE.format(steps=steps, layers=layers, **said)]
    for says, ails in (
        (NO_GRADIENT, lambda row: row.gradient is None),
        (STILL, lambda row: row.ratio == 0),
        (DEAD, lambda row: row.dead is not None and row.dead > 0.5),
    ):
        begun = _begun(rows, ails)
        if begun:
            parts.append(says.format(layers=_names(begun)))
    if source is not None:
        layer = source.layer or "(model)"
        parts.append(FIRST_NAN.format(step=source.step, layer=layer, sample=source.sample))
    return Text(zh="".join(part.zh for part in parts), en=" ".join(part.en for part in parts))


def _begun(rows: list[Reading], ails: Callable[[Reading], bool]) -> dict[str, int]:
    """Return the layers that something ails in the last step, with the step since which it has in every one."""
    begun: dict[str, int] = {}
    for row in rows:
        if ails(row):
            begun.setdefault(row.layer, row.step)
        else:
            begun.pop(row.layer, None)
    last = {row.layer for row in rows if row.step == rows[-1].step}
    return {layer: step for layer, step in begun.items() if layer in last}


def _names(begun: dict[str, int]) -> Text:
    """Return these layers in words; those since the same step together, and of step 0 nothing is said."""
    more = f", … (+{len(begun) - _NAMED})" if len(begun) > _NAMED else ""
    groups: dict[int, list[str]] = {}
    for layer, step in list(begun.items())[:_NAMED]:
        groups.setdefault(step, []).append(f"`{layer or '(model)'}`")
    parts = [
        (SINCE if step else ALWAYS).format(layers=", ".join(layers), step=step)
        for step, layers in groups.items()
    ]
    return Text(
        zh="；".join(part.zh for part in parts) + more, en="; ".join(part.en for part in parts) + more
    )


WAITING = Text(
    zh="还没有数据：把训练循环放进 `with panel:` 里。",
    en="Nothing yet: put the training loop inside `with panel:`.",
)
STATE = Text(zh="{steps} 步，{layers} 层。", en="{steps_en}, {layers_en}.")
NO_GRADIENT = Text(zh="没有梯度到达：{layers}。", en="No gradient arrives at {layers}.")
STILL = Text(zh="参数不动：{layers}。", en="Parameters stand still in {layers}.")
DEAD = Text(
    zh="一半以上的单元从不为正：{layers}。", en="More than half of the units are never positive in {layers}."
)
ALWAYS = Text(zh="{layers}", en="{layers}")
SINCE = Text(zh="{layers}（第 {step} 步起）", en="{layers} from step {step} on")
FIRST_NAN = Text(
    zh="第一个 `nan` 或 `inf`：第 {step} 步，层 `{layer}`，样本 {sample}。",
    en="The first `nan` or `inf`: step {step}, layer `{layer}`, sample {sample}.",
)
CLOSED = Text(zh="这个面板已经关闭；请另建一个", en="this panel is closed; make another one")
