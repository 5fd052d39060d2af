-- Overrides: quotas of single subjects instead of their rule's quota.
-- No foreign key: rules may come from a file.

CREATE TABLE rate_limit_overrides (
    override_id    INTEGER PRIMARY KEY AUTOINCREMENT
        CONSTRAINT override_id CHECK (override_id BETWEEN 1 AND 9007199254740991),
    rule_id        INTEGER NOT NULL
        CONSTRAINT rule_id CHECK (rule_id BETWEEN 0 AND 9007199254740991),
    subject        TEXT    NOT NULL
        CONSTRAINT subject CHECK (length(CAST(subject AS BLOB)) BETWEEN 1 AND 1024),
    kind           TEXT    NOT NULL
        CONSTRAINT kind CHECK (kind IN ('quota', 'unlimited', 'blocked')),
    -- Quota; NULL for unlimited and blocked.
    tokens         INTEGER CONSTRAINT tokens CHECK (tokens BETWEEN 1 AND 4503599627370496),
    period         INTEGER CONSTRAINT period CHECK (period BETWEEN 1 AND 4503599627370496),
    burst_capacity INTEGER CONSTRAINT burst_capacity CHECK (burst_capacity BETWEEN 1 AND 4503599627370496),
    algorithm      TEXT    CONSTRAINT algorithm CHECK (algorithm IN
        ('token_bucket', 'fixed_window', 'sliding_window', 'sliding_counter', 'leaky_bucket')),
    refill         TEXT    CONSTRAINT refill CHECK (refill IN ('continuous', 'interval')),
    max_wait       INTEGER CONSTRAINT max_wait CHECK (max_wait BETWEEN 0 AND 4503599627370496),
    reason         TEXT    NOT NULL DEFAULT ''
        CONSTRAINT reason CHECK (length(CAST(reason AS BLOB)) <= 1024),
    -- NULL: never expires.
    expires_at     INTEGER,
    created_by     TEXT    NOT NULL DEFAULT ''
        CONSTRAINT created_by CHECK (length(CAST(created_by AS BLOB)) <= 256),
    created_at     INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    version        INTEGER NOT NULL DEFAULT 1
        CONSTRAINT version CHECK (version BETWEEN 1 AND 9007199254740991),
    CONSTRAINT rate_limit_overrides_subject UNIQUE (rule_id, subject),
    CONSTRAINT quota CHECK ((kind = 'quota') =
        (tokens IS NOT NULL AND period IS NOT NULL AND burst_capacity IS NOT NULL
            AND algorithm IS NOT NULL AND refill IS NOT NULL))
) STRICT;

CREATE INDEX rate_limit_overrides_expires_at ON rate_limit_overrides (expires_at)
    WHERE expires_at IS NOT NULL;

CREATE TRIGGER rate_limit_overrides_inserted AFTER INSERT ON rate_limit_overrides BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_overrides_updated AFTER UPDATE ON rate_limit_overrides BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_overrides_deleted AFTER DELETE ON rate_limit_overrides BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;

-- Deleting a rule deletes its overrides.
CREATE TRIGGER rate_limit_rules_overrides AFTER DELETE ON rate_limit_rules BEGIN
    DELETE FROM rate_limit_overrides WHERE rule_id = OLD.rule_id;
END;

-- Makes running processes load again.
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
