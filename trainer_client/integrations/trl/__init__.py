"""The reward server in TRL: a reward function, durations in the advantages, and prompts.

Nothing here is imported by the rest of the client. `reward` imports neither TRL nor torch, `rows`
wants `datasets`, and `trainer` wants all of TRL.
"""
