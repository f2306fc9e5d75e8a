"""What a published file must not say: where it was made, and from where its maker installs packages."""

import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from hookedu import catalog

# In halves, because this file is published as well.
REGISTRIES = re.compile(
    "|".join([r"python" r"hosted", r"pypi\." r"org", r"registry\." r"npmjs", r"deb\." r"debian"])
)
# Files in somebody's home, in an environment or of a running kernel, on whatever machine.
_ANYWHERE = (
    r"/home/\w+/|/Users/\w+/|\b[A-Za-z]:\\+Users\\+\w|(?<![\w.])/[\w./-]+/site-packages/|/ipykernel_\d"
)


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of every file in a zip, a wheel or a .tar.gz."""
    if path.suffix == ".gz":
        with tarfile.open(path) as tar:
            for entry in tar:
                if file := tar.extractfile(entry):
                    yield entry.name, file.read()
    else:
        with zipfile.ZipFile(path) as zipped:
            for name in zipped.namelist():
                yield name, zipped.read(name)


def traces(path: Path, *places: Path) -> list[str]:
    """Return where a zip, a wheel or a .tar.gz names the host of a registry or a machine's path.

    Paths in this clone, in the user's home and in `places` are found by their names, and others by what they look like.
    """
    here = [
        re.escape(str(place)) + r"[/\\]+\w" for place in (catalog.ROOT, Path.home(), *places) if place.name
    ]
    rule = re.compile("|".join([REGISTRIES.pattern, _ANYWHERE, *here]))
    return [
        f"{name}: {hit[0]}"
        for name, content in members(path)
        for hit in rule.finditer(content.decode("utf-8", errors="replace"))
    ]
