-- The feed of a tenant goes along an index of its own: without the tenant in it, the pages of all others are read on the way.
DROP INDEX event_page_feed;
CREATE INDEX event_page_feed ON event_page (tenant, transaction, position);
