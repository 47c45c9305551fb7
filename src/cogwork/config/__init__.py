"""Configuration: `cogwork.toml` or a router's file, from text to checked, plain data.

`reading` is where one begins: text becomes a `settings.Configuration`, or one error with its place.
The modules named `..._checks` hold the rules between keys. The container, the mesh and the command
line import from here; nothing here opens a socket.
"""
