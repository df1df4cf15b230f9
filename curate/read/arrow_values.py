"""Arrow arrays to the values a JSON record would hold: texts, numbers, lists and dicts.

Types with no form in JSON become text: dates and times in ISO form (instants in UTC, with `Z`),
decimals digit by digit, UUIDs. Binary columns are text when they are UTF-8.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

_FRACTION_ZEROS = re.compile(r"(\.\d*?)0+$")


def python_values(array: Any, errors: str = "strict") -> list[Any]:
    """The values of an array, None for nulls.

    Args:
        array: an Arrow array, sliced or not.
        errors: how bytes that are not UTF-8 are decoded, as for `bytes.decode`.

    Raises:
        UnicodeDecodeError: a text is not UTF-8 and `errors` is strict.
    """
    kind = array.type
    if pt.is_string(kind) or pt.is_large_string(kind):
        if errors == "strict":
            return list(array.to_pylist())
        return _decoded(array, errors)
    if pt.is_struct(kind):
        return _structs(array, errors)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _lists(array, errors)
    if pt.is_map(kind):
        return _maps(array, errors)
    if pt.is_dictionary(kind):
        return python_values(array.dictionary_decode(), errors)
    if isinstance(kind, pa.UuidType):
        return [None if value is None else str(value) for value in array.to_pylist()]
    if isinstance(kind, pa.BaseExtensionType):
        return python_values(array.storage, errors)
    if _is_bytes(kind):
        return _decoded(array, errors)
    return _scalars(array)


def text_marks(array: Any, positions: Sequence[int]) -> list[int]:
    """How many bytes of text an array holds before each of `positions`, from its offsets alone.

    Only differences between two marks mean something. Other values count as 8 bytes.
    """
    kind = array.type
    if not len(array):
        return [0] * len(positions)
    if pt.is_struct(kind):
        fields = [text_marks(array.field(i), positions) for i in range(kind.num_fields)]
        return [sum(marks) for marks in zip(*fields)] if fields else [0] * len(positions)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind):
        offsets = _offsets(array)
        inner = [offsets[array.offset + position] for position in positions]
        if pt.is_map(kind):
            keys, items = text_marks(array.keys, inner), text_marks(array.items, inner)
            return [key + item for key, item in zip(keys, items)]
        return text_marks(array.values, inner)
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind):
        offsets = _offsets(array)
        return [offsets[array.offset + position] for position in positions]
    return [8 * position for position in positions]


def texts_in(array: Any) -> Iterator[Any]:
    """Every text in an array, in order and without copying: for a checksum of what is not kept."""
    kind = array.type
    if pt.is_struct(kind):
        for i in range(kind.num_fields):
            yield from texts_in(array.field(i))
    elif pt.is_list(kind) or pt.is_large_list(kind):
        yield from texts_in(array.flatten())
    elif pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind):
        for scalar in array:
            if scalar.is_valid:
                yield scalar.as_buffer()
    else:
        for value in python_values(array, "surrogateescape"):
            yield str(value).encode("utf-8", "surrogateescape")


def _structs(array: Any, errors: str) -> list[Any]:
    names = [field.name for field in array.type]
    if not names:
        values: list[Any] = [{} for _ in range(len(array))]
    else:
        children = [python_values(array.field(i), errors) for i in range(len(names))]
        values = [dict(zip(names, fields)) for fields in zip(*children)]
    return _with_nulls(array, values)


def _lists(array: Any, errors: str) -> list[Any]:
    if pt.is_fixed_size_list(array.type):
        width = array.type.list_size
        bounds = [width * i for i in range(array.offset, array.offset + len(array) + 1)]
    else:
        bounds = array.offsets.to_pylist()
    return _with_nulls(array, _cut(python_values(_between(array.values, bounds), errors), bounds))


def _maps(array: Any, errors: str) -> list[Any]:
    bounds = array.offsets.to_pylist()
    keys = python_values(_between(array.keys, bounds), errors)
    items = python_values(_between(array.items, bounds), errors)
    pairs = [(key if isinstance(key, str) else str(key), item) for key, item in zip(keys, items)]
    return _with_nulls(array, [dict(entries) for entries in _cut(pairs, bounds)])


def _between(values: Any, bounds: Sequence[int]) -> Any:
    return values.slice(bounds[0], bounds[-1] - bounds[0])


def _cut(values: list[Any], bounds: Sequence[int]) -> list[list[Any]]:
    first = bounds[0]
    return [values[start - first : end - first] for start, end in pairwise(bounds)]


def _with_nulls(array: Any, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    valid = array.is_valid().to_pylist()
    return [value if there else None for value, there in zip(values, valid)]


def _is_bytes(kind: Any) -> bool:
    return bool(
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_string_view(kind)
    )


def _decoded(array: Any, errors: str) -> list[Any]:
    if pt.is_string(array.type):
        array = array.view(pa.binary())
    elif pt.is_large_string(array.type):
        array = array.view(pa.large_binary())
    elif pt.is_string_view(array.type):
        array = array.view(pa.binary_view())
    return [None if v is None else v.decode("utf-8", errors) for v in array.to_pylist()]


def _scalars(array: Any) -> list[Any]:
    kind = array.type
    if pt.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        # The values are in UTC whatever the zone; naming it needs no data base of zones.
        texts = array.view(pa.timestamp(kind.unit)).cast(pa.string()).to_pylist()
        return [None if text is None else _iso(text) + zone for text in texts]
    if pt.is_date(kind) or pt.is_time(kind):
        texts = array.cast(pa.string()).to_pylist()
        return [None if text is None else _iso(text) for text in texts]
    if pt.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in array.to_pylist()]
    if pt.is_duration(kind):  # the number as it is stored; its unit is in the schema
        return list(array.view(pa.int64()).to_pylist())
    if pt.is_null(kind) or pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_floating(kind):
        return list(array.to_pylist())
    return [None if value is None else str(value) for value in array.to_pylist()]


def _iso(text: str) -> str:
    """Arrow's form of a date or time in ISO form, without the zeros its unit adds."""
    return _FRACTION_ZEROS.sub(r"\1", text).removesuffix(".").replace(" ", "T")


def _offsets(array: Any) -> Any:
    is_large = pt.is_large_list(array.type) or pt.is_large_string(array.type)
    return memoryview(array.buffers()[1]).cast("q" if is_large else "i")
