"""Mechanisms: post-processing around the curator. None of them ever holds the data."""
