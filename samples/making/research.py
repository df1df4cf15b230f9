"""An agent that researches a question in an invented world, one turn after another."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trajcurate.samples.making.browse import Hit, Observation, Reading, Results, Searcher
from trajcurate.samples.making.question import Question, find_answer, relation
from trajcurate.samples.making.world import Page, Thing, World, capital, say

Move = Callable[[], None]

RECAP_AFTER = 7  # candidates between two looks back
MOST_TURNS_A_CANDIDATE = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """A thought, a call, and what came back."""

    thought: str
    tool: str
    arguments: dict[str, Any]
    observation: Observation


@dataclass(frozen=True, slots=True)
class Research:
    """A question worked on to the end."""

    question: Question
    turns: tuple[Turn, ...]
    final_thought: str
    answer: str  # as it is written
    evidence: str  # how the clues fit together
    is_right: bool


@dataclass(frozen=True, slots=True)
class Manner:
    """How an agent works."""

    turn_count: int
    answer_style: str = "plain"
    indirect: bool = False  # the target cannot be found by its own clue
    hits: tuple[int, int] = (3, 5)
    evidence_rate: float = 0.6  # share of visits that quote the page
    settles_for: str | None = None  # a wrong candidate that ends the research


def research(world: World, question: Question, manner: Manner, seed: str) -> Research:
    """Work on a question in exactly `manner.turn_count` turns, the answer turn included.

    Raises:
        ValueError: the question cannot be answered in as few turns, or filled with as many.
    """
    return _Agent(world, question, manner, random.Random(seed)).work()


@dataclass
class _Agent:
    world: World
    question: Question
    manner: Manner
    rng: random.Random
    turns: list[Turn] = field(default_factory=list)
    news: list[str] = field(default_factory=list)  # what the last observation said
    used: set[str] = field(default_factory=set)  # queries and goals
    rejected: list[str] = field(default_factory=list)
    banks: dict[str, list[str]] = field(default_factory=dict)
    year: int | None = None
    maker: Thing | None = None

    def __post_init__(self) -> None:
        self.searcher = Searcher(self.world, self.rng, hits=self.manner.hits)
        self.voice = self.world.voice
        self.target = self.question.target

    def work(self) -> Research:
        for move in self._plan():
            move()
        if len(self.turns) != self.manner.turn_count - 1:
            raise ValueError(f"{len(self.turns) + 1} turns, not {self.manner.turn_count}")
        return self._conclude()

    # --- the plan -------------------------------------------------------------------------------

    def _plan(self) -> list[Move]:
        """The moves of the research. Turns that its clues do not need go into dead ends."""
        ending, search = self._ending(), self._search()
        ways = self._ways_in()
        needed = sum(len(moves) for _, moves in ways) + len(search) + len(ending) + 1
        extra = self.manner.turn_count - needed
        if extra < 0:
            raise ValueError(f"{self.target.name}: needs {-extra} more turns")
        room = len(self._wrong()) * MOST_TURNS_A_CANDIDATE if search else 0
        astray = max(extra - room, extra // 6 if extra > 24 else 0)
        opening: list[Move] = []
        if not search:
            ways.append((self.target, []))
        for sought, moves in ways:
            detours = self._detours(sought, astray)
            opening += detours + moves
            astray -= len(detours)
            extra -= len(detours)
        return opening + search + self._sweep(extra) + ending

    def _ways_in(self) -> list[tuple[Thing, list[Move]]]:
        """For each clue that leads to the target: what it hides, and how to find it."""
        ways: list[tuple[Thing, list[Move]]] = []
        anchor = self.question.anchor
        maker = self.world.maker_of(self.target) if self.question.by_maker else None
        if anchor is not None:
            moves: list[Move] = [
                lambda: self._search_clue(anchor),
                lambda: self._visit_year(anchor),
            ]
            if self.manner.turn_count > 10:
                moves.insert(1, lambda: self._visit_story(anchor, anchor))
            ways.append((anchor, moves))
        if maker is not None:
            moves = [lambda: self._search_clue(maker), lambda: self._visit_story(maker, maker)]
            ways.append((maker, moves))
        return ways

    def _search(self) -> list[Move]:
        """Where the target's own clue does not lead to it: find a list of candidates."""
        if not self.manner.indirect:
            return []
        in_vain: Move = lambda: self._search_clue(self.target, found=False)  # noqa: E731
        return [in_vain, self._search_list, self._visit_list]

    def _ending(self) -> list[Move]:
        """From the target's name to the answer."""
        target = self.manner.settles_for and self.world.named(self.manner.settles_for)
        target = target or self.target
        moves: list[Move] = []
        if self.manner.settles_for is not None:
            moves = [lambda: self._search_name(target), lambda: self._visit_answer(target)]
        elif self.manner.indirect:
            moves = [lambda: self._search_name(target), lambda: self._visit_story(target, target)]
        else:
            moves = [lambda: self._search_clue(target), lambda: self._visit_story(target, target)]
        if self.question.anchor is not None or self.question.by_maker:
            moves.append(lambda: self._visit_fit(target))
        maker = self.world.maker_of(target)
        if self.question.asked.startswith("maker_") and maker is not None:
            if not self.question.by_maker:
                moves.append(lambda: self._search_name(maker))
            moves.append(lambda: self._visit_answer(maker))
        elif self.manner.settles_for is None:
            moves.append(lambda: self._visit_answer(target))
        return moves

    def _wrong(self) -> list[Thing]:
        """The candidates that are not the target, nor what is taken for it in the end."""
        known = (self.target.name, self.manner.settles_for)
        return [t for t in self.world.of_kind(self.target.kind) if t.name not in known]

    def _detours(self, sought: Thing, count: int) -> list[Move]:
        """A search in vain, then things that are like the one sought and are not it."""
        if count <= 0:
            return []
        others = [thing for thing in self.world.of_kind(sought.kind) if thing is not sought]
        self.rng.shuffle(others)
        moves: list[Move] = [lambda: self._search_clue(sought, found=False)]
        for thing in others:
            if len(moves) < count:
                turns = min(self.rng.choice((1, 2, 2, 3)), count - len(moves))
                moves += self._check_story(thing, sought, turns)
        return moves

    def _sweep(self, count: int) -> list[Move]:
        """Check candidates until `count` turns are spent."""
        if count <= 0:
            return []
        wrong = self._wrong() if self.manner.indirect else []
        if count > len(wrong) * MOST_TURNS_A_CANDIDATE:
            raise ValueError(f"{self.target.name}: {count} turns too many")
        per_candidate = 1.6 if count < 15 else 2.6 if count < 70 else 3.8
        number = min(len(wrong), max(1, round(count / per_candidate)))
        number = max(number, -(-count // MOST_TURNS_A_CANDIDATE))
        first = self.rng.randrange(len(wrong))
        turned = [*wrong[first:], *wrong[:first]]
        spare = turned[number:]
        spent = [1] * number
        while sum(spent) < count:
            at = self.rng.randrange(number)
            spent[at] += spent[at] < MOST_TURNS_A_CANDIDATE
        moves: list[Move] = []
        for thing, turns in zip(turned, spent):
            if turns == 1 and spare and self._flaw(thing) == self._flaw(spare[0]) == "year":
                moves.append(self._check_two(thing, spare.pop(0)))
            else:
                moves += self._check(thing, turns)
        return moves

    def _check_two(self, first: Thing, second: Thing) -> Move:
        """See with one call that two candidates have the wrong year."""
        if self.rng.random() < 0.5:
            return lambda: self._search_two(first, second)
        return lambda: self._visit_two(first, second)

    # --- candidates -----------------------------------------------------------------------------

    def _check(self, thing: Thing, turns: int) -> list[Move]:
        """See that a candidate is not the target, in so many turns; the last one shows it."""
        flaw = self._flaw(thing)
        if flaw == "fact" and turns <= 3:
            return self._check_story(thing, self.target, turns)
        site = "facts" if flaw == "maker" else self.rng.choice(("facts", "dates"))
        if flaw == "fact":
            site = "story"
        settle: Move = lambda: self._visit_flaw(thing, flaw, site)  # noqa: E731
        name: Move = lambda: self._search_name(thing)  # noqa: E731
        if turns == 1:
            if self.rng.random() < 0.5 or flaw == "maker":
                return [settle]
            return [lambda: self._search_flaw(thing, flaw)]
        if turns == 2:
            return [name, settle]
        story: Move = lambda: self._visit_story(thing, self.target)  # noqa: E731
        more: Move = lambda: self._search_more(thing, flaw)  # noqa: E731
        if flaw == "fact":
            facts: Move = lambda: self._visit_plain(thing, "facts")  # noqa: E731
            return [name, facts, more, lambda: self._visit_plain(thing, "dates"), settle][-turns:]
        timeout: Move = lambda: self._visit_timeout(thing, self.target)  # noqa: E731
        again: Move = lambda: self._visit_story(thing, self.target, again=True)  # noqa: E731
        ways = {
            3: ([name, story, settle], [name, more, settle], [more, story, settle]),
            4: (
                [name, story, more, settle],
                [more, name, story, settle],
                [name, timeout, again, settle],
            ),
            5: (
                [name, story, more, more, settle],
                [more, name, story, more, settle],
                [name, timeout, again, more, settle],
            ),
        }
        return self.rng.choice(ways[turns])

    def _check_story(self, thing: Thing, sought: Thing, turns: int) -> list[Move]:
        """See by its story that a thing is not the one that is sought."""
        is_listed = self.manner.indirect and sought is self.target
        intent = "search_name" if is_listed else "guess"
        story: Move = lambda: self._visit_story(thing, sought)  # noqa: E731
        if turns == 1:
            return [lambda: self._search_story(thing, sought, intent)]
        name: Move = lambda: self._search_name(thing, intent)  # noqa: E731
        if turns == 2:
            return [name, story]
        again: Move = lambda: self._visit_story(thing, sought, again=True)  # noqa: E731
        return [name, lambda: self._visit_timeout(thing, sought), again]

    def _flaw(self, thing: Thing) -> str:
        """Which clue a candidate does not fit."""
        if self.question.anchor is not None and thing.year != self.target.year:
            return "year"
        if self.question.by_maker and thing.maker != self.target.maker:
            return "maker"
        return "fact"

    # --- searches -------------------------------------------------------------------------------

    def _search_clue(self, thing: Thing, *, found: bool = True) -> None:
        words = self._words(thing)
        kind = self.voice["kind"][thing.kind]
        queries = [say(self.world.language, kind["key"], words), thing.hint, thing.tag]
        intent = "search_clue" if self._is_new(queries[0]) else "search_clue_again"
        query = self._unused(queries, thing)
        page = self.world.page(thing, "story")
        if not found:
            fate = self.rng.random()
            if fate < 0.15:
                results = Results(query, failure=self._observed("search_failed", {"query": query}))
                self._turn(intent, words, "search", query, (results,))
                self._hear("failed", words)
                return
            if fate < 0.35:
                self._turn(intent, words, "search", query, (Results(query),))
                self._hear("zero", words)
                return
            results = self.searcher.search(query, hidden=thing)
            self._turn(intent, words, "search", query, (results,))
            self._hear("miss", words)
            return
        results = self.searcher.search(query, shown=page, attributes=("fact",))
        self._turn(intent, words, "search", query, (results,), follow=self._next_clue(thing))
        self._hear("hit", words | {"title": page.title})

    def _next_clue(self, thing: Thing) -> str:
        """A word on the clue that comes after this one."""
        if thing is self.target or self.manner.turn_count > 50:
            return ""
        maker = self.world.maker_of(self.target) if self.question.by_maker else None
        later = maker if maker not in (None, thing) and self.maker is None else self.target
        assert later is not None
        return self._phrase("next_clue", self._words(later))

    def _search_name(self, thing: Thing, intent: str = "search_name") -> None:
        words = self._words(thing)
        query = self._query(thing, "name")
        shown = self.world.page(thing, "facts")
        results = [self.searcher.search(query, shown=shown)]
        queries = [query]
        if len(self.turns) > 3 and self.rng.random() < 0.12:
            second = self._query(thing, "year")
            queries.append(second)
            results.append(self._vain_results(second, thing))
        self._turn(intent, words, "search", queries, tuple(results))
        self._hear("lead_only", words)

    def _vain_results(self, query: str, thing: Thing) -> Results:
        if self.rng.random() < 0.4:
            return Results(query, failure=self._observed("search_failed", {"query": query}))
        return self.searcher.search(query, hidden=thing)

    def _search_more(self, thing: Thing, flaw: str) -> None:
        words = self._words(thing)
        query = self._query(thing, "maker" if flaw == "maker" else "year")
        results = self.searcher.search(query, hidden=thing)
        self._turn("search_more", words, "search", query, (results,))
        self._hear("miss_more", words)

    def _search_flaw(self, thing: Thing, flaw: str) -> None:
        words = self._words(thing)
        query = self._query(thing, "name")
        shown = self.world.page(thing, "facts" if flaw != "fact" else "story")
        attributes = ("lead", flaw) if flaw != "fact" else ("fact",)
        results = self.searcher.search(query, shown=shown, attributes=attributes)
        self._turn("search_name", words, "search", query, (results,))
        self._reject(thing, flaw)

    def _search_story(self, thing: Thing, sought: Thing, intent: str) -> None:
        words = self._words(thing)
        query = self._query(thing, "name")
        shown = self.world.page(thing, "story")
        results = self.searcher.search(query, shown=shown, attributes=("fact",))
        self._turn(intent, words, "search", query, (results,))
        self._dismiss(thing, sought)

    def _search_list(self) -> None:
        kind = self.voice["kind"][self.target.kind]
        query = self._unused(kind["list"]["queries"], self.target)
        results = self.searcher.search(query, hidden=self.target)
        entry = Hit(kind["list"]["title"], kind["list"]["url"], "")
        hits = (*results.hits[:1], entry, *results.hits[2:])
        self._turn("search_list", {}, "search", query, (Results(query, hits),))

    def _search_two(self, first: Thing, second: Thing) -> None:
        results = [self._results_on_year(thing) for thing in (first, second)]
        queries = [result.query for result in results]
        self._turn("search_batch", self._names(first, second), "search", queries, tuple(results))
        for thing in (first, second):
            self._reject(thing, "year")

    def _results_on_year(self, thing: Thing) -> Results:
        query = self._query(thing, "year")
        shown = self.world.page(thing, "facts")
        return self.searcher.search(query, shown=shown, attributes=("lead", "year"))

    def _visit_two(self, first: Thing, second: Thing) -> None:
        names = self._names(first, second)
        goal = say(self.world.language, self.voice["goal"]["year"][0], {"name": names["names"]})
        readings = tuple(
            self._reading(self.world.page(thing, "dates"), goal, ("lead", "year"), None)
            for thing in (first, second)
        )
        urls = [reading.url for reading in readings]
        self._turn("visit_two", names, "visit", urls, readings, goal)
        for thing in (first, second):
            self._reject(thing, "year")

    def _names(self, *things: Thing) -> dict[str, Any]:
        return {"names": self.voice["list_join"].join(thing.name for thing in things)}

    # --- visits ---------------------------------------------------------------------------------

    def _visit_list(self) -> None:
        kind = self.voice["kind"][self.target.kind]
        entry = self.voice["observation"]["list_entry"]
        things = self.world.of_kind(self.target.kind)
        names = [say(self.world.language, entry, self._words(thing)) for thing in things]
        joined = self.voice["list_join"].join(names)
        goal = self._unused(self.voice["goal"]["list"], self.target)
        summary = f"{kind['list']['lead']}\n{joined}"
        reading = Reading(kind["list"]["url"], goal, None, summary)
        self._turn("visit_list", {}, "visit", kind["list"]["url"], (reading,), goal)
        some = self.voice["list_join"].join(thing.name for thing in things[:3])
        self._hear(
            "list_read",
            {
                "count": len(things),
                "names": some,
                "first": things[0].name,
                "last": things[-1].name,
            },
        )

    def _visit_story(self, thing: Thing, sought: Thing, *, again: bool = False) -> None:
        words = self._words(thing) | {"tag": sought.tag}
        page = self.world.page(thing, "story")
        intent = "visit_again" if again else "visit"
        is_found = thing is sought
        self._visit(page, intent, "again" if again else "fact", words, ("lead", "fact"), sought)
        if not is_found:
            self._dismiss(thing, sought)
            return
        self._hear("fact_match", self._words(thing))
        if thing.kind == "person" and self.question.by_maker and self.maker is None:
            self.maker = thing
            self._hear("maker_known", words)

    def _visit_year(self, anchor: Thing) -> None:
        page = self.world.page(anchor, "facts")
        words = self._words(anchor)
        self._visit(page, "visit", "year", words, ("lead", "year"), None)
        self.year = self.target.year
        got, related = self._got(anchor, ("year",)), self._relation(anchor)
        self._hear("year_known", words | {"got": got, "relation": related, "year": self.year})

    def _relation(self, anchor: Thing) -> str:
        template, count = relation(self.world, self.target, anchor, "relation_")
        return say(self.world.language, self.voice["think"][template], count)

    def _visit_fit(self, thing: Thing) -> None:
        page = self.world.page(thing, "facts")
        words = self._words(thing)
        self._visit(page, "confirm", "year", words, ("lead", "year", "maker"), None)
        attributes = ["year"] if self.question.anchor is not None else []
        if self.question.by_maker:
            attributes.append("maker")
        key = "learned" if self.manner.settles_for else "fits"
        self._hear(key, words | {"got": self._got(thing, attributes)})

    def _visit_answer(self, thing: Thing) -> None:
        asked = self.question.asked.removeprefix("maker_")
        pages = [
            self.world.page(thing, site)
            for site in ("dates", "facts", "story")
            if asked in self.world.page(thing, site).sentences
        ]
        purpose = asked if asked in self.voice["goal"] else "extra"
        words = self._words(thing)
        is_open = any(pages[0].url in turn.arguments.get("url", ()) for turn in self.turns)
        intent = "visit_again" if is_open else "confirm"
        self._visit(pages[0], intent, purpose, words, ("lead", asked), None)
        self._hear("learned", words | {"got": self._got(thing, (asked,))})

    def _visit_flaw(self, thing: Thing, flaw: str, site: str) -> None:
        page = self.world.page(thing, site)
        purpose = flaw if flaw in ("year", "maker") else "fact"
        words = self._words(thing) | {"tag": self.target.tag}
        self._visit(page, "visit", purpose, words, ("lead", flaw), None)
        self._reject(thing, flaw)

    def _visit_plain(self, thing: Thing, site: str) -> None:
        page = self.world.page(thing, site)
        words = self._words(thing)
        self._visit(page, "visit", "year", words, ("lead", "year"), None)
        self._hear("learned", words | {"got": self._got(thing, ("year",))})

    def _visit_timeout(self, thing: Thing, sought: Thing) -> None:
        page = self.world.page(thing, "story")
        words = self._words(thing) | {"tag": sought.tag} | self._site(page)
        goal = self._goal("fact", words)
        failure = self._observed(self.rng.choice(("timed_out", "visit_failed")), {})
        reading = Reading(page.url, goal, failure=failure)
        self._turn("visit", words, "visit", page.url, (reading,), goal)
        self._hear("timeout", words)

    def _visit(
        self,
        page: Page,
        intent: str,
        purpose: str,
        words: dict[str, Any],
        told: Sequence[str],
        sought: Thing | None,
    ) -> None:
        goal = self._goal(purpose, words)
        reading = self._reading(page, goal, told, sought)
        self._turn(intent, words | self._site(page), "visit", page.url, (reading,), goal)

    def _reading(self, page: Page, goal: str, told: Sequence[str], sought: Thing | None) -> Reading:
        """What a visit makes of a page: `told` are the facts of its summary."""
        evidence = None
        if self.rng.random() < self.manner.evidence_rate:
            evidence = self.voice["join"].join([*page.sentences.values(), page.filler])
        facts = self.voice["join"].join(
            self._fact(page.thing, attribute) for attribute in told if attribute in page.sentences
        )
        templates = self.voice["observation"]["summary"]
        template, silent = self.rng.choice(templates), self._observed("silent", {})
        if sought is not None and sought is not page.thing:
            template, silent = templates[1], self._observed("silent_fact", {"tag": sought.tag})
        summary = say(self.world.language, template, {"facts": facts, "silent": silent})
        return Reading(page.url, goal, evidence, summary)

    def _site(self, page: Page) -> dict[str, str]:
        site = self.voice["site"][page.thing.kind][page.site]
        return {"site": site, "Site": capital(site)}

    # --- thoughts -------------------------------------------------------------------------------

    def _turn(
        self,
        intent: str,
        words: dict[str, Any],
        tool: str,
        target: str | list[str],
        observation: Observation,
        goal: str | None = None,
        *,
        follow: str = "",
    ) -> None:
        intended = self._phrase(intent, words)
        if follow:
            intended += self.voice["between"] + follow
        if self.turns:
            thought = self._join(self.news, intended)
        else:
            thought = f"{self._open()}\n\n{intended}"
        self.news = []
        values = target if isinstance(target, list) else [target]
        arguments: dict[str, Any] = {"query": values}
        if tool == "visit":
            arguments = {"url": values, "goal": goal}
        signature = f"{tool} {sorted(values)} {goal}"
        if signature in self.used:
            raise ValueError(f"{self.target.name}: made twice: {signature}")
        self.used.add(signature)
        self.turns.append(Turn(thought, tool, arguments, observation))

    def _open(self) -> str:
        """Take the question apart."""
        clues = self.question.clues
        words = self._words(self.target) | {"ask": self.question.ask}
        if len(clues) == 1:
            return self._phrase("open_one", words)
        numbers = self.voice["numbers"]
        count = numbers[len(clues)] if numbers else len(clues)
        return self._phrase("open", words | {"count": count, "clues": "\n".join(clues)})

    def _hear(self, key: str, words: dict[str, Any]) -> None:
        self.news.append(self._phrase(key, words))

    def _reject(self, thing: Thing, flaw: str) -> None:
        if flaw == "fact":
            self._dismiss(thing, self.target)
            return
        got = self._got(thing, (flaw,))
        need = self.target.year if flaw == "year" else self.target.maker
        words = self._words(thing) | {"got": got, "got_cap": capital(got), "need": need}
        self._hear(f"reject_{flaw}", words)
        self._recap(thing)

    def _dismiss(self, thing: Thing, sought: Thing) -> None:
        words = self._words(thing) | {"own_tag": thing.tag, "tag": sought.tag}
        self._hear("fact_no", words | {"Tag": capital(sought.tag)})
        if sought is self.target and self._flaw(thing) == "fact":
            self._recap(thing)

    def _recap(self, thing: Thing) -> None:
        self.rejected.append(thing.name)
        left = len(self.world.of_kind(thing.kind)) - len(self.rejected)
        if len(self.rejected) % RECAP_AFTER == 0 and left > 1:
            names = self.voice["list_join"].join(self.rejected[-RECAP_AFTER:])
            self._hear("recap", {"names": names, "count": left})

    def _join(self, news: Sequence[str], intended: str) -> str:
        said = self.voice["between"].join(news)
        if not said:
            return intended
        border = "\n\n" if len(said) > 160 or self.rng.random() < 0.2 else self.voice["between"]
        return f"{said}{border}{intended}"

    def _conclude(self) -> Research:
        target = self.target
        if self.manner.settles_for is not None:
            target = self.world.named(self.manner.settles_for)
        words = self._words(target)
        answer = find_answer(self.world, target, self.question.asked)
        key = f"{target.kind}.{self.question.asked}"
        answer_line = self.voice["answer_line"][key].format_map(words | {"answer": answer})
        lines = self.voice["between"].join([*self._lines(target), answer_line])
        said = self._phrase(
            "settle" if self.manner.settles_for else "final", words | {"lines": lines}
        )
        style = self.manner.answer_style
        template = self.rng.choice(self.voice["answer"][style])
        return Research(
            question=self.question,
            turns=tuple(self.turns),
            final_thought=self._join(self.news, said),
            answer=template.format_map({"answer": answer, "line": answer_line, "lines": lines}),
            evidence=self.voice["answer"]["summary"].format_map({"lines": lines}),
            is_right=target is self.target,
        )

    def _lines(self, target: Thing) -> list[str]:
        if target is not self.target:
            return []
        templates, lines = self.voice["think"], []
        anchor = self.question.anchor
        if anchor is not None:
            words = {"anchor": anchor.name, "got": self._got(anchor, ("year",)), "year": self.year}
            words["relation"] = self._relation(anchor)
            lines.append(say(self.world.language, templates["line_year"], words))
        if self.maker is not None:
            words = {"maker": self.maker.name, "maker_hint": self.maker.hint}
            lines.append(say(self.world.language, templates["line_maker"], words))
        own = {"name": target.name, "hint": target.hint}
        return [*lines, say(self.world.language, templates["line_own"], own)]

    # --- words ----------------------------------------------------------------------------------

    def _words(self, thing: Thing) -> dict[str, Any]:
        return self.world.words_of(thing) | {"Tag": capital(thing.tag)}

    def _fact(self, thing: Thing, attribute: str) -> str:
        template: str = self.voice["kind"][thing.kind]["says"][attribute][0]
        return say(self.world.language, template, self.world.words_of(thing))

    def _got(self, thing: Thing, attributes: Sequence[str]) -> str:
        kind = self.voice["kind"][thing.kind]
        words = self.world.words_of(thing)
        got = [say(self.world.language, kind["got"][attribute], words) for attribute in attributes]
        border: str = self.voice["list_join"]
        return border.join(got)

    def _observed(self, key: str, words: dict[str, Any]) -> str:
        return say(self.world.language, self.voice["observation"][key], words)

    def _phrase(self, key: str, words: dict[str, Any]) -> str:
        """The next wording of a bank; each is used before one comes again."""
        if not self.banks.get(key):
            wordings = list(self.voice["think"][key])
            self.rng.shuffle(wordings)
            self.banks[key] = wordings
        slots = {"site": "", "Site": "", "name": "", "tag": "", "Tag": ""} | words
        return say(self.world.language, self.banks[key].pop(), slots)

    def _query(self, thing: Thing, purpose: str) -> str:
        templates = self.voice["kind"][thing.kind]["looks_for"][purpose]
        words = self.world.words_of(thing)
        first = self.rng.randrange(len(templates))
        ordered = templates[first:] + templates[:first]
        return self._unused([say(self.world.language, t, words) for t in ordered], thing)

    def _goal(self, purpose: str, words: dict[str, Any]) -> str:
        asked = f"{self.target.kind}.{self.question.asked}"
        asked_for = self.voice["asked_for"].get(asked, "")
        slots = {"asked_for": asked_for, "tag": self.target.tag} | words
        templates = list(self.voice["goal"][purpose])
        self.rng.shuffle(templates)
        return say(self.world.language, templates[0], slots)

    def _is_new(self, text: str) -> bool:
        return text not in self.used

    def _unused(self, texts: Sequence[str], thing: Thing) -> str:
        """The first text that was not used yet, or a longer one that was not."""
        candidates = [*texts, *(f"{text} {thing.place}" for text in texts)]
        text = next((t for t in candidates if t not in self.used), None)
        if text is None:
            text = f"{texts[0]} {len(self.used)}"
        self.used.add(text)
        return text
