"""A question about one thing of a world, asked by way of other things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trajcurate.samples.making.world import Thing, World, capital, say


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what must be found on the way.

    `anchor` is a thing whose year leads to the year of the target; `by_maker` says whether the
    maker is one of the clues.
    """

    target: Thing
    asked: str
    text: str
    answer: str
    anchor: Thing | None
    by_maker: bool
    clues: tuple[str, ...]
    ask: str


def ask(
    world: World,
    name: str,
    asked: str,
    *,
    anchor: str | None = None,
    by_maker: bool = False,
    frame: int = 0,
) -> Question:
    """Ask for something of the thing called `name`.

    Args:
        world: the world.
        name: the thing.
        asked: an attribute of it, or `maker_place` and the like for one of its maker.
        anchor: the name of another thing, by which the question tells the year.
        by_maker: describe the maker.
        frame: which wording to use.

    Raises:
        ValueError: the world does not hold the answer.
    """
    target = world.named(name)
    kind = world.voice["kind"][target.kind]
    answer = find_answer(world, target, asked)
    words = world.words_of(target)
    words |= {"Own": capital(words["own"]), "ask": kind["ask"][asked]}
    clues = [_clue(world, "clue_own", words)]
    frames = kind["frames_own"]
    other = world.named(anchor) if anchor is not None else None
    if other is not None:
        words["year_clue"] = _year_clue(world, target, other)
        clues.append(_clue(world, "clue_year", words))
        frames = kind["frames_year"]
    if by_maker:
        maker = world.maker_of(target)
        if maker is None or other is None:
            raise ValueError(f"{name}: nothing is known of its maker")
        words["maker_hint"] = maker.hint
        clues.append(_clue(world, "clue_maker", words))
        frames = kind["frames"]
    return Question(
        target=target,
        asked=asked,
        text=say(world.language, frames[frame % len(frames)], words),
        answer=answer,
        anchor=other,
        by_maker=by_maker,
        clues=tuple(clues),
        ask=words["ask"],
    )


def find_answer(world: World, target: Thing, asked: str) -> str:
    """What the world says of `asked`.

    Raises:
        ValueError: nothing.
    """
    thing: Thing | None = target
    attribute = asked
    if asked.startswith("maker_"):
        thing, attribute = world.maker_of(target), asked.removeprefix("maker_")
    value = getattr(thing, attribute, None)
    if not value:
        raise ValueError(f"{target.name}: no {asked}")
    return str(value)


def relation(world: World, target: Thing, anchor: Thing, prefix: str) -> tuple[str, dict[str, Any]]:
    """The name of the template that relates two years, and the count of years for it."""
    years = target.year - anchor.year
    if years == 0:
        return f"{prefix}same", {}
    direction = "after" if years > 0 else "before"
    numbers = world.voice["numbers"]
    count = numbers[abs(years)] if abs(years) < len(numbers) else str(abs(years))
    one = "_one" if abs(years) == 1 else ""
    return f"{prefix}{direction}{one}", {"count": count}


def _year_clue(world: World, target: Thing, anchor: Thing) -> str:
    event = world.voice["kind"][anchor.kind]["event"]
    template, words = relation(world, target, anchor, "")
    event_text = say(world.language, event, world.words_of(anchor))
    return say(world.language, world.voice["year"][template], words | {"event": event_text})


def _clue(world: World, key: str, words: dict[str, Any]) -> str:
    return say(world.language, world.voice["think"][key], words)
