"""Say whether this environment holds each dependency at the lowest version that pyproject.toml allows.

`make minimum` asks this before its tests, so that a floor which was raised or lowered without `make lock`, or which
no set of versions can meet, is not taken for tested.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version


def main() -> int:
    """Print what is not at its floor; return how many are not."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wrong = 0
    for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        wanted = Requirement(line)
        (floor,) = (part.version for part in wanted.specifier if part.operator == ">=")
        if Version(version(wanted.name)) != Version(floor):
            print(
                f"{line} is tested with {version(wanted.name)}: raise the floor, or run make lock."
            )
            wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
