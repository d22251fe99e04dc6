-- Holds the number 8 until its own migration takes the place of this one.
SELECT 1;
