"""Who may connect, and do what: logins, permissions, and the log of both.

`access` is where the other rooms ask; `permissions` decides, `password_checker` and `oauth` check
what peers log in by, `log` writes down who came, who was refused, and who changed what.
"""
