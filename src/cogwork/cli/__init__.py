"""The command line.

`main` finds the command and turns errors into one line and an exit code. The commands lie in
`commands`; what they share in `options`, `management`, `terminal` and `process`. Nothing else in
the package imports from here.
"""
