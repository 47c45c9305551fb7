"""Pages for people: one HTML file that needs nothing else, with plots in it."""

from cogwork.pages.chart import Chart
from cogwork.pages.page import Page

__all__ = ("Chart", "Page")
