"""Pipelines as data: which statuses an item passes, what is done at each, and the job of a run. Pure, like the core."""
