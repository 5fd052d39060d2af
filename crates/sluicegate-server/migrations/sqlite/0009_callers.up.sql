-- Callers of the data doors. Of their tokens only hashes: enough to verify one, not to use it.

CREATE TABLE rate_limit_callers (
    caller_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL
        CONSTRAINT name CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 64),
    -- Names separated by commas: check, take, refund, authorize.
    rights      TEXT    NOT NULL
        CONSTRAINT rights CHECK (length(rights) BETWEEN 1 AND 64),
    -- NULL: the common one.
    namespace   TEXT
        CONSTRAINT namespace CHECK (length(CAST(namespace AS BLOB)) BETWEEN 1 AND 64),
    -- SHA-256 of the token. NULL: a certificate only.
    hash        BLOB
        CONSTRAINT hash CHECK (length(hash) = 32),
    -- A subject alternative name. NULL: a token only.
    certificate TEXT
        CONSTRAINT certificate CHECK (length(CAST(certificate AS BLOB)) BETWEEN 1 AND 253),
    -- NULL: never expires.
    expires_at  INTEGER,
    created_by  TEXT    NOT NULL DEFAULT ''
        CONSTRAINT created_by CHECK (length(CAST(created_by AS BLOB)) <= 256),
    created_at  INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    CONSTRAINT rate_limit_callers_name UNIQUE (name),
    CONSTRAINT rate_limit_callers_hash UNIQUE (hash),
    CONSTRAINT rate_limit_callers_certificate UNIQUE (certificate),
    CONSTRAINT credentials CHECK (hash IS NOT NULL OR certificate IS NOT NULL)
) STRICT;

-- Apart from the callers, and without triggers: a use is not a change.
CREATE TABLE rate_limit_caller_uses (
    caller_id    INTEGER PRIMARY KEY,
    last_used_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER rate_limit_callers_inserted AFTER INSERT ON rate_limit_callers BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_callers_updated AFTER UPDATE ON rate_limit_callers BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_callers_deleted AFTER DELETE ON rate_limit_callers BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
    DELETE FROM rate_limit_caller_uses WHERE caller_id = OLD.caller_id;
END;

-- Makes running processes load again.
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
