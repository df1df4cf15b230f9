"""An invented world: things with facts, and the pages that tell of them."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Thing:
    """A lighthouse, a person, a book: whatever has pages of its own."""

    kind: str
    number: int
    name: str
    place: str
    year: int
    form: str
    extra: str
    fact: str
    hint: str  # continues a noun
    tag: str  # the fact in a few words
    maker: str = ""
    maker_id: str = ""
    id: str = ""
    end: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A web page. `sentences` are by attribute, in the order in which they stand."""

    site: str
    title: str
    url: str
    sentences: Mapping[str, str]
    filler: str
    thing: Thing
    date: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Noise:
    """A page about something else, as a search shows it."""

    title: str
    url: str
    snippet: str
    date: str | None = None
    source: str | None = None


class World:
    """The things of one world, and how its people word them."""

    def __init__(self, name: str, voice: Mapping[str, Any]) -> None:
        self.voice = voice
        self.language: str = voice["language"]
        data = tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))
        self.noise = [Noise(**entry) for entry in data.pop("noise")]
        names = {entry["id"]: entry["name"] for entry in data["person"]}
        self._things = {
            kind: [_read_thing(kind, number, entry, names) for number, entry in enumerate(entries)]
            for kind, entries in data.items()
        }

    def of_kind(self, kind: str) -> list[Thing]:
        """All things of a kind, in the order of their list page."""
        return self._things.get(kind, [])

    def named(self, name: str) -> Thing:
        """The thing of that name.

        Raises:
            KeyError: there is none.
        """
        found = [thing for thing in self.things if thing.name == name]
        if len(found) != 1:
            raise KeyError(name)
        return found[0]

    def maker_of(self, thing: Thing) -> Thing | None:
        """The person who made it, if that person has pages."""
        return next((p for p in self.of_kind("person") if p.id and p.id == thing.maker_id), None)

    @cached_property
    def things(self) -> list[Thing]:
        """Everything there is."""
        return [thing for things in self._things.values() for thing in things]

    @cached_property
    def towns(self) -> list[str]:
        """The places, each once."""
        return list(dict.fromkeys(thing.place for thing in self.things if thing.kind != "ship"))

    @cached_property
    def pages(self) -> list[Page]:
        """All pages about things."""
        return [self._write_page(thing, site) for thing, site in self._sites()]

    @cached_property
    def _by_site(self) -> dict[tuple[str, str, str], Page]:
        return {(p.thing.kind, p.thing.name, p.site): p for p in self.pages}

    def page(self, thing: Thing, site: str) -> Page:
        """The page about a thing on one of the three sites: facts, dates, story."""
        return self._by_site[thing.kind, thing.name, site]

    def noise_at(self, number: int, town: str) -> Noise:
        """A page about something else, set in a town."""
        noise = self.noise[number % len(self.noise)]
        slots = {"town": town, "slug": slug(town) or f"p{digest(town) % 900 + 100}"}
        fields = (noise.title, noise.url, noise.snippet)
        title, url, snippet = (text.format_map(slots) for text in fields)
        return Noise(title, url, snippet, noise.date, noise.source)

    def words_of(self, thing: Thing) -> dict[str, Any]:
        """What templates may say of a thing."""
        kind = self.voice["kind"][thing.kind]
        key = digest(f"{thing.kind}/{thing.name}")
        words = {
            "name": thing.name,
            "place": thing.place,
            "year": thing.year,
            "form": thing.form,
            "extra": thing.extra,
            "fact": thing.fact,
            "hint": thing.hint,
            "tag": thing.tag,
            "bare_tag": thing.tag.removeprefix("the "),
            "maker": thing.maker,
            "end": thing.end,
            "size": thing.size,
            "noun": kind["noun"],
            "wiki": thing.name.replace(" ", "_").replace(",", ""),
            "slug": slug(thing.name) or f"{thing.kind[0]}{thing.number + 1:02d}",
            "place_slug": slug(thing.place),
            "form_slug": slug(thing.form) or "w",
            "number": 100 + 31 * thing.number + key % 31,
        }
        return words | {"own": say(self.language, kind["thing"], words)}

    def _sites(self) -> Iterator[tuple[Thing, str]]:
        for thing in self.things:
            for page in self.voice["kind"][thing.kind]["pages"]:
                yield thing, page["site"]

    def _write_page(self, thing: Thing, site: str) -> Page:
        kind = self.voice["kind"][thing.kind]
        (form,) = (page for page in kind["pages"] if page["site"] == site)
        words = self.words_of(thing)
        # Each site words a fact in its own way.
        wording = ("facts", "dates", "story").index(site)
        key = digest(f"{site}/{thing.kind}/{thing.name}")
        dates, sources = self.voice["dates"], self.voice["sources"]
        return Page(
            site=site,
            title=say(self.language, form["title"], words),
            url=say(self.language, form["url"], words),
            sentences={
                attribute: say(self.language, kind["says"][attribute][wording], words)
                for attribute in form["shows"]
                if words.get(attribute, "") is not None
            },
            filler=kind["filler"][key % len(kind["filler"])],
            thing=thing,
            date=dates[key % len(dates)] if key % 5 < 2 else None,
            source=sources[key % len(sources)] if key % 7 == 0 else None,
        )


def load_world(name: str, *, thoughts: str | None = None) -> World:
    """One of the worlds `coast` (English), `saltway` (Chinese) and `inlet` (Japanese).

    Args:
        name: the world.
        thoughts: the language of the thoughts, if it is not that of the pages.
    """
    language = {"coast": "en", "saltway": "zh", "inlet": "ja"}[name]
    voice = _load_voice(language)
    if thoughts is not None:
        other = _load_voice(thoughts)
        voice |= {key: other[key] for key in ("think", "between", "system")}
        voice["site"] = dict.fromkeys(voice["kind"], other["site"]["abroad"])
    return World(name, voice)


def say(language: str, template: str, words: Mapping[str, Any]) -> str:
    """Fill a template; in English the article follows the word."""
    text = template.format_map(words)
    return _ARTICLE.sub(r"\1n ", text) if language == "en" else text


def capital(text: str) -> str:
    """The text with a capital in front."""
    return text[:1].upper() + text[1:]


def slug(text: str) -> str:
    """The text as it may stand in a URL; empty if nothing of it may."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def digest(text: str) -> int:
    """A number that depends on nothing but the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio])")


def _load_voice(language: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"voice_{language}.toml").read_text("utf-8"))


def _read_thing(
    kind: str, number: int, entry: Mapping[str, Any], names: Mapping[str, str]
) -> Thing:
    fields = dict(entry)
    maker = fields.pop("maker", "")
    maker_id = maker[1:] if maker.startswith("@") else ""
    return Thing(
        kind=kind,
        number=number,
        maker=names[maker_id] if maker_id else maker,
        maker_id=maker_id,
        **fields,
    )
