"""Reading the course's own YAML files, with libyaml where PyYAML has it: it takes a tenth of the time of the parser in Python."""

from pathlib import Path
from typing import Any

# PyYAML itself is imported on use: `import hookedu` needs no file of the course.


def loader() -> Any:
    """Return the class of the safe loader to use."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path) -> Any:
    """Return what a file holds; {} if it is empty or there is no such file."""
    import yaml

    return (yaml.load(path.read_text(encoding="utf-8"), loader()) or {}) if path.exists() else {}


def compose(path: Path) -> Any:
    """Return the tree of nodes of a file, which knows the line of each; None if the file is empty."""
    import yaml

    return yaml.compose(path.read_text(encoding="utf-8"), loader())
