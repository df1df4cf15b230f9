from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import Sample, check_kept, make_trajectory, pairs, reasons_with_sample, search_visit, zoo

from trajcurate.curate.step import Keep
from trajcurate.curate.steps.normalize_text import NormalizeText
from trajcurate.schemas.trajectory import Trajectory
from trajcurate.schemas.wire import to_messages

FIRE = "\U0001f525"


def apply(trajectory: Trajectory, unicode: str = "none") -> Keep:
    step = NormalizeText.model_validate({"unicode": unicode})
    outcome = step.apply(trajectory, search_visit())
    assert isinstance(outcome, Keep)
    return outcome


def mended(text: str, unicode: str = "none") -> tuple[str, list[str]]:
    outcome = apply(make_trajectory([{"role": "user", "content": text}]), unicode)
    found = [edit.reason for edit in outcome.edits]
    return to_messages(outcome.trajectory.messages)[0]["content"], found


@pytest.mark.parametrize("sample", zoo("normalize_text"))
def test_a_sample_is_mended(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("normalize_text") == set(NormalizeText.reasons)


@pytest.mark.parametrize(
    "text", ["", "plain", "café", "盐路", FIRE, "cafe\u0301", "\ufffd\u2028\x00"]
)
def test_text_that_utf8_can_hold_is_the_same_object(text: str) -> None:
    trajectory = make_trajectory(pairs(text), answer=text, answer_aliases=(text,))
    assert apply(trajectory).trajectory is trajectory


@pytest.mark.parametrize(
    ("text", "result", "found"),
    [
        ("caf\ud83d x", "caf\ufffd x", ["surrogate_lone"]),
        ("\udd25", "\ufffd", ["surrogate_lone"]),
        ("\ud83d\ud83d", "\ufffd\ufffd", ["surrogate_lone"]),
        ("\ud83d\udd25", FIRE, ["surrogate_split"]),
        ("x\udd25\ud83d", "x\ufffd\ufffd", ["surrogate_lone"]),
        ("\ud83d\ud83d\udd25", "\ufffd" + FIRE, ["surrogate_split", "surrogate_lone"]),
        ("\ud83d\udd25\udd25", FIRE + "\ufffd", ["surrogate_lone", "surrogate_split"]),
        (f"{FIRE}\ud83d{FIRE}", f"{FIRE}\ufffd{FIRE}", ["surrogate_lone"]),
        ("\ud800a\udfff", "\ufffda\ufffd", ["surrogate_lone", "surrogate_lone"]),
    ],
)
def test_halves_are_joined_or_replaced(text: str, result: str, found: list[str]) -> None:
    assert mended(text) == (result, found)


def test_a_turn_is_read_again_when_its_text_changes() -> None:
    outcome = apply(make_trajectory(pairs("<think>\n\ud83d\n</think>\n<answer>a\udd25</answer>")))
    assert outcome.trajectory.final_answer == "a\ufffd"


def test_question_answer_and_aliases_are_mended_too() -> None:
    trajectory = make_trajectory(
        [], question="q\ud83d", answer="\ud83d\udd25", answer_aliases=("a", "\udd25")
    )
    outcome = apply(trajectory)
    row = outcome.trajectory
    assert (row.question, row.answer, row.answer_aliases) == ("q\ufffd", FIRE, ("a", "\ufffd"))
    assert [(e.column, e.reason, e.before, e.after) for e in outcome.edits] == [
        ("question", "surrogate_lone", "q\ud83d", "q\ufffd"),
        ("answer", "surrogate_split", "\ud83d\udd25", FIRE),
        ("answer_aliases", "surrogate_lone", '["a","\\udd25"]', '["a","\ufffd"]'),
    ]


@pytest.mark.parametrize(
    ("text", "result", "count"),
    [
        ("cafe\u0301 and cafe\u0301", "café and café", 2),
        ("e\u0301\ud83d", "é\ufffd", 2),
        ("a\u0323\u0307", unicodedata.normalize("NFC", "a\u0323\u0307"), 1),
        ("\u1100\u1161", "\uac00", 1),
        ("ﬁ", "ﬁ", 0),
    ],
)
def test_nfc_is_made_where_it_is_asked_for(text: str, result: str, count: int) -> None:
    assert mended(text)[0] == text.replace("\ud83d", "\ufffd")
    assert (mended(text, "nfc")[0], len(mended(text, "nfc")[1])) == (result, count)


def test_nfc_is_a_reencoding_and_a_lost_half_is_not() -> None:
    outcome = apply(make_trajectory([{"role": "user", "content": "e\u0301 \ud83d"}]), "nfc")
    assert [(e.reason, e.is_reencoding) for e in outcome.edits] == [
        ("surrogate_lone", False),
        ("text_not_nfc", True),
    ]


TEXTS = st.text(
    st.sampled_from("ab \n\u0301\u0323é盐\ud83d\udd25\udfff") | st.characters(categories=None),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=4), TEXTS, st.sampled_from(["none", "nfc"]))
def test_any_text_becomes_utf8_and_the_edits_undo_it(
    texts: list[str], question: str, unicode: str
) -> None:
    given_row = make_trajectory(pairs(*texts), question=question, answer_aliases=(question,))
    outcome = check_kept(NormalizeText.model_validate({"unicode": unicode}), given_row)
    assert outcome is not None
    row = outcome.trajectory
    for text in (*(m.content for m in row.messages), row.question or "", *row.answer_aliases):
        text.encode()
        assert unicode == "none" or unicodedata.is_normalized("NFC", text)
