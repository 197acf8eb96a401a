"""How an answer is shown: its sentence, how sure it is, and what to run to know more."""

from __future__ import annotations

from explorer.model.answers import Answer
from explorer.view.interface import View
from explorer.view.page import sentence


class AnswerView(View[Answer]):
    """Sentences as a page breaks them; a notebook would break text at the letter that its cell ends with."""

    def title(self, value: Answer) -> str:
        return value.question

    def html(self, value: Answer) -> str:
        sure = "" if value.certainty == "exact" else f" <em>({value.certainty_text})</em>"
        hint = f"<p>{sentence(value.hint)}</p>" if value.hint else ""
        return f'<div class="explorer-static"><p><strong>{sentence(value.text)}</strong>{sure}</p>{hint}</div>'
