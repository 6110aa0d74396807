"""Queries over stored solutions: search, lineage, parents, statistics, archives."""
