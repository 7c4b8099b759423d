"""Studies: more rows than fit in memory, computed in reproducible parts, each written completely or not at all."""
