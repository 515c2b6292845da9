"""Questions about a whole column: what is asked, estimated, drawn and said."""

from transduce.app.estimating.answers import Answered as Answered
from transduce.app.estimating.answers import answer_questions as answer_questions
from transduce.app.estimating.answers import estimate_of as estimate_of
from transduce.app.estimating.draws import draw_columns as draw_columns
from transduce.app.estimating.groups import propose_groups as propose_groups
from transduce.app.estimating.predicted import PredictedColumn as PredictedColumn
from transduce.app.estimating.questions import Question as Question
from transduce.app.estimating.questions import read_question as read_question
