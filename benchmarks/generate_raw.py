"""Generate clean raw REDSearcher-style parquet for the benchmarks: seeded, same bytes every time.

    python benchmarks/generate_raw.py OUT --rows 2000 --shards 4 --seed 0

Every row is sound: unique question, search and visit calls only, no call made twice, an answer that
holds the gold answer. A curation run should therefore keep every row and change nothing but the
system prompt and the form of the search results. Row i depends on the seed and i alone, so a small
set is the beginning of a large one. The text is invented; none of it comes from a corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from prose import Prose, Topic, capitalised, chinese_prose, english_prose

ROW_GROUP_BYTES = 32_000_000
TYPICAL_ROW_KB = 180
# What calls, tags, titles and addresses take whatever the length of the text: no row gets smaller.
FIXED_ROW_KB = 34
# Shares of the turn buckets after the published cleaning: 3,720, 4,400 and 1,245 of 9,365.
TURN_BUCKETS = ((0.397, 15, 50), (0.397 + 0.470, 51, 100), (1.0, 101, 150))
TOPIC_SIZE = 700
SYSTEM_PROMPT = (
    "You research hard questions on the web. Think inside <think></think>, then make one call "
    "inside <tool_call></tool_call> and read what comes back. You may use search(query: list of "
    "str) and visit(url: list of str, goal: str). When you are sure, write the result inside "
    "<answer></answer>."
)
SCHEMA = pa.schema(
    [
        ("meta", pa.struct([("question", pa.string()), ("answer", pa.string())])),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("system_prompt", pa.string()),
    ]
)


@dataclass(frozen=True)
class RawRow:
    """One trajectory as REDSearcher stores it; roles alternate, the question's first."""

    question: str
    answer: str
    contents: list[str]


@dataclass(frozen=True)
class Page:
    """A web page as search results show it."""

    title: str
    url: str
    date: str | None
    source: str | None
    snippet: str


@dataclass
class Desk:
    """What one trajectory has at hand: its topic, the pages it has seen, the calls it has made."""

    rng: random.Random
    prose: Prose
    topic: Topic
    scale: float
    first_entry: int
    pages: list[Page] = field(default_factory=list)
    unvisited: list[Page] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    urls: set[str] = field(default_factory=set)

    def text(self, fewest: int, most: int) -> str:
        """Write so many sentences, scaled to the size of row that was asked for."""
        count = max(1, round(self.rng.uniform(fewest, most) * self.scale))
        return self.prose.text(self.rng, self.topic, count)

    def noun_phrase(self) -> str:
        """Take something the trajectory is about."""
        return self.rng.choice(self.topic.noun_phrases)


def generate(
    out: Path, rows: int, shards: int, seed: int, row_kb: float = TYPICAL_ROW_KB, workers: int = 1
) -> None:
    """Write `rows` rows into `shards` parquet files.

    Args:
        out: folder for the files; made if missing.
        rows: how many rows in all.
        shards: how many files, each a range of the rows.
        seed: same seed, same bytes.
        row_kb: bytes of message text a row on average, in thousands.
        workers: processes; they do not change the output.

    Raises:
        FileExistsError: the folder already holds something.
    """
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise FileExistsError(f"{out.name} is not empty")
    borders = [rows * shard // shards for shard in range(shards + 1)]
    paths = [out / f"train-{shard:05d}-of-{shards:05d}.parquet" for shard in range(shards)]
    jobs = (paths, borders[:-1], borders[1:], repeat(seed), repeat(row_kb))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for path in pool.map(write_shard, *jobs):
            print(path.name, file=sys.stderr)


def write_shard(path: Path, start: int, stop: int, seed: int, row_kb: float) -> Path:
    """Write rows `start` to `stop` to one parquet file, a row group for every 32 MB of text."""
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", compression_level=3) as writer:
        for batch in batches(raw_rows(start, stop, seed, row_kb)):
            writer.write_batch(batch)
    return path


def batches(rows: Iterator[RawRow]) -> Iterator[pa.RecordBatch]:
    """Cut rows into record batches by the bytes of their text."""
    held: list[RawRow] = []
    held_bytes = 0
    for row in rows:
        held.append(row)
        held_bytes += sum(map(utf8_length, row.contents))
        if held_bytes >= ROW_GROUP_BYTES:
            yield record_batch(held)
            held, held_bytes = [], 0
    if held:
        yield record_batch(held)


def utf8_length(text: str) -> int:
    """Count the bytes of a text as parquet stores it."""
    return len(text) if text.isascii() else len(text.encode())


def record_batch(rows: list[RawRow]) -> pa.RecordBatch:
    """Make the three raw columns of some rows."""
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row.contents))
    roles = [("user", "assistant")[at % 2] for row in rows for at in range(len(row.contents))]
    contents = [content for row in rows for content in row.contents]
    meta = pa.StructArray.from_arrays(
        [pa.array([row.question for row in rows]), pa.array([row.answer for row in rows])],
        ["question", "answer"],
    )
    messages = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.StructArray.from_arrays([pa.array(roles), pa.array(contents)], ["role", "content"]),
    )
    system_prompts = pa.array([SYSTEM_PROMPT] * len(rows))
    return pa.RecordBatch.from_arrays([meta, messages, system_prompts], schema=SCHEMA)


