"""A job whose query runs until somebody ends the job, or until it has read all there is."""

import sys
import time

checkpoint, *once = sys.argv[1:]

# Who starts a query that another session still runs is refused, and does not take it over.
spark.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "false")
growing = live("in", "body binary", startingOffsets="earliest")
query = live_sink(growing, "stream/ended", checkpoint).queryName("ended")
if once:
    query.trigger(availableNow=True).start().awaitTermination()
else:
    running = query.start()
    until_s = time.monotonic() + 150
    while running.lastProgress is None:
        assert time.monotonic() < until_s
        time.sleep(0.1)
    sys.stdout.write("running\n")
    sys.stdout.flush()
