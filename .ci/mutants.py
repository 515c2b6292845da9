"""Change one operator or number at a time in the modules on which guarantees rest, and see whether a test notices.

Every place that can be changed is compiled with a switch beside it, so that the modules are imported once. The fast
tests run once unchanged, which shows the places that each of them reaches. Then a process is forked for every change:
it turns the change on and runs the tests that reach it, the quickest first, until one fails.

A change that no test notices is a survivor. `docs/mutants.md` lists those that are known, each with the reason why it
changes no promise; the exit code is 1 if there is another one.

    python .ci/mutants.py                                     # all changes of all modules
    python .ci/mutants.py --module core.ranks --every 1       # all changes of one module
    python .ci/mutants.py --every 4                           # a quarter of the changes, always the same ones
    python .ci/mutants.py --every 4 --section 1               # the second quarter, of the sections 0 to 3
    python .ci/mutants.py --json all.json                     # and again, only those that survived then:
    python .ci/mutants.py --again all.json --tests tests/core/test_ranks.py
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TABLE = ROOT / "docs" / "mutants.md"

CALIBRATION_TESTS = [
    "tests/app/filling/test_levels.py",
    "tests/app/report/test_cards.py",
    "tests/conformal/test_by_class.py",
    "tests/conformal/test_calibrated.py",
    "tests/conformal/test_calibrated_answers.py",
    "tests/conformal/test_class_coverage.py",
    "tests/conformal/test_edges.py",
    "tests/conformal/test_estimated_odds.py",
    "tests/conformal/test_exact_counts.py",
    "tests/conformal/test_groups.py",
    "tests/conformal/test_guarantee.py",
    "tests/conformal/test_guarantees_kept.py",
    "tests/conformal/test_outside.py",
    "tests/conformal/test_overlapping.py",
    "tests/conformal/test_random_labels.py",
    "tests/conformal/test_second_fit.py",
    "tests/conformal/test_seen_labels.py",
    "tests/conformal/test_transducer.py",
    "tests/conformal/test_weights.py",
    "tests/conformal/test_wrong_answers.py",
]
# The fast tests that are about each module; no test that starts a process is among them.
MODULES = {
    "conformal.miscoverage": [
        "tests/conformal/test_miscoverage.py",
        "tests/conformal/test_wrong_answers.py",
        "tests/conformal/test_exact_counts.py",
        "tests/conformal/test_groups.py",
        "tests/conformal/test_random_labels.py",
        "tests/conformal/test_by_class.py",
        "tests/conformal/test_many_rows.py",
        "tests/app/filling/test_two_laws.py",
        "src/transduce/conformal/miscoverage.py",
    ],
    "conformal.selection": [
        "tests/conformal/test_calibrated.py",
        "tests/conformal/test_selection.py",
        "tests/conformal/test_transducer.py",
        "tests/conformal/test_exact_counts.py",
        "tests/conformal/test_random_labels.py",
        "src/transduce/conformal/selection.py",
    ],
    **{
        f"conformal.{module}": [*CALIBRATION_TESTS, f"src/transduce/conformal/{module}.py"]
        for module in (
            "calibrated",
            "calibrated_answer",
            "calibrated_fit",
            "calibrated_guarantee",
            "class_coverage",
            "missing_mean",
            "outside",
            "ruled_out",
            "too_few",
            "wrong_answers",
        )
    },
    "population.urns": [
        "tests/conformal/test_exact_counts.py",
        "tests/conformal/test_miscoverage.py",
        "tests/conformal/test_wrong_answers.py",
        "tests/population/test_audit.py",
        "src/transduce/population/urns.py",
    ],
    "core.ranks": [
        "tests/core/test_ranks.py",
        "tests/conformal/test_miscoverage.py",
        "tests/conformal/test_transducer.py",
        "tests/conformal/test_guarantee.py",
        "tests/conformal/test_weights.py",
    ],
    "app.labelling.certificates": [
        "tests/app/labelling/test_certified.py",
        "tests/app/labelling/test_certificates.py",
        "tests/app/labelling/test_extremes.py",
        "tests/app/labelling/test_session.py",
        "tests/app/labelling/test_share.py",
        "src/transduce/app/labelling/certificates.py",
    ],
}
MOST_SECONDS = (
    5.0  # of tests for one change, as they took unchanged, unless another number is asked for
)
PATIENCE = 5.0  # seconds, and times the seconds unchanged, after which a change counts as noticed

SURVIVED = ("survived", "no test reaches it")

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Mod: ast.Mult,
}
PAIRS = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("left", "right"),
    ("zeros", "ones"),
]
OTHER_NAME = dict(PAIRS) | {second: first for first, second in PAIRS}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    number: int
    module: str
    line: int
    function: str
    before: str
    after: str
    nth: int = 1  # of those in the function that read the same

    @property
    def name(self) -> str:
        """How the change is written in the table of those that are explained: without its line, which moves."""
        place = f" #{self.nth}" if self.nth > 1 else ""
        return f"{self.module}.{self.function}: {self.before} -> {self.after}{place}"


def changed_forms(node: ast.AST) -> list[ast.AST]:
    """Return copies of an expression, each with one thing changed."""
    forms: list[ast.AST] = []

    def add(**fields: object) -> None:
        form = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(form, name, value)
        forms.append(form)

    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            if type(operator) in COMPARISONS:
                operators = list(node.ops)
                operators[place] = COMPARISONS[type(operator)]()
                add(ops=operators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        add(op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        add(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        forms.append(copy.deepcopy(node.operand))
    elif isinstance(node, ast.IfExp):
        add(test=ast.UnaryOp(ast.Not(), copy.deepcopy(node.test)))
    elif isinstance(node, ast.Constant):
        forms += [ast.Constant(value) for value in changed_constants(node.value)]
    elif isinstance(node, ast.Attribute) and node.attr in OTHER_NAME:
        add(attr=OTHER_NAME[node.attr])
    elif isinstance(node, ast.Name) and node.id in {"min", "max", "any", "all"}:
        add(id=OTHER_NAME[node.id])
    return forms


def changed_constants(value: object) -> list[object]:
    """Return what stands in the place of a constant; texts are for people, and stay."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [0.0] if 0.0 < abs(value) < 1e-6 else [value + 1.0]
    if value in ("left", "right"):
        return [OTHER_NAME[str(value)]]
    return []


