"""What `$management` sees of links that are not, or no longer, attached to anything."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cogwork.container.connections.requester import ClientRequester
from cogwork.container.management.view import View
from cogwork.plugin.management import ManagementError


@pytest.mark.parametrize("context", [None, object()])
def test_a_link_that_is_attached_to_nothing_takes_no_patterns(
    context: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its attach was refused, or is put off, and the client has not said a word since."""
    monkeypatch.setattr(View, "_link_of", lambda *_: SimpleNamespace(context=context))
    view, requester = View.__new__(View), ClientRequester.__new__(ClientRequester)
    for change in (view.bind, view.unbind):
        with pytest.raises(ManagementError, match="not attached") as refused:
            change(requester, "screen", "topic/a")
        assert refused.value.status == 404
