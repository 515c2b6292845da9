"""What processes of tests have imported when they begin: a fill imports most of it only when it comes to it."""

import jinja2  # noqa: F401
import matplotlib.backends.backend_svg
import matplotlib.figure  # noqa: F401
import numba  # noqa: F401
import sklearn.ensemble  # noqa: F401
import skrub  # noqa: F401

import tests.app.labelling.processes  # noqa: F401
import transduce
import transduce.app.filling
import transduce.app.page.command
import transduce.app.page.run
from tests.compile_once import compile_once

compile_once()
PUBLIC = [getattr(transduce, name) for name in transduce.__all__]
