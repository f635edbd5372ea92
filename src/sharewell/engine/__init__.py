"""From rows to data vectors: one GROUP BY that runs at the source."""
