"""The reward server in veRL: rewards, durations in the gradient, prompts, and what is dropped.

Nothing here is imported by the rest of the client, and importing this package imports neither
veRL nor torch: each module is named in veRL's configuration (`pkg://trainer_client.integrations.verl.…`) and
loaded where veRL wants it.
"""
