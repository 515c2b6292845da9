"""What a session exports.

The labels, the table filled with the page's answers, its report, and the certificates.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transduce.app.filling import FillResult, fill
from transduce.app.filling.options import Options
from transduce.app.filling.sources import FrameSource
from transduce.app.labelling.certificates import intervals
from transduce.app.labelling.journal import Label
from transduce.app.labelling.model import Model
from transduce.app.labelling.prepared import Prepared
from transduce.app.labelling.samples import AGAIN, DRAW
from transduce.app.labelling.sentences import certificate_text
from transduce.app.labelling.session import Exported, Session, as_name_part
from transduce.app.labelling.session_fill import PageAnswers, SessionFill
from transduce.app.labelling.state import ENOUGH_DRAWS, Answers, State, replay
from transduce.app.tables import files
from transduce.app.tables.files import write
from transduce.app.tables.formats import Original, Table
from transduce.conformal import Drawn, Estimated
from transduce.conformal.designs import Design
from transduce.core.assumptions import NO_SECOND_LOOK
from transduce.core.files import together, write_text
from transduce.core.guarantee import Guarantee
from transduce.core.types import About, AnyArray, Mask
from transduce.core.words import counted

FOLDS = 5
FOUND_BY = {"find": "found by searching", "learn": "chosen to teach"}
FOUND_BY |= {"chosen": "chosen by you", "table": "in the table before"}


def write_files(session: Session, path: Path, *, force: bool) -> Exported:
    """Write all files, named after a path."""
    of_whom = ""
    sample = session.state.sample
    if sample is not None and sample.kind == AGAIN:
        # The first person's files lie beside the same table.
        of_whom = f"{as_name_part(session.table.target)}-"
    labelled = files.named_after(path, f"{of_whom}labelled")
    filled = files.named_after(path, f"{of_whom}filled")
    report = files.named_after(path, f"{of_whom}filled", ".html")
    certificate = files.named_after(path, f"{of_whom}certificate", ".txt")
    for file in (labelled, filled, report, certificate):
        files.check_name_free(file, force=force)
    if session.model is None and session.preparation.error is None:
        raise ValueError(f"There are no answers yet. {session.no_answers}")
    table = session.table
    source = table.source or Table(table.frame, Original(), "table")
    answers = exported_answers(session)
    labels = label_columns(session, answers)
    outcome = _try_to_fill(session, answers)
    exported = Exported(
        labelled, certificate, None, None, outcome.sentence, outcome.verdict, outcome.grounds
    )
    with together():
        write(labelled, source, labels, force=force)
        text = _certificates(session, outcome.sentence)
        write_text(certificate, text, force=force, like=source.files)
        if outcome.result is not None:
            write_text(report, outcome.result.report(), force=force, like=source.files)
            # With all digits: a certificate is about these very answers, which the labelled
            # table has too.
            write(filled, source, outcome.result.new, force=force)
            exported = replace(exported, filled=filled, report=report)
    return exported


class _Outcome(NamedTuple):
    """The filled table, and what is guaranteed of it; or why there is none."""

    result: SessionFill | None
    verdict: str
    grounds: str
    sentence: str


def _try_to_fill(session: Session, answers: Answers) -> _Outcome:
    """Fill the table with the answers; labels and certificates are there even if this fails."""
    try:
        if session.model is None:
            raise ValueError(session.no_answers)
        result = fill_labels(session, answers)
        guarantee = result.guarantee
        return _Outcome(result, guarantee.statement, guarantee.grounds, str(guarantee))
    except ValueError as error:
        verdict = "The table could not be filled."
        return _Outcome(None, verdict, str(error), f"The table could not be filled: {error}")


def _certificates(session: Session, sentence: str) -> str:
    """Return the text of all certificates, and what is said of the filled table."""
    checked = ""
    if session.state.predictions is not None:
        checked = session.state.predictions.column
    return certificate_text(
        session.certificate(), session.state.wanted, session.table.name, sentence, checked
    )


def exported_answers(session: Session) -> Answers:
    """Return the answers that all files are about.

    Those frozen last, which a certificate is about, or those of now.
    """
    now = session.answers(everywhere=True)
    codes = session.state.codes()
    for frozen in session.state.freezes[-1:]:
        now = replace(now, values=frozen.values, source=f"answers frozen on {frozen.time[:10]}")
    values = now.values.copy()
    values[[*codes]] = [*codes.values()]
    return replace(now, values=values)


def judged_draws(session: Session) -> pd.DataFrame | None:
    """Return labels of random draws, and answers that these have not taught.

    None if they are too few to tell.
    """
    state = session.state
    since = 0
    if state.freezes:
        since = state.freezes[-1].first_draw
    drawn = [row for row in state.drawn[since:] if row in state.labels]
    if len(drawn) < ENOUGH_DRAWS or session.prepared is None:
        return None
    if state.freezes:
        answers = state.freezes[-1].values
    else:
        answers = _answers_while_hidden(session, session.prepared, drawn)
    labels = [state.labels[row] for row in drawn]
    columns = {"true": labels, "answered": session.named(answers[drawn])}
    judged = pd.DataFrame(columns).dropna(ignore_index=True)
    if len(judged) < ENOUGH_DRAWS:
        return None
    return judged


def _answers_while_hidden(session: Session, prepared: Prepared, drawn: list[int]) -> AnyArray:
    """Return answers (n,) at drawn rows, a fifth of which is hidden in turn."""
    state = session.state
    model = Model(prepared, session.task, session.settings.confidence, state.header.seed)
    codes = state.codes()
    shares = None
    answers = np.full(session.table.n_rows, np.nan)
    if not state.numbers:
        shares = state.class_shares()
        answers = np.full(session.table.n_rows, -1)
    for fold in range(FOLDS):
        hidden = drawn[fold::FOLDS]
        others = {row: code for row, code in codes.items() if row not in hidden}
        answers[hidden] = model.answer(others, shares, everywhere=True).values[hidden]
    return answers


def label_columns(session: Session, answers: Answers) -> pd.DataFrame:
    """Return the new columns of the labelled table.

    Label, who gave it, whether the row was drawn, and the answer.
    """
    state = session.state
    target = session.table.target
    n = session.table.n_rows
    labels = [state.label_of(row) for row in range(n)]
    by = np.full(n, None, dtype=object)
    random = np.zeros(n, dtype=bool)
    by[list(state.given)] = "table"
    by[list(state.labels)] = session.settings.person or "person"
    random[state.drawn] = True
    label_name = f"{target}_label"
    if state.predictions is not None and target not in session.table.frame.columns:
        label_name = target  # so that `audit` finds the draws of this target
    columns = {
        label_name: pd.Series(labels, dtype=object).infer_objects(),
        f"{target}_by": by,
        f"{target}_random": np.where(random, "yes", "no"),
        f"{target}_answer": session.named(answers.values),
    }
    if state.predictions is not None:
        is_wrong = state.is_wrong(state.predictions)
        agrees = np.full(n, None, dtype=object)
        for row, label in state.labelled.items():
            agrees[row] = "no" if is_wrong(row, label) else "yes"
        columns[f"{target}_agrees"] = agrees
    if state.sample is not None and state.sample.kind == DRAW:
        columns |= state.sample.columns(target)
        if f"{target}_random" in session.table.frame.columns:  # the draw that was read there
            for name in state.sample.columns(target):
                columns.pop(name)
    taken = [name for name in columns if name in session.table.frame.columns]
    if taken:
        raise ValueError(f"The table has a column {taken[0]!r} already: drop it first.")
    return pd.DataFrame(columns)


# -------------------------------------------------------------------------------- the filled table


def fill_labels(session: Session, answers: Answers) -> SessionFill:
    """Return the table filled with a session's answers, and what is guaranteed of them."""
    state = session.state
    table = session.table
    block = CalibrationBlock.of(session)
    if block is None:
        level = session.settings.confidence
    else:
        level = block.level
    notes = [f"The values are those of the labelling page: {answers.source}."]
    again = f"transduce label {shlex.quote(table.name)} --target {shlex.quote(table.target)}"
    if table.path is None or session.journal is None:
        again = ""
    calibrated = None
    guarantee = _nothing(session)
    if block is not None:
        try:
            calibrated = block.fill(session)
            guarantee = block.guarantee(session, calibrated.guarantee)
            notes.append(block.note(session))
        except ValueError as error:  # no draw could be judged, say: the answers stand by themselves
            guarantee = replace(
                guarantee, reasons=(f"The random draws cannot calibrate them: {error}",)
            )
    page_answers = PageAnswers(
        values=session.named(answers.values),
        source=answers.source,
        judged=judged_draws(session),
        guarantee=guarantee,
        origins=_origins(state),
        to_do=_to_do(session),
        again=again,
        notes=notes,
    )
    options = Options.read(_options(session, level))
    source = FrameSource.read(_with_labels(session, state.labelled), table.target, options)
    if calibrated is not None:
        options = calibrated.options
    return SessionFill(source, table.name, options, page_answers, calibrated)


