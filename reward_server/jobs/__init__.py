"""Accepted work and its progress."""
