"""What a container shows of itself.

`view` answers `$management`, `inventory` lists what there is by type, `rows` and `state` write it
as plain values and as JSON.
"""
