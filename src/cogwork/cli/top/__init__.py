"""What `cogwork top` shows: a container at a glance, again and again.

`pages` says what is asked and shown, `samples` asks it, `rates` makes rates of counts, `view` is
what a person has chosen with keys, `screen` draws it, `keyboard` reads the keys. Begin with
`pages`.
"""
