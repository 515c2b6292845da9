"""What all tests of the application leave out, since it takes long and few of them ask for it."""

import pytest


@pytest.fixture(autouse=True)
def _few_figures(request):
    """Draw figures only for tests that ask for `figures`, and for what a whole module shares."""
    if "figures" not in request.fixturenames:
        request.getfixturevalue("no_figures")


@pytest.fixture
def figures():
    """Let figures be drawn."""
