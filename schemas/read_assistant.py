"""Reads any assistant message, however broken, by its tags. `wire.parse_message` is the door."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise
from typing import Any, NamedTuple

from trajcurate.schemas.strict_json import RepeatedKeyError, decode_json, skip_space
from trajcurate.schemas.tags import (
    ANSWER_CLOSE,
    ANSWER_OPEN,
    CALL_CLOSE,
    CALL_OPEN,
    CODE_CLOSE,
    CODE_OPEN,
    RESPONSE_CLOSE,
    RESPONSE_OPEN,
    THINK_CLOSE,
    THINK_OPEN,
    without_tags,
)
from trajcurate.schemas.trajectory import (
    Answer,
    AssistantMessage,
    Block,
    Defect,
    Loose,
    MalformedCall,
    ToolCall,
)


def call_defect(value: Any) -> str | None:
    """Why a decoded value is no call; None when it is one."""
    if not isinstance(value, dict):
        return "call_not_object"
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        return "call_name_missing"
    if "arguments" not in value:
        return "call_arguments_missing"
    if not isinstance(value["arguments"], dict):
        return "call_arguments_not_object"
    return None


class Tag(NamedTuple):
    text: str  # as written
    name: str  # in lower case, with its brackets
    start: int
    end: int


def find_tags(text: str, pattern: re.Pattern[str]) -> list[Tag]:
    return [
        Tag(match[0], match[0].lower(), match.start(), match.end())
        for match in pattern.finditer(text)
    ]


_CLOSE_LOOKAHEAD = 8  # closing tags looked at for the one that ends a malformed call
_RUN_LOOKBACK = 64  # opening tags looked at for the run of calls that ends a message


class AssistantReader:
    """Reads one message by its tags. Holds the text, the tags and the budget of the reading."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.text = text
        self.limit = len(text)
        self._keep_tags(find_tags(text, pattern))
        # Failed JSON reads may each cost the length of the text: bound their sum, so that hostile
        # text costs linear time. A sound message never comes near the bound.
        self.failed_read_budget = 16 * len(text) + 1_000_000
        self.defects: list[Defect] = []

    def read(self) -> AssistantMessage:
        self.limit = self._end_before_invented_response()
        if self.limit < len(self.text):
            self.defects.append(Defect("response_invented", self.limit, len(self.text)))
            self._keep_tags([tag for tag in self.tags if tag.start < self.limit])
        close = self._end_of_thinking()
        if close is None:
            return self._read_without_end_of_thinking()
        opening = self._opening(close)
        lead_end, thought_start = (opening.start, opening.end) if opening else (0, 0)
        if opening is None:
            self.defects.append(Defect("think_unopened", 0, 0))
        elif self.text[:lead_end].strip():
            self.defects.append(Defect("text_before_think", 0, lead_end))
        for tag in self._tags_between(thought_start, close.start):
            if tag.name in (THINK_OPEN, THINK_CLOSE):
                self.defects.append(Defect("think_nested", tag.start, tag.end))
        self._note_case(opening, close)
        blocks = self._read_blocks(close.end)
        return self._message(lead_end, thought_start, close.start, close.end, blocks)

    def _keep_tags(self, tags: list[Tag]) -> None:
        self.tags = tags
        self.starts = [tag.start for tag in tags]
        self.answer_tags = [i for i, t in enumerate(tags) if t.name in (ANSWER_OPEN, ANSWER_CLOSE)]
        openings = [i for i in self.answer_tags if tags[i].name == ANSWER_OPEN]
        self.last_answer_opening = openings[-1] if openings else -1
        self.code_ends = [
            i
            for i, (tag, following) in enumerate(pairwise(tags))
            if tag.name == CODE_CLOSE
            and following.name == CALL_CLOSE
            and skip_space(self.text, tag.end) == following.start
        ]

    def _message(
        self, lead_end: int, thought_start: int, thought_end: int, body: int, blocks: list[Block]
    ) -> AssistantMessage:
        self._judge_blocks(body, blocks)
        if self.limit < len(self.text):
            blocks.append(Loose(self.limit, len(self.text)))
        defects = tuple(sorted(set(self.defects), key=lambda d: (d.start, d.end, d.reason)))
        return AssistantMessage(
            "assistant",
            self.text,
            False,
            lead_end,
            thought_start,
            thought_end,
            body,
            tuple(blocks),
            defects,
        )

    # Where the message ends.

    def _end_before_invented_response(self) -> int:
        """The start of a `<tool_response>` that follows a complete call after a `</think>`."""
        if not any(tag.name == RESPONSE_OPEN for tag in self.tags):
            return self.limit
        index = 0
        while index < len(self.tags):
            if self.tags[index].name != THINK_CLOSE:
                index += 1
                continue
            index += 1
            end = self.tags[index - 1].end
            has_call = False
            while index < len(self.tags) and self.tags[index].name == CALL_OPEN:
                block = self._read_call(index)
                if not isinstance(block, ToolCall):
                    break
                has_call, end = True, block.end
                index = self._tag_index_from(end)
            if has_call and index < len(self.tags) and self.tags[index].name == RESPONSE_OPEN:
                return self.tags[index].start
        return self.limit

    # Where thinking begins and ends.

    def _end_of_thinking(self) -> Tag | None:
        """The last `</think>` before the final run of calls or the answer."""
        closers = [i for i, tag in enumerate(self.tags) if tag.name == THINK_CLOSE]
        plausible = [i for i in closers if self._may_end_thinking(i)]
        if len(plausible) > 1:
            for index in reversed(plausible):
                if self._has_clean_tail(index):
                    return self.tags[index]
            for index in reversed(plausible):
                following = self.tags[index + 1].name if index + 1 < len(self.tags) else None
                if following in (CALL_OPEN, ANSWER_OPEN):
                    return self.tags[index]
        return self.tags[plausible[-1]] if plausible else None

    def _may_end_thinking(self, index: int) -> bool:
        """False for a `</think>` inside a JSON string, a code body or an answer."""
        if index + 1 == len(self.tags):
            return True
        following = self.tags[index + 1]
        if following.name == CALL_CLOSE:
            # What stands between looks like a call whose opening tag is not there.
            begin = skip_space(self.text, self.tags[index].end)
            return self.text.startswith(("{", "<", "```"), begin) and begin < following.start
        if following.name == THINK_CLOSE:
            # A stray closer behind the end of thinking; one of the two is chosen elsewhere.
            return not self.text[self.tags[index].end : following.start].strip() or index == 0
        return not following.name.startswith("</") or following.name == RESPONSE_CLOSE

    def _has_clean_tail(self, index: int) -> bool:
        """Whether all tags behind this `</think>` belong to sound calls or one sound answer."""
        index += 1
        if index == len(self.tags):
            return False
        if self.tags[index].name == ANSWER_OPEN:
            return len(self.tags) == index + 2 and self.tags[index + 1].name == ANSWER_CLOSE
        while index < len(self.tags):
            if self.tags[index].name != CALL_OPEN:
                return False
            block = self._read_call(index)
            if not isinstance(block, ToolCall):
                return False
            index = self._tag_index_from(block.end)
        return True

    def _opening(self, close: Tag) -> Tag | None:
        for tag in self.tags:
            if tag.start >= close.start:
                return None
            if tag.name == THINK_OPEN:
                return tag
        return None

    def _read_without_end_of_thinking(self) -> AssistantMessage:
        opening = self._opening(Tag("", "", self.limit, self.limit))
        lead_end, thought_start = (opening.start, opening.end) if opening else (0, 0)
        if opening is not None and self.text[:lead_end].strip():
            self.defects.append(Defect("text_before_think", 0, lead_end))
        self._note_case(opening)
        run_start = self._start_of_final_calls(thought_start)
        if run_start is not None:
            end = run_start
        elif opening is None and self.tags and self.tags[0].name == ANSWER_OPEN:
            end = self.tags[0].start
        else:
            end = self.limit
        reason = "think_unclosed" if opening else "think_missing"
        self.defects.append(Defect(reason, end, end))
        blocks = self._read_blocks(end) if end < self.limit else []
        return self._message(lead_end, thought_start, end, end, blocks)

    def _start_of_final_calls(self, thought_start: int) -> int | None:
        """Where the run of complete calls begins that ends the message; None without one."""
        end = self.limit
        run_start, tries = None, 0
        for index in range(len(self.tags) - 1, -1, -1):
            tag = self.tags[index]
            if tag.name != CALL_OPEN or tag.start >= end:
                continue
            if tag.start < thought_start or tries > _RUN_LOOKBACK:
                break
            block = self._read_call(index)
            if isinstance(block, ToolCall) and not self.text[block.end : end].strip():
                run_start = end = block.start
            else:
                tries += 1
        return run_start

    # Calls and answers.

    def _read_blocks(self, start: int) -> list[Block]:
        """Everything from the end of thinking to the end of the message, in order."""
        blocks: list[Block] = []
        position, index = start, self._tag_index_from(start)
        has_answer = False
        while index < len(self.tags):
            tag = self.tags[index]
            block: Block | None = None
            if tag.name == CALL_OPEN and not self._is_doubled(index):
                block = self._read_call(index)
                # Behind the answer only a sound call is one; anything else is text.
                if has_answer and not isinstance(block, ToolCall):
                    block = None
            elif tag.name == ANSWER_OPEN and not has_answer:
                block = self._read_answer(index)
                has_answer = block is not None
            if block is None:
                index += 1
                continue
            if not isinstance(block, Answer):
                self._note_case(tag, self._closing_tag(block))
            if tag.start > position:
                blocks.append(Loose(position, tag.start))
            blocks.append(block)
            position, index = block.end, self._tag_index_from(block.end)
        if position < self.limit:
            blocks.append(Loose(position, self.limit))
        return blocks

    def _closing_tag(self, block: Block) -> Tag | None:
        tag = self._tag_at(block.end - len(CALL_CLOSE))
        return tag if tag is not None and tag.name == CALL_CLOSE else None

    def _is_doubled(self, index: int) -> bool:
        """Whether an opening call tag is followed by nothing but another one."""
        if index + 1 >= len(self.tags) or self.tags[index + 1].name != CALL_OPEN:
            return False
        return not self.text[self.tags[index].end : self.tags[index + 1].start].strip()

    def _read_call(self, index: int) -> ToolCall | MalformedCall:
        opening = self.tags[index]
        json_start = skip_space(self.text, opening.end)
        value, json_end, reason, at = self._try_json(json_start)
        if reason is None:
            reason, at = call_defect(value), json_start
            close = skip_space(self.text, json_end)
            code = None
            closing = self._tag_at(close)
            if closing is not None and closing.name == CODE_OPEN:
                code_end, closing = self._end_of_code(closing)
                if code_end is not None:
                    code = _code_text(self.text[close + len(CODE_OPEN) : code_end])
            if closing is not None and closing.name == CALL_CLOSE:
                if reason is None:
                    return ToolCall(
                        opening.start,
                        closing.end,
                        json_start,
                        json_end,
                        value["name"],
                        value["arguments"],
                        code,
                    )
                return MalformedCall(
                    opening.start, closing.end, opening.end, closing.start, reason, at, True
                )
            if (closing is None and close >= self.limit) or self._starts_block(closing):
                return MalformedCall(
                    opening.start,
                    json_end,
                    opening.end,
                    json_end,
                    reason or "call_unclosed",
                    json_end,
                    False,
                )
            reason, at = reason or "call_text_around", close
        return self._malformed_call(index, reason, at)

    def _malformed_call(self, index: int, reason: str, at: int) -> MalformedCall:
        """A block whose JSON does not say where it ends: cut at the likeliest closing tag."""
        opening = self.tags[index]
        first: Tag | None = None
        for candidate in range(index + 1, min(len(self.tags), index + 1 + _CLOSE_LOOKAHEAD)):
            tag = self.tags[candidate]
            if self._starts_block(tag) and self._starts_line(candidate):
                if first is None:
                    return MalformedCall(
                        opening.start, tag.start, opening.end, tag.start, reason, at, False
                    )
                break
            if tag.name != CALL_CLOSE:
                continue
            first = first or tag
            following = skip_space(self.text, tag.end)
            if following >= self.limit or self._starts_block(self._tag_at(following)):
                first = tag
                break
        if first is not None:
            return MalformedCall(
                opening.start, first.end, opening.end, first.start, reason, at, True
            )
        return MalformedCall(opening.start, self.limit, opening.end, self.limit, reason, at, False)

    def _starts_block(self, tag: Tag | None) -> bool:
        return tag is not None and tag.name in (CALL_OPEN, ANSWER_OPEN, RESPONSE_OPEN)

    def _end_of_code(self, opening: Tag) -> tuple[int | None, Tag | None]:
        """The last `</code>` before the tag that closes the call, and that tag."""
        opening_index = self._tag_index_from(opening.start)
        at = bisect_left(self.code_ends, opening_index)
        if at == len(self.code_ends):
            return None, None
        close = self.code_ends[at]
        return self.tags[close].start, self.tags[close + 1]

    def _read_answer(self, index: int) -> Answer | None:
        """The first non-empty innermost answer from here on, if this tag opens it.

        An empty pair counts only where the message holds no other.
        """
        opening = self.tags[index]
        at = bisect_left(self.answer_tags, index + 1)
        if at == len(self.answer_tags):
            self.defects.append(Defect("answer_unclosed", self.limit, self.limit))
            self._note_case(opening)
            return Answer(opening.start, self.limit, opening.end, self.limit)
        following = self.tags[self.answer_tags[at]]
        if following.name == ANSWER_OPEN:
            return None
        is_empty = not self.text[opening.end : following.start].strip()
        if is_empty and index < self.last_answer_opening:
            return None
        self._note_case(opening, following)
        return Answer(opening.start, following.end, opening.end, following.start)

    def _try_json(self, start: int) -> tuple[Any, int, str | None, int]:
        """The JSON object at `start` and its end, or the reason why there is none and where."""
        if not self.text.startswith("{", start):
            if start >= self.limit or self.text.startswith(CALL_CLOSE, start):
                return None, start, "call_empty", start
            return None, start, "call_not_json", start
        inner = skip_space(self.text, start + 1)
        if self.failed_read_budget <= 0 or not self.text.startswith(('"', "}"), inner):
            return None, start, "call_not_json", inner
        try:
            value, end = decode_json(self.text, start)
        except RepeatedKeyError:
            self.failed_read_budget -= len(self.text)
            return None, start, "call_key_repeated", start
        except ValueError as error:
            at = getattr(error, "pos", self.limit)
            # A string without an end was read to the end of the text; and the error counts the
            # lines before it, from the start of the text.
            is_far = str(error).startswith("Unterminated")
            self.failed_read_budget -= len(self.text) if is_far else at
            return None, start, "call_not_json", min(at, self.limit)
        return value, end, None, start

    # What is wrong with them.

    def _judge_blocks(self, body: int, blocks: list[Block]) -> None:
        main = [i for i, block in enumerate(blocks) if not isinstance(block, Loose)]
        answer_at = next((i for i in main if isinstance(blocks[i], Answer)), None)
        if answer_at is not None:
            if len(main) > 1:
                self.defects.append(Defect("call_and_answer", blocks[main[0]].start, self.limit))
            self._note_second_answer(blocks[answer_at:])
        for index, block in enumerate(blocks):
            if isinstance(block, MalformedCall):
                self.defects.append(Defect(block.reason, block.start, block.end))
            elif isinstance(block, Answer):
                if not self.text[block.text_start : block.text_end].strip():
                    self.defects.append(Defect("answer_empty", block.start, block.end))
            elif isinstance(block, Loose) and self.text[block.start : block.end].strip():
                is_call = answer_at is None and self._is_bare_call(block)
                if not is_call:
                    self._judge_text(block, main, index, blocks)
        if not main and not any(
            d.reason in ("call_untagged", "call_unopened") for d in self.defects
        ):
            reason = "call_missing" if self.text.strip() else "message_empty"
            self.defects.append(Defect(reason, self.limit, self.limit))

    def _judge_text(self, block: Loose, main: list[int], index: int, blocks: list[Block]) -> None:
        for tag in self._tags_between(block.start, block.end):
            self.defects.append(Defect("tag_stray", tag.start, tag.end))
        if not without_tags(self.text[block.start : block.end]).strip():
            return
        if not main:
            reason = "text_without_call"
        else:
            where = "after" if index > main[-1] else "before"
            kind = "answer" if isinstance(blocks[main[-1]], Answer) else "call"
            reason = f"text_{where}_{kind}"
        self.defects.append(Defect(reason, block.start, block.end))

    def _is_bare_call(self, block: Loose) -> bool:
        """Note a call whose tags, or whose opening tag, are not there."""
        end = self._end_of_bare_call(block.start)
        if end is None or end > block.end:
            return False
        closing = self._tag_at(end)
        if closing is not None and closing.name == CALL_CLOSE:
            self.defects.append(Defect("call_unopened", block.start, closing.end))
            return True
        if end == block.end:
            self.defects.append(Defect("call_untagged", block.start, block.end))
            return True
        return False

    def _end_of_bare_call(self, start: int) -> int | None:
        """The end of the strict call without tags that stands here, white space included."""
        value, end, reason, _ = self._try_json(skip_space(self.text, start))
        if reason is not None or call_defect(value) is not None:
            return None
        return skip_space(self.text, end)

    def _note_second_answer(self, blocks: list[Block]) -> None:
        """Note another answer than that of the first block, in the text behind it."""
        first = blocks[0]
        assert isinstance(first, Answer)
        chosen = self.text[first.text_start : first.text_end].strip()
        opening: Tag | None = None
        for block in blocks[1:]:
            if not isinstance(block, Loose):
                continue
            for tag in self._tags_between(block.start, block.end):
                if tag.name == ANSWER_OPEN:
                    opening = tag
                elif tag.name == ANSWER_CLOSE and opening is not None:
                    if self._is_other_answer(chosen, opening.end, tag.start):
                        self.defects.append(Defect("two_answers", opening.start, tag.end))
                        return
                    opening = None
        # An unclosed one runs to the end; in the middle of a line the tag is only mentioned.
        if (
            opening is not None
            and self._starts_line(self._tag_index_from(opening.start))
            and self._is_other_answer(chosen, opening.end, self.limit)
        ):
            self.defects.append(Defect("two_answers", opening.start, self.limit))

    def _is_other_answer(self, chosen: str, start: int, end: int) -> bool:
        return self.text[start:end].strip() not in ("", chosen)

    def _starts_line(self, index: int) -> bool:
        """Whether nothing stands before this tag on its line, or between it and the tag before."""
        start = self.tags[index - 1].end if index else 0
        return not self.text[start : self.tags[index].start].rpartition("\n")[2].strip()

    def _note_case(self, *tags: Tag | None) -> None:
        for tag in tags:
            if tag is not None and tag.text != tag.name:
                self.defects.append(Defect("tag_case", tag.start, tag.end))

    # Tags by position.

    def _tag_at(self, position: int) -> Tag | None:
        index = self._tag_index_from(position)
        if index < len(self.tags) and self.starts[index] == position:
            return self.tags[index]
        return None

    def _tag_index_from(self, position: int) -> int:
        return bisect_left(self.starts, position)

    def _tags_between(self, start: int, end: int) -> list[Tag]:
        return self.tags[self._tag_index_from(start) : self._tag_index_from(end)]


def _code_text(body: str) -> str:
    if body.startswith("\n"):
        body = body[1:]
    return body[:-1] if body.endswith("\n") else body
