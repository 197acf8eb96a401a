"""What a notebook shows of an answer."""

import pytest

from explorer.model.answers import Answer


@pytest.mark.parametrize(
    ("answer", "html"),
    [
        (Answer("q?", "Nothing is donated."), "<p><strong>Nothing is donated.</strong></p>"),
        (
            Answer("q?", "It comes from `x < y`.", "inferred", hint="Run `%explore --passes`."),
            "<p><strong>It comes from <code>x &lt; y</code>.</strong> <em>(inferred)</em></p>"
            "<p>Run <code>%explore --passes</code>.</p>",
        ),
        (Answer("q?", "Nobody says it.", "unknown"), "<p><strong>Nobody says it.</strong> <em>(not known)</em></p>"),
        (Answer("q?", "one\ntwo"), "<p><strong>one<br>two</strong></p>"),
    ],
)
def test_an_answer_is_a_sentence_with_how_sure_it_is(answer, html):
    bundle = answer._repr_mimebundle_()
    assert bundle["text/html"] == f'<div class="explorer-static">{html}</div>'
    assert bundle["text/plain"] == repr(answer)
    assert answer.to_text() == repr(answer)


def test_an_answer_is_written_as_a_page_under_its_question(tmp_path):
    page = Answer("was donation used?", "No.").to_html(tmp_path / "answer.html").read_text()
    assert "<title>was donation used?" in page
    assert "<strong>No.</strong>" in page
