"""A stream on a log that a foreign server keeps: what all adapters to servers have in common.

Theory of operation. The server gives one thing, a log of entries in one order; everything else is
made from that, once, here. An *entry* carries what was appended since the last one, together with
the stream's state that it led to (offset, epoch, time) and the position and id of the entry before
it. An entry counts only if the one it names really is the last one that counts: compare-and-set,
done by the server where it can (then no other entry gets in), and by every reader in any case. So
two writers cannot disagree, a request that is sent twice counts once, and what the server delivers
twice, loses or makes up is seen.

Positions are the server's and begin at 1; offsets are the stream's and begin at 0.
"""
