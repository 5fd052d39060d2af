DROP TABLE rate_limit_caller_uses;
DROP TABLE rate_limit_callers;
UPDATE rate_limit_generation SET generation = generation + 1 + floor(random() * 16777216)::BIGINT;
