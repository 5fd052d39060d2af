-- Rules, their history, and the generation that every change increases.
-- Times and durations are microseconds. A constraint is named after its column.

CREATE TABLE rate_limit_generation (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL CHECK (generation >= 1)
) STRICT;

-- Starts with the current time and grows by random steps, so that a new database, or one restored from a backup, is
-- not mistaken for the previous one.
INSERT INTO rate_limit_generation (id, generation)
VALUES (1, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));

CREATE TABLE rate_limit_rules (
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

-- NULLs are distinct to UNIQUE: without COALESCE there could be two rules for every plan.
CREATE UNIQUE INDEX rate_limit_rules_key_pattern ON rate_limit_rules (key_pattern, COALESCE(plan, ''));

CREATE TABLE rate_limit_rule_changes (
    change_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    rule_id    INTEGER NOT NULL,
    changed_by TEXT    NOT NULL CHECK (length(CAST(changed_by AS BLOB)) <= 256),
    changed_at INTEGER NOT NULL,
    -- The rule as JSON; NULL if there was none before or after.
    old        TEXT    CHECK (json_valid(old)),
    new        TEXT    CHECK (json_valid(new)),
    CHECK (old IS NOT NULL OR new IS NOT NULL)
) STRICT;

CREATE INDEX rate_limit_rule_changes_rule ON rate_limit_rule_changes (rule_id, change_id);

CREATE TRIGGER rate_limit_rules_inserted AFTER INSERT ON rate_limit_rules BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_rules_updated AFTER UPDATE ON rate_limit_rules BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_rules_deleted AFTER DELETE ON rate_limit_rules BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;

-- Starter rules of a new installation. Inserted once: rules that were deleted or changed do not come back.
INSERT INTO rate_limit_rules
    (rule_id, key_pattern, scope, plan, tokens, period, burst_capacity, conditions, description)
VALUES
    (1, 'user:{user_id}', 'user', 'free', 10, 1000000, 50, '{}', 'every user of the free plan'),
    (2, 'user:{user_id}', 'user', 'pro', 100, 1000000, 500, '{}', 'every user of the pro plan'),
    (3, 'user:{user_id}', 'user', 'enterprise', 1000, 1000000, 5000, '{}', 'every user of the enterprise plan'),
    (4, 'endpoint:/api/search', 'endpoint', NULL, 1000, 1000000, 2000, '{}', 'search, all users together'),
    (5, 'login:{ip}', 'ip', NULL, 5, 60000000, 5, '{"endpoint":"/login"}', 'brute force against logins'),
    (6, 'payment:{user_id}', 'user', NULL, 1, 60000000, 3, '{"endpoint":"/payment"}', 'payments of one user'),
    (7, 'ip:{ip}', 'ip', NULL, 100, 1000000, 200, '{}', 'every address'),
    (8, 'global', 'global', NULL, 50000, 1000000, 100000, '{}', 'everything together'),
    (9, 'search:{user_id}', 'user', NULL, 10, 1000000, 100, '{"endpoint":"/search"}', 'autocomplete of one user');
