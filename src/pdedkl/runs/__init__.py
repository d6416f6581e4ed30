"""Runs: a problem solved from start to end, in a folder with everything that is needed to repeat it."""