class Switches(ast.NodeTransformer):
    """Puts a switch beside everything in a module that can be changed."""

    def __init__(self, module: str, first: int) -> None:
        self.module = module
        self.first = first
        self.mutants: list[Mutant] = []
        self.names: list[str] = []
        self.seen: Counter[tuple[str, str, str]] = Counter()

    def switch(self, node: ast.AST, before: str, after: str) -> ast.expr:
        """Return the expression that is true if a new change is turned on."""
        number = self.first + len(self.mutants)
        function = ".".join(self.names) or "module"
        alike = (function, before, after)
        self.seen[alike] += 1
        nth = self.seen[alike]
        self.mutants.append(Mutant(number, self.module, node.lineno, *alike, nth))
        return ast.Call(ast.Name("__mutant__", ast.Load()), [ast.Constant(number)], [])

    def visit(self, node: ast.AST) -> ast.AST:
        """Return a node with its switches."""
        if isinstance(node, (ast.JoinedStr, ast.Assert)):  # messages; and what types need
            return node
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return self.visit_definition(node)
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        forms = changed_forms(node) if isinstance(node, ast.expr) and is_read(node) else []
        before = ast.unparse(node) if forms else ""
        original = copy.deepcopy(node)
        changed = self.generic_visit(node)
        for form in forms:
            after = ast.unparse(ast.fix_missing_locations(form))
            test = self.switch(original, before, after)
            changed = ast.IfExp(test, form, changed)
        if isinstance(node, (ast.Raise, ast.Expr)) and not is_docstring(original):
            text = ast.unparse(original).splitlines()[0][:100]
            test = ast.UnaryOp(ast.Not(), self.switch(original, text, "pass"))
            changed = ast.If(test, [changed], [])
        if isinstance(node, (ast.If, ast.While)):
            test = self.switch(original, f"if {ast.unparse(original.test)}", "if not")
            if isinstance(node, ast.If):
                changed.test = ast.IfExp(test, negated(original.test), changed.test)
            else:
                self.mutants.pop()  # a loop that is turned round only hangs
        return ast.copy_location(changed, original)

    def visit_definition(self, node: ast.AST) -> ast.AST:
        """Return a function or class; what runs when it is defined has switches, annotations have none."""
        self.names.append(node.name)
        if isinstance(node, ast.FunctionDef):
            defaults = [*node.args.defaults]
            node.args.defaults = [self.visit(value) for value in defaults]
            node.args.kw_defaults = [
                value if value is None else self.visit(value) for value in node.args.kw_defaults
            ]
        node.body = [self.visit(statement) for statement in node.body]
        self.names.pop()
        return node


def is_read(node: ast.expr) -> bool:
    """Return whether an expression is read, not stored to."""
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement is a text only."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def negated(test: ast.expr) -> ast.expr:
    """Return the opposite of a condition."""
    return ast.UnaryOp(ast.Not(), copy.deepcopy(test))


