-- The feed of a tenant goes along an index of its own, which has the position in it as every index does: without it, all
-- pages of the tenant are sorted for the first few, or those of all tenants are read.
CREATE INDEX event_page_feed ON event_page (tenant);
