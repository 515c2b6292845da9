"""Print how the code reads, in figures.

Usage: python .ci/reading_report.py [FOLDER]

It reports and gates nothing: a limit on lines makes people pack lines.
Counted are tokens without comments, docstrings, blank lines and indentation.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

WIDEST_LINE = 100
N_SHOWN = 6
LAYOUT_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Figures:
    """What is counted over all modules."""

    modules: int = 0
    code_lines: int = 0
    tokens: int = 0
    conditional_expressions: int = 0
    parallel_assignments: int = 0
    any_annotations: int = 0
    wide_lines: int = 0
    densest_lines: list[tuple[int, str]] = field(default_factory=list)
    longest_functions: list[tuple[int, str]] = field(default_factory=list)


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines.update(range(docstring.lineno, docstring.end_lineno + 1))
    return lines


def tokens_by_line(text: str, left_out: set[int]) -> Counter[int]:
    """Return how many tokens each line of code holds; a token of several lines counts in each."""
    counts: Counter[int] = Counter()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT_TOKENS or token.start[0] in left_out:
            continue
        for line in range(token.start[0], token.end[0] + 1):
            counts[line] += 1
    return counts


def count_tokens(text: str, left_out: set[int]) -> int:
    """Return how many tokens there are, each counted once."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type not in LAYOUT_TOKENS and token.start[0] not in left_out for token in tokens
    )


def is_parallel_assignment(node: ast.AST) -> bool:
    """Return whether a statement is of the form ``a, b = x, y``."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and any(isinstance(target, ast.Tuple) for target in node.targets)
    )


def add_module(figures: Figures, path: Path) -> None:
    """Count one module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    documented = docstring_lines(tree)
    per_line = tokens_by_line(text, documented)
    figures.modules += 1
    figures.code_lines += len(per_line)
    figures.tokens += count_tokens(text, documented)
    figures.wide_lines += sum(len(line) > WIDEST_LINE for line in text.splitlines())
    figures.densest_lines += [(count, f"{path}:{line}") for line, count in per_line.items()]
    for node in ast.walk(tree):
        figures.conditional_expressions += isinstance(node, ast.IfExp)
        figures.parallel_assignments += is_parallel_assignment(node)
        figures.any_annotations += isinstance(node, ast.Name) and node.id == "Any"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            figures.longest_functions.append((length, f"{path}:{node.lineno} {node.name}"))


def show_largest(title: str, counted: list[tuple[int, str]]) -> None:
    """Print the places with the largest counts."""
    print(title)
    for count, place in sorted(counted, reverse=True)[:N_SHOWN]:
        print(f"    {count:4d}  {place}")


def main() -> None:
    """Count all modules below a folder and print the report."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    figures = Figures()
    for path in sorted(folder.rglob("*.py")):
        add_module(figures, path)
    thousand_lines = max(figures.code_lines, 1) / 1000
    print(f"How the code in {folder} reads (a report, no gate):")
    print(f"    {figures.modules} modules, {figures.code_lines:,} lines of code")
    print(f"    {figures.tokens:,} tokens, {figures.tokens / 1000 / thousand_lines:.1f} a line")
    print(
        f"    in 1,000 lines: {figures.conditional_expressions / thousand_lines:.0f} conditional "
        f"expressions, {figures.parallel_assignments / thousand_lines:.0f} parallel assignments"
    )
    print(
        f"    {figures.any_annotations:,} Any, {figures.wide_lines:,} lines wider than {WIDEST_LINE}"
    )
    show_largest("Densest lines (tokens):", figures.densest_lines)
    show_largest("Longest functions (lines):", figures.longest_functions)


if __name__ == "__main__":
    main()
