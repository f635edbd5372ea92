"""The kernel: all that touches a true count, and all that must be right."""
