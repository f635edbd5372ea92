"""The loops that are compiled. Importing a module of this folder imports numba; nothing else does."""
