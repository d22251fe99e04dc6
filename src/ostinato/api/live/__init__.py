"""What happens, as it happens: one tail of the feed for each tenant, and everybody who follows it."""
