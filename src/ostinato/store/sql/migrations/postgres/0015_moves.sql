-- Differs: here a trigger that comes before costs less than one that comes after. There is nothing to do.
SELECT;
