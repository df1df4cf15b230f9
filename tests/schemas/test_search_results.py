import json
import lzma
import re
from collections import defaultdict

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shared_data import shared

from trajcurate.schemas.search_results import (
    Item,
    QueryResults,
    is_structured,
    read_search_json,
    read_search_text,
    restructure_search_text,
    write_search_json,
)


def item_text(number: int, item: Item) -> str:
    """An entry as the agents write it: without a snippet it still ends in a line break."""
    text = f"{number}. [{item.title}]({item.url})"
    if item.date is not None:
        text += f"\nDate published: {item.date}"
    if item.source is not None:
        text += f"\nSource: {item.source}"
    return text + "\n" + (f"\n{item.snippet}" if item.snippet else "")


def block_text(block: QueryResults, first_number: int = 0) -> str:
    if block.note is not None:
        return block.note
    head = f"A Google search for '{block.query}' found {len(block.items)} results:\n\n"
    items = [item_text(number, item) for number, item in enumerate(block.items, first_number)]
    return head + "## Web Results\n" + "\n\n".join(items)


def observation(blocks: list[QueryResults], first_number: int = 0) -> str:
    return "\n=======\n".join(block_text(block, first_number) for block in blocks)


def failed(query: str, tail: str = "") -> QueryResults:
    return QueryResults(query, (), f"Failed to search for '{query}'{tail}")


def one_block(entries: str, count: int | str = 1, query: str = "q") -> str:
    return f"A Google search for '{query}' found {count} results:\n\n## Web Results\n{entries}"


def items_of(text: str) -> list[tuple[str | None, ...]] | None:
    """The fields of the only block's items, without the absent ones at the end."""
    blocks = read_search_text(text)
    if blocks is None:
        return None
    (block,) = blocks
    rows = []
    for item in block.items:
        row: list[str | None] = list(item)
        while row[-1] is None:
            row.pop()
        rows.append(tuple(row))
    return rows


TWO_QUERIES = (
    "A Google search for 'Orlo light' found 2 results:\n\n"
    "## Web Results\n"
    "0. [Orlo Light](https://orlo.example/light)\n"
    "Date published: May 1, 2020\n"
    "\n"
    'A "light" of 1931.\n'
    "\n"
    "1. [Keepers](https://orlo.example/keepers)\n"
    "\n"
    "Names of keepers.\n"
    "=======\n"
    "A Google search for 'Tamsel lock' found 1 results:\n\n"
    "## Web Results\n"
    "0. [Locks](https://tamsel.example)\n"
    "Source: Tamsel Post\n"
    "\n"
    "Opened in 1911."
)


def test_a_response_to_two_queries_reads_as_two_blocks() -> None:
    assert read_search_text(TWO_QUERIES) == [
        QueryResults(
            "Orlo light",
            (
                Item(
                    "Orlo Light",
                    "https://orlo.example/light",
                    'A "light" of 1931.',
                    "May 1, 2020",
                ),
                Item("Keepers", "https://orlo.example/keepers", "Names of keepers."),
            ),
        ),
        QueryResults(
            "Tamsel lock",
            (Item("Locks", "https://tamsel.example", "Opened in 1911.", None, "Tamsel Post"),),
        ),
    ]


@pytest.mark.parametrize(
    ("dates", "date"), [(True, ', "date": "May 1, 2020"'), (False, "")], ids=["dates", "no dates"]
)
def test_the_structured_form_is_written_with_the_default_separators(dates: bool, date: str) -> None:
    expected = (
        '[{"query": "Orlo light", "web_page_info_list": ['
        '{"title": "Orlo Light", "url": "https://orlo.example/light", '
        f'"snippet": "A \\"light\\" of 1931."{date}}}, '
        '{"title": "Keepers", "url": "https://orlo.example/keepers", '
        '"snippet": "Names of keepers."}]}, '
        '{"query": "Tamsel lock", "web_page_info_list": ['
        '{"title": "Locks", "url": "https://tamsel.example", "snippet": "Opened in 1911.", '
        '"source": "Tamsel Post"}]}]'
    )
    assert restructure_search_text(TWO_QUERIES, dates=dates) == expected
    blocks = read_search_text(TWO_QUERIES)
    assert blocks is not None
    assert write_search_json(blocks, dates=dates) == expected


