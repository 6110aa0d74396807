"""TRL: a reward function, duration-weighted advantages, and prompts.

The rest of the client does not import this package. `reward` needs neither TRL nor torch, `rows`
needs `datasets`, and `trainer` needs all of TRL.
"""
