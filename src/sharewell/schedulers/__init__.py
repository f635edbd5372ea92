"""Schedulers: the order in which analysts' questions are answered."""

from sharewell.schedulers.base import QueueEntry, Scheduler
from sharewell.schedulers.in_order import InOrder
from sharewell.schedulers.randomized import Randomized
from sharewell.schedulers.registry import make_scheduler
from sharewell.schedulers.round_robin import RoundRobin
from sharewell.schedulers.weighted_round_robin import WeightedRoundRobin

__all__ = [
    "InOrder",
    "QueueEntry",
    "Randomized",
    "RoundRobin",
    "Scheduler",
    "WeightedRoundRobin",
    "make_scheduler",
]
