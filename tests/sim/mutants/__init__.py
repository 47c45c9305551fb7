"""Grades the simulator: each mutant of the core is a known mistake, and must be found.

A mutant replaces a piece of one function's source. It is put in by exchanging the code of the
function, so that whoever imported it runs the mistake too. A piece that is no longer there once,
and once only, is an error: the mutant has to follow the core.
"""
