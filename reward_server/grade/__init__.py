"""Turning what a program left behind into a true score."""
