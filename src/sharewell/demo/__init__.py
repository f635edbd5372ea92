"""The demonstration: a server on the bundled table, and a story that three analysts play on it."""