@pytest.mark.parametrize(
    ("line", "title", "url"),
    [
        ("[t [part 1](https://x.example)", "t [part 1", "https://x.example"),
        ("[see a] b](https://x.example)", "see a] b", "https://x.example"),
        ("[a [b] c](https://x.example)", "a [b] c", "https://x.example"),
        ("[](https://x.example)", "", "https://x.example"),
        ("[t]()", "t", ""),
        ("[t](#)", "t", "#"),
        ("[t](https://x.example/A_(film))", "t", "https://x.example/A_(film)"),
        ("[t](https://x.example/A_(film)", "t", "https://x.example/A_(film"),
        ("[t](https://x.example/a)b)", "t", "https://x.example/a)b"),
        ("[f[i](j) explained](https://x.example)", "f[i](j) explained", "https://x.example"),
        ("[t](https://x.example/a[1](2))", "t", "https://x.example/a[1](2)"),
        ("[a\u2028b\x85c\x0bd\x0ce\rf](https://x.example)", "a\u2028b\x85c\x0bd\x0ce\rf", None),
    ],
)
def test_brackets_in_titles_and_urls_are_text(line: str, title: str, url: str | None) -> None:
    url = "https://x.example" if url is None else url
    assert items_of(one_block(f"0. {line}\n\ns")) == [(title, url, "s")]


@pytest.mark.parametrize(
    ("after_the_link", "snippet", "date", "source"),
    [
        ("", "", None, None),
        ("\n", "", None, None),
        ("\n\n", "", None, None),
        ("\n\ns", "s", None, None),
        ("\n\n\ns\n", "\ns\n", None, None),
        ("\n\na\n\nb\nc", "a\n\nb\nc", None, None),
        ("\ns", "s", None, None),
        ("\nDate published: D\n\ns", "s", "D", None),
        ("\nDate published: D\n", "", "D", None),
        ("\nDate published: \n\ns", "s", "", None),
        ("\nDate updated: D\n\ns", "s", "D", None),
        ("\nSource: S\n\ns", "s", None, "S"),
        ("\nDate published: D\nSource: S\n\ns", "s", "D", "S"),
        ("\nSource: S\nDate published: D\n\ns", "s", "D", "S"),
        ("\n\nDate updated: 5 May\ns", "Date updated: 5 May\ns", None, None),
        ("\n\nSource: Reuters\ns", "Source: Reuters\ns", None, None),
        ("\nDate published: D\n\nDate published: E\ns", "Date published: E\ns", "D", None),
    ],
)
def test_date_and_source_are_read_only_between_the_link_and_the_blank_line(
    after_the_link: str, snippet: str, date: str | None, source: str | None
) -> None:
    blocks = read_search_text(one_block(f"0. [t](u){after_the_link}"))
    assert blocks == [QueryResults("q", (Item("t", "u", snippet, date, source),))]


@pytest.mark.parametrize(
    "snippet",
    [
        "Contents\n1. [Intro](#a)\n2. [End](#b)",
        "1. [Intro](#a)\n2. [End](#b)",
        "Contents\n\n0. [Intro](#a)\n\n2. [End](#b)",
        "a\n=======\nb",
        "=======\nb",
        "A Google search for 'x' found 2 results:\n1. [a](b)",
        "=======\nA Google search for 'x' is a snippet line",
        "A Google search for 'x' found 2 results:\n\n## Web Results\n9. [a](b)",
        "a\u2028b\x85c\x0bd\x0ce\rf",
        '\\n \\ " \t \x01 \x7f </tool_response>',
    ],
)
def test_a_snippet_keeps_lines_that_look_like_structure(snippet: str) -> None:
    items = (Item("t", "u", snippet), Item("t", "u", snippet))
    blocks = [QueryResults("q", items), QueryResults("r", items)]
    assert read_search_text(observation(blocks)) == blocks


@pytest.mark.parametrize("first_number", [0, 1])
def test_results_are_numbered_from_zero_or_one(first_number: int) -> None:
    blocks = [QueryResults("q", tuple(Item(f"t{i}", "u", "") for i in range(12)))]
    assert read_search_text(observation(blocks, first_number)) == blocks
    assert read_search_text(observation(blocks, first_number + 2)) is None


