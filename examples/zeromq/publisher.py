"""A publisher of PubSub: `python publisher.py weather.berlin sunny` tells all subscribers."""

from __future__ import annotations

import argparse

from session import ENDPOINTS, Session


def main() -> None:
    """Publish once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topic")
    parser.add_argument("text")
    parser.add_argument("--endpoint", default=ENDPOINTS["pubsub"])
    options = parser.parse_args()
    session = Session(options.endpoint, name="publisher")
    session.cast(options.topic, options.text)
    session.close()


if __name__ == "__main__":
    main()
