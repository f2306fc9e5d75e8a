"""The IPython shell in which the cells of a submission run: as in a notebook, but silent and without history."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# There is no network in a sandbox, and starting an installer takes seconds of the submission's time.
_INSTALLERS = frozenset(("pip", "conda", "mamba", "micromamba", "uv"))


def silent_shell() -> Any:
    """Return an IPython shell that displays nothing and keeps no history."""
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Nothing(DisplayPublisher):
        def publish(self, *args: Any, **kwargs: Any) -> None:
            pass

    def silent(*args: Any, **kwargs: Any) -> None:
        pass

    @contextlib.contextmanager
    def untouched(channel: str) -> Iterator[None]:
        yield

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(
        config=config, display_pub_class=Nothing, ast_node_interactivity="none", colors="nocolor"
    )
    # From version 9 on IPython keeps all printed output in its history: a cell that prints a lot would use up memory.
    shell._tee = untouched
    shell.showtraceback = shell.showsyntaxerror = shell.showindentationerror = silent
    sys.path.insert(0, "")  # as in a notebook: a module that a cell has written can be imported
    _make_commands_harmless(shell)
    return shell


def _make_commands_harmless(shell: Any) -> None:
    """Let no `%magic` and no `!command` end a cell: here many cannot work, and the rest of the cell may be right.

    Commands run without a terminal, which a sandbox does not have.
    """
    run_line_magic = shell.run_line_magic

    def line_magic(name: str, line: str, _stack_depth: int = 1) -> Any:
        if name in _INSTALLERS:
            return None
        try:
            return run_line_magic(name, line, _stack_depth + 1)
        except Exception:  # a magic may raise anything, such as where it needs a terminal
            return None

    def output_of(command: str) -> str:
        words = shell.var_expand(command, depth=2).strip()
        if words.split(" ")[0].rsplit("/")[-1] in _INSTALLERS:
            return ""
        try:
            ran = subprocess.run(
                words,
                shell=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                errors="replace",
            )
        except Exception:  # no shell here, or no process more
            return ""
        shell.user_ns["_exit_code"] = ran.returncode
        return ran.stdout

    def system(command: str) -> None:
        output_of(command)

    def getoutput(command: str, split: bool = True, depth: int = 0) -> Any:
        from IPython.utils.text import LSString, SList

        output = output_of(command)
        return SList(output.splitlines()) if split else LSString(output)

    shell.run_line_magic = line_magic
    shell.system = shell.system_piped = shell.system_raw = system
    shell.getoutput = getoutput
