from __future__ import annotations

import json

import pytest
from shared_data import shared

from trajcurate.schemas.orders import (
    asks_for_answer,
    demands_answer,
    ends_in_known_order,
    is_known_order,
)

KNOWN = [
    # what known agent loops say, with their format hints
    "You have now reached the maximum context length you can handle. You should stop making tool "
    "calls and, based on all the information above, think again and provide what you consider the "
    "most likely answer in the following format:<think>your final thinking</think>\n"
    "<answer>your answer</answer>",
    "Sorry, the number of llm calls exceeds the limit.",
    "The context length reached the maximum context length / iteration limit. Please answer the "
    "question based on previous context. The answer should be wrapped in <answer> </answer> tags.",
    "You have reached the maximum context length. Based on what you have gathered, please provide "
    "the entire final answer in `<answer></answer>` tags now.",
    "You've reached the maximum number of tool calls. Please provide the final answer now.",
    # others of their kind
    "The context length reached the maximum. Please answer now with what you have.",
    "There is no room left. Stop calling tools; think once more and give your best answer.",
    "Maximum number of turns reached. Give the final answer.",
    "Maximum number of tool calls has been reached, answer the question now.",
    "You have reached the maximum number of searches. Answer now.",
    "You have exceeded your budget of tool calls. Write the answer.",
    "Tool call limit reached. Provide your final answer in <answer> tags.",
    "Time is up. Answer.",
    "[System] Token limit exceeded. You must answer now.",
    "You must stop calling tools. Give your answer.",
    "Please answer now with the information gathered so far.",
    "Please provide your final answer now.",
    "  Answer now.\n",
    "你已达到最大推理轮次限制。\n请基于当前已有的上下文信息，直接给出最终答案。",
    "上下文长度已达到上限，请停止调用工具，并给出最终答案。",
    "请停止调用工具，直接回答问题。",
    "请立即给出你的最终答案。",
    "已达到最大工具调用次数，请根据已有信息回答。",
]

NOT_ORDERS = [
    "",
    "answer",
    "The answer is 42.",
    "answer: 42",
    "Questions and answers",
    "Time is up, said the keeper, and no answer came.",
    "You have exceeded your API rate limit.",
    "You have reached your limit of free articles. Subscribe for more answers.",
    "[Search] You have reached the maximum number of searches. Answer now.",
    "A Google search for 'maximum number of turns reached, answer now' found 3 results",
    "Maximum likelihood estimate reached 3. The answer",
    "The maximum temperature was reached in June, the keeper said in answer to a letter.",
    "Error: Tool call is not a valid JSON.",
    "ERROR!\nPlease call a tool with the correct format, or if you are ready to answer, provide "
    "the entire final answer in `<answer></answer>` tags.",
    "请问这本书的作者是谁",
    "本书的答案在最后一页，长度超过三百页。",
    "You have now reached the maximum context length. Answer. " + "x" * 1_000,
]


@pytest.mark.parametrize("text", KNOWN)
def test_a_known_order_is_known_bare_and_as_the_last_block(text: str) -> None:
    assert is_known_order(text)
    assert ends_in_known_order(f"<tool_response>\n{text}\n</tool_response>")
    page = "p" * 2_000
    two = f"<tool_response>\n{page}\n</tool_response>\n<tool_response>\n{text}\n</tool_response>"
    assert ends_in_known_order(two)


@pytest.mark.parametrize("text", NOT_ORDERS)
def test_other_text_is_no_known_order(text: str) -> None:
    assert not is_known_order(text)
    assert not ends_in_known_order(f"<tool_response>\n{text}\n</tool_response>")


@pytest.mark.parametrize("text", KNOWN)
def test_a_response_that_quotes_an_order_is_none(text: str) -> None:
    for page in (f"It said: {text}", f"x\n{text}", f"Summary: \n{text}"):
        assert not is_known_order(page)
        assert not ends_in_known_order(f"<tool_response>\n{page}\n</tool_response>")
    behind = f"<tool_response>\n{text}\n</tool_response>\n<tool_response>\nx\n</tool_response>"
    assert not ends_in_known_order(behind)


@pytest.mark.parametrize(
    ("text", "asks", "demands"),
    [
        ("Give the ANSWER.", True, True),
        ("Let us have the answer.", True, False),
        ("answer = 42", True, False),
        ("The answer was 42.", True, False),
        ("Use <answer> tags.", True, True),
        ("回答：是", True, False),
        ("请回答", True, True),
        ("Finish.", False, False),
    ],
)
def test_to_hold_the_word_is_less_than_to_demand(text: str, asks: bool, demands: bool) -> None:
    assert (asks_for_answer(text), demands_answer(text)) == (asks, demands)


def test_no_line_of_a_real_observation_is_an_order() -> None:
    count = 0
    for path in sorted(shared("data", "drvenus_examples").glob("*/*.json")):
        for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
            content = message["content"]
            if message["role"] != "user" or not content.startswith("<tool_response>"):
                continue
            count += 1
            assert not ends_in_known_order(content)
            assert not any(is_known_order(line) for line in content.splitlines())
    assert count == 991
