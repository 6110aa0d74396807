"""The state of a machine, from simulated control data."""
