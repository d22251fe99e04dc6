-- Differs: places in the feed come from transaction numbers here. There is nothing to do.
SELECT;
