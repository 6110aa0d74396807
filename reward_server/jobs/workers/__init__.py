"""Leases jobs from the database, runs them and keeps the leases alive."""
