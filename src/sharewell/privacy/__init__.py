"""The privacy kernel: the only code that touches a true count."""
