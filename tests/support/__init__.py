"""What several suites share: generators of patterns and tapes, and short ways to run them."""
