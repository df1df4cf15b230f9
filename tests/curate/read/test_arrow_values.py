import datetime as dt
import decimal
import uuid
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from trajcurate.curate.read.arrow_values import python_values, text_marks, texts_in

UTC = dt.UTC
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.large_string())])

CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (pa.string(), ["007", None, "1931-05-04"], ["007", None, "1931-05-04"]),
    (pa.string_view(), ["a", None], ["a", None]),
    (pa.binary(), ["é".encode(), None], ["é", None]),
    (pa.large_binary(), [b"a", None], ["a", None]),
    (pa.binary(2), [b"ab", None], ["ab", None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"], ["a", None, "a"]),
    (pa.null(), [None, None], [None, None]),
    (pa.int64(), [1, None], [1, None]),
    (pa.float32(), [1.5, None], [1.5, None]),
    (pa.bool_(), [True, None, False], [True, None, False]),
    (pa.date32(), [dt.date(1931, 5, 4), None], ["1931-05-04", None]),
    (pa.date64(), [dt.date(1931, 5, 4), None], ["1931-05-04", None]),
    (pa.timestamp("s"), [dt.datetime(1931, 5, 4), None], ["1931-05-04T00:00:00", None]),
    (pa.timestamp("us"), [dt.datetime(2020, 1, 2, 3, 4, 5, 600000)], ["2020-01-02T03:04:05.6"]),
    (pa.timestamp("ns"), [1], ["1970-01-01T00:00:00.000000001"]),
    (pa.timestamp("ms", "UTC"), [dt.datetime(2020, 1, 2, tzinfo=UTC)], ["2020-01-02T00:00:00Z"]),
    (pa.timestamp("s", "America/New_York"), [0, None], ["1970-01-01T00:00:00Z", None]),
    (pa.time64("ns"), [1_000_000_000], ["00:00:01"]),
    (pa.duration("us"), [dt.timedelta(seconds=1), None], [1_000_000, None]),
    (pa.decimal128(10, 2), [decimal.Decimal("12.30"), None], ["12.30", None]),
    (pa.decimal128(20, 10), [decimal.Decimal("1E-10")], ["0.0000000001"]),
    (pa.month_day_nano_interval(), [(1, 2, 3), None], [str(pa.MonthDayNano([1, 2, 3])), None]),
    (pa.uuid(), [uuid.UUID(int=1).bytes, None], ["00000000-0000-0000-0000-000000000001", None]),
    (pa.json_(), ['{"a": 1}', None], ['{"a": 1}', None]),
    (MESSAGE, [{"role": "user"}, None], [{"role": "user", "content": None}, None]),
    (pa.struct([]), [{}, None], [{}, None]),
    (pa.list_(pa.date32()), [[dt.date(2020, 1, 2)], None, []], [["2020-01-02"], None, []]),
    (pa.large_list(MESSAGE), [[None, {"role": "a"}]], [[None, {"role": "a", "content": None}]]),
    (pa.list_(pa.string(), 2), [["a", "b"], None, ["c", "d"]], [["a", "b"], None, ["c", "d"]]),
    (pa.map_(pa.string(), pa.int8()), [[("k", 1)], None, []], [{"k": 1}, None, {}]),
    (pa.map_(pa.string(), pa.int8()), [[("k", 1), ("l", None)]], [{"k": 1, "l": None}]),
    (pa.map_(pa.int64(), pa.date32()), [[(1, dt.date(2020, 1, 2))]], [{"1": "2020-01-02"}]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "expected"), CASES, ids=lambda part: str(part)[:40])
def test_arrow_values_become_what_json_can_hold(
    kind: Any, given: list[Any], expected: list[Any]
) -> None:
    array = pa.array(given, kind)
    assert python_values(array) == expected
    assert [type(v) for v in python_values(array)] == [type(v) for v in expected]


@pytest.mark.parametrize(("kind", "given", "expected"), CASES, ids=lambda part: str(part)[:40])
def test_a_slice_holds_its_own_values_only(
    kind: Any, given: list[Any], expected: list[Any]
) -> None:
    array = pa.array(given * 3, kind)
    for start in range(len(array)):
        assert python_values(array.slice(start, 2)) == (expected * 3)[start : start + 2]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()],
    ids=str,
)
def test_bytes_that_are_not_utf8_are_refused_or_escaped(kind: Any) -> None:
    is_large = kind in (pa.large_string(), pa.large_binary())
    raw = pa.array([b"ok", b"\xff\xfe"], pa.large_binary() if is_large else pa.binary())
    array = raw.cast(pa.binary_view()).view(kind) if kind == pa.string_view() else raw.view(kind)
    with pytest.raises(UnicodeDecodeError):
        python_values(array)
    nested = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), array)
    assert python_values(nested, "surrogateescape") == [["ok", "\udcff\udcfe"]]


def test_marks_give_the_bytes_of_text_of_each_row() -> None:
    kind = pa.list_(MESSAGE)
    array = pa.array(
        [
            [{"role": "user", "content": "é"}],
            None,
            [],
            [{"role": "a", "content": "b" * 10}, {"role": None, "content": "c"}],
        ],
        kind,
    )
    marks = text_marks(array, range(5))
    assert [end - start for start, end in pairwise(marks)] == [6, 0, 0, 12]
    marks = text_marks(array.slice(1, 3), range(4))
    assert [end - start for start, end in pairwise(marks)] == [0, 0, 12]


def test_marks_of_a_slice_start_where_it_does() -> None:
    array = pa.array(["a", "bb", "cccc", None]).slice(1, 3)
    assert [end - start for start, end in pairwise(text_marks(array, range(4)))] == [2, 4, 0]


def test_marks_of_a_map_count_keys_and_items() -> None:
    array = pa.array([[("key", "item")], [("k", None)]], pa.map_(pa.string(), pa.string()))
    assert text_marks(array, range(3)) == [0, 7, 8]


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string()), pa.struct([])], ids=str)
def test_marks_of_an_empty_array_are_zero(kind: Any) -> None:
    assert text_marks(pa.array([], kind), range(1)) == [0]


def test_texts_of_a_row_do_not_depend_on_where_it_stands() -> None:
    rows = [[{"role": "user", "content": "q"}], [{"role": "a", "content": None}, None]]
    long = pa.array([*rows, *rows], pa.list_(MESSAGE))
    for i, row in enumerate([*rows, *rows]):
        alone = pa.array([row], pa.list_(MESSAGE))
        assert list(texts_in(long.slice(i, 1))) == list(texts_in(alone))
    assert [bytes(text) for text in texts_in(long.slice(2, 1))] == [b"user", b"q"]