@pytest.mark.parametrize(
    "query",
    ["Godwin's firm", "'quoted'", '"a" b', "a\nb", "", "x' found 3 results: y", "\u2028", "\\"],
)
def test_a_query_keeps_quotes_and_line_breaks(query: str) -> None:
    block = QueryResults(query, (Item("t", "u", "s"),))
    assert read_search_text(block_text(block)) == [block]
    assert read_search_text(block_text(failed(query))) == [failed(query)]


def test_one_result_may_be_announced_in_the_singular() -> None:
    text = "A Google search for 'q' found 1 result:\n\n## Web Results\n1. [t](u)\n\ns"
    assert items_of(text) == [("t", "u", "s")]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_query_without_results_has_an_empty_list_and_a_note(end: str) -> None:
    head = "A Google search for 'q' found 0 results:\n\n## Web Results"
    assert read_search_text(head + end) == [QueryResults("q", (), "found 0 results")]
    assert restructure_search_text(head + end) == (
        '[{"query": "q", "web_page_info_list": [], "note": "found 0 results"}]'
    )
    assert restructure_search_text(head + end, notes=False) == (
        '[{"query": "q", "web_page_info_list": []}]'
    )


def test_results_that_are_announced_and_absent_leave_a_note() -> None:
    assert read_search_text(one_block("", 10)) == [QueryResults("q", (), "found 10 results")]


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("Failed to search for 'q'", "q"),
        ("Failed to search for 'it's'", "it's"),
        ("Failed to search for 'a\nb'", "a\nb"),
        ("Failed to search for 'q': connection reset", "q"),
        ("No results found for 'q'. Try with a more general query.", "q"),
        ("No results found for query: 'q'. Use a less specific query.", "q"),
        ("Google search Timeout, return None, Please try again later.", ""),
    ],
)
def test_a_failed_query_keeps_its_line_as_a_note(line: str, query: str) -> None:
    block = QueryResults("r", (Item("t", "u", "s"),))
    failure = QueryResults(query, (), line)
    assert read_search_text(line) == [failure]
    assert read_search_text(f"{line}\n=======\n{block_text(block)}") == [failure, block]
    assert read_search_text(f"{block_text(block)}\n=======\n{line}") == [block, failure]
    assert json.loads(restructure_search_text(line) or "") == [
        {"query": query, "web_page_info_list": [], "note": line}
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The useful information in https://x.example for user goal g as follows: \n\nWeb Results",
        "A Google Scholar search for 'q' found 1 results:\n\n## Scholar Results\n0. [t](link: u)",
        "A Google Maps search for 'q' found 1 places:\n\n## Places Results\n0. [t](u)",
        "A Google search for 'q' found 1 results:\n\n0. [t](u)\n\ns",
        "A Google search for 'q' found many results:\n\n## Web Results\n0. [t](u)\n\ns",
        '[{"query": "q", "web_page_info_list": []}]',
        "\n" + one_block("0. [t](u)\n\ns"),
        one_block("Some line\n\n0. [t](u)\n\ns"),
        one_block("0. [t](u) and more\n\ns"),
        one_block("0. t (u)\n\ns"),
        one_block("00. [t](u)\n\ns"),
        one_block("0. [t\nt](u)\n\ns"),
        one_block("0. [t](u)\nDate published: D\nDate published: E\n\ns"),
        one_block("0. [t](u)\nDate published: D\nDate updated: E\n\ns"),
        one_block("0. [t](u)\n\ns", 0),
        one_block("0. [t](u)\n\ns", 2),
        one_block("0. [t](u)\n\ns\n\n2. [t](u)\n\ns", 2),
        "Failed to search for 'q': can't connect to 'x'.",
        "Failed to search for 'q'\nand more",
        "Failed to search for 'q'\n=======\nand more",
    ],
)
def test_a_text_with_a_line_that_fits_nothing_is_not_read(text: str) -> None:
    assert read_search_text(text) is None
    assert restructure_search_text(text) is None


@pytest.mark.parametrize(
    "text",
    [
        # Either `1.` may be the second result.
        one_block("0. [t](u)\n\na\n\n1. [Intro](#a)\n\nb\n\n1. [v](w)\n\nc", 2),
        # The URL may begin at either `](`.
        one_block("0. [a](https://b.example](https://c.example)\n\ns"),
        one_block("0. [a](b](c)\n\ns"),
        # A query that failed in silence, or a snippet that ends in such a line.
        one_block("0. [t](u)\n\ns\n======="),
        one_block("0. [t](u)\n\ns\n=======\n"),
        one_block("0. [t](u)\n\ns") + "\n=======\n=======\n" + one_block("0. [t](u)\n\ns"),
    ],
)
def test_a_text_that_reads_in_two_ways_is_not_read(text: str) -> None:
    assert read_search_text(text) is None
    assert restructure_search_text(text) is None


