"""The mesh: which containers there are, how to reach them, what each of them wants.

Pure decisions: events and the time go in, effects come out. `mesh.Mesh` joins the parts; the
protocol is specified in `docs/internals/mesh.md`.
"""
