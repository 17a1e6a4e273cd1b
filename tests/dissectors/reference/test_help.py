"""Every error code is explained in words of its own."""

from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.dissectors.reference.help import HELP, help_of


def test_every_code_has_its_meaning_and_all_but_none_a_cause() -> None:
    assert HELP.keys() == ERRORS.keys()
    assert [code for code, text in HELP.items() if not text.causes] == [0]


def test_texts_are_sentences_and_no_code_says_what_another_says() -> None:
    for text in HELP.values():
        assert text.meaning[0].isupper()
        assert text.meaning.endswith(".")
        assert all(isinstance(cause, str) and not cause.endswith(".") for cause in text.causes)
        assert isinstance(text.causes, tuple)
    assert len({text.meaning for text in HELP.values()}) == len(HELP)


def test_a_code_that_nobody_knows_says_so() -> None:
    assert "No Kafka release" in help_of(9999).meaning