def raw_rows(start: int, stop: int, seed: int, row_kb: float) -> Iterator[RawRow]:
    """Make rows `start` to `stop` of a seed; every fourth is Chinese."""
    english, chinese = english_prose(seed), chinese_prose(seed)
    for index in range(start, stop):
        yield raw_row(index, seed, chinese if index % 4 == 3 else english, row_kb)


def raw_row(index: int, seed: int, prose: Prose, row_kb: float) -> RawRow:
    """Make one trajectory."""
    rng = random.Random(f"row/{seed}/{index}")
    topic = prose.topic(rng, TOPIC_SIZE)
    scale = max(0.02, (row_kb - FIXED_ROW_KB) / (TYPICAL_ROW_KB - FIXED_ROW_KB))
    desk = Desk(rng, prose, topic, scale, first_entry=int(rng.random() < 0.2))
    question, gold = make_question(desk)
    contents = [question]
    turn_count = turns_of(index, rng)
    for turn in range(turn_count - 1):
        call, observation = visit(desk) if rng.random() < 0.21 and desk.unvisited else search(desk)
        contents.append(assistant_message(thought(desk, question, turn), call))
        contents.append(f"<tool_response>\n{observation}\n</tool_response>")
    contents.append(f"<think>\n{thought(desk, question, 1)}\n</think>\n{answer(desk, gold)}")
    return RawRow(question, gold, contents)


def turns_of(index: int, rng: random.Random) -> int:
    """Choose a row's turn count so that every run of rows has the published bucket shares."""
    spread = index * 0.6180339887498949 % 1.0
    fewest, most = next((low, high) for share, low, high in TURN_BUCKETS if spread < share)
    drawn = rng.randint(fewest, most)
    return drawn if fewest == 15 else min(drawn, rng.randint(fewest, most))


def make_question(desk: Desk) -> tuple[str, str]:
    """Ask for a place or a person by some clues; the gold answer comes with it."""
    rng, prose = desk.rng, desk.prose
    clues = prose.text(rng, desk.topic, rng.randint(3, 5))
    wants_place = rng.random() < 0.5
    gold = rng.choice(prose.places if wants_place else prose.people)
    if prose.language == "zh":
        return clues + ("文中所指的是哪个地方？" if wants_place else "此人是谁？"), gold
    return f"{clues} {'Which place is meant?' if wants_place else 'Who is this person?'}", gold


def thought(desk: Desk, question: str, turn: int) -> str:
    """Think about the last result; the first turn goes through the question."""
    rng = desk.rng
    parts = [question, desk.text(4, 14)] if turn == 0 else [desk.text(2, 8)]
    if desk.pages and rng.random() < 0.5:
        page = rng.choice(desk.pages)
        parts.insert(0, f'"{page.title}": {page.snippet}' if rng.random() < 0.3 else page.title)
    if desk.prose.language == "zh":
        parts.append(f"接下来需要核对{desk.noun_phrase()}。")
    else:
        parts.append(f"Let's check {desk.noun_phrase()} next.")
    return "\n\n".join(parts)


def assistant_message(reasoning: str, call: dict[str, object]) -> str:
    """Write a thought and its call."""
    head = json.dumps(call, ensure_ascii=False)
    return f"<think>\n{reasoning}\n</think>\n<tool_call>\n{head}\n</tool_call>"


