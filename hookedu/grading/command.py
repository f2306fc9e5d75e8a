"""`hookedu grade`: the command line's face of grading, for `app.command("grade")(grade_command)`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from hookedu.grading.model import Limits


def grade_command(
    folder: Annotated[
        Path,
        typer.Argument(
            help="STUDENT/LESSON.ipynb，或 nbgrader 的 submitted/，或其 zip · or nbgrader's, or a zip"
        ),
    ],
    out: Annotated[Path, typer.Option(help="grades.db 和 grades.csv 的文件夹 · where the grades go")],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="同时评几份，默认每核一份 · at once; default: one a processor")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1, help="每份的时间，秒 · seconds for each")
    ] = Limits.seconds,
    memory_limit: Annotated[
        int, typer.Option(min=64, help="每份的内存，MiB · memory for each, MiB")
    ] = Limits.memory,
    again: Annotated[
        bool, typer.Option("--again", help="没有变化的也重新评 · also those that have not changed")
    ] = False,
    isolation: Annotated[
        bool,
        typer.Option(help="--no-isolation：不用沙箱，只评你信任的 · only for submissions that you trust"),
    ] = True,
    seed: Annotated[
        int | None, typer.Option(help="相同的种子给出相同的结果 · the same seed gives the same rows")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Dask 调度器的地址，在集群上运行 · run on a cluster: its scheduler's address"),
    ] = None,
) -> None:
    """给一个班的笔记本评分 · Grade a class's notebooks into grades.db and grades.csv."""
    from hookedu.grading.batch import grade  # loads torch

    # Asked to end by whatever means, end like on Ctrl-C: with all workers gone and what is finished saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    limits = {"time_limit": time_limit, "memory_limit": memory_limit}
    grade(folder, out, jobs=jobs, **limits, again=again, isolated=isolation, seed=seed, dask=dask)
