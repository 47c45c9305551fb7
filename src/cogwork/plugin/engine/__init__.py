"""The contract of engines: ordered logs, and what an engine is built from.

`contract` is what every engine keeps; `capabilities` and `durability` are what an engine declares.
Authors of engines start from `sequencer`, the deterministic state of one stream. Every other
package that handles streams may import from here; nothing here imports an engine.
"""

from cogwork import freshness

freshness.load("cogwork.plugin.engine.chunks")
