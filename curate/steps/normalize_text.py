"""Make text that every reader can hold: no half characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from pydantic import Field

from trajcurate.curate.identity import storable_json
from trajcurate.curate.step import Editor, Keep, Outcome, Step, TextEdit
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import Trajectory


class NormalizeText(Step):
    """Replace lone surrogate halves, and write text in one form where that is asked for.

    Looks at the messages, the question, the answer and its aliases. A high and a low half in a row
    are the character they stand for; a half alone becomes U+FFFD. In the record of edits the
    aliases are a JSON list.

    Why: JSON can name half a character, UTF-8 cannot hold it: such a row cannot be written.
    Safety: a lone half means nothing. NFC changes code points, not what is read; it is off unless
        asked for.
    """

    reasons: ClassVar[dict[str, str]] = {
        "surrogate_lone": "half a character without its other half",
        "surrogate_split": "a character written as two halves",
        "text_not_nfc": "characters that NFC writes otherwise (`unicode: nfc`)",
    }

    unicode: Literal["none", "nfc"] = Field(
        "none", description="`nfc` writes every text in Unicode normalisation form C."
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Mend what UTF-8 cannot hold, then what is not in the form asked for."""
        odd = [i for i, m in enumerate(trajectory.messages) if self._is_odd(m.content)]
        columns = [
            name for name in ("question", "answer") if self._is_odd(getattr(trajectory, name) or "")
        ]
        has_odd_alias = any(self._is_odd(alias) for alias in trajectory.answer_aliases)
        if not (odd or columns or has_odd_alias):
            return Keep(trajectory)
        editor = Editor(trajectory)
        for index in odd:
            self._mend_message(editor, index)
        changed: dict[str, Any] = {}
        for name in columns:
            changed[name] = self._mend_column(editor, name, getattr(trajectory, name))
        if has_odd_alias:
            changed["answer_aliases"] = self._mend_aliases(editor, trajectory.answer_aliases)
        return editor.done(**changed)

    def _is_odd(self, text: str) -> bool:
        if text.isascii():
            return False
        try:
            text.encode()
        except UnicodeEncodeError:
            return True
        return self.unicode == "nfc" and not unicodedata.is_normalized("NFC", text)

    @property
    def _passes(self) -> tuple[_FindChanges, ...]:
        return (_find_halves, _find_not_nfc) if self.unicode == "nfc" else (_find_halves,)

    def _mend_message(self, editor: Editor, index: int) -> None:
        for find_changes in self._passes:
            changes = find_changes(editor.messages[index].content)
            if changes:
                is_reencoding = find_changes is _find_not_nfc
                editor.replace_text(index, changes, is_reencoding=is_reencoding)

    def _mend_column(self, editor: Editor, name: str, text: str) -> str:
        for find_changes in self._passes:
            changes = find_changes(text)
            if changes:
                mended = _changed(text, changes)
                editor.set_column(name, text, mended, _worst(changes))
                text = mended
        return text

    def _mend_aliases(self, editor: Editor, aliases: tuple[str, ...]) -> tuple[str, ...]:
        for find_changes in self._passes:
            changes = [find_changes(alias) for alias in aliases]
            if any(changes):
                mended = tuple(_changed(a, c) for a, c in zip(aliases, changes, strict=True))
                before, after = storable_json(aliases), storable_json(mended)
                reason = _worst([change for found in changes for change in found])
                editor.set_column("answer_aliases", before, after, reason)
                aliases = mended
        return aliases


_FindChanges = Callable[[str], list[TextEdit]]

_HALF = "[\ud800-\udfff]"
_PAIR = "[\ud800-\udbff][\udc00-\udfff]"
_HALVES = re.compile(f"(?P<pair>{_PAIR})|(?:(?!{_PAIR}){_HALF})+")

# A character with the marks behind it: ASCII never joins what stands before it, so each run can
# be normalised alone.
_RUN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")


def _find_halves(text: str) -> list[TextEdit]:
    return [
        TextEdit(match.start(), match.end(), _join_halves(match[0]), "surrogate_split")
        if match["pair"]
        else TextEdit(match.start(), match.end(), "\ufffd" * len(match[0]), "surrogate_lone")
        for match in _HALVES.finditer(text)
    ]


def _join_halves(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _find_not_nfc(text: str) -> list[TextEdit]:
    return [
        TextEdit(match.start(), match.end(), unicodedata.normalize("NFC", match[0]), "text_not_nfc")
        for match in _RUN.finditer(text)
        if not unicodedata.is_normalized("NFC", match[0])
    ]


def _changed(text: str, changes: list[TextEdit]) -> str:
    pieces: list[str] = []
    at = 0
    for change in changes:
        pieces += text[at : change.start], change.after
        at = change.end
    return "".join([*pieces, text[at:]])


def _worst(changes: list[TextEdit]) -> str:
    reasons = {change.reason for change in changes}
    return "surrogate_lone" if "surrogate_lone" in reasons else reasons.pop()
