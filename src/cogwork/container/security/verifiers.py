"""The SCRAM verifiers of a container's users, and decoys for those that there are not.

Theory of operation. Who asks for a name gets a salt and a number of iterations before any proof. An
unknown name gets those of a decoy: a salt that is the same each time, as a keyed hash of the name,
and what most true verifiers have besides. The key is kept where the container keeps its data, so
that a restart tells nothing, either.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.sasl.saslprep import saslprep
from cogwork.sasl.verifier import HASHES, Verifier, decoy, parse_verifier

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cogwork.config.settings import User

__all__ = ("DECOY_FILE", "Verifiers", "kept_secret")

DECOY_FILE = "scram-decoys.key"
SECRET_BYTES = 32


def kept_secret(directory: Path | None) -> bytes:
    """Return the key of decoys, made where there is none yet; all who share a directory share it.

    Args:
        directory: Where it is kept; None, or one that cannot be used, keeps it in memory alone.
    """
    made = secrets.token_bytes(SECRET_BYTES)
    if directory is None:
        return made
    file = directory / DECOY_FILE
    own = directory / f"{DECOY_FILE}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        if not file.exists():
            own.touch(0o600)
            own.write_bytes(made)
            with suppress(FileExistsError):  # somebody else was quicker, and theirs holds
                os.link(own, file)
        kept = file.read_bytes()
    except OSError:
        return made
    finally:
        with suppress(OSError):
            own.unlink()
    return kept if len(kept) == SECRET_BYTES else made


class Verifiers:
    """Those of one container.

    Attributes:
        secret: The key of decoys.
    """

    def __init__(self, users: Iterable[User], secret: bytes) -> None:
        """Decode the users' verifiers.

        Args:
            users: As configured.
            secret: The key of decoys.

        Raises:
            VerifierError: One is malformed.
        """
        self.secret = secret
        self._known: dict[tuple[str, str], tuple[Verifier, str]] = {}
        self._shapes: dict[str, tuple[int, int]] = {}
        self.replace(users)

    def replace(self, users: Iterable[User]) -> None:
        """Take other users.

        Args:
            users: All of them.

        Raises:
            VerifierError: One verifier is malformed; the users stay as they were.
        """
        known = {}
        shapes: dict[str, Counter[tuple[int, int]]] = {name: Counter() for name in HASHES}
        for user in users:
            for line in user.scram_verifiers:
                verifier = parse_verifier(line)
                known[verifier.hash_name, saslprep(user.name)] = (verifier, user.name)
                shapes[verifier.hash_name][verifier.iterations, len(verifier.salt)] += 1
        self._known = known
        self._shapes = {
            name: max(found, key=found.__getitem__) for name, found in shapes.items() if found
        }

    def has(self, hash_name: str) -> bool:
        """Tell whether any user has one.

        Args:
            hash_name: As `hashlib` calls it.
        """
        return hash_name in self._shapes

    def of(self, hash_name: str, name: str) -> tuple[Verifier, str | None]:
        """Return a user's verifier and configured name; a decoy and None where there is none.

        Args:
            hash_name: As `hashlib` calls it.
            name: As the peer gave it.
        """
        prepared = saslprep(name)
        iterations, salt_bytes = self._shapes.get(hash_name, (HASHES[hash_name], 0))
        # A decoy is made in any case: what is told of a name takes the same time for all.
        made = decoy(hash_name, prepared, iterations, self.secret, salt_bytes or None)
        return self._known.get((hash_name, prepared), (made, None))
