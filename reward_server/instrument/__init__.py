"""Finds the positions where a program should report its progress."""
