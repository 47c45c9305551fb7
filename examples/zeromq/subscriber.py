"""A subscriber of PubSub: `python subscriber.py 'weather.#'` prints what comes, until Ctrl-C.

`python publisher.py weather.berlin sunny` publishes; so does `cogwork send amqp://127.0.0.1
topic/weather.berlin sunny`, whose message does not say its topic.
"""

from __future__ import annotations

import argparse
import contextlib

from session import ENDPOINTS, Session

PING_S = 10.0


def main() -> None:
    """Print until Ctrl-C, or until there were as many as wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern")
    parser.add_argument("--endpoint", default=ENDPOINTS["pubsub"])
    parser.add_argument("--count", type=int, default=0, help="how many to wait for; 0 is for ever")
    options = parser.parse_args()
    session = Session(options.endpoint, name="subscriber")
    session.register(options.pattern, window=100)
    print(f"subscribed to {options.pattern}", flush=True)
    seen = 0
    with contextlib.suppress(KeyboardInterrupt):
        while not options.count or seen < options.count:
            try:
                message = session.receive(PING_S)
            except TimeoutError:
                session.send("PING", {})
                continue
            if message.verb == "REQUEST":
                seen += 1
                topic = message.header.get("address", message.header["to"])
                print(topic, message.body, flush=True)
    session.close()


if __name__ == "__main__":
    main()
