"""Statistics of failures, lifetimes, checkpoint patterns and redundancy."""
