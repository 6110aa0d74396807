"""Finds the places where a program should report its progress."""
