"""Places markers by analysing the syntax tree."""
