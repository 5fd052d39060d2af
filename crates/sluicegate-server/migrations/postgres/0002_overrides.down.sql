DROP TRIGGER rate_limit_rules_overrides ON rate_limit_rules;
DROP FUNCTION rate_limit_rule_deleted();
DROP TABLE rate_limit_overrides;
UPDATE rate_limit_generation SET generation = generation + 1 + floor(random() * 16777216)::BIGINT;