def _options(session: Session, level: float) -> dict[str, Any]:
    """Return the options of a fill that a session settles."""
    if session.task == "numbers":
        task = "regression"
    else:
        task = "classification"
    options = {"task": task, "confidence": level, "pictures": str(session.table.folder)}
    return options | session.settings.reading(session.table)


def _with_labels(session: Session, labels: Mapping[int, Label]) -> pd.DataFrame:
    """Return the table with some labels in the column to be filled, and no others."""
    table = session.table
    dtype: type = object
    if session.task == "numbers":
        dtype = float
    values = [labels.get(row) for row in range(table.n_rows)]
    column = pd.Series(values, dtype=dtype).to_numpy()
    others = table.frame.drop(columns=[table.target], errors="ignore")
    return others.assign(**{table.target: column})


def _origins(state: State) -> str:
    """Return how the labels came about, as a sentence."""
    drawn = sum(row in state.labels for row in state.drawn)
    kinds = Counter("table" for row in state.given if row not in state.labels)
    kinds.update(
        decision.mode
        for decision in state.decisions.values()
        if decision.label is not None and not decision.random
    )
    parts = [f"{counted(drawn, 'random draw')}" if drawn else ""]
    parts += [f"{kinds[kind]:,} {words}" for kind, words in FOUND_BY.items() if kinds[kind]]
    return f"{counted(len(state.labelled), 'label')}: {', '.join(filter(None, parts))}."


