-- Form in which a rule compares endpoints and takes them into its keys.
ALTER TABLE rate_limit_rules
    ADD COLUMN path TEXT NOT NULL DEFAULT 'exact'
        CONSTRAINT path CHECK (path IN ('exact', 'folded'));

-- Starter rules of a new database. Those of an older one stay as they are.
UPDATE rate_limit_rules SET path = 'folded'
WHERE key_pattern IN ('login:{ip}', 'payment:{user_id}') AND version = 1 AND created_at >= (CAST(strftime('%s', 'now') AS INTEGER) - 60) * 1000000;

-- Makes running processes load again.
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
