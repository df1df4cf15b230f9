"""Make the samples: `python samples/make_samples.py` writes `redsearcher/` and `rollouts/`.

Everything is invented and seeded: each run writes the same bytes. `making/` holds the worlds
(`coast.toml`, `saltway.toml`, `inlet.toml`), how their people word things (`voice_*.toml`), the
agent that researches in them, and the faults that are planted in its trajectories.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from trajcurate.samples.making.damage import fate_of, forced, plant
from trajcurate.samples.making.question import Question, ask
from trajcurate.samples.making.research import Manner, research
from trajcurate.samples.making.world import Thing, World, digest, load_world
from trajcurate.samples.making.write import Row, raw_row, rollout
from trajcurate.schemas.tools import ToolSet

HERE = Path(__file__).parent

Clues = Literal["own", "year", "full"]


@dataclass(frozen=True, slots=True)
class Spec:
    """A row to make: who is asked for what, in how many turns, with which faults.

    `clues`: the target's own clue, with the clue to its year, with that to its maker as well.
    """

    world: str
    target: str
    asked: str
    turns: int
    clues: Clues = "full"
    answer: str = "plain"
    faults: tuple[str, ...] = ()


COAST = [
    Spec("coast", "Skel Point", "extra", 5, "own"),
    Spec("coast", "Thursdays Only", "extra", 7, "own", "bold"),
    Spec("coast", "Aunt Philomena", "maker", 9, "year"),
    Spec("coast", "Hollin Bar", "maker_place", 13),
    Spec("coast", "Ada Fenwick Marl", "place", 15, "year", "long"),
    Spec("coast", "Low Water, Four O'Clock", "extra", 53),
    Spec("coast", "Gull Cairn", "extra", 37, answer="long"),
    Spec("coast", "Keld Ness", "end", 50, answer="bold"),
    Spec("coast", "Ulver Ness", "extra", 51),
    Spec("coast", "Orrin Junction", "extra", 66),
    Spec("coast", "Varrick High", "maker_end", 78, answer="bold"),
    Spec("coast", "Rathe Stack", "extra", 89),
    Spec("coast", "Brennick Old", "extra", 100, answer="long"),
    Spec("coast", "Eskerholm", "maker_place", 101),
    Spec("coast", "Marram Dunes", "extra", 141, answer="bold"),
    Spec("coast", "Pan Fields", "end", 62, faults=("order_in_place",)),
    Spec("coast", "Constant Reader", "extra", 16, "year", faults=("tool_python",)),
    Spec("coast", "Marl Iodine Company", "end", 21, faults=("tool_scholar", "tool_maps")),
    Spec("coast", "Wendle Spit", "maker_place", 54, faults=("repeated_after_timeout",)),
]

SALTWAY = [
    Spec("saltway", "《潮信录》", "extra", 6, "own", "bold"),
    Spec("saltway", "雁湾站", "extra", 11),
    Spec("saltway", "临汐碱厂", "extra", 20, answer="long"),
    Spec("saltway", "芦雪站", "extra", 52, answer="bold"),
    Spec("saltway", "落星站", "maker_place", 73, answer="long"),
    Spec("saltway", "汐尾站", "extra", 84),
    Spec("saltway", "望潮站", "end", 104, answer="bold"),
    Spec("saltway/en", "枫桥口站", "extra", 33),
    Spec("saltway/en", "槐渡站", "maker_place", 63, answer="long"),
    Spec("inlet", "鳴砂灯台", "extra", 5, "own"),
    Spec("inlet", "灯守日録", "maker_place", 12, answer="bold"),
    Spec("saltway", "三十里站", "extra", 56, faults=("order_behind",)),
    Spec("saltway", "白砚生", "extra", 17, "year", faults=("exact_repeat",)),
]

# One kind of fault a row, or a few that are easily told apart.
DAMAGED = [
    Spec("coast", "Fennimore Quay", "extra", 7, "own", faults=("single_quotes",)),
    Spec("saltway", "《灯下鱼谱》", "extra", 7, "own", faults=("trailing_comma",)),
    Spec("coast", "Sorrow Bridge", "extra", 57, faults=("unquoted_keys", "code_fence")),
    Spec("saltway", "铜盘站", "end", 9, "year", faults=("smart_quotes",)),
    Spec("coast", "Sabine Orme", "end", 10, "year", faults=("python_literals", "raw_line_break")),
    Spec("coast", "Varrick Low", "maker_end", 58, faults=("missing_brace", "extra_brace")),
    Spec("coast", "Jarrant Sands", "extra", 12, faults=("arguments_as_string", "parameters_key")),
    Spec("coast", "Amos Tillery", "extra", 9, "year", faults=("call_cut_off",)),
    Spec("coast", "Northern Kettle", "extra", 8, "year", faults=("qwen_coder_call",)),
    Spec("saltway", "沈未晞", "extra", 12, "year", faults=("queries_key", "urls_key")),
    Spec("coast", "Thornmere Road", "extra", 45, faults=("goal_list", "capital_tool_name")),
    Spec("saltway", "晒盐坪站", "extra", 61, faults=("string_for_list",)),
    Spec("coast", "Second Breakfast", "extra", 9, "year", faults=("null_padded_arguments",)),
    Spec("coast", "Hob Lane Halt", "extra", 6, "own", faults=("tag_case",)),
    Spec("coast", "Quill Rock", "extra", 75, faults=("call_unclosed", "tag_doubled")),
    Spec("coast", "Lorne Staithe", "maker_place", 64, faults=("think_unopened",)),
    Spec("saltway", "青蘅书院", "extra", 24, "year", faults=("think_unclosed",)),
    Spec("coast", "Ivo Pellant", "end", 10, "year", faults=("think_nested",)),
    Spec("coast", "The Bell Diver", "extra", 32, faults=("draft_call_in_think",)),
    Spec("saltway", "鹭屿站", "extra", 10, faults=("prose_before_call", "text_after_call")),
    Spec("coast", "Orrin Messenger", "extra", 12, faults=("response_invented",)),
    Spec("coast", "Isselwick Pier", "extra", 52, faults=("two_calls",)),
    Spec("saltway", "祝云樵", "place", 8, "year", faults=("call_doubled",)),
    Spec("coast", "Barnaby Coult", "extra", 13, "year", faults=("call_unanswered",)),
    Spec("saltway", "《盐的账目》", "extra", 6, "own", faults=("summary_before_answer",)),
    Spec("coast", "Tidewrack", "extra", 6, "own", "bold", faults=("answer_nested",)),
    Spec("inlet", "霧崎灯台", "extra", 6, "own", faults=("answer_unclosed",)),
    Spec("coast", "Perpetua", "maker", 7, "year", faults=("two_answers",)),
    Spec("saltway", "白礁站", "extra", 8, "year", faults=("answer_empty",)),
    Spec("coast", "Marram Halt", "extra", 10, faults=("answer_missing",)),
    Spec("coast", "Thornmere", "extra", 59, faults=("role_tool", "leading_system")),
    Spec(
        "coast", "Ruben Lisle", "extra", 9, "year", "plain", ("response_split", "response_untagged")
    ),
    Spec("saltway", "何砚秋", "place", 9, "year", faults=("roles_swapped",)),
    Spec("coast", "Coult's Aunt Line", "extra", 12, faults=("message_unexplained",)),
    Spec("coast", "Flora of the Tide Line", "extra", 13, faults=("lone_surrogate",)),
    Spec("saltway", "石梁站", "end", 60, faults=("line_separator",)),
    Spec("coast", "Finch Seaweed Garden", "extra", 13, faults=("control_tokens",)),
    Spec("coast", "Rathe Cove", "extra", 67, faults=("page_script", "ansi_escapes")),
]

PARQUET = [
    Spec("coast", "Harriet Lune", "extra", 8, "year", "bold"),
    Spec("coast", "Strake Alkali Works", "extra", 19, answer="bold"),
    Spec("saltway", "温止", "extra", 9, "year"),
    Spec("coast", "Ardholm Sound", "extra", 118, answer="bold"),
]


def main(target: Path = HERE) -> None:
    """Write all samples below `target`."""
    truth: list[dict[str, Any]] = []
    folder = target / "redsearcher"
    coast = _write_jsonl(folder / "coast.jsonl", COAST, truth)
    _write_jsonl(folder / "saltway.jsonl", SALTWAY, truth)
    lines = [_line(_make_row(spec)) for spec in DAMAGED]
    for spec, number in zip(DAMAGED, range(len(lines))):
        truth.append(_truth("damaged.jsonl", number, spec.faults))
    _append_odd_rows(lines, coast[0], truth)
    _write_text(folder / "damaged.jsonl", "".join(lines))
    _write_parquet(folder / "train-00000-of-00001.parquet", PARQUET, truth)
    entries = ",\n".join(json.dumps(entry) for entry in truth)
    _write_text(target / "truth.json", f"[\n{entries}\n]\n")
    _write_rollouts(target / "rollouts")


# --- raw rows -----------------------------------------------------------------------------------


def _make_row(spec: Spec) -> Row:
    world = _world(spec.world)
    question = _question(world, spec)
    is_long = spec.turns > 50
    manner = Manner(
        turn_count=spec.turns,
        answer_style=spec.answer,
        indirect=spec.turns > 24 and spec.clues == "full",
        hits=(2, 3) if is_long else (3, 5),
        evidence_rate=0.25 if is_long else 0.6,
    )
    row = raw_row(
        world,
        research(world, question, manner, seed=f"{spec.target}/{spec.turns}"),
        first=digest(spec.target) % 2,
    )
    row["messages"] = plant(spec.faults, row["messages"], world)
    if "leading_system" in spec.faults:
        row["system_prompt"] = ""
    return row


_worlds: dict[str, World] = {}


def _world(name: str) -> World:
    if name not in _worlds:
        pages, _, thoughts = name.partition("/")
        _worlds[name] = load_world(pages, thoughts=thoughts or None)
    return _worlds[name]


def _question(world: World, spec: Spec) -> Question:
    anchor = None if spec.clues == "own" else _anchor(world, world.named(spec.target)).name
    return ask(
        world,
        spec.target,
        spec.asked,
        anchor=anchor,
        by_maker=spec.clues == "full",
        frame=digest(spec.target),
    )


def _anchor(world: World, target: Thing) -> Thing:
    """A thing of another kind from about the same time."""
    others = [
        thing
        for thing in world.things
        if thing.kind not in (target.kind, "person")
        and thing.maker_id != (target.maker_id or "-")
        and thing.maker_id != (target.id or "-")
    ]
    others.sort(key=lambda thing: (abs(thing.year - target.year), digest(thing.name)))
    return others[digest(target.name) % 3]


def _append_odd_rows(lines: list[str], twin: Row, truth: list[dict[str, Any]]) -> None:
    """Records that are no trajectory, and one that is the same as another."""
    whole = _line(twin)
    without = {"meta": twin["meta"], "messages": None, "system_prompt": twin["system_prompt"]}
    for kind, line in (
        ("not_json", whole[: len(whole) // 3].rstrip("\\") + "\n"),
        ("no_messages", _line(without)),
        ("duplicate_row", whole),
    ):
        truth.append(_truth("damaged.jsonl", len(lines), (kind,)))
        lines.append(line)


def _truth(file: str, row: int, kinds: tuple[str, ...]) -> dict[str, Any]:
    return {"file": file, "row": row, "kinds": list(kinds), "expected": fate_of(kinds)}


# --- rollouts -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One rollout of a question, and how it ends."""

    turns: int
    settles_for: str | None = None
    end: Literal["answered", "unfinished", "unanswered", "ordered"] = "answered"


