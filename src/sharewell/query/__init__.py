"""Public: domains, queries and SQL. Nothing here ever sees a row."""
