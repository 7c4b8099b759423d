"""One question, one answer: what is given becomes one chain of steps, and every verb reads it."""
