"""Places markers by analyzing the syntax tree."""
