-- Tokens of the API. Only hashes: enough to verify a token, not to use it.

CREATE TABLE rate_limit_tokens (
    token_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL
        CONSTRAINT name CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 64),
    role       TEXT    NOT NULL
        CONSTRAINT role CHECK (role IN ('read', 'admin')),
    -- SHA-256.
    hash       BLOB    NOT NULL
        CONSTRAINT hash CHECK (length(hash) = 32),
    created_by TEXT    NOT NULL DEFAULT ''
        CONSTRAINT created_by CHECK (length(CAST(created_by AS BLOB)) <= 256),
    created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    CONSTRAINT rate_limit_tokens_name UNIQUE (name),
    CONSTRAINT rate_limit_tokens_hash UNIQUE (hash)
) STRICT;

CREATE TRIGGER rate_limit_tokens_inserted AFTER INSERT ON rate_limit_tokens BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_tokens_updated AFTER UPDATE ON rate_limit_tokens BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;
CREATE TRIGGER rate_limit_tokens_deleted AFTER DELETE ON rate_limit_tokens BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
END;

-- Makes running processes load again.
UPDATE rate_limit_generation SET generation = generation + 1 + (random() & 16777215);
