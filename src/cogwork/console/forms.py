"""Reading forms: at most so much, and each field once."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from cogwork.console.errors import WrongForm

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ("read_form",)

FORM_BYTES_MAX = 2 * 1024 * 1024
FIELDS_MAX = 50
ENCODING = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> dict[str, str]:
    """Read a form as browsers send it.

    Args:
        request: Carries it.

    Raises:
        WrongForm: It is too large, or no form.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != ENCODING:
        raise WrongForm("this is no form")
    octets = bytearray()
    async for part in request.stream():
        octets += part
        if len(octets) > FORM_BYTES_MAX:
            raise WrongForm(f"the form has more than {FORM_BYTES_MAX:,} bytes")
    try:
        pairs = parse_qsl(
            octets.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError as error:
        raise WrongForm("this is no form in UTF-8") from error
    return {key: text.replace("\r\n", "\n") for key, text in pairs}
