"""Rows in, data vectors out: one GROUP BY that runs where the rows are."""
