"""Write the sources of the reading site, one folder per language: the lessons, guides and pages in that language alone.

    python course/book/sources.py FOLDER [--stored]

Sphinx reads FOLDER/en and FOLDER/zh (`make book`). The lessons are those of solutions/, whose code says and prints
English in its bilingual form; for the Chinese site they run once more, which takes about ten minutes, and FOLDER/runs
keeps what they put out until a lesson's code changes. With --stored, the Chinese pages show the outputs of solutions/.
"""

import argparse
import hashlib
import json
import re
import shutil
from pathlib import Path

import nbformat
from rich.progress import Progress

from hookedu import catalog
from hookedu.authoring import build
from hookedu.catalog import Lesson
from hookedu.cells import said_in
from hookedu.language import LANGUAGES, join_chinese_lines

HERE = Path(__file__).parent
# A line `**English** · [中文](X.zh.md)` at the top of a page: on the site, every page has the switch.
SWITCH = re.compile(r"^.*(?:\*\*English\*\*|\*\*中文\*\*).*\n+", re.MULTILINE)
LESSON = "- [{id} {title}](lessons/{file}.ipynb): {about}"


def main() -> None:
    """Write the sources of both languages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stored", action="store_true", help="run nothing")
    asked = parser.parse_args()
    for language in LANGUAGES:
        folder = asked.folder / language
        shutil.rmtree(folder, ignore_errors=True)
        _files(folder)
        _pages(folder, language)
        runs = asked.folder / "runs" if language == "zh" and not asked.stored else None
        _lessons(folder / "lessons", language, runs)


def _files(folder: Path) -> None:
    """Copy what pages link to, at the same relative place as in the repository."""
    for name in ("course", "hookedu"):
        shutil.copytree(
            catalog.ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", "guides", "book"),
        )
    shutil.copy(catalog.ROOT / "LICENSE", folder)


def _pages(folder: Path, language: str) -> None:
    """Write the Markdown pages: `X.zh.md` where the language is Chinese and there is one, else `X.md`."""
    homes = {path: folder / path.name for path in HERE.glob("*.md")}
    others = [*catalog.ROOT.glob("*.md"), *catalog.ROOT.glob("course/guides/*.md")]
    others.append(catalog.ROOT / "hookedu/hooks/CASES.md")
    for path, target in (homes | {p: folder / p.relative_to(catalog.ROOT) for p in others}).items():
        chinese = path.with_suffix(".zh.md")
        if path.name.endswith(".zh.md"):
            continue
        text = (chinese if language == "zh" and chinese.exists() else path).read_text(
            encoding="utf-8"
        )
        text = SWITCH.sub("", text.replace(".zh.md", ".md"))
        text = text.replace("<!-- lessons -->", _list(language))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(join_chinese_lines(text), encoding="utf-8")


def _list(language: str) -> str:
    """Return the lessons as a list in Markdown."""
    return "\n".join(
        LESSON.format(
            id=lesson.id,
            file=lesson.file,
            title=getattr(lesson.title, language),
            about=getattr(lesson.about, language),
        )
        for lesson in catalog.lessons()
    )


def _lessons(folder: Path, language: str, runs: Path | None) -> None:
    """Write the solutions in one language, with the outputs of a run in that language if `runs` is given."""
    folder.mkdir()
    lessons = catalog.lessons()
    with Progress(disable=runs is None) as bar:
        task = bar.add_task(language, total=len(lessons))
        for lesson in lessons:
            bar.update(task, description=lesson.file)
            notebook = nbformat.read(lesson.solution, as_version=4)
            for cell in notebook.cells:
                cell.source = said_in(cell, language)
                if picture := cell.metadata.get("hookedu", {}).get("picture"):
                    cell.metadata["mystnb"] = {"image": {"alt": picture[language].replace("`", "")}}
            if runs is not None:
                _run(lesson, notebook, runs)
            nbformat.write(notebook, folder / f"{lesson.file}.ipynb")
            bar.advance(task)


def _run(lesson: Lesson, notebook: nbformat.NotebookNode, runs: Path) -> None:
    """Run a notebook in place, or give it the outputs of an earlier run of the same code."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    says = json.dumps([cell.source for cell in code]).encode()
    kept = runs / f"{lesson.file}-{hashlib.sha256(says).hexdigest()[:16]}.json"
    if not kept.exists():
        build.run(notebook, lesson)
        runs.mkdir(exist_ok=True)
        for old in runs.glob(f"{lesson.file}-*.json"):
            old.unlink()
        kept.write_text(json.dumps([cell.outputs for cell in code]), encoding="utf-8")
    for cell, outputs in zip(code, json.loads(kept.read_text(encoding="utf-8")), strict=True):
        cell.outputs = nbformat.from_dict(outputs)


if __name__ == "__main__":
    main()
