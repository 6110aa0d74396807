"""The trainer's side: talks to a reward server over HTTP and knows nothing else of it."""
