"""The old name of the delivery recorder: it gives the class, and says that it was renamed."""

from __future__ import annotations

import importlib

import pytest

from cogwork.pipeline import audit


def test_a_witness_is_a_delivery_recorder() -> None:
    module = importlib.import_module("cogwork.pipeline.audit")
    with pytest.warns(DeprecationWarning, match="audit.Witness was renamed: import Delivery"):
        old = module.Witness
    assert old is audit.DeliveryRecorder


def test_another_missing_name_is_an_attribute_error() -> None:
    module = importlib.import_module("cogwork.pipeline.audit")
    with pytest.raises(AttributeError, match=r"'cogwork\.pipeline\.audit' has no .* 'Nobody'"):
        _ = module.Nobody
