"""The HTTP client, blocking and asynchronous."""
