"""How an answer is shown: its sentence, how sure it is, and what to run to know more."""

from __future__ import annotations

from html import escape

from explorer.model.answers import Answer
from explorer.model.text import code_parts
from explorer.view.interface import View


class AnswerView(View[Answer]):
    """Sentences as a page breaks them; a notebook would break text at the letter that its cell ends with."""

    def title(self, value: Answer) -> str:
        return value.question

    def html(self, value: Answer) -> str:
        sure = "" if value.certainty == "exact" else f" <em>({value.certainty_text})</em>"
        hint = f"<p>{_sentence(value.hint)}</p>" if value.hint else ""
        return f'<div class="explorer-static"><p><strong>{_sentence(value.text)}</strong>{sure}</p>{hint}</div>'


def _sentence(text: str) -> str:
    parts = (f"<code>{escape(part)}</code>" if is_code else escape(part) for part, is_code in code_parts(text))
    return "".join(parts).replace("\n", "<br>")
