"""Where a value comes from that nobody gives: the tables of chips, fitted constants, sourced defaults."""