def test_the_count_decides_that_a_numbered_link_is_snippet_text() -> None:
    entries = "0. [t](u)\n\na\n\n1. [Intro](#a)\n\nb"
    assert items_of(one_block(entries, 1)) == [("t", "u", "a\n\n1. [Intro](#a)\n\nb")]
    assert items_of(one_block(entries, 2)) == [("t", "u", "a"), ("Intro", "#a", "b")]


@pytest.mark.parametrize("snippet", ["1. [Intro](#a)", "1. [Intro](#a)\n2. [End](#b)"])
def test_a_link_straight_after_an_entry_line_is_its_snippet(snippet: str) -> None:
    entries = f"0. [t](u)\n\n{snippet}\n\n1. [v](w)\n\nb"
    assert items_of(one_block(entries, 2)) == [("t", "u", snippet), ("v", "w", "b")]


def test_a_snippet_may_stand_on_the_line_after_the_link() -> None:
    entries = "1. [t](u)\nOpened in 1931.\n\n2. [v](w)\nClosed."
    expected = [("t", "u", "Opened in 1931."), ("v", "w", "Closed.")]
    assert items_of(one_block(entries, 2)) == expected


def test_carriage_returns_end_lines_only_if_all_lines_end_so() -> None:
    unix = one_block("0. [t](u)\nDate published: D\n\na\nb\n\n1. [v](w)\n", 2, "x\ny")
    windows = unix.replace("\n", "\r\n")
    expected = QueryResults("x\r\ny", (Item("t", "u", "a\r\nb", "D"), Item("v", "w", "")))
    assert read_search_text(windows) == [expected]
    assert read_search_text(windows + "\n") is None
    assert items_of(one_block("0. [t](u)\n\na\r\nb\r")) == [("t", "u", "a\r\nb\r")]


def test_snippet_lines_are_joined_without_blank_ones_on_request() -> None:
    snippet = "  a \n\n \u2028\n\tb\u2028c\n"
    text = one_block(f"0. [ t ](u)\n\n{snippet}")
    kept, joined = (
        json.loads(restructure_search_text(text, join_snippet_lines=join) or "")
        for join in (False, True)
    )
    assert kept[0]["web_page_info_list"] == [{"title": " t ", "url": "u", "snippet": snippet}]
    assert joined[0]["web_page_info_list"] == [
        {"title": " t ", "url": "u", "snippet": "a\nb\u2028c"}
    ]


# Round trips over generated text

PIECES = st.sampled_from(
    [
        *"[]()'\"\\:. \t\r\x0b\x0c\x1c\x7f\x85\u2028\u3000\x01aé漢😀\ud800",
        "](",
        "](https://",
        "0. [",
        "1. [",
        "2. [x](y)",
        "Date published: D",
        "Source: S",
        "=======",
        "A Google search for '",
        "' found 1 results:",
        "## Web Results",
        "Failed to search for 'x'",
    ]
)
BREAKS = st.sampled_from(["\n", "\n\n", "\n\n\n", "\r\n", "\n=======\n", "\n\n1. [x](https://y)\n"])
LINES = st.lists(PIECES, max_size=5).map("".join)
TEXTS = st.lists(PIECES | BREAKS, max_size=7).map("".join)
# What makes a snippet end its block, or a query hold its own end, cannot be told from the text.
SNIPPETS = TEXTS.filter(
    lambda text: not re.search(r"(^|\n)=======\n(A Google search for|Failed|=)", text)
)
QUERIES = TEXTS.filter(lambda text: "=======" not in text and "## Web Results" not in text)

ITEMS = st.builds(
    Item,
    title=LINES,
    url=LINES.map("https://x".__add__),
    snippet=SNIPPETS,
    date=st.none() | LINES,
    source=st.none() | LINES,
)
BLOCKS = st.builds(
    QueryResults,
    query=QUERIES,
    items=st.lists(ITEMS, min_size=1, max_size=4).map(tuple),
    note=st.none(),
)
OBSERVATIONS = st.lists(
    BLOCKS | QUERIES.map(QueryResults) | QUERIES.map(failed), min_size=1, max_size=3
)

