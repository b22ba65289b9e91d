"""Which chains are drawn: two stages or many looks."""
