"""The commands of `cogwork`, a module each; `cogwork.cli.main` imports one when it runs.

Those of `cogwork pipeline` are in `pipelines`. A command reads its options, asks and prints: what
several of them share lies in the rooms beside this one. Only `main` imports from here.
"""
