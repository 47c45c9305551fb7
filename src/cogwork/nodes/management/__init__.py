"""`$management`: what a container holds, to read and to change by request and reply."""

from cogwork.nodes.management.node import ManagementNode

__all__ = ("ManagementNode",)