PLAIN_WORDS = st.text('abc ,é漢"\\', max_size=9)
PLAIN_ITEMS = st.builds(
    Item,
    PLAIN_WORDS,
    PLAIN_WORDS,
    PLAIN_WORDS,
    st.none() | PLAIN_WORDS,
    st.none() | PLAIN_WORDS,
)
PLAIN_OBSERVATIONS = st.lists(
    st.builds(
        QueryResults,
        query=PLAIN_WORDS,
        items=st.lists(PLAIN_ITEMS, max_size=4).map(tuple),
        note=st.none(),
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(blocks=OBSERVATIONS, first_number=st.integers(0, 1))
@example([QueryResults("q", (Item("a](https://b", "https://c", ""),))], 0)
@example([QueryResults("q", (Item("t", "https://x", "s\n======="),))], 0)
@example([QueryResults("q", (Item("t", "https://x", "a\n\n1. [v](w)\n\nb"),) * 2)], 0)
def test_what_was_written_reads_back_or_not_at_all(
    blocks: list[QueryResults], first_number: int
) -> None:
    assert read_search_text(observation(blocks, first_number)) in (with_notes(blocks), None)


def with_notes(blocks: list[QueryResults]) -> list[QueryResults]:
    """The blocks as they are read: one without results says so."""
    return [
        block if block.items or block.note else block._replace(note="found 0 results")
        for block in blocks
    ]


@settings(deadline=None)
@given(blocks=PLAIN_OBSERVATIONS, first_number=st.integers(0, 1))
def test_plain_results_always_read_back(blocks: list[QueryResults], first_number: int) -> None:
    text = observation(blocks, first_number)
    assert read_search_text(text) == with_notes(blocks)
    assert read_search_json(restructure_search_text(text) or "") == with_notes(blocks)


@st.composite
def damaged_observations(draw: st.DrawFn) -> str:
    """An observation with a stretch replaced: near the format, in it or out of it."""
    blocks = draw(OBSERVATIONS | PLAIN_OBSERVATIONS)
    text = observation(blocks, draw(st.integers(0, 1)))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(start + 4, len(text))))
    return text[:start] + draw(TEXTS) + text[end:]


@settings(deadline=None)
@given(text=damaged_observations(), dates=st.booleans(), join_snippet_lines=st.booleans())
@example(one_block("0. [t](u)\n\na\n1. [v](w)\n\nb", 2), True, False)
@example(one_block("0. [t](u)\n\n\n1. [v](w)\n\nb", 2), True, False)
@example(one_block("0. [a](b](https://c)\n\na\n\n1. [v)\n\nb", 2), True, False)
@example(one_block("0. [t](u)\n\na\n\n1. [v](w)", 1), True, False)
@example(one_block("0. [t](u)\n\na\n\n1. [v](w)\n\nb\n\n1. [v](w)", 2), True, False)
@example(one_block("0. [t](u)\n\n\ud800"), True, False)
@example(one_block("0. [t](u)\n\n\x7f"), True, False)
@example(one_block("0. [t](u)\n\n a \n b ") + "\n=======\nNo results found for 'r'.", True, True)
def test_restructuring_is_reading_then_writing(
    text: str, dates: bool, join_snippet_lines: bool
) -> None:
    blocks = read_search_text(text)
    expected = blocks and write_search_json(
        blocks, dates=dates, join_snippet_lines=join_snippet_lines
    )
    restructured = restructure_search_text(text, dates=dates, join_snippet_lines=join_snippet_lines)
    assert restructured == expected
    if restructured is not None:
        assert restructured == json.dumps(json.loads(restructured), ensure_ascii=False)
        assert is_structured(restructured)


