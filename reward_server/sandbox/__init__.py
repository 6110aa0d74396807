"""Isolated boxes for untrusted programs."""
