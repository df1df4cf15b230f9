"""Plain programs to measure a curation run against; each reads raw REDSearcher parquet.

    python benchmarks/baselines.py NAME INPUT OUT

- `polars`: read, one regex count for each message, write zstd; a file at a time on one thread. No
  program that writes the same text as zstd parquet can do much less.
- `bare_loop`: the main job as a plain Python loop without checks: parse each call, structure the
  search results, spill, put the rows in an order drawn by hash, write zstd.
- `public_script_like`: shaped like the cost of the public cleaning script: everything in memory, a
  JSON5 parse for each call, copies by turn count, one parquet file at the end.
- `public_script_like_strict`: the same with strict JSON tried first.

All are ours and written for measuring; none of them is a way to curate data.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = dict[str, Any]
ParseJson = Callable[[str], Any]

ENTRY = re.compile(r"^\d+\. \[(.*)\]\((.*)\)$")
ENTRY_HEAD = re.compile(r"^\d+\. \[", re.MULTILINE)
SEARCH_HEAD = re.compile(r"^A Google search for '(.*)' found \d+ results:$")
SEARCH_OPENING = "<tool_response>\nA Google search for '"
SHARD_BYTES = 256_000_000
SPILL_ROWS = 32


def polars(source: Path, out: Path, limit: int | None) -> None:
    """Read, count call tags by a regex, write zstd, one file at a time on one thread."""
    # polars reads this once, when it is first imported.
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl

    tag_count = (
        pl.col("messages")
        .list.eval(pl.element().struct.field("content").str.count_matches(r"<tool_call>\s*\{"))
        .list.sum()
    )
    for path in parquet_files(source, limit):
        frame = pl.read_parquet(path, n_rows=limit).with_columns(tag_count=tag_count)
        frame.write_parquet(out / path.name, compression="zstd", compression_level=3)


def bare_loop(source: Path, out: Path, limit: int | None) -> None:
    """Do the main job in a plain loop: no repair, no edits, no checks, no resume."""
    import pyarrow as pa

    spill = out / "spill.arrow"
    keys: list[str] = []
    held: list[Row] = []
    with pa.OSFile(str(spill), "wb") as file, pa.ipc.new_file(file, _cleaned_schema()) as writer:
        for row in raw_rows(source, limit):
            cleaned = _cleaned(row, json.loads)
            keys.append(_sort_key(cleaned))
            held.append(cleaned)
            if len(held) == SPILL_ROWS:
                writer.write_batch(pa.RecordBatch.from_pylist(held, schema=_cleaned_schema()))
                held = []
        if held:
            writer.write_batch(pa.RecordBatch.from_pylist(held, schema=_cleaned_schema()))
    _write_in_order(spill, sorted(range(len(keys)), key=keys.__getitem__), out)
    spill.unlink()


def public_script_like(source: Path, out: Path, limit: int | None) -> None:
    """Clean everything in memory with a JSON5 parser for each call, write once at the end."""
    _clean_in_memory(source, out, limit, _json5_parser())


def public_script_like_strict(source: Path, out: Path, limit: int | None) -> None:
    """Clean everything in memory with strict JSON first, write once at the end."""
    parse_json5 = _json5_parser()

    def parse(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return parse_json5(text)

    _clean_in_memory(source, out, limit, parse)


BASELINES: dict[str, Callable[[Path, Path, int | None], None]] = {
    baseline.__name__: baseline
    for baseline in (polars, bare_loop, public_script_like, public_script_like_strict)
}


def parquet_files(source: Path, limit: int | None) -> list[Path]:
    """Name the input files; with a limit, the first one is enough."""
    paths = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    return paths[:1] if limit else paths


def raw_rows(source: Path, limit: int | None) -> Iterator[Row]:
    """Read raw rows as dicts, a few at a time."""
    import pyarrow.parquet as pq

    read = 0
    for path in parquet_files(source, limit):
        for batch in pq.ParquetFile(path).iter_batches(SPILL_ROWS):
            for row in batch.to_pylist():
                if read == limit:
                    return
                read += 1
                yield row


def _cleaned(row: Row, parse: ParseJson) -> Row:
    messages = [{"role": "system", "content": row["system_prompt"]}]
    for message in row["messages"]:
        content = message["content"]
        if message["role"] == "assistant":
            content = _assistant(content, parse)
        elif content.startswith(SEARCH_OPENING):
            body = content.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")
            results = json.dumps(_search_results(body), ensure_ascii=False)
            content = f"<tool_response>\n{results}\n</tool_response>"
        messages.append({"role": message["role"], "content": content})
    return {
        "question": row["meta"]["question"],
        "messages": messages,
        "answer": row["meta"]["answer"],
    }


def _assistant(content: str, parse: ParseJson) -> str:
    thinking, _, rest = content.rpartition("</think>\n")
    if not rest.startswith("<tool_call>"):
        return content
    call = parse(rest.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
    written = json.dumps(call, ensure_ascii=False)
    return f"{thinking}</think>\n<tool_call>\n{written}\n</tool_call>"


def _search_results(body: str) -> list[dict[str, Any]]:
    blocks = []
    for block in body.split("\n=======\n"):
        head, _, listing = block.partition("\n\n## Web Results\n")
        found = SEARCH_HEAD.match(head)
        starts = [match.start() for match in ENTRY_HEAD.finditer(listing)]
        entries = [
            _entry(listing[start:stop].rstrip("\n"))
            for start, stop in pairwise([*starts, len(listing)])
        ]
        blocks.append({"query": found[1] if found else head, "web_page_info_list": entries})
    return blocks


def _entry(text: str) -> dict[str, str]:
    lines = text.split("\n")
    found = ENTRY.match(lines[0])
    entry = {"title": found[1], "url": found[2]} if found else {"title": lines[0], "url": ""}
    rest = lines[1:]
    while rest and rest[0].startswith(("Date published: ", "Source: ")):
        label, _, value = rest.pop(0).partition(": ")
        entry["date" if label == "Date published" else "source"] = value
    entry["snippet"] = "\n".join(rest).strip("\n")
    return entry


def _sort_key(row: Row) -> str:
    import xxhash

    return xxhash.xxh3_128_hexdigest(
        json.dumps([row["question"], row["messages"]], ensure_ascii=False).encode()
    )


def _cleaned_schema() -> Any:
    import pyarrow as pa

    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    return pa.schema(
        [("question", pa.string()), ("messages", pa.list_(message)), ("answer", pa.string())]
    )


def _write_in_order(spill: Path, order: list[int], out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches = pa.ipc.open_file(pa.memory_map(str(spill)))
    kept: dict[int, Any] = {at: batches.get_batch(at) for at in range(batches.num_record_batches)}
    shard, written, writer = 0, 0, None
    for start in range(0, len(order), SPILL_ROWS):
        rows = [
            kept[at // SPILL_ROWS].slice(at % SPILL_ROWS, 1)
            for at in order[start : start + SPILL_ROWS]
        ]
        table = pa.Table.from_batches(rows).combine_chunks()
        if writer is None:
            path = out / f"train-{shard:05d}.parquet"
            writer = pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=3)
        writer.write_table(table)
        written += table.get_total_buffer_size()
        if written >= SHARD_BYTES:
            writer.close()
            shard, written, writer = shard + 1, 0, None
    if writer is not None:
        writer.close()


def _clean_in_memory(source: Path, out: Path, limit: int | None, parse: ParseJson) -> None:
    rows = list(raw_rows(source, limit))
    cleaned = []
    for row in rows:
        sound = _without_surrogate_halves(row)
        cleaned.append(_without_surrogate_halves(_without_repeats(_cleaned(sound, parse))))
    copies = [row for row in cleaned for _ in range(_copy_count(row))]
    _write_at_once(copies, out)


def _json5_parser() -> ParseJson:
    try:
        loads: ParseJson = importlib.import_module("json5").loads
    except ModuleNotFoundError:
        sys.exit("this stand-in needs the json5 package: pip install json5")
    return loads


def _without_surrogate_halves(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    if isinstance(value, list):
        return [_without_surrogate_halves(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_surrogate_halves(item) for key, item in value.items()}
    return value


def _without_repeats(row: Row) -> Row:
    seen: set[str] = set()
    messages = row["messages"][:2]
    for call, response in zip(row["messages"][2:-1:2], row["messages"][3::2], strict=True):
        signature = re.sub(r"(?s)^.*</think>", "", call["content"])
        if signature not in seen:
            seen.add(signature)
            messages += [call, response]
    return {**row, "messages": [*messages, row["messages"][-1]]}


def _copy_count(row: Row) -> int:
    turn_count = (len(row["messages"]) - 1) // 2
    return 1 if turn_count <= 50 else 2 if turn_count <= 100 else 5


def _write_at_once(rows: list[Row], out: Path) -> None:
    import polars as pl

    pl.DataFrame(rows).write_parquet(out / "cleaned.parquet", compression="snappy")


def main() -> None:
    """Run one baseline."""
    parser = argparse.ArgumentParser(
        description="Run a baseline program once; time it from outside.",
        epilog="example: python benchmarks/baselines.py polars raw2000 out",
    )
    parser.add_argument("name", choices=BASELINES)
    parser.add_argument("input", type=Path, help="a folder of raw parquet, or one file")
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=int, help="only so many rows, to measure the start-up")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    BASELINES[given.name](given.input, given.out, given.limit)


if __name__ == "__main__":
    main()
