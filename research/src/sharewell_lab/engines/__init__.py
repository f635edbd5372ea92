"""Fast players: one run of one mechanism in one world, equal to the real mechanism draw for draw.

A study plays the same stream in very many worlds: with all analysts, with each alone, without
each of them. The real mechanisms keep accounts and a ledger, and look every query up by its diagram;
a study needs none of that. The players keep the arithmetic and leave out the rest. The tests feed a
player and the real mechanism the same noise and compare every answer; that is the licence to use them.

The players are for the pure currency, where tables are neighbours by adding or removing a row.
"""

from sharewell_lab.engines.players import MECHANISMS, play, play_scr_both
from sharewell_lab.engines.world import PlaySettings, Run

__all__ = ["MECHANISMS", "PlaySettings", "Run", "play", "play_scr_both"]