# ------------------------------------------------------------------------------------------ turned on in a process

TURNED_ON = [-1]
REACHED: set[int] = set()


def is_on(number: int) -> bool:
    """Return whether a change is turned on, and remember that it was reached."""
    REACHED.add(number)
    return number == TURNED_ON[0]


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with its switches."""

    code: dict[str, object] = {}  # noqa: RUF012

    def get_code(self, fullname: str) -> object:
        """Return the module, compiled with its switches."""
        return self.code[fullname]


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that have switches."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> object:
        """Return where a module with switches is; None for all others."""
        if fullname not in Loader.code:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        spec.loader = Loader(fullname, spec.origin)
        return spec


def install(modules: list[str]) -> list[Mutant]:
    """Compile modules with switches, and return all changes."""
    mutants: list[Mutant] = []
    for module in modules:
        path = SOURCE / "transduce" / f"{module.replace('.', '/')}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        transformer = Switches(module, len(mutants))
        tree = ast.fix_missing_locations(transformer.visit(tree))
        Loader.code[f"transduce.{module}"] = compile(tree, str(path), "exec")
        mutants += transformer.mutants
    builtins.__mutant__ = is_on
    sys.meta_path.insert(0, Finder())
    for module in modules:  # before pytest comes, which would load a file that it was given itself
        importlib.import_module(f"transduce.{module}")
    return mutants


# ------------------------------------------------------------------------------------------ the tests


class Runner:
    """A plugin of pytest that runs the tests once for every change."""

    def __init__(self, mutants: list[Mutant], seconds: float) -> None:
        self.mutants = mutants
        self.seconds = seconds  # of tests for one change
        self.at_import: set[int] = set()
        self.failed = False
        self.outcome: dict[int, str] = {}

    def pytest_runtest_logreport(self, report: object) -> None:
        """Remember that a test failed."""
        self.failed = self.failed or report.failed

    def pytest_report_teststatus(self, report: object) -> tuple[str, str, str]:
        """Print nothing for a test."""
        return report.outcome, "", ""

    def pytest_runtestloop(self, session: object) -> bool:
        """Run the tests unchanged, then once for every change."""
        items = {item.nodeid: item for item in session.items}
        self.at_import = set(REACHED)
        reached, seconds = self.in_child(lambda send: self.unchanged(session.items, send))
        begun = time.monotonic()
        for place, mutant in enumerate(self.mutants):
            tests = [name for name in items if mutant.number in reached[name]]
            tests.sort(key=lambda name: (is_far(name, mutant), seconds[name]))
            tests = within(tests, seconds, self.seconds)
            if mutant.number in self.at_import:
                self.outcome[mutant.number] = "when imported"
            elif not tests:
                self.outcome[mutant.number] = "no test reaches it"
            else:
                chosen = [items[name] for name in tests]
                allowed = PATIENCE * (1.0 + sum(seconds[name] for name in tests))
                self.outcome[mutant.number] = self.notice(mutant, chosen, allowed)
            if self.outcome[mutant.number] in SURVIVED:
                print(f"{self.outcome[mutant.number]}: {mutant.name}", flush=True)
            if place % 20 == 19:
                counts = dict(Counter(self.outcome.values()))
                spent = time.monotonic() - begun
                print(f"{place + 1}/{len(self.mutants)} {spent:.0f} s {counts}", flush=True)
        return True

    def unchanged(self, items: list[object], send: object) -> None:
        """Run all tests, and send what each reaches and how long it takes."""
        reached, seconds = {}, {}
        for item in items:
            REACHED.clear()
            self.failed = False
            begun = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            seconds[item.nodeid] = time.monotonic() - begun
            reached[item.nodeid] = sorted(REACHED)
            if self.failed:
                print(f"left out, since it fails unchanged: {item.nodeid}", flush=True)
                reached[item.nodeid] = []
        send([reached, seconds])

    def notice(self, mutant: Mutant, items: list[object], allowed: float) -> str:
        """Return what becomes of a change."""

        def run(send: object) -> None:
            TURNED_ON[0] = mutant.number
            self.failed = False
            for item in items:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if self.failed:
                    break
            send("noticed" if self.failed else "survived")

        return self.in_child(run, allowed, otherwise="noticed: hangs or ends the process")

    def in_child(self, work: object, seconds: float = 3600.0, otherwise: object = None) -> object:
        """Run something in a forked process, and return what it sends."""
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            silent = os.open(os.devnull, os.O_WRONLY)
            if otherwise is not None:
                os.dup2(silent, 1)
                os.dup2(silent, 2)
            with os.fdopen(writing, "w") as pipe:
                work(lambda result: pipe.write(json.dumps(result)))
            os._exit(0)
        os.close(writing)
        parts = []
        until = time.monotonic() + seconds
        while select.select([reading], [], [], max(until - time.monotonic(), 0.0))[0]:
            part = os.read(reading, 1 << 20)
            if not part:
                break
            parts.append(part)
        os.close(reading)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return json.loads(b"".join(parts)) if parts else otherwise


def is_far(name: str, mutant: Mutant) -> bool:
    """Return whether a test is not among those that are about the module of a change."""
    return name.partition("::")[0] not in MODULES[mutant.module]


def within(tests: list[str], seconds: dict[str, float], most: float) -> list[str]:
    """Return the first tests that together take no longer than one change may."""
    chosen: list[str] = []
    spent = 0.0
    for name in tests:
        spent += seconds[name]
        if chosen and spent > most:
            break
        chosen.append(name)
    return chosen


def name_of(entry: dict[str, str]) -> str:
    """Return the name of a change that is written in a file of an earlier run."""
    parts = {name: entry[name] for name in ("module", "function", "before", "after", "nth")}
    return Mutant(0, line=0, **parts).name


def explained() -> set[str]:
    """Return the names of the survivors that the documentation explains."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    rows = re.findall(r"^\| `(\S+)` \| `(.+?)` → `(.+?)`(| #\d+) \|", text, flags=re.MULTILINE)
    unescaped = [[part.replace("\\|", "|") for part in row] for row in rows]
    return {f"{where}: {before} -> {after}{nth}" for where, before, after, nth in unescaped}


def taken(mutant: Mutant, every: int, section: int) -> bool:
    """Return whether a change is in a section: by its text, so that other changes do not move it."""
    digest = hashlib.sha256(f"{mutant.name} {mutant.line}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % every == section


def main() -> int:
    """Run the tests once for every change, and report the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", action="append", choices=list(MODULES), help="one module")
    parser.add_argument("--every", type=int, default=1, help="one in so many of the changes")
    parser.add_argument("--section", type=int, default=0, help="which of so many sections, from 0")
    parser.add_argument("--only", default="", help="changes whose name contains this")
    parser.add_argument("--again", type=Path, help="those that survived in this file of --json")
    parser.add_argument("--tests", nargs="+", help="files of tests; by default those of the module")
    parser.add_argument(
        "--seconds", type=float, default=MOST_SECONDS, help="of tests for one change"
    )
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    options = parser.parse_args()
    modules = options.module or list(MODULES)
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE), str(ROOT)]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

    import pytest
    from hypothesis import Phase, settings

    os.environ["HYPOTHESIS_PROFILE"] = "mutants"  # a failure is enough: it is not made smaller
    phases = [Phase.explicit, Phase.generate]
    settings.register_profile(
        "mutants", deadline=None, derandomize=True, max_examples=25, phases=phases, database=None
    )
    mutants = install(modules)
    every = len(mutants)
    mutants = [mutant for mutant in mutants if taken(mutant, options.every, options.section)]
    mutants = [mutant for mutant in mutants if options.only in mutant.name]
    if options.again is not None:
        earlier = json.loads(options.again.read_text(encoding="utf-8"))
        left = {name_of(entry) for entry in earlier if entry["outcome"] in SURVIVED}
        mutants = [mutant for mutant in mutants if mutant.name in left]
    print(f"{every} changes are possible, {len(mutants)} are tried", flush=True)
    files = options.tests or sorted({name for module in modules for name in MODULES[module]})
    files = [name for name in files if (ROOT / name).exists()]
    runner = Runner(mutants, options.seconds)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", *files]
    if status := pytest.main(arguments, plugins=[runner]):
        print(f"pytest ended with {status!r}")
    return report(runner, options.json)


def report(runner: Runner, path: Path | None) -> int:
    """Print how many changes were noticed, and every survivor that is not explained."""
    known = explained()
    rows = defaultdict(Counter)
    unexplained = []
    for mutant in runner.mutants:
        outcome = runner.outcome[mutant.number]
        if outcome in SURVIVED:
            if mutant.name in known:
                outcome = "explained"
            else:
                unexplained.append((mutant, outcome))
        rows[mutant.module][outcome] += 1
    print("\n".join(f"{module}: {dict(counts)}" for module, counts in rows.items()))
    for mutant, outcome in unexplained:
        print(f"{outcome}: line {mutant.line} {mutant.name}")
    if path is not None:
        outcomes = [
            vars(mutant) | {"outcome": runner.outcome[mutant.number]} for mutant in runner.mutants
        ]
        path.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
