"""Flights from their stream into a table, and how late each carrier's are.

Needs `pip install 'cogwork[spark]' 'pyspark[pipelines]'` and a stream `flights` whose bodies are
JSON with `carrier` and `delay`.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import avg, count

spark = SparkSession.active()

COLUMNS = "offset bigint, time timestamp, body_json struct<carrier: string, delay: double>"


@dp.table
def flights() -> DataFrame:
    """Every flight, once: the pipeline's checkpoint has the offset that is next."""
    stream = spark.readStream.format("cogwork").schema(COLUMNS)
    stream = stream.option("url", spark.conf.get("spark.cogwork.url", "amqp://localhost") or "")
    rows = stream.option("startingOffsets", "earliest").load("flights")
    return rows.select("offset", "time", "body_json.*")


@dp.materialized_view
def delays() -> DataFrame:
    """The mean delay by carrier."""
    return spark.read.table("flights").groupBy("carrier").agg(avg("delay"), count("*"))
