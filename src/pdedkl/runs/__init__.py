"""Runs: a problem solved from end to end, in a folder that holds all that is needed to repeat it."""
