"""Many analysts, one budget: who is next, who is worse off, and what can be promised."""
