"""Imports oslo.messaging where its own warnings (of eventlet) are no errors."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eventlet's, of itself
    import oslo_messaging  # noqa: F401  # it stays imported
