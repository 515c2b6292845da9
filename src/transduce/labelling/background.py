"""A second opinion while the person pauses: a process of its own, so that no click waits for it.

It is started when first asked, reads the features once, and ends with the session: when its input is closed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.core.types import AnyArray, Array
from transduce.labelling.answering import Answers

MOST_ROWS = 50_000
FEWEST_LABELS = 10


@dataclass(frozen=True, eq=False)
class Question:
    """Labels to answer from."""

    version: int  # of the labels
    task: str  # what they are
    rows: AnyArray  # (l,) labelled rows, and places of classes or numbers
    labels: AnyArray  # (l,) labelled rows, and places of classes or numbers
    machine: tuple[float, float] = (1.0, 0.9)  # width and level of the confidence machine
    shares: Array | None = None  # (n_classes,)


class Background:
    """Answers questions one at a time, in a process of its own. Shapes: matrix (n, d)."""

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: Question | None = None
        self._answer: tuple[int, Answers] | None = None

    @property
    def busy(self) -> bool:
        """Whether a question is being worked on."""
        self._collect()
        return self._asked is not None

    def ask(self, question: Question) -> bool:
        """Begin to work on a question, unless another is being worked on; return whether one is."""
        try:
            if not self.busy:
                self._hand_over(question)
        except (
            OSError
        ):  # no room in the folder of temporary files, or the process was ended: the first opinion stays
            self._asked = None
        return self._asked is not None

    def _hand_over(self, question: Question) -> None:
        """Write a question where the process finds it."""
        self._start()
        assert self._folder is not None
        assert self._process is not None
        assert self._process.stdin is not None
        path = Path(self._folder.name) / "question.npz"
        shares = np.empty(0) if question.shares is None else question.shares
        np.savez(path, rows=question.rows, labels=question.labels, shares=shares)
        line = {"version": question.version, "task": question.task, "machine": question.machine}
        self._process.stdin.write(f"{json.dumps(line)}\n".encode())
        self._process.stdin.flush()
        self._asked = question

    def answer(self, version: int) -> Answers | None:
        """Return the answers for these labels if they are ready."""
        self._collect()
        return self._answer[1] if self._answer is not None and self._answer[0] == version else None

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="transduce-label-")
        np.save(Path(self._folder.name) / "matrix.npy", self._matrix)
        code = "from transduce.labelling.background import serve; serve()"
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    def _collect(self) -> None:
        """Read the answer to the question asked, if it is there."""
        if self._asked is None or self._folder is None or self._process is None:
            return
        path = Path(self._folder.name) / f"answer-{self._asked.version}.npz"
        if not path.exists():
            if self._process.poll() is not None:  # it ended: there will be no answer
                self._asked = None
            return
        with np.load(path, allow_pickle=False) as file:
            if "values" in file:
                found = {name: file[name] for name in ("values", "certain", "lower", "upper") if name in file}
                answers = Answers(source=str(file["source"]), **found)
                self._answer = (self._asked.version, answers)
        path.unlink()
        self._asked = None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.terminate()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()
        self._process, self._folder, self._asked = None, None, None


def serve() -> None:
    """Answer the questions that come in, one a line, until the input is closed."""
    folder = Path(sys.argv[1])
    matrix = np.load(folder / "matrix.npy")
    for line in sys.stdin:
        question = json.loads(line)
        with np.load(folder / "question.npz") as file:
            known = Question(
                0, question["task"], file["rows"], file["labels"], question["machine"], file["shares"]
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = second_opinion(matrix, known)
            except Exception as error:  # whatever goes wrong there: the first opinion stays
                found = {"error": np.array(str(error))}
        part = folder / "part.npz"
        np.savez(part, allow_pickle=False, **found)
        part.rename(folder / f"answer-{question['version']}.npz")
    shutil.rmtree(folder, ignore_errors=True)  # the session may have been killed


def second_opinion(matrix: Array, known: Question) -> dict[str, AnyArray]:
    """Return values and certainties at all rows: classes by the blend, numbers by the confidence machine."""
    return _numbers(matrix, known) if known.task == "numbers" else _classes(matrix, known)


def _numbers(matrix: Array, known: Question) -> dict[str, AnyArray]:
    """Return numbers at all rows with their intervals."""
    from transduce.methods.confidence_machine import RidgeConfidenceMachine

    y = np.full(len(matrix), np.nan)
    y[known.rows] = known.labels
    width, confidence = known.machine
    model = RidgeConfidenceMachine(width=width, confidence=confidence, standardize=False).fit(matrix, y)
    assert model.answer_.regions is not None
    lower, upper = np.full((2, len(matrix)), np.nan)
    lower[model.answer_.rows], upper[model.answer_.rows] = model.answer_.regions.hull().T
    with np.errstate(invalid="ignore"):
        certain = lower - upper
    values = np.asarray(model.transduction_, dtype=float)
    source = np.array("ridge regression and the confidence machine, at all rows")
    return {"values": values, "certain": certain, "lower": lower, "upper": upper, "source": source}


def _classes(matrix: Array, known: Question) -> dict[str, AnyArray]:
    """Return classes at all rows by the blend, its probabilities corrected for how labels came about."""
    from transduce.ensemble import TransductiveBlend

    values, certain = np.full(len(matrix), -1, dtype=np.int16), np.full(len(matrix), np.nan)
    values[known.rows] = known.labels
    codes = np.full(len(matrix), None, dtype=object)
    codes[known.rows] = known.labels.astype(int)
    blend = TransductiveBlend(task="classification", standardize=False, random_state=0).fit(matrix, codes)
    assert blend.answer_.probabilities is not None
    classes = np.asarray(blend.classes_, dtype=np.int64)
    chances = corrected(blend.answer_.probabilities, classes, known)
    values[blend.answer_.rows] = classes[chances.argmax(axis=1)]
    ranked = np.sort(chances, axis=1)
    certain[blend.answer_.rows] = ranked[:, -1] - ranked[:, -2]
    names = ", ".join(str(name).replace("_", " ") for name in blend.weights_.index)
    return {"values": values, "certain": certain, "source": np.array(f"a blend of {names}")}


def corrected(probabilities: Array, classes: AnyArray, known: Question) -> Array:
    """Return probabilities for rows whose classes have other shares than the labels.

    A search labels mostly hits: by their labels nearly all rows would be hits. Bayes' rule puts it right.
    """
    if known.shares is None or not len(known.shares):
        return probabilities
    labelled = np.bincount(known.labels.astype(np.int64), minlength=len(known.shares))[classes]
    chances = probabilities * (known.shares[classes] / labelled)
    total = chances.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0.0, chances / np.where(total > 0.0, total, 1.0), probabilities))
