"""The web console: pages in a browser that show and change what a container has.

Theory of operation. The console is a process of its own. Each browser session logs in to the
container by a connection of its own, as the user who sits there, and asks `$management`: what that
user may not see or do, the container refuses. The console itself has no rights and keeps nothing.

Pages are made on the server (Starlette, Jinja2). One script of our own fetches the live part of a
page every few seconds; without scripts, pages show what was there when they were loaded. Lists are
searched, sorted and cut into pages here, so that a browser never gets ten thousand rows.

Whatever comes from the container is text: templates escape it, and characters that are not printed
or change the direction of writing are shown as escapes.
"""
