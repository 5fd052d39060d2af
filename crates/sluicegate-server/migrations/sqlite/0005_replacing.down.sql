-- Rules without a limit are deactivated; rules that were replaced apply again.

CREATE TABLE rate_limit_rules_old (
    -- AUTOINCREMENT: the id of a deleted rule is not reused, because it still identifies its buckets and violations.
    rule_id         INTEGER PRIMARY KEY AUTOINCREMENT
        CONSTRAINT rule_id CHECK (rule_id BETWEEN 1 AND 9007199254740991),
    key_pattern     TEXT    NOT NULL
        CONSTRAINT key_pattern CHECK (length(CAST(key_pattern AS BLOB)) BETWEEN 1 AND 256),
    scope           TEXT    NOT NULL
        CONSTRAINT scope CHECK (scope IN ('global', 'ip', 'endpoint', 'user', 'custom')),
    -- Rounded, for people: tokens and period are exact.
    rate_per_second REAL    GENERATED ALWAYS AS (tokens * 1000000.0 / period) VIRTUAL,
    burst_capacity  INTEGER NOT NULL
        CONSTRAINT burst_capacity CHECK (burst_capacity BETWEEN 1 AND 4503599627370496),
    -- NULL: for every plan.
    plan            TEXT
        CONSTRAINT plan CHECK (length(CAST(plan AS BLOB)) BETWEEN 1 AND 32),
    is_active       INTEGER NOT NULL DEFAULT 1
        CONSTRAINT is_active CHECK (is_active IN (0, 1)),
    description     TEXT    NOT NULL DEFAULT ''
        CONSTRAINT description CHECK (length(CAST(description AS BLOB)) <= 1024),
    created_at      INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    tokens          INTEGER NOT NULL
        CONSTRAINT tokens CHECK (tokens BETWEEN 1 AND 4503599627370496),
    period          INTEGER NOT NULL
        CONSTRAINT period CHECK (period BETWEEN 1 AND 4503599627370496),
    algorithm       TEXT    NOT NULL DEFAULT 'token_bucket'
        CONSTRAINT algorithm CHECK (algorithm IN
            ('token_bucket', 'fixed_window', 'sliding_window', 'sliding_counter', 'leaky_bucket')),
    refill          TEXT    NOT NULL DEFAULT 'continuous'
        CONSTRAINT refill CHECK (refill IN ('continuous', 'interval')),
    max_wait        INTEGER
        CONSTRAINT max_wait CHECK (max_wait BETWEEN 0 AND 4503599627370496),
    mode            TEXT    NOT NULL DEFAULT 'enforce'
        CONSTRAINT mode CHECK (mode IN ('enforce', 'shadow')),
    on_error        TEXT    NOT NULL DEFAULT 'local'
        CONSTRAINT on_error CHECK (on_error IN ('local', 'allow', 'deny')),
    -- A JSON object of attributes and globs.
    conditions      TEXT    NOT NULL DEFAULT '{}'
        CONSTRAINT conditions CHECK (json_valid(conditions) AND json_type(conditions) = 'object'),
    version         INTEGER NOT NULL DEFAULT 1
        CONSTRAINT version CHECK (version BETWEEN 1 AND 9007199254740991)
) STRICT;

INSERT INTO rate_limit_rules_old
    (rule_id, key_pattern, scope, burst_capacity, plan, is_active, description, created_at, tokens, period,
    algorithm, refill, max_wait, mode, on_error, conditions, version)
SELECT
    rule_id, key_pattern, scope, burst_capacity, plan, CASE mode WHEN 'unlimited' THEN 0 ELSE is_active END,
    description, created_at, tokens, period, algorithm, refill, max_wait,
    CASE mode WHEN 'unlimited' THEN 'shadow' ELSE mode END, on_error, conditions, version
FROM rate_limit_rules;

-- Ids of deleted rules are still not reused.
DELETE FROM sqlite_sequence WHERE name = 'rate_limit_rules_old';
INSERT INTO sqlite_sequence (name, seq)
SELECT 'rate_limit_rules_old', seq FROM sqlite_sequence WHERE name = 'rate_limit_rules';

DROP TABLE rate_limit_rules;
ALTER TABLE rate_limit_rules_old RENAME TO rate_limit_rules;

-- NULLs are distinct to UNIQUE: without COALESCE there could be two rules for every plan.
CREATE UNIQUE INDEX rate_limit_rules_key_pattern ON rate_limit_rules (key_pattern, COALESCE(plan, ''));

CREATE TRIGGER rate_limit_rules_inserted AFTER INSERT ON rate_limit_rules BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_rules_updated AFTER UPDATE ON rate_limit_rules BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_rules_deleted AFTER DELETE ON rate_limit_rules BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;

-- Deleting a rule deletes its overrides.
CREATE TRIGGER rate_limit_rules_overrides AFTER DELETE ON rate_limit_rules BEGIN
    DELETE FROM rate_limit_overrides WHERE rule_id = OLD.rule_id;
END;

UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
