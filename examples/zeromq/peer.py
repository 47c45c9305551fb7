"""Direct Peer2Peer: two programs meet through the gateway, and talk without it from then on.

`python peer.py serve clock` listens on a socket of its own and registers its endpoint; it answers
by the gateway, too. `python peer.py ask clock` looks that endpoint up and asks there. The frames
between the two are those of the gateway, with an empty session.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from datetime import UTC, datetime

import zmq
from session import ENDPOINTS, Frames, Session

PING_MS = 10_000


def tell_time(_request: Frames) -> object:
    """Answer with the time, in the way in which JSON carries times here."""
    return {"$datetime": datetime.now(UTC).isoformat()}


def answer_directly(socket: zmq.Socket[bytes]) -> None:
    """Answer one call of a peer."""
    route, magic, verb, session, header, *body = socket.recv_multipart()
    request = Frames(verb.decode(), json.loads(header), json.loads(body[0]) if body else None)
    if request.verb == "CALL":
        answer = {"id": request.header["id"], "direct": True}
        parts = [json.dumps(each).encode() for each in (answer, tell_time(request))]
        socket.send_multipart([route, magic, b"RESULT", session, *parts])


def serve(name: str, endpoint: str) -> None:
    """Serve by both ways until Ctrl-C."""
    own = zmq.Context.instance().socket(zmq.ROUTER)
    port = own.bind_to_random_port("tcp://127.0.0.1")
    session = Session(endpoint, name=name)
    session.register(name, endpoint=f"tcp://127.0.0.1:{port}")
    print(f"serving {name}, and directly on port {port}", flush=True)
    poller = zmq.Poller()
    poller.register(own, zmq.POLLIN)
    poller.register(session.socket, zmq.POLLIN)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            ready = dict(poller.poll(PING_MS))
            if own in ready:
                answer_directly(own)
            if session.socket in ready:
                session.serve_one(tell_time)
            if not ready:
                session.send("PING", {})
    session.close()


def ask(name: str, endpoint: str) -> None:
    """Ask by the gateway, then without it."""
    session = Session(endpoint, name="asker")
    print("by the gateway:", session.call(name, None))
    found = session.ask("LOOKUP", {"to": name}).header["endpoints"]
    peer = Session(found[0]["endpoint"], session="-")
    peer.id = ""
    print("directly:", peer.call(name, None))
    peer.close(says_bye=False)
    session.close()


def main() -> None:
    """Serve or ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("serve", "ask"))
    parser.add_argument("name")
    parser.add_argument("--endpoint", default=ENDPOINTS["peer2peer"])
    options = parser.parse_args()
    (serve if options.what == "serve" else ask)(options.name, options.endpoint)


if __name__ == "__main__":
    main()
