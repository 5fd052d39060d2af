DROP TRIGGER rate_limit_rules_overrides;
DROP TABLE rate_limit_overrides;
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
