"""The server: HTTP, for many tenants, on one database."""
