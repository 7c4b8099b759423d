"""From a question to a plan: model, chips, count, layout, failures, money and power answered together."""
