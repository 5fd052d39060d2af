DROP TABLE rate_limit_writers;
DROP TABLE rate_limit_violations;