@settings(deadline=None)
@given(text=damaged_observations())
@example(one_block("0. [t](u)\n\na\n=======\n=======\nb"))
def test_every_value_that_is_read_stands_in_the_text(text: str) -> None:
    for block in read_search_text(text) or []:
        for value in [block.query, block.note, *(field for item in block.items for field in item)]:
            assert value is None or value in text


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        (one_block("0. [" + "](" * 100_000 + ")\n\ns"), False),
        (one_block("0. [t](u)\n\n" + "\n\n1. [t](u)\n\ns" * 20_000, 2), False),
        (one_block("0. [t](u)\n\n" + "\n=======\nA Google search for '" * 20_000), True),
        ("Failed to search for '" + "': " * 100_000 + "\n", False),
        ("A Google search for '" + "' found 1 results:\n\n" * 20_000, False),
    ],
    ids=["links", "choices", "separators", "quotes", "heads"],
)
def test_hostile_texts_take_one_pass(text: str, reads: bool) -> None:
    assert (restructure_search_text(text) is not None) == reads


# The structured form


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ('[{"query": "q", "web_page_info_list": []}]', [QueryResults("q")]),
        (
            ' [{"web_page_info_list":[{"title":"t","url":"u","snippet":"s","date":""}],'
            '"query":"q"}] ',
            [QueryResults("q", (Item("t", "u", "s", ""),))],
        ),
        (
            '[{"query": "q", "web_page_info_list": [{"title": "t", "snippet": null, "rank": 1}]},'
            ' {"query": "", "web_page_info_list": [], "note": "n"}]',
            [QueryResults("q", (Item("t", "", ""),)), QueryResults("", (), "n")],
        ),
        ('[{"query": "\\ud83d", "web_page_info_list": []}]', [QueryResults("\ud83d")]),
    ],
)
def test_the_structured_form_is_recognised_and_read(text: str, blocks: list[QueryResults]) -> None:
    assert is_structured(text)
    assert read_search_json(text) == blocks


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "plain text",
        TWO_QUERIES,
        '[{"query": "q"}]',
        '[{"query": 1, "web_page_info_list": []}]',
        '[{"query": "q", "web_page_info_list": {}}]',
        '[{"query": "q", "web_page_info_list": ["a"]}]',
        '[{"query": "q", "web_page_info_list": [{"title": 1}]}]',
        '[{"query": "q", "web_page_info_list": [{"date": 1}]}]',
        '[{"query": "q", "web_page_info_list": []}, 1]',
        '[{"query": "q", "web_page_info_list": []}',
        "[" * 100_000,
    ],
)
def test_other_texts_are_not_read_as_the_structured_form(text: str) -> None:
    assert read_search_json(text) is None


@pytest.mark.parametrize(
    "text", ["", "[]", TWO_QUERIES, "[1, 2]", '[{"query": "q", "web_page_info_list": [{"title']
)
def test_other_and_cut_texts_do_not_look_structured(text: str) -> None:
    assert not is_structured(text)


# Against the public cleaning script and the published examples


def response(content: str) -> str | None:
    """The text between the response tags, or None without them."""
    text = content.strip()
    if not text.lower().startswith("<tool_response>"):
        return None
    return text[len("<tool_response>") : -len("</tool_response>")].strip("\n")


@pytest.mark.parametrize("name", ["clean", "repairable", "edges"])
def test_results_equal_those_of_the_public_script(name: str) -> None:
    inputs = shared("data", "peer_conformance", name, "input")
    ours: dict[tuple[str, int], set[str | None]] = defaultdict(set)
    for path in sorted(inputs.glob("train-*.parquet")):
        rows = pq.read_table(path, columns=["messages"]).to_pylist()
        for row_number, row in enumerate(rows):
            for message in row["messages"]:
                # In one kind of fault the response has lost its tags.
                text = response(message["content"]) or message["content"]
                ours[path.name, row_number].add(
                    restructure_search_text(text, dates=False, join_snippet_lines=True, notes=False)
                )
    compared = 0
    expected = shared("data", "peer_conformance", name, "expected", "cleaned_resampled.jsonl.xz")
    with lzma.open(expected, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for message in row["messages"]:
                text = response(message["content"])
                if row["_sample_copy"] == 0 and text is not None and text.startswith("[{"):
                    assert text in ours[row["_source_file"], row["_source_row"]]
                    compared += 1
    assert compared > 500


def test_published_results_are_read_and_written_back_byte_for_byte() -> None:
    compared = 0
    for path in sorted(shared("data", "drvenus_examples").glob("*/*.json")):
        for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
            text = response(message["content"])
            if message["role"] == "user" and text is not None and text.startswith("[{"):
                blocks = read_search_json(text)
                assert blocks is not None
                assert is_structured(text)
                assert write_search_json(blocks) == text
                compared += 1
    assert compared > 500
