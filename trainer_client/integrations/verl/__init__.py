"""The reward server in veRL: rewards, durations in the gradient, prompts, and what is dropped.

Nothing here is imported by the rest of the client, and importing this package imports neither
veRL nor torch. veRL's configuration names each module (`pkg://trainer_client.integrations.verl.…`),
and veRL loads it where it needs it.
"""
