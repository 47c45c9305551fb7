"""Connections of clients: from the accepted socket to the last word, and what each may take.

`listeners` accepts, `peers` keeps each connection, `shares` counts what users, source addresses and
connections have, `watermark` and `room` hold the process's memory below its limit.
"""
