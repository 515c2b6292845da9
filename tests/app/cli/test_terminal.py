"""Messages on a terminal can be read, whatever the columns are called."""

from transduce.app.cli.terminal import short_message


def test_long_names_are_shortened_and_the_rest_of_a_message_stays():
    name = "very long " * 500
    message = short_message(f"The table has no column '{name}'. Did you mean 'price'?")
    assert message.endswith("…'. Did you mean 'price'?")
    assert len(message) < 150


def test_sentences_with_apostrophes_stay_whole():
    words = "each row's own and " * 20
    sentence = f"The table's columns are not {words} the labels' own."
    assert short_message(sentence) == sentence