def _to_do(session: Session) -> str:
    """Return what to do next, as a sentence."""
    state = session.state
    certified = intervals(state)
    if certified.ready:
        return "Go on with the session where answers are not sure enough, and export again."
    if certified.missing:
        return (
            f"Judge {certified.missing:,} of the random draws that you skipped: "
            "then they calibrate the answers."
        )
    size = state.block_size(session.settings.confidence)
    n_made = 0
    if state.plan is not None and not state.block_is_due:
        size = state.plan.count
        n_made = len(state.drawn_in(state.plan)) - (state.pending is not None)
    if not size:
        return "Label the rows that are left."
    draws = counted(size - n_made, "more random draw")
    return f"Audit: {draws}, with nothing else labelled between them, will calibrate the answers."


def _nothing(session: Session) -> Guarantee:
    """Return that nothing is guaranteed, and what to do: no block of draws is complete."""
    about: About = "interval" if session.task == "numbers" else "set"
    why = f"Labels that were chosen do not measure how good the answers are. {_to_do(session)}"
    level = session.settings.confidence
    n_labelled = len(session.state.labelled)
    return Guarantee("none", about=about, confidence=level, n_labelled=n_labelled, reasons=(why,))


def labels_to_fill(session: Session) -> tuple[dict[int, Label], list[int] | None]:
    """Return the labels that a fill may learn from, and the drawn rows that calibrate it.

    The rows are None if no block of random draws is complete.
    """
    # Labels that came after a complete block of random draws are left out: they would spoil the
    # draw.
    labels = session.state.labels
    block = CalibrationBlock.of(session)
    if block is None:
        return dict(labels), None
    known = {*block.taught, *block.rows}
    return {row: label for row, label in labels.items() if row in known}, [
        *block.rows,
        *block.aside,
    ]


