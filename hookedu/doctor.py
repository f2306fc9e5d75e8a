"""`hookedu doctor`: check whether this machine can run the course; one line per check, in both languages."""

import contextlib
import importlib.metadata
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from hookedu import catalog, storage
from hookedu.catalog import CourseError
from hookedu.language import Text

_FREE_GB = 1.0


class State(Enum):
    """State that a check reports; only FAIL keeps the course from running."""

    OK = "✓"
    NOTE = "–"  # something is missing that most people do not need
    FAIL = "✗"


@dataclass(frozen=True)
class CheckResult:
    """Result of one check, with a remedy for every state but OK."""

    state: State
    detail: str
    remedy: Text | None = None


def examine() -> list[tuple[Text, CheckResult]]:
    """Run every check and return the findings, each with the title of its check.

    An exception in a check is itself a finding: the other checks still run.
    """
    findings = []
    for title, check in _CHECKS:
        try:
            finding = check()
        except Exception as error:
            finding = CheckResult(State.FAIL, f"{type(error).__name__}: {error}"[:300], _REINSTALL)
        findings.append((title, finding))
    return findings


# An installation by `make` leaves a stamp file, and its users continue with `make`; a wheel and conda install
# the command.
_BY_MAKE = any(Path(sys.prefix).glob("ready-*"))
OPEN = "make lab" if _BY_MAKE else "hookedu lab"
_REINSTALL = (
    Text(zh="重新安装：`make clean lab`。", en="Install again: `make clean lab`.")
    if _BY_MAKE
    else Text(
        zh="在一个新的 Python 环境（venv 或 conda）里重新安装 hookedu。",
        en="Install hookedu again, in a new Python environment (venv or conda).",
    )
)


def _python() -> CheckResult:
    ok = sys.version_info >= (3, 11)
    return CheckResult(
        State.OK if ok else State.FAIL,
        f"{sys.version.split()[0]}  {sys.executable}",
        None if ok else Text(zh="需要 3.11 或更新的 Python。", en="Python 3.11 or newer is needed."),
    )


def _torch() -> CheckResult:
    import torch
    import torchvision

    x = torch.ones(2, requires_grad=True)
    seen: list[torch.Tensor] = []
    x.register_hook(seen.append)
    (2 * x).sum().backward()
    works = len(seen) == 1 and seen[0].tolist() == [2.0, 2.0]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return CheckResult(
        State.OK if works else State.FAIL,
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, {device}",
        None if works else _REINSTALL,
    )


def _packages() -> CheckResult:
    names = ("jupyterlab", "ipykernel", "ipywidgets", "matplotlib")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    return CheckResult(State.OK, versions)


def _kernel() -> CheckResult:
    from jupyter_client.kernelspec import KernelSpecManager

    argv = KernelSpecManager().get_kernel_spec("python3").argv
    return CheckResult(State.OK, f"python3: {argv[0]}")


def _widgets() -> CheckResult:
    from jupyter_core.paths import jupyter_path

    for folder in jupyter_path("labextensions"):
        manifest = os.path.join(folder, "@jupyter-widgets", "jupyterlab-manager", "package.json")
        if os.path.exists(manifest):
            with open(manifest, encoding="utf-8") as file:
                version = json.load(file)["version"]
            return CheckResult(State.OK, f"jupyterlab-manager {version}")
    return CheckResult(
        State.FAIL,
        "@jupyter-widgets/jupyterlab-manager: not found",
        Text(
            zh="在运行 JupyterLab 的环境里安装 `jupyterlab_widgets`。",
            en="Install `jupyterlab_widgets` in the environment that runs JupyterLab.",
        ),
    )


def _lessons() -> CheckResult:
    built = [lesson.file for lesson in catalog.lessons() if lesson.notebook.exists()]
    every = len(catalog.lessons())
    build = Text(zh="运行 `hookedu build`。", en="Run `hookedu build`.") if catalog.IN_CLONE else _REINSTALL
    return CheckResult(
        State.OK if len(built) == every else State.FAIL,
        f"{len(built)}/{every}",
        None if len(built) == every else build,
    )


def _disk() -> CheckResult:
    free = shutil.disk_usage(catalog.ROOT).free / 1e9
    enough = free >= _FREE_GB
    return CheckResult(
        State.OK if enough else State.FAIL,
        f"{free:.1f} GB",
        None if enough else Text(zh="请腾出至少 1 GB。", en="Make room for at least 1 GB."),
    )


def _memory() -> CheckResult:
    ok = storage.writable()
    return CheckResult(
        State.OK if ok else State.NOTE,
        str(storage.folder()),
        None
        if ok
        else Text(
            zh="这个文件夹不能写：课程照常运行，但不会记住进度和语言。",
            en="It cannot be written to: the course works, but forgets progress and language.",
        ),
    )


def _sandbox() -> CheckResult:
    if sys.platform != "linux":
        return CheckResult(State.NOTE, sys.platform, _ONLY_INSTRUCTORS.format(why=_NEEDS_LINUX))
    from hookedu.grading.run.sandbox import Sandbox  # cannot be imported on Windows

    try:
        with contextlib.closing(Sandbox(isolated=True, startup=20)) as sandbox:
            program, grouped = sandbox.rehearse()
    except CourseError as error:
        why = Text(zh=" ".join(says.zh for says in error.says), en=" ".join(says.en for says in error.says))
        return CheckResult(State.NOTE, "–", _ONLY_INSTRUCTORS.format(why=why))
    rehearsed = Text(zh="bubblewrap（{origin}），试运行通过", en="bubblewrap ({origin}), rehearsal passed")
    said = rehearsed.format(origin=program.origin)
    limits = _GROUPED if grouped else _WATCHED
    details = Text(zh=f"{said.zh}；{limits.zh}", en=f"{said.en}; {limits.en}")
    return CheckResult(State.OK, f"{details.inline()}: {program.path}")


_GROUPED = Text(
    zh="每份作业有自己的 cgroup，由内核限制内存与进程数",
    en="a cgroup per submission: the kernel limits memory and processes",
)
_WATCHED = Text(
    zh="这里不能建 cgroup，由评分程序自己量内存",
    en="no cgroups here: the grader measures the memory itself",
)
_NEEDS_LINUX = Text(zh="隔离学生的代码需要 Linux。", en="Isolating students' code takes Linux.")
_ONLY_INSTRUCTORS = Text(zh="只有教师需要。{why}", en="Only instructors need it. {why}")
# Titles are data, not docstrings: those are in English only, and -OO removes them.
_CHECKS: tuple[tuple[Text, Callable[[], CheckResult]], ...] = (
    (Text(zh="Python 版本", en="Python version"), _python),
    (Text(zh="PyTorch 与一个真钩子", en="PyTorch and one real hook"), _torch),
    (Text(zh="所需的包", en="Packages"), _packages),
    (Text(zh="笔记本用的内核", en="Kernel for the notebooks"), _kernel),
    (Text(zh="控件的前端", en="Front end of the widgets"), _widgets),
    (Text(zh="课程笔记本", en="Lesson notebooks"), _lessons),
    (Text(zh="磁盘剩余空间", en="Free disk space"), _disk),
    (Text(zh="保存进度的文件夹", en="Folder for your progress"), _memory),
    (Text(zh="沙箱（只有批改需要）", en="Sandbox (for grading only)"), _sandbox),
)