ROLLOUTS = [
    (
        Spec("coast", "Dunmarrow Shoal", "extra", 0),
        [Sample(12), Sample(27), Sample(24, settles_for="Ardholm Sound"), Sample(17)],
    ),
    (
        Spec("coast", "Lorne Staithe Quay", "maker_place", 0),
        [Sample(11), Sample(26, end="unfinished"), Sample(21), Sample(30, end="ordered")],
    ),
    (
        Spec("saltway", "盐塘站", "extra", 0),
        [Sample(13), Sample(18, settles_for="临汐站"), Sample(28), Sample(25, end="unanswered")],
    ),
]


def _write_rollouts(folder: Path) -> None:
    """Two questions as a file a rollout, one as a file of lines."""
    system = _system_prompt()
    for number, (spec, samples) in enumerate(ROLLOUTS):
        world = _world(spec.world)
        question = _question(world, spec)
        rows = [
            _make_rollout(world, question, sample, index, system)
            for index, sample in enumerate(samples)
        ]
        if number == len(ROLLOUTS) - 1:
            _write_text(folder / f"question-{number}.jsonl", "".join(map(_line, rows)))
            continue
        for index, row in enumerate(rows):
            text = json.dumps(row, ensure_ascii=False, indent=1) + "\n"
            _write_text(folder / f"question-{number}-sample-{index}.json", text)


