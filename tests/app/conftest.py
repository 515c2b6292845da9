"""What all tests of the application leave out, since it takes long and few of them ask for it."""

from functools import cache

import pytest
import typer.testing


@pytest.fixture(autouse=True, scope="session")
def _one_command_line():
    """Make the commands of the program once, as a run of it does, not for every call of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.testing._get_command))
        yield


@pytest.fixture(autouse=True)
def _few_figures(request):
    """Draw figures only for tests that ask for `figures`, and for what a whole module shares."""
    if "figures" not in request.fixturenames:
        request.getfixturevalue("no_figures")


@pytest.fixture
def figures():
    """Let figures be drawn."""
