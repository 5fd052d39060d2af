-- Rules without a limit are deactivated; rules that were replaced apply again.
UPDATE rate_limit_rules SET is_active = FALSE, mode = 'shadow' WHERE mode = 'unlimited';
ALTER TABLE rate_limit_rules
    DROP COLUMN name,
    DROP COLUMN replaces,
    DROP CONSTRAINT mode,
    ADD CONSTRAINT mode CHECK (mode IN ('enforce', 'shadow'));
UPDATE rate_limit_generation SET generation = generation + 1 + floor(random() * 16777216)::BIGINT;
