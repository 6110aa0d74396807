"""veRL: rewards, duration-weighted gradients, prompts, and cancellation of dropped samples.

The rest of the client does not import these modules, and importing this package imports neither
veRL nor torch. veRL's configuration names each module (`pkg://trainer_client.integrations.verl.…`),
and veRL loads it where it needs it.
"""
