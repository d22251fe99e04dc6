-- Differs: PostgreSQL draws its positions from a sequence, which costs nothing and goes on whatever is deleted.
SELECT 1;
