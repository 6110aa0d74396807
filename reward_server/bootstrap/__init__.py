"""Builds the server from its settings: chooses implementations, starts and stops them in order."""
