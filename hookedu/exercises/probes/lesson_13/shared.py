"""The settings of the compiler, for the probes of 13.1 and 13.2."""

import contextlib
from collections.abc import Callable, Iterator

import torch


@contextlib.contextmanager
def settings() -> Iterator[Callable[[], list[str]]]:
    """Restore the settings of the compiler at the end; yield what returns the names of those that have changed."""
    config = torch._dynamo.config
    before = config.get_config_copy()

    def changed() -> list[str]:
        now = config.get_config_copy()
        return [name for name in before if before[name] != now.get(name)]

    with torch.compiler.set_stance("default"):  # whatever stance the notebook or the answer leaves set
        try:
            yield changed
        finally:
            for name in changed():
                setattr(config, name, before[name])
