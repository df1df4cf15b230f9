from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import make_trajectory

from trajcurate.curate.settle.draft import Draft, Source
from trajcurate.curate.step import Editor, Quarantine
from trajcurate.schemas.wire import read_message, to_messages

ROLES = st.sampled_from(["user", "assistant", "system"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["role", "remove", "insert", "move"]), st.integers(0, 9), ROLES),
    max_size=12,
)


def change(editor: Editor, kind: str, at: int, role: str) -> None:
    count = len(editor.messages)
    if kind == "insert":
        editor.insert(at % (count + 1), read_message(role, "new"), "x")
    elif count and kind == "role":
        editor.set_role(at % count, role, "x")
    elif count and kind == "remove":
        editor.remove(at % count, "x")
    elif count and isinstance(editor, Draft):
        editor.move_to(at % count, at % count // 2, "x")
    elif count:
        message = editor.messages[at % count]
        editor.remove(at % count, "x")
        editor.insert(at % count // 2, message, "x")


@settings(max_examples=200, deadline=None)
@given(st.lists(ROLES, max_size=8), CHANGES)
def test_a_draft_makes_the_edits_of_an_editor(roles: list[str], changes: list[Any]) -> None:
    row = make_trajectory([{"role": role, "content": str(i)} for i, role in enumerate(roles)])
    draft, editor = Draft(row), Editor(row)
    for kind, at, role in changes:
        change(draft, kind, at, role)
        change(editor, kind, at, role)
    assert draft.edits == editor.edits
    assert to_messages(draft.messages) == to_messages(editor.messages)
    assert len(draft.sources) == len(draft.messages)
    for source, message in zip(draft.sources, draft.messages, strict=True):
        assert message.content == ("new" if source.place is None else str(source.place))


def test_a_message_keeps_its_source_when_it_moves() -> None:
    draft = Draft(make_trajectory([{"role": r, "content": r} for r in ("user", "tool", "system")]))
    draft.set_role(1, "user", "role_tool", is_from_tool=True)
    draft.move_to(2, 0, "system_misplaced")
    assert draft.sources == [
        Source(2, "system"),
        Source(0, "user"),
        Source(1, "tool", is_from_tool=True),
    ]
    assert draft.quarantine("x", 2) == Quarantine(
        "x", "$.messages[1]", {"role": "tool", "content": "tool"}
    )


def test_the_excerpt_in_a_rejection_is_short() -> None:
    draft = Draft(make_trajectory([{"role": "r" * 300, "content": "c" * 300}]))
    assert draft.quarantine("x", 0).detail == {"role": "r" * 200, "content": "c" * 200}
