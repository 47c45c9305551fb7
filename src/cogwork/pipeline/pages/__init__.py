"""Pages for people: one HTML file that needs nothing else, with plots in it."""

from cogwork.pipeline.pages.chart import Chart
from cogwork.pipeline.pages.page import Page

__all__ = ("Chart", "Page")
