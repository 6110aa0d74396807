"""What must survive a restart: jobs, their results, and the Postgres that keeps them."""
