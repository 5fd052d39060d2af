DROP TABLE rate_limit_rule_changes;
DROP TABLE rate_limit_rules;
DROP TABLE rate_limit_generation;