def _make_rollout(world: World, question: Question, sample: Sample, index: int, system: str) -> Row:
    manner = Manner(
        turn_count=sample.turns,
        answer_style="bold" if index % 2 else "plain",
        indirect=sample.turns > 16,
        settles_for=sample.settles_for,
    )
    seed = f"{question.target.name}/{index}"
    request = hashlib.md5(seed.encode(), usedforsecurity=False).hexdigest()
    row = rollout(research(world, question, manner, seed), system, request, index)
    messages = row["messages"]
    if sample.end == "ordered":
        order = world.voice["observation"]["order"]
        forced(messages, world).insert(len(messages) - 1, {"role": "user", "content": order})
    elif sample.end != "answered":
        # The limit came behind an observation, or behind a call that was not run any more.
        del messages[-1 if sample.end == "unfinished" else -2 :]
        turns = sum(message["role"] == "assistant" for message in messages)
        row |= {"turn": turns - 1, "num_turns": turns, "finished": False, "reward": 0.0}
    return row


def _system_prompt() -> str:
    """The shipped prompt with the shipped tools."""
    pipelines = HERE.parent / "pipelines"
    tools = yaml.safe_load((pipelines / "tools" / "search_visit.yaml").read_text("utf-8"))
    prompt = (pipelines / "prompts" / "research_assistant.md").read_text("utf-8")
    prompt = prompt.replace("{current_date}", "2026-03-01")
    return prompt.replace("{tools}", "\n".join(ToolSet(tools=tools).declarations))


# --- files --------------------------------------------------------------------------------------


def _write_jsonl(path: Path, specs: Iterable[Spec], truth: list[dict[str, Any]]) -> list[Row]:
    rows = []
    for number, spec in enumerate(specs):
        rows.append(_make_row(spec))
        truth.append(_truth(path.name, number, spec.faults))
    _write_text(path, "".join(map(_line, rows)))
    return rows


def _write_parquet(path: Path, specs: Iterable[Spec], truth: list[dict[str, Any]]) -> None:
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    meta = pa.struct([("question", pa.string()), ("answer", pa.string())])
    schema = pa.schema(
        [("meta", meta), ("messages", pa.list_(message)), ("system_prompt", pa.string())]
    )
    rows = []
    for number, spec in enumerate(specs):
        rows.append(_make_row(spec))
        truth.append(_truth(path.name, number, spec.faults))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), path, compression="zstd")


def _line(row: Row) -> str:
    """The row as one line; half a character stays an escape, which UTF-8 cannot hold."""
    text = json.dumps(row, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
