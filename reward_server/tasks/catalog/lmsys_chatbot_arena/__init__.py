"""Which of two answers people prefer."""
