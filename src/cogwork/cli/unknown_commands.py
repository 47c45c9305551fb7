"""Groups of commands that say, of a word that is none of theirs, which command is meant.

Who comes from another broker tries its words first. Where one of them names something that there
is, the error says how that is called here; else it names the command that is spelled most alike.
"""

from __future__ import annotations

import difflib

import click

__all__ = ("OTHER_WORDS", "HelpfulGroup")

OTHER_WORDS = {
    "cogwork": {
        "publish pub produce producer put post emit": "`cogwork send` does that",
        "subscribe sub consume consumer listen read tail pull get": "`cogwork receive` does that",
        "request req ask invoke": "`cogwork call` does that, `cogwork rpc` for methods",
        "start run server broker daemon": "`cogwork serve` does that",
        "stop shutdown kill": "Ctrl-C or SIGTERM ends `cogwork serve`",
        "list ls info show ps stats connections": "`cogwork status` does that",
        "queues": "`cogwork queue list` does that",
        "streams": "`cogwork stream list` does that",
        "links": "`cogwork link list` does that",
        "schemas": "`cogwork schema list` does that",
        "engines": "`cogwork engine list` does that",
        "topic topics": "topics need not be made, `cogwork send URL topic/NAME BODY` will do",
        "users adduser": "`cogwork passwd` makes one for the configuration",
        "spark archive replay audit analytics": "`cogwork pipeline` has that",
    },
    "cogwork queue": {
        "create add make new": "`cogwork queue declare` does that",
        "show info status get": "`cogwork queue list` shows counts, `cogwork queue peek` items",
        "send publish put": "`cogwork send URL ADDRESS BODY` does that",
        "receive consume read": "`cogwork receive URL ADDRESS` does that",
        "remove rm drop unbind": "`cogwork queue delete` does that",
        "empty clear": "`cogwork queue purge` does that",
        "bind": "a queue's own address is where one sends; a stream has `cogwork stream create` "
        "with --capture",
    },
    "cogwork stream": {
        "declare add make new": "`cogwork stream create` does that",
        "read receive consume subscribe tail cat get": "`cogwork receive URL stream/NAME --from "
        "first` does that",
        "append send publish put": "`cogwork send URL stream/NAME BODY` does that",
        "info status describe": "`cogwork stream show` does that",
        "remove rm drop": "`cogwork stream delete` does that",
        "purge truncate": "`cogwork stream trim` does that",
        "archive replay": "`cogwork pipeline` has that",
    },
    "cogwork schema": {
        "add create put": "`cogwork schema register` does that",
        "delete remove rm": "`cogwork schema unregister` does that",
        "validate test": "`cogwork schema check` does that",
        "get": "`cogwork schema show` does that",
    },
    "cogwork link": {
        "create declare": "`cogwork link add` does that",
        "delete rm": "`cogwork link remove` does that",
        "show": "`cogwork link list` does that",
    },
    "cogwork engine": {"show ls": "`cogwork engine list` does that"},
}
"""What to say of other brokers' words, by the group that is asked."""


class HelpfulGroup(click.Group):
    """A group that says what may be meant by a command that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first of the arguments names.

        Raises:
            click.UsageError: There is none.
        """
        word = args[0]
        is_option = word.startswith("-")
        if not is_option and not ctx.resilient_parsing and self.get_command(ctx, word) is None:
            advice = self._advice(ctx, word)
            raise click.UsageError(f"No such command {word!r}{advice}", ctx)
        return super().resolve_command(ctx, args)

    def _advice(self, ctx: click.Context, word: str) -> str:
        for words, text in OTHER_WORDS.get(ctx.command_path, {}).items():
            if word.lower() in words.split():
                return f": {text}"
        near = difflib.get_close_matches(word, self.list_commands(ctx), n=1)
        return f": did you mean {near[0]}?" if near else ""
