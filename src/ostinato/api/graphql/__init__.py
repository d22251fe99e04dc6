"""GraphQL: the same things as over HTTP, and subscriptions to what happens."""
