"""Doing what a form says."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from cogwork.amqp.errors import CogworkError
from cogwork.console.actions.registry import ACTIONS
from cogwork.console.errors import ContainerAway, WrongForm
from cogwork.console.forms import read_form
from cogwork.console.rendering import page
from cogwork.console.views.login import local_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.actions.action import Done
    from cogwork.console.session import Session

__all__ = ("do",)

UNKNOWN = "; if it was on its way, it is not known whether it was done"


async def do(request: Request, session: Session) -> Response:
    """Do it, and go back to where the form was."""
    action = ACTIONS.get(request.path_params["action"])
    if action is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    fields = await read_form(request)
    session.demand_form(fields)
    back = local_path(fields.get("back", "/"))
    try:
        if not fields.get("name") and action.needs_name:
            raise WrongForm("the name is missing")
        action.demand_fields(fields)
        done = await action.run(session, fields)
    except ContainerAway as error:
        session.flash("problem", f"{error}{UNKNOWN}")
    except (CogworkError, WrongForm, ValueError) as error:
        session.flash("problem", f"{action.title}: {error}")
    else:
        session.forget()
        return _after(request, session, done, back, fields.get("list", "/"))
    session.forget()
    return RedirectResponse(back, HTTPStatus.SEE_OTHER)


def _after(request: Request, session: Session, done: Done, back: str, above: str) -> Response:
    """Say what an action has come to, on the page of the form or the list above it."""
    session.flash("problem" if done.is_problem else "done", done.text)
    if done.shown:
        return page(
            request,
            "items.html",
            session,
            title="Items that were taken",
            up=(back, ""),
            shown=done.shown,
            first=None,
            start="",
            before=None,
            after=None,
        )
    return RedirectResponse(local_path(above) if done.is_gone else back, HTTPStatus.SEE_OTHER)
