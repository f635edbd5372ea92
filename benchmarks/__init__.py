"""Speed, as ratios taken in one run on one machine: `make bench`."""
