"""The service: one request from end to end, and the ledger that outlives it."""
