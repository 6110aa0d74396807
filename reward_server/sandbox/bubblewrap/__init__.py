"""Runs each program in a bubblewrap box, cold or forked from a zygote."""
