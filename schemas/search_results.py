r"""Search observations: the text a search tool returned, and its structured form.

The text has a block for each query, and a line `=======` between two blocks::

    A Google search for 'QUERY' found 2 results:

    ## Web Results
    0. [TITLE](URL)
    Date published: DATE

    SNIPPET

    1. [TITLE](URL)

    SNIPPET

Results are numbered from 0 or from 1, date and `Source:` lines may be absent, and a query that
failed leaves one line in place of its block. The structured form is a JSON list of
`{"query": …, "web_page_info_list": [{"title": …, "url": …, "snippet": …}]}`.

The text form escapes nothing: a title may hold brackets, a snippet may hold a numbered list, a
line `=======` or the words of a block head. So nothing is guessed. Numbers, blank lines and the
count in the block head decide what is a result; a text that still reads in two ways, or that has
a line which fits nothing, is not read at all. Only `\n` breaks a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple, TypeAlias

import orjson


class Item(NamedTuple):
    """One search result. A result without a snippet has an empty one."""

    title: str
    url: str
    snippet: str
    date: str | None = None
    source: str | None = None


class QueryResults(NamedTuple):
    """What one query found. `note` is the text that stood in place of the results, if any did."""

    query: str
    items: tuple[Item, ...] = ()
    note: str | None = None


def read_search_text(text: str) -> list[QueryResults] | None:
    r"""Read the text form, without its `<tool_response>` tags.

    Line ends may be `\r\n` if all of them are. A failed query has no items and its line as
    `note`; the query is empty where the line does not name it.

    Returns:
        A `QueryResults` for each query, or None if the text reads in no way or in several.
    """
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        blocks = _read_blocks(text.replace("\r\n", "\n"))
        return None if blocks is None else [_with_crlf(block) for block in blocks]
    return _read_blocks(text)


def write_search_json(
    blocks: Iterable[QueryResults],
    *,
    dates: bool = True,
    join_snippet_lines: bool = False,
    notes: bool = True,
) -> str:
    """Write the structured form, as `json.dumps` does without ASCII escapes.

    Args:
        blocks: what `read_search_text` gave.
        dates: write the date of each result that has one.
        join_snippet_lines: strip the lines of each snippet and leave out the blank ones.
        notes: write the note of each query that has one.
    """
    structure = []
    for block in blocks:
        entry: dict[str, object] = {
            "query": block.query,
            "web_page_info_list": [
                _item_fields(item, dates, join_snippet_lines) for item in block.items
            ],
        }
        if notes and block.note is not None:
            entry["note"] = block.note
        structure.append(entry)
    return json.dumps(structure, ensure_ascii=False)


def restructure_search_text(
    text: str, *, dates: bool = True, join_snippet_lines: bool = False, notes: bool = True
) -> str | None:
    """Turn the text form into the structured form: `read_search_text`, then `write_search_json`.

    Plain blocks, nearly all there are, take a short cut of a few passes over the text; it gives
    the same or leaves the text to the other two.

    Returns:
        The JSON text, or None where `read_search_text` gives None.
    """
    form = _Form(dates, join_snippet_lines, notes)
    first, *later = _SEPARATOR.split(text) if "\n=======" in text else [text]
    written = []
    for segment in [first, *(piece[1:] for piece in later)]:
        block_json = _plain_block_json(segment, form)
        if block_json is None:
            blocks = read_search_text(text)
            if blocks is None:
                return None
            return write_search_json(
                blocks, dates=dates, join_snippet_lines=join_snippet_lines, notes=notes
            )
        written.append(block_json)
    return f"[{', '.join(written)}]"


def read_search_json(text: str) -> list[QueryResults] | None:
    """Read the structured form, ours or another's; a field that is absent or null reads as empty.

    Returns:
        A `QueryResults` for each query, or None if the text is not of that form.
    """
    try:
        structure = orjson.loads(text)
    except ValueError:
        # orjson refuses lone surrogates, which the standard parser lets pass.
        try:
            structure = json.loads(text)
        except (ValueError, RecursionError):
            return None
    if not isinstance(structure, list) or not structure:
        return None
    blocks = [_block_from_json(entry) for entry in structure]
    found = [block for block in blocks if block is not None]
    return found if len(found) == len(blocks) else None


def is_structured(text: str) -> bool:
    """Whether a text looks like the structured form, by its two ends."""
    return _STRUCTURED_START.match(text) is not None and text[-64:].rstrip().endswith("}]")


_STRUCTURED_START = re.compile(r'\s*\[\s*\{\s*"(?:query|web_page_info_list)"\s*:')

# The line break after it is left to the text that follows.
_SEPARATOR = re.compile(r"\n=======(?=\n|\Z)")

_BLOCK_HEAD = re.compile(
    r"A Google search for '(.*?)' (found ([0-9]{1,6}) results?):\n\n## Web Results(?:\n|\Z)",
    re.DOTALL,
)

# How a failed query's line begins; the query follows where there is a quote.
_FAILURE_HEAD = re.compile(
    r"Failed to search for '|No results found for (?:query: )?'|Google search Timeout"
)
_QUERY_END = re.compile(r"'(?=$|[.:](?: |$))", re.MULTILINE)

_ENTRY = re.compile(
    r"^(0|[1-9][0-9]{0,5})\. \[(.*)\)$((?:\n(?:Date published|Date updated|Source):.*)*)",
    re.MULTILINE,
)
_LINK_MIDDLE = re.compile(r"\]\(")
_LINK_MIDDLE_AND_SCHEME = re.compile(r"\]\((?=[A-Za-z][A-Za-z0-9+.-]{0,15}://)")

_Entry: TypeAlias = re.Match[str]
# Entries of rising numbers: the last one, and the chain before it.
_Chain: TypeAlias = "tuple[_Entry, _Chain | None]"


def _read_blocks(text: str) -> list[QueryResults] | None:
    blocks = []
    for block_text in _block_texts(text):
        head = _BLOCK_HEAD.match(block_text)
        block = _read_failure(block_text) if head is None else _read_block(block_text, head)
        if block is None:
            return None
        blocks.append(block)
    return blocks


def _block_texts(text: str) -> list[str]:
    """Cut at the separators that a block or a failed query follows; others are snippet text."""
    first, *later = _SEPARATOR.split(text)
    runs = [[first]]
    for piece in later:
        segment = piece[1:]
        if _BLOCK_HEAD.match(segment) or _FAILURE_HEAD.match(segment):
            runs.append([segment])
        else:
            runs[-1].append(piece)
    return ["\n=======".join(run) for run in runs]


def _read_failure(text: str) -> QueryResults | None:
    head = _FAILURE_HEAD.match(text)
    if head is None:
        return None
    if not head[0].endswith("'"):
        return None if "\n" in text else QueryResults("", note=text)
    ends = list(_QUERY_END.finditer(text, head.end()))
    if len(ends) != 1 or "\n" in text[ends[0].end() :]:
        return None
    return QueryResults(text[head.end() : ends[0].start()], note=text)


def _read_block(text: str, head: re.Match[str]) -> QueryResults | None:
    # A separator with nothing after it, or the last line of a snippet: no telling.
    if text.endswith(("\n=======", "\n=======\n")):
        return None
    query, found, count = head.groups()
    body = text[head.end() :]
    if body in ("", "\n"):
        return QueryResults(query, note=found)
    items = _read_items(body, int(count))
    return None if items is None else QueryResults(query, items)


def _read_items(body: str, count: int) -> tuple[Item, ...] | None:
    lines = [
        entry
        for entry in _ENTRY.finditer(body)
        if "](" in entry[2] and (entry.start() == 0 or body.startswith("\n\n", entry.start() - 2))
    ]
    # Some agents write the snippet on the next line; that form counts only where no other reads.
    spaced = [entry for entry in lines if body[entry.end() : entry.end() + 2] in ("", "\n", "\n\n")]
    choices = _ways_to_number(spaced, count) or _ways_to_number(lines, count)
    if len(choices) != 1:
        return None
    (entries,) = choices
    ends = [later.start() - 2 for later in entries[1:]] + [len(body)]
    items = []
    for entry, end in zip(entries, ends):
        item = _read_item(entry, body[entry.end() : end])
        if item is None:
            return None
        items.append(item)
    return tuple(items)


def _ways_to_number(lines: Sequence[_Entry], count: int) -> list[list[_Entry]]:
    """Choose `count` entry lines with consecutive numbers, from the start of the body on.

    A line straight after a chosen one is its snippet, because a result without a snippet still
    ends in a line break before the blank line that divides two results.

    Returns:
        The choices, at most two: the second only says that it is not the only one.
    """
    if not lines or lines[0].start() != 0 or int(lines[0][1]) > 1:
        return []
    first_number = int(lines[0][1])
    chains: dict[int, list[_Chain]] = {first_number: [(lines[0], None)]}  # by last number
    for line in lines[1:]:
        number = int(line[1])
        for chain in chains.get(number - 1, ()):
            if line.start() != chain[0].end() + 2:
                reached = chains.setdefault(number, [])
                if len(reached) < 2:
                    reached.append((line, chain))
    return [_unrolled(chain) for chain in chains.get(first_number + count - 1, ())]


def _unrolled(chain: _Chain) -> list[_Entry]:
    entries = []
    link: _Chain | None = chain
    while link is not None:
        entry, link = link
        entries.append(entry)
    return entries[::-1]


def _read_item(entry: _Entry, rest: str) -> Item | None:
    link = _title_and_url(entry[2])
    if link is None:
        return None
    fields: dict[str, str] = {}
    for line in entry[3].split("\n")[1:]:
        label, _, value = line.partition(":")
        name = "source" if label == "Source" else "date"
        if name in fields:
            return None
        fields[name] = value.removeprefix(" ")
    # One line break ends the entry's line; the second is the blank line before the snippet.
    snippet = rest.removeprefix("\n").removeprefix("\n")
    return Item(*link, snippet, fields.get("date"), fields.get("source"))


def _title_and_url(link: str) -> tuple[str, str] | None:
    """Part `title](url`. Where `](` stands more than once, the URL is what has a scheme."""
    cuts = list(_LINK_MIDDLE.finditer(link))
    if len(cuts) > 1:
        cuts = list(_LINK_MIDDLE_AND_SCHEME.finditer(link))
    if len(cuts) != 1:
        return None
    return link[: cuts[0].start()], link[cuts[0].start() + 2 :]


def _with_crlf(block: QueryResults) -> QueryResults:
    """Give fields of several lines the line ends back that they had."""

    def restored(value: str) -> str:
        return value.replace("\n", "\r\n")

    return QueryResults(
        restored(block.query),
        tuple(item._replace(snippet=restored(item.snippet)) for item in block.items),
        None if block.note is None else restored(block.note),
    )


def _item_fields(item: Item, dates: bool, join_snippet_lines: bool) -> dict[str, str]:
    fields = {
        "title": item.title,
        "url": item.url,
        "snippet": _join_lines(item.snippet) if join_snippet_lines else item.snippet,
    }
    if dates and item.date is not None:
        fields["date"] = item.date
    if item.source is not None:
        fields["source"] = item.source
    return fields


def _join_lines(snippet: str) -> str:
    return "\n".join(line for line in map(str.strip, snippet.split("\n")) if line)


def _block_from_json(entry: object) -> QueryResults | None:
    if not isinstance(entry, dict):
        return None
    query, results, note = (entry.get(key) for key in ("query", "web_page_info_list", "note"))
    if not isinstance(query, str) or not isinstance(results, list):
        return None
    items = []
    for result in results:
        if not isinstance(result, dict):
            return None
        values = [result.get(name) for name in Item._fields]
        if not all(value is None or isinstance(value, str) for value in values):
            return None
        title, url, snippet, date, source = values
        items.append(Item(title or "", url or "", snippet or "", date, source))
    return QueryResults(query, tuple(items), note if isinstance(note, str) else None)


# The short cut. It reads one block whose results are all of the commonest shape, puts the JSON
# together with DEL in place of each quote of its own, and escapes the whole once at the end: DEL
# is what JSON never escapes. Reading into objects and writing those takes three times as long.

_PLAIN_HEAD = re.compile(
    r"A Google search for '(.*)' (found ([0-9]{1,3}) results?):\n\n## Web Results"
)
# The number is read with the second line break before it, which the first result lacks, and one
# behind an empty snippet.
_PLAIN_ENTRY = re.compile(
    r"\n(\n?[0-9]+)\. \[(.*)\)(?:\nDate published: (.*))?(?:\nSource: (.*))?\n\n"
)
_PLAIN_NUMBERS = tuple([str(first + n) for n in range(100)] for first in (0, 1))

_DEL = "\x7f"
_QUERY, _LIST, _TITLE, _URL, _SNIPPET, _DATE, _SOURCE, _END, _NOTE = (
    part.replace('"', _DEL)
    for part in (
        '{"query": "',
        '", "web_page_info_list": [',
        '{"title": "',
        '", "url": "',
        '", "snippet": "',
        '", "date": "',
        '", "source": "',
        '"}',
        '], "note": "',
    )
)


class _Form(NamedTuple):
    """What of a block is written, and how: the options of `write_search_json`."""

    dates: bool
    join_snippet_lines: bool
    notes: bool


def _plain_block_json(block: str, form: _Form) -> str | None:
    """The JSON of one block, or None if it is not plain.

    A plain block has one `](` in each result's own line and none elsewhere, so no line of a
    snippet can be taken for a result and no link can be parted in two ways.
    """
    if _DEL in block:
        return None
    parts = _PLAIN_ENTRY.split(block)
    count = len(parts) // 5
    if count == 0:
        return _empty_block_json(block, form)
    head = _PLAIN_HEAD.fullmatch(parts[0])
    if head is None or int(head[3]) != count or block.count("](") != count:
        return None
    snippets = parts[5::5]
    if not _are_consecutive(parts[1::5], snippets):
        return None
    links = [link.split("](") for link in parts[2::5]]
    dates: Iterable[str | None] = parts[3::5] if form.dates else repeat(None)
    written: Iterable[str] = map(_join_lines, snippets) if form.join_snippet_lines else snippets
    try:
        items = ", ".join(
            [
                f"{_TITLE}{title}{_URL}{url}{_SNIPPET}{snippet}"
                f"{'' if date is None else _DATE + date}"
                f"{'' if source is None else _SOURCE + source}{_END}"
                for (title, url), date, source, snippet in zip(links, dates, parts[4::5], written)
            ]
        )
        return _escaped(f"{_QUERY}{head[1]}{_LIST}{items}]}}")
    except (ValueError, TypeError):  # a line without one `](`; a lone surrogate
        return None


def _are_consecutive(numbers: list[str], snippets: list[str]) -> bool:
    """Whether results are numbered one by one, with a blank line before each but the first.

    Behind an empty snippet the line break that the number lacks was read with the snippet's own.
    """
    bare = [number.lstrip("\n") for number in numbers]
    if not any(bare == expected[: len(bare)] for expected in _PLAIN_NUMBERS):
        return False
    has_blank_line = [number != plain for number, plain in zip(numbers, bare)]
    return has_blank_line == [False, *map(bool, snippets[:-1])]


def _empty_block_json(block: str, form: _Form) -> str | None:
    head = _PLAIN_HEAD.match(block)
    if head is None or head[3] != "0" or block[head.end() :] not in ("", "\n"):
        return None
    note = f"{_NOTE}{head[2]}{_END}" if form.notes else "]}"
    try:
        return _escaped(f"{_QUERY}{head[1]}{_LIST}{note}")
    except TypeError:
        return None


def _escaped(text: str) -> str:
    return orjson.dumps(text)[1:-1].replace(b"\x7f", b'"').decode()
