"""The compiled data plane: scan, route and emit transfers, dispositions and flows."""
