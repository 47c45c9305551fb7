"""What commands ask of a container's `$management`, and how they show several containers as one.

`reach` connects, `manager` asks, `group` and `folding` make one of a container's workers. Commands
import from here. Begin reading at `manager`.
"""
