"""Fairness among analysts who share a budget: dry runs, the certificate, promises and planning."""
