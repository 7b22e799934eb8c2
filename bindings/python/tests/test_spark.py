"""Filters in Spark, on a cluster of two processes on this machine."""

from __future__ import annotations

import os
import sys

import pytest
import tamis
import tamis.spark
from conftest import ROOT
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from test_docs import blocks

#: The whole size is 10 000 000: `TAMIS_SPARK_KEYS=10000000 pytest tests/test_spark.py`.
KEYS = int(os.environ.get("TAMIS_SPARK_KEYS", "20000"))


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frames(spark):
    """Keys, of which some come twice, and questions, of which half are keys."""
    keys = spark.range(KEYS, numPartitions=10).select(
        sf.when(sf.col("id") % 1000 == 0, None)
        .otherwise(sf.concat(sf.lit("user-"), sf.col("id") - sf.col("id") % 3 % 2))
        .alias("key")
    )
    asked = spark.range(KEYS // 2, KEYS // 2 + KEYS, numPartitions=4).select(
        sf.concat(sf.lit("user-"), "id").alias("key")
    )
    return keys, asked


@pytest.mark.parametrize("kind", ["auto", "bloom"])
@pytest.mark.filterwarnings("ignore")
def test_a_filter_before_a_join_leaves_the_join_as_it_is(spark, frames, kind):
    keys, asked = frames
    capacity = KEYS if kind == "bloom" else None
    made = tamis.spark.build(keys, "key", kind=kind, capacity=capacity)
    assert made.kind == ("binary_fuse8" if kind == "auto" else kind)
    may_match = tamis.spark.contains(spark, made)
    # One pass: the rows of the exact join, and what the filter says of each.
    joined = asked.join(keys.distinct().withColumn("is_key", sf.lit(True)), "key", "left")
    told = joined.select(
        sf.coalesce("is_key", sf.lit(False)).alias("is_key"), may_match("key").alias("may")
    )
    counts = {
        (row.is_key, row.may): row["count"]
        for row in told.groupBy("is_key", "may").count().collect()
    }
    matched = counts[True, True]
    assert 0.3 * KEYS < matched < 0.6 * KEYS
    # Rows that pass and then join are the rows that join.
    assert (True, False) not in counts
    assert sum(counts.values()) == KEYS
    # Of those that are no keys, about 1 % pass.
    assert counts.get((False, True), 0) < 0.02 * counts[False, False]
    if KEYS <= 1_000_000:
        listed = [row[0] for row in keys.collect() if row[0] is not None]
        if "insert" in made.can:
            alone = tamis.Filter(kind, KEYS)
            alone.update(listed)
            assert made == alone
        else:
            assert made == tamis.build(listed, kind)


@pytest.mark.filterwarnings("ignore")
def test_nulls_secrets_and_kinds(spark):
    frame = spark.createDataFrame([(1, "a"), (2, None), (2, "b")], "id int, name string")
    made = tamis.spark.build(frame, "id", secret=bytes(range(16)))
    assert made.contains_many([1, 2, 3]) == [True, True, False]
    may_match = tamis.spark.contains(spark, made)
    assert [row[0] for row in frame.select(may_match("id")).collect()] == [True, True, True]
    names = tamis.spark.build(frame, "name", kind="counting", capacity=10)
    answers = frame.select(tamis.spark.contains(spark, names)("name")).collect()
    assert [row[0] for row in answers] == [True, None, True]
    with pytest.raises(tamis.UnsupportedError, match="merge"):
        tamis.spark.build(frame, "name", kind="balanced", capacity=10)
    with pytest.raises(ValueError, match="secret"):
        tamis.spark.build(frame, "name", secret="random")


@pytest.mark.filterwarnings("ignore")
def test_the_page(spark):
    code = blocks(ROOT / "bindings/python/docs/spark.md")
    exec(compile(code, "spark.md", "exec"), {"spark": spark})
