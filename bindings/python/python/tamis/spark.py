"""Filters in Spark: built where the data is, and asked where the data is.

>>> import tamis.spark                                                   # doctest: +SKIP
>>> buyers = tamis.spark.build(orders, "customer", capacity=10_000_000)  # doctest: +SKIP
>>> is_buyer = tamis.spark.contains(spark, buyers)                       # doctest: +SKIP
>>> visits.where(is_buyer("visitor")).join(orders, ...)                  # doctest: +SKIP

A filter that merges is built as one partial per partition, and the partials are joined in a tree.
A filter that is built once from all keys is built from their hashes, which are shuffled by shard,
so that each executor drops the repeats of its share; the driver builds it of 8 bytes a key, and its
file is the one that :func:`tamis.build` makes of the keys in one process.

The package must be installed where the executors run.
"""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf

import tamis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["build", "contains"]

#: How many partials one task joins.
_FAN_IN = 8


def build(
    frame: DataFrame,
    column: str,
    *,
    kind: str = "auto",
    capacity: int | None = None,
    fpr: float = 0.01,
    shards: int | None = None,
    **options: Any,
) -> tamis.Filter:
    """Build the filter of a column's values; nulls are left out.

    Without a kind, it is one that is built once (``capacity`` left out), or one that takes further
    keys (``capacity`` given). ``shards`` is the number of tasks that share the hashes.
    """
    keys = frame.select(sf.col(column).alias("key"))
    if kind == "auto":
        static = capacity is None
        kind = "auto" if static else tamis.Filter(capacity=capacity, fpr=fpr).kind
    else:
        can = {each.name: each.can for each in tamis.kinds()}
        if kind not in can:
            message = f"no kind of filter is called `{kind}`; `tamis.kinds()` lists those that are"
            raise tamis.BuildError(message)
        static = "insert" not in can[kind]
    if static:
        return _build_once(keys, kind, capacity, fpr, shards, options)
    empty = tamis.Filter(kind, capacity, fpr, **options)
    if "merge" not in empty.can:
        message = f"a `{kind}` does not merge, so partials of it are of no use; take another kind"
        raise tamis.UnsupportedError(message)
    return _build_partials(keys, empty)


def _build_partials(keys: DataFrame, empty: tamis.Filter) -> tamis.Filter:
    """Build one filter per partition, and join them in a tree."""

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partial = empty.copy()
        for batch in batches:
            partial.update(batch.column(0))
        yield _row(partial)

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        joined = None
        for batch in batches:
            for data in batch.column(0):
                partial = pickle.loads(data.as_py())  # noqa: S301
                if joined is None:
                    joined = partial
                else:
                    joined |= partial
        if joined is not None:
            yield _row(joined)

    partials = keys.mapInArrow(fill, "filter binary")
    parts = keys.rdd.getNumPartitions()
    while parts > _FAN_IN:
        parts = math.ceil(parts / _FAN_IN)
        partials = partials.repartition(parts).mapInArrow(join, "filter binary")
    made = empty.copy()
    for row in partials.toLocalIterator():
        made |= pickle.loads(row[0])  # noqa: S301
    return made


def _build_once(
    keys: DataFrame,
    kind: str,
    capacity: int | None,
    fpr: float,
    shards: int | None,
    options: dict[str, Any],
) -> tamis.Filter:
    """Hash where the keys are, drop repeats by shard, and build on the driver."""
    hashing = {name: options[name] for name in ("secret", "seed", "key") if name in options}
    if hashing.get("secret") == "random":
        message = "executors hash under one secret; draw it before: secrets.token_bytes(16)"
        raise ValueError(message)
    hasher = tamis.Filter(capacity=1, **hashing)

    def hashed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            hashes = hasher.hash_many(batch.column(0)).drop_null()
            # Spark has no unsigned numbers.
            yield pa.record_batch({"hash": hashes.view(pa.int64())})

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = [batch.column(0) for batch in batches]
        if columns:
            distinct = pa.chunked_array(columns).unique()
            for start in range(0, len(distinct), _MOST_HASHES):
                part = distinct.slice(start, _MOST_HASHES).to_numpy(zero_copy_only=False)
                yield pa.record_batch({"hashes": pa.array([part.tobytes()], pa.binary())})

    hashes = keys.mapInArrow(hashed, "hash long")
    parts = shards or max(1, keys.rdd.getNumPartitions())
    shuffled = hashes.repartition(parts, "hash").mapInArrow(packed, "hashes binary")
    gathered = pa.chunked_array(
        [
            pa.Array.from_buffers(
                pa.uint64(), len(row[0]) // 8, [None, pa.py_buffer(bytes(row[0]))]
            )
            for row in shuffled.toLocalIterator()
        ],
        pa.uint64(),
    )
    return tamis.Filter.from_hashes(gathered, kind, capacity, fpr, **options)


#: Hashes of a row: rows are small enough for Spark's messages.
_MOST_HASHES = 1 << 20


def _row(filter: tamis.Filter) -> pa.RecordBatch:  # noqa: A002
    # A pickle carries the secret, if there is one, as this function does.
    return pa.record_batch({"filter": pa.array([pickle.dumps(filter)], pa.binary())})


def contains(spark: SparkSession, filter: tamis.Filter) -> Callable[[str | Column], Column]:  # noqa: A002
    """Make a function of columns: whether each value may be in the filter; of null, null.

    The filter is broadcast, so that each executor has it once.
    """
    shared = spark.sparkContext.broadcast(filter)

    def look_up(keys: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return shared.value.contains_many(keys)  # type: ignore[no-any-return]

    made: Callable[[str | Column], Column] = sf.arrow_udf(look_up, "boolean")  # type: ignore[attr-defined]
    return made
