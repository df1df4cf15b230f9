"""The invented web as tools show it: what a search finds, what a visit reads, and their texts."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from trajcurate.samples.making.world import Noise, Page, Thing, World


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result."""

    title: str
    url: str
    snippet: str
    date: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """What one query found. `failure` stands in place of its block."""

    query: str
    hits: tuple[Hit, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one page gave for a goal. `failure` stands in place of all of it."""

    url: str
    goal: str
    evidence: str | None = None
    summary: str = ""
    failure: str | None = None


Observation = tuple[Results, ...] | tuple[Reading, ...]


class Searcher:
    """A small search engine with all the noise of a large one."""

    def __init__(self, world: World, rng: random.Random, *, hits: tuple[int, int]) -> None:
        self.world = world
        self.rng = rng
        self.hits = hits  # fewest and most results of a query
        self._town = rng.randrange(len(world.towns))
        self._noise = rng.randrange(1000)

    def search(
        self,
        query: str,
        *,
        shown: Page | None = None,
        attributes: Sequence[str] = ("lead",),
        hidden: Thing | None = None,
    ) -> Results:
        """The results of a query.

        Args:
            query: the words.
            shown: a page that is among the results.
            attributes: the sentences of that page in its snippet.
            hidden: a thing of which no page is among the results.
        """
        count = self.rng.randint(*self.hits)
        known = {thing.name for thing in (hidden, shown and shown.thing) if thing}
        related = [page for page in _rank(self.world, query) if page.thing.name not in known]
        related = list({page.thing.name: page for page in reversed(related)}.values())[::-1]
        wanted = count - (shown is not None)
        related_count = min(len(related), self.rng.randint(0, wanted))
        hits = [self.hit(page, ("lead",)) for page in related[:related_count]]
        hits += [_noise_hit(self._next_noise()) for _ in range(wanted - related_count)]
        self.rng.shuffle(hits)
        if shown is not None:
            place = min(self.rng.choice((0, 0, 0, 1, 1, 2)), len(hits))
            hits.insert(place, self.hit(shown, attributes))
        return Results(query, tuple(hits))

    def hit(self, page: Page, attributes: Sequence[str]) -> Hit:
        """A page as a search shows it, with some of its sentences."""
        texts = [page.sentences[a] for a in attributes if a in page.sentences] + [page.filler]
        text = self.world.voice["join"].join(texts)
        limit = self.world.voice["snippet_length"]
        if len(text) > limit:
            text = text[:limit].rsplit(" ", 1)[0] + " ..."
        return Hit(page.title, page.url, text, page.date, page.source)

    def _next_noise(self) -> Noise:
        self._noise += 1
        towns = self.world.towns
        return self.world.noise_at(self._noise * 7, towns[(self._town + self._noise) % len(towns)])


def _noise_hit(noise: Noise) -> Hit:
    return Hit(noise.title, noise.url, noise.snippet, noise.date, noise.source)


_ranks: dict[tuple[int, str], list[Page]] = {}


def _rank(world: World, query: str) -> list[Page]:
    """The pages that share most with the query, best first."""
    key = (id(world), query)
    if key not in _ranks:
        wanted = _terms(query)
        scored = [
            (-len(wanted & _page_terms(page)), zlib.crc32(f"{query}{page.url}".encode()), at)
            for at, page in enumerate(world.pages)
        ]
        _ranks[key] = [world.pages[at] for score, _, at in sorted(scored) if score < 0]
    return _ranks[key]


def _page_terms(page: Page) -> frozenset[str]:
    return _terms(f"{page.title} {' '.join(page.sentences.values())}")


@lru_cache(maxsize=4096)
def _terms(text: str) -> frozenset[str]:
    lowered = text.lower()
    words = set(re.findall(r"[a-z]{4,}|[0-9]{4}", lowered))
    cjk = re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]+", lowered)
    return frozenset(words | {run[i : i + 2] for run in cjk for i in range(len(run) - 1)})


# --- texts --------------------------------------------------------------------------------------


def search_text(results: Iterable[Results], *, first: int = 1) -> str:
    """Results as search tools print them; `first` is the number of the first result."""
    return "\n=======\n".join(_block_text(result, first) for result in results)


def search_json(results: Iterable[Results]) -> str:
    """Results as a tool server gives them to a model that is being trained."""
    structure = [
        {
            "query": result.query,
            "web_page_info_list": [
                {"title": h.title, "url": h.url, "snippet": h.snippet, "date": h.date or ""}
                for h in result.hits
            ],
        }
        for result in results
    ]
    return json.dumps(structure, ensure_ascii=False)


def visit_text(readings: Sequence[Reading]) -> str:
    """Pages as the visit tool prints them."""
    return "\n=======\n".join(_reading_text(reading) for reading in readings)


def _block_text(result: Results, first: int) -> str:
    if result.failure is not None:
        return result.failure
    head = f"A Google search for '{result.query}' found {len(result.hits)} results:"
    entries = [_entry_text(number, hit) for number, hit in enumerate(result.hits, first)]
    return f"{head}\n\n## Web Results\n" + "\n\n".join(entries)


def _entry_text(number: int, hit: Hit) -> str:
    lines = [f"{number}. [{hit.title}]({hit.url})"]
    if hit.date:
        lines.append(f"Date published: {hit.date}")
    if hit.source:
        lines.append(f"Source: {hit.source}")
    return "\n".join(lines) + "\n" + (f"\n{hit.snippet}" if hit.snippet else "")


def _reading_text(reading: Reading) -> str:
    if reading.failure is not None:
        return reading.failure
    text = f"The useful information in {reading.url} for user goal {reading.goal} as follows: \n\n"
    if reading.evidence is not None:
        text += f"Evidence in page: \n{reading.evidence}\n\n"
    return f"{text}Summary: \n{reading.summary}"
