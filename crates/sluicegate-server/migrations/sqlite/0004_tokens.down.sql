DROP TABLE rate_limit_tokens;
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
