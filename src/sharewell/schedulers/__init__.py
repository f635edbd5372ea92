"""Schedulers: the order in which analysts' questions are answered."""

from sharewell.schedulers.base import InOrder, QueueEntry, Scheduler
from sharewell.schedulers.randomized import Randomized
from sharewell.schedulers.registry import make_scheduler
from sharewell.schedulers.round_robin import RoundRobin, WeightedRoundRobin

__all__ = [
    "InOrder",
    "QueueEntry",
    "Randomized",
    "RoundRobin",
    "Scheduler",
    "WeightedRoundRobin",
    "make_scheduler",
]