def answer(desk: Desk, gold: str) -> str:
    """Write the answer block, in half of the rows with an explanation."""
    explanation = f"\n\n{desk.text(2, 4)}" if desk.rng.random() < 0.5 else ""
    return f"<answer>\n**{gold}**{explanation}\n</answer>"


def search(desk: Desk) -> tuple[dict[str, object], str]:
    """Search for one query, now and then for two or three."""
    draw = desk.rng.random()
    queries = [new_query(desk) for _ in range(1 if draw < 0.93 else 2 if draw < 0.98 else 3)]
    call: dict[str, object] = {"name": "search", "arguments": {"query": queries}}
    return call, "\n=======\n".join(search_block(desk, query) for query in queries)


def new_query(desk: Desk) -> str:
    """Make a query this trajectory has not asked yet."""
    rng = desk.rng
    while True:
        words, draw = [desk.noun_phrase(), rng.choice(desk.topic.adverbials)], rng.random()
        if draw < 0.15:
            words[0] = f'"{words[0]}"'
        elif draw < 0.22:
            words[0] += "'s origin"
        elif draw < 0.5:
            words.pop()
        query = " ".join([*words, str(rng.randrange(1580, 2025))][: rng.choice((2, 3))])
        if query not in desk.asked:
            desk.asked.add(query)
            return query


def search_block(desk: Desk, query: str) -> str:
    """Write the results of one query as the search tool prints them."""
    pages = results(desk)
    entries = (entry(desk.first_entry + at, page) for at, page in enumerate(pages))
    head = f"A Google search for '{query}' found {len(pages)} results:\n\n## Web Results\n"
    return head + "\n\n".join(entries)


def results(desk: Desk) -> list[Page]:
    """Find pages: mostly new ones, some seen before; nothing for one query in forty."""
    rng = desk.rng
    if rng.random() < 0.025:
        return []
    count = max(1, round(rng.choice((10, 10, 9, 9, 8, 8, 7, 4)) * min(1.0, desk.scale)))
    seen = {
        rng.randrange(len(desk.pages)) for _ in range(count) if rng.random() < 0.15 and desk.pages
    }
    pages = [desk.pages[at] for at in sorted(seen)]
    fresh = [new_page(desk) for _ in range(count - len(pages))]
    desk.pages.extend(fresh)
    desk.unvisited.extend(fresh)
    pages += fresh
    rng.shuffle(pages)
    return pages


def entry(number: int, page: Page) -> str:
    """Write one numbered result."""
    date = f"\nDate published: {page.date}" if page.date else ""
    source = f"\nSource: {page.source}" if page.source else ""
    snippet = f"\n{page.snippet}" if page.snippet else ""
    return f"{number}. [{page.title}]({page.url}){date}{source}\n{snippet}"


def new_page(desk: Desk) -> Page:
    """Invent a page with an address no other page of the trajectory has."""
    rng = desk.rng
    subject = capitalised(desk.noun_phrase())
    site = f"{rng.choice(SITE_NAMES)}.example"
    url = page_url(rng, site, subject)
    while url in desk.urls:
        url = page_url(rng, site, subject)
    desk.urls.add(url)
    return Page(
        title=page_title(rng, site, subject),
        url=url,
        date=page_date(rng) if rng.random() < 0.4 else None,
        source=site.partition(".")[0].title() if rng.random() < 0.12 else None,
        snippet=page_snippet(desk),
    )


def page_title(rng: random.Random, site: str, subject: str) -> str:
    """Name a page; some titles hold brackets, some are cut off inside one."""
    draw = rng.random()
    if draw < 0.02:
        return f"{subject} [{rng.randrange(1, 40)}]"
    if draw < 0.022:
        return f"[PDF] {subject} [part ..."
    if draw < 0.6:
        return f"{subject} - {site.partition('.')[0].title()}"
    return subject


def page_url(rng: random.Random, site: str, subject: str) -> str:
    """Make an address; some hold parentheses, some a long identifier."""
    slug, draw = "_".join(subject.split()), rng.random()
    if draw < 0.15:
        return f"https://{site}/item/{rng.getrandbits(64):016x}?ref={rng.getrandbits(32):08x}"
    if draw < 0.2:
        return f"https://{site}/wiki/{slug}_({rng.choice(('river', 'film', 'ship'))})"
    return f"https://www.{site}/{rng.choice(SECTIONS)}/{slug.lower()}-{rng.randrange(99_999)}"