def labels_since_block(session: Session) -> dict[int, Label]:
    """Return the labels of a session that a fill may not learn from.

    Those after a complete block of random draws.
    """
    state = session.state
    if state.block is None or not intervals(state).ready:
        return {}
    return {row: state.labels[row] for row in state.labelled_since(state.block)}


def table_to_fill(session: Session) -> tuple[pd.DataFrame, Design]:
    """Return the table with the labels that a fill may learn from, and how they came about."""
    labels, drawn = labels_to_fill(session)
    frame = _with_labels(session, {**session.state.given, **labels})
    if drawn is None:
        return (frame, Estimated())
    return _with_draws(session, frame, drawn)


def _with_draws(
    session: Session, frame: pd.DataFrame, drawn: list[int]
) -> tuple[pd.DataFrame, Drawn]:
    """Return a table with a column that marks the rows drawn, and the design that names it."""
    marks = f"{session.table.target}_random"
    return frame.assign(**{marks: np.isin(np.arange(len(frame)), drawn)}), Drawn(marks)


@dataclass(frozen=True, eq=False)
class CalibrationBlock:
    """A complete block of random draws, and the labels that were there before.

    Draws calibrate what these taught.
    """

    level: float  # of the intervals or sets
    taught: Mapping[int, Label]  # labels that teach
    rows: list[int]  # drawn rows that calibrate
    # Rows drawn before these that got no label: they count as the worst possible, too.
    aside: list[int]
    unlabelled: (
        Mask  # (n,) rows without a label at the end of the block: what its guarantee is about
    )

    @classmethod
    def of(cls, session: Session) -> CalibrationBlock | None:
        """Return the last block that calibrates, if there is one.

        Its first draws teach where labels were too few.
        """
        state = session.state
        block = session.state.block
        if block is None or not intervals(state).ready:
            return None
        level = block.level or session.settings.confidence
        ends = (block.began, block.ended)
        before, after = (replay(state.header, state.given, session.events[:end]) for end in ends)
        rows = state.calibrating(block, level)
        taught = before.labelled
        first = [row for row in state.drawn_in(block) if row not in rows]
        taught |= {row: state.labels[row] for row in first if row in state.labels}
        aside = [row for row in (*before.drawn, *first) if row not in taught]
        return cls(level, taught, rows, aside, after.pool)

    def fill(self, session: Session) -> FillResult:
        """Return the table filled from the labels that teach, calibrated by the draws."""
        labels = session.state.labels
        known = {row: labels[row] for row in self.rows if row in labels}
        frame = _with_labels(session, {**self.taught, **known})
        frame, design = _with_draws(session, frame, [*self.rows, *self.aside])
        return fill(frame, session.table.target, labels=design, **_options(session, self.level))

    def guarantee(self, session: Session, found: Guarantee) -> Guarantee:
        """Return what is guaranteed of the answers.

        It is about all rows that had no label at the end of the block.
        """
        state = session.state
        assumptions = found.assumptions
        reasons = found.reasons
        n = int(self.unlabelled.sum())
        since = sum(self.unlabelled[row] for row in state.labelled)
        if since and found.kind != "none":
            labelled = f"{since:,} of them {'has' if since == 1 else 'have'} been labelled since"
            rows_meant = f"the {n:,} rows without a label when the last row was drawn"
            reasons += (f"It is about {rows_meant}; {labelled}.",)
        if state.n_blocks > 1:
            assumptions += (NO_SECOND_LOOK,)
        # Whether these rows differ from the others need not be tested: the session drew them.
        doubted = found.verdict is not None and found.verdict.shifted
        if doubted and found.kind == "approximate":
            found = replace(found, kind="exact")
        found = replace(found, verdict=None, assumptions=assumptions, reasons=reasons)
        # Bounds on wrong answers would be about those of this fit; the page's are frozen to bound
        # them.
        return replace(found, wrong=None, wrong_by_class=())

    def note(self, session: Session) -> str:
        """Return where intervals or sets come from, as a sentence."""
        if session.task == "numbers":
            regions = "Intervals"
        else:
            regions = "Sets of classes"
        taught = counted(len(self.taught), "label")
        drawn = counted(len(self.rows), "random draw")
        return f"{regions} come from a fit to {taught}; {drawn} made since calibrate it."
