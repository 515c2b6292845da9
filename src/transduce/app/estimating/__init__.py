"""Questions about a whole column: what is asked, estimated, drawn and said."""

from transduce.app.estimating.answers import Answered, answer_questions, estimate_of
from transduce.app.estimating.draws import draw_columns
from transduce.app.estimating.groups import propose_groups
from transduce.app.estimating.predicted import PredictedColumn
from transduce.app.estimating.questions import Question, read_question

__all__ = ["Answered", "PredictedColumn", "Question", "answer_questions", "draw_columns"]
__all__ += ["estimate_of", "propose_groups", "read_question"]