def page_date(rng: random.Random) -> str:
    """Write a date in one of the forms search results use."""
    month, day, year = rng.choice(MONTHS), rng.randrange(1, 29), rng.randrange(1998, 2026)
    return rng.choice((f"{month} {day}, {year}", f"{month} {year}", f"{year}", f"{day} days ago"))


def page_snippet(desk: Desk) -> str:
    """Write a snippet; few are empty, few hold lines and characters that a parser may trip over."""
    draw = desk.rng.random()
    # There are never more than ten results, so a larger row has longer snippets; titles and
    # addresses keep their length, hence twice the growth.
    stretch = max(1.0, 2 * desk.scale - 1)
    if draw < 0.01:
        return ""
    text = desk.prose.text(
        desk.rng, desk.topic, max(1, round(desk.rng.uniform(0.6, 1.85) * stretch))
    )
    if draw < 0.03:
        return f"{text}{desk.rng.choice(ODD_ENDINGS)}"
    if draw < 0.17:
        return f"{desk.rng.choice(OPENINGS)}{text}"
    return (
        f"{text[: round(desk.rng.randrange(45, 160) * stretch)].strip()} ..."
        if draw < 0.6
        else text
    )


def visit(desk: Desk) -> tuple[dict[str, object], str]:
    """Visit a page from the results that was not visited before, now and then two."""
    rng = desk.rng
    wanted = min(len(desk.unvisited), 1 if rng.random() < 0.94 else 2)
    pages = [desk.unvisited.pop(rng.randrange(len(desk.unvisited))) for _ in range(wanted)]
    goal = (
        f"查明{desk.noun_phrase()}的情况"
        if desk.prose.language == "zh"
        else f"Find out what the page says about {desk.noun_phrase()}"
    )
    arguments = {"url": [page.url for page in pages], "goal": goal}
    texts = (visit_text(desk, page, goal) for page in pages)
    return {"name": "visit", "arguments": arguments}, "\n=======\n".join(texts)


def visit_text(desk: Desk, page: Page, goal: str) -> str:
    """Write what the visit tool reports about a page."""
    head = f"The useful information in {page.url} for user goal {goal} as follows: \n\n"
    evidence = ""
    if desk.rng.random() < 0.7:
        paragraphs = [page.snippet or page.title, desk.text(4, 12), desk.text(2, 7)]
        evidence = "Evidence in page: \n{}\n\n".format("\n".join(paragraphs))
    return f"{head}{evidence}Summary: \n{desk.text(3, 9)}"


SITE_NAMES = (  # hosts below the reserved top-level name "example"
    "almanac",
    "archive",
    "atlas",
    "britannia",
    "chronicle",
    "commons",
    "dailypost",
    "encyclo",
    "findlib",
    "gazette",
    "heritage",
    "journal",
    "kids",
    "library",
    "museum",
    "openwiki",
    "parish",
    "records",
    "scholar",
    "travelbook",
    "baike",
    "dushu",
    "lishi",
    "wenku",
)
SECTIONS = ("articles", "blog", "en", "history", "item", "news", "people", "places", "posts")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
OPENINGS = (
    "… ",
    "Home · About · Contact ",
    "by the editors · 2019 — ",
    "What’s new: ",
    "★★★★☆ ",
)
ODD_ENDINGS = (
    "\nContents\n1. Early years\n2. The move north\n3. Sources",
    "\n----------\nPage 2 of 14",
    "\n• Opening hours\n• How to get there",
    " See C:\\maps\\sheet_4 and the \\frac in the margin.",
    " Depth < 40 m & width > 12 m.",
    " a line\u2028and another; a\u00a0fixed space and a zero\u200bwidth one.",
    "\tTable 3\t1,204\t77%",
    ' The so-called "first" edition [edit] (see [2], [3]).',
)


def main() -> None:
    """Read the command line and generate."""
    parser = argparse.ArgumentParser(
        description="Generate clean raw REDSearcher-style parquet.",
        epilog="example: python benchmarks/generate_raw.py raw2000 --rows 2000 --shards 4",
    )
    parser.add_argument("out", type=Path, help="an empty or new folder")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--row-kb",
        type=float,
        default=TYPICAL_ROW_KB,
        help="thousand bytes of message text a row, roughly, from 50 on",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    generate(given.out, given.rows, given.shards, given.seed, given.row_kb, given.workers)


if __name__ == "__main__":
    main()
