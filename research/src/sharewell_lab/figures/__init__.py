"""The figures of the paper's experiments, drawn from tidy results."""

from sharewell_lab.figures.draw import Drawn, draw_all

__all__ = ["Drawn", "draw_all"]
