"""Audits: proofs from an archive that nothing was lost, doubled or out of order.

`Witness` is for subscribers, and needs nothing but a client; all else needs the extra `spark`.
"""

from cogwork.pipeline.audit.witness import Witness

__all__ = ("Witness",)
