-- Rules that compared folded endpoints compare exact ones.
ALTER TABLE rate_limit_rules DROP COLUMN path;
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
