"""A server that runs generated machine-learning programs in isolation and rewards them."""
