"""Show the pairs of submissions that agree: similar.html for reading both sides, and a short table in the terminal."""

from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as Line

from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.out import exports
from hookedu.grading.out.pages import SIMILAR, render
from hookedu.grading.similar import Similar
from hookedu.language import Text, in_both

_SAYS = {
    "similar_title": Text(zh="写法一致的提交", en="Submissions that agree"),
    "what": Text(
        zh="下面每一对学生，在同一课里自己写的代码有些行一致，而班上少有别人这样写。课里给出的代码、参考答案、全班一半以上的人都写了的代码不算；换名字、改注释、调换函数的次序，仍算一致。在几个单元格里都一致的排在前面。",
        en="Each two students below wrote lines for the same lesson that agree, and that few others in the class wrote. "
        "What the lesson gives, its reference solution, and what more than half of the class has count for nothing; other "
        "names, other comments and another order of functions make no difference. Pairs that agree in several cells come "
        "first.",
    ),
    "judge": Text(
        zh="这不能证明什么，成绩也没有因此改动：怎么看，要由人来判断。一起讨论过、问过同一位老师、用了同一份资料或同一个 AI 助手，代码都会一致；而抄来以后重写过的，这里看不出来。先读完两边，和两名学生都谈过，再下结论。",
        en="This proves nothing, and no grade was changed: a person has to judge. Students who worked together, asked the "
        "same tutor, or used the same source or AI assistant write code that agrees, and code that was rewritten after it "
        "was copied is not found. Read both sides and speak with both students before you conclude anything.",
    ),
    "legend": Text(
        zh="行号后面的 `=`：两人一致。`≡`：两人一致，而且全班没有别人这样写。",
        en="After a line's number, `=`: the two agree. `≡`: they agree, and nobody else in the class wrote it so.",
    ),
    "agree": Text(
        zh="有 {lines} 行一致，其中 {alone} 行没有别人这样写（这一课共 {students} 人）",
        en="agree in {lines} lines, {alone} of which nobody else wrote so (of {students} students in this lesson)",
    ),
    "mistake": Text(
        zh="两人在 {exercise} 犯了同一个错误 `{id}`；犯了它的另有 {others} 人。",
        en="Both made the mistake `{id}` in {exercise}; others who made it: {others}.",
    ),
    "submitted": Text(zh="{when} 提交", en="handed in {when}"),
    "elsewhere": Text(zh="这一边没有对应的单元格", en="no such cell on this side"),
    "left_out": Text(zh="…… 还有 {n} 行", en="… {n} more lines"),
    "compared": Text(
        zh="比较了 {n} 份提交（每名学生每课一份，即计分的那份）。",
        en="Submissions compared: {n}, one for each student and lesson, the one that counts.",
    ),
    "none": Text(
        zh="没有两份提交在少见的写法上足够一致。",
        en="No two submissions agree in enough that is rare.",
    ),
    "more": Text(
        zh="还有 {n} 对一致得少一些；`--most` 可以多列几对。",
        en="{n} further pairs agree in less; `--most` lists more.",
    ),
    "unknown": Text(
        zh="有 {n} 份提交没有比较：它们由旧版 hookedu 评分，成绩册里没有代码。先运行 `hookedu grade 提交的文件夹 --out {folder} --again`。",
        en="Submissions not compared: {n}. An earlier version of hookedu graded them, so the gradebook holds no code of "
        "theirs. Run `hookedu grade SUBMISSIONS --out {folder} --again` first.",
    ),
    "too_long": Text(
        zh="这些提交里有太长的单元格，没有比较那些单元格：{names}",
        en="In these submissions some cells are too long and were not compared: {names}",
    ),
}
_HEAD = (
    Text(zh="课", en="Lesson"),
    Text(zh="行", en="Lines"),
    Text(zh="独有", en="Theirs only"),
    Text(zh="学生", en="Students"),
)
_WHERE = Text(
    zh="两边的代码在 `{path}`。这不能证明什么，要由人来判断。",
    en="Both sides' code is in `{path}`. It proves nothing: a person has to judge.",
)


def write(book: Gradebook, found: Similar) -> Path:
    """Write the page into the gradebook's folder and return its path; raise CourseError if that is not possible."""
    path = book.folder / SIMILAR
    with book.told():
        exports.write_text(
            path, render("similar.html", _SAYS, found=found, remarks=_remarks(found, book.folder))
        )
    return path


def show(console: Console, found: Similar, path: Path) -> None:
    """Print one line per pair, with the names last and never cut, and where the page is."""

    def say(text: str) -> None:
        console.print(Line(text), soft_wrap=True)

    heads = [*map(in_both, _HEAD)]
    if found.pairs:
        say("  ".join(heads))
    for pair in found.pairs:
        numbers = zip((pair.lesson, pair.lines, pair.alone), map(cell_len, heads), strict=False)
        names = " — ".join(grade.row.student for grade in pair.grades)
        say("  ".join([*(f"{number:>{width}}" for number, width in numbers), names]))
    for remark in _remarks(found, path.parent):
        say(str(remark))
    say(str(_WHERE.format(path=path)))


def _remarks(found: Similar, folder: Path) -> list[Text]:
    """Return what the reader should know about the comparison as a whole."""
    remarks = [_SAYS["compared"].format(n=found.compared)]
    if not found.pairs:
        remarks.append(_SAYS["none"])
    if found.more:
        remarks.append(_SAYS["more"].format(n=found.more))
    if found.unknown:
        remarks.append(_SAYS["unknown"].format(n=found.unknown, folder=folder))
    if found.too_long:
        remarks.append(_SAYS["too_long"].format(names=", ".join(found.too_long)))
    return remarks
