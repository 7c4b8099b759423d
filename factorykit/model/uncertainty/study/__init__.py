"""Studies: more rows than memory holds, in a folder of parts that are made again as they were and never by halves."""
