-- History of the administration: the service records its own acts, triggers record SQL by hand.
-- Times are microseconds.

CREATE TABLE rate_limit_history (
    history_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    -- Author: `token:NAME`, `admin`, `local`, `command line (USER)`, `service`, `caller:NAME`, `unknown`, `sql`.
    who        TEXT    NOT NULL CHECK (length(CAST(who AS BLOB)) BETWEEN 1 AND 256),
    act        TEXT    NOT NULL CHECK (length(act) BETWEEN 1 AND 64),
    rule_id    INTEGER,
    subject    TEXT    CHECK (length(CAST(subject AS BLOB)) <= 1024),
    -- Name of a token or a caller, key of a bucket, listener of a failed sign-in.
    target     TEXT    CHECK (length(CAST(target AS BLOB)) <= 1024),
    -- JSON objects; NULL if there was nothing before or after.
    before     TEXT    CHECK (before IS NULL OR json_valid(before)),
    after      TEXT    CHECK (after IS NULL OR json_valid(after)),
    address    TEXT    CHECK (length(CAST(address AS BLOB)) <= 64),
    reason     TEXT    NOT NULL DEFAULT '' CHECK (length(CAST(reason AS BLOB)) <= 1024),
    -- Number of acts added up in this row.
    count      INTEGER NOT NULL DEFAULT 1 CHECK (count >= 1),
    -- `started`: an act outside this database, whose result is not known.
    outcome    TEXT    NOT NULL DEFAULT 'done' CHECK (outcome IN ('started', 'done', 'failed')),
    -- 1: subject and address are as they were, and audit.privacy is still to be applied.
    is_raw     INTEGER NOT NULL DEFAULT 0 CHECK (is_raw IN (0, 1))
) STRICT;

-- With the act: the rows of one kind are counted in the index alone.
CREATE INDEX rate_limit_history_at ON rate_limit_history (at, history_id, act);
CREATE INDEX rate_limit_history_who ON rate_limit_history (who, at, history_id);
CREATE INDEX rate_limit_history_act ON rate_limit_history (act, at, history_id);
CREATE INDEX rate_limit_history_rule ON rate_limit_history (rule_id, at, history_id) WHERE rule_id IS NOT NULL;
CREATE INDEX rate_limit_history_subject ON rate_limit_history (subject, at, history_id) WHERE subject IS NOT NULL;
CREATE INDEX rate_limit_history_target ON rate_limit_history (target, at, history_id) WHERE target IS NOT NULL;
CREATE INDEX rate_limit_history_raw ON rate_limit_history (history_id) WHERE is_raw = 1;

-- Mark of the service: it inserts a row at the beginning of a change and deletes it before the commit. Other
-- connections never see one.
CREATE TABLE rate_limit_acting (
    id INTEGER PRIMARY KEY CHECK (id = 1)
) STRICT;

-- Receives the changes made by hand. A statement that changes more than 100 rows has 100 rows here, and one with the
-- number of the others. The time of a statement is the same for all its rows.
CREATE VIEW rate_limit_by_hand AS
    SELECT act, rule_id, subject, target, before, after FROM rate_limit_history;

CREATE TRIGGER rate_limit_by_hand_inserted INSTEAD OF INSERT ON rate_limit_by_hand BEGIN
    UPDATE rate_limit_history SET count = count + 1
    WHERE at = CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER) * 1000
        AND who = 'sql' AND act = NEW.act AND rule_id IS NULL AND target IS NULL;
    INSERT INTO rate_limit_history (at, who, act, rule_id, subject, target, before, after, is_raw)
    SELECT
        now, 'sql', NEW.act,
        iif(is_detailed, NEW.rule_id, NULL), iif(is_detailed, NEW.subject, NULL),
        iif(is_detailed, NEW.target, NULL), iif(is_detailed, NEW.before, NULL),
        iif(is_detailed, NEW.after, NULL), 1
    FROM (
        SELECT now, 100 > (
            SELECT COUNT(*) FROM (
                SELECT 1 FROM rate_limit_history
                WHERE at = now AND who = 'sql' AND act = NEW.act AND (rule_id IS NOT NULL OR target IS NOT NULL)
                LIMIT 100
            )
        ) AS is_detailed
        FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER) * 1000 AS now)
    )
    WHERE NOT EXISTS (
        SELECT 1 FROM rate_limit_history
        WHERE at = now AND who = 'sql' AND act = NEW.act AND rule_id IS NULL AND target IS NULL
    );
END;

CREATE TRIGGER rate_limit_rules_inserted_by_hand AFTER INSERT ON rate_limit_rules
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'rule.create', NEW.rule_id, NULL, NULL,
        NULL,
        json_object(
            'rule_id', NEW.rule_id, 'key_pattern', NEW.key_pattern, 'scope', NEW.scope,
            'rate_per_second', NEW.rate_per_second, 'tokens', NEW.tokens,
            'period', CASE WHEN NEW.period % 1000000 = 0 THEN NEW.period / 1000000 ELSE NEW.period / 1000000.0 END,
            'burst_capacity', NEW.burst_capacity, 'plan', NEW.plan, 'algorithm', NEW.algorithm,
            'refill', NEW.refill,
            'max_wait', CASE WHEN NEW.max_wait % 1000000 = 0 THEN NEW.max_wait / 1000000 ELSE NEW.max_wait / 1000000.0 END,
            'mode', NEW.mode, 'on_error', NEW.on_error, 'path', NEW.path,
            'is_active', json(iif(NEW.is_active, 'true', 'false')), 'description', NEW.description,
            'conditions', json(NEW.conditions), 'name', NEW.name, 'replaces', json(NEW.replaces),
            'created_at', strftime('%Y-%m-%dT%H:%M:%S', NEW.created_at / 1000000, 'unixepoch') || printf('.%06dZ', NEW.created_at % 1000000),
            'version', NEW.version));
END;

CREATE TRIGGER rate_limit_rules_updated_by_hand AFTER UPDATE ON rate_limit_rules
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'rule.update', NEW.rule_id, NULL, NULL,
        json_object(
            'rule_id', OLD.rule_id, 'key_pattern', OLD.key_pattern, 'scope', OLD.scope,
            'rate_per_second', OLD.rate_per_second, 'tokens', OLD.tokens,
            'period', CASE WHEN OLD.period % 1000000 = 0 THEN OLD.period / 1000000 ELSE OLD.period / 1000000.0 END,
            'burst_capacity', OLD.burst_capacity, 'plan', OLD.plan, 'algorithm', OLD.algorithm,
            'refill', OLD.refill,
            'max_wait', CASE WHEN OLD.max_wait % 1000000 = 0 THEN OLD.max_wait / 1000000 ELSE OLD.max_wait / 1000000.0 END,
            'mode', OLD.mode, 'on_error', OLD.on_error, 'path', OLD.path,
            'is_active', json(iif(OLD.is_active, 'true', 'false')), 'description', OLD.description,
            'conditions', json(OLD.conditions), 'name', OLD.name, 'replaces', json(OLD.replaces),
            'created_at', strftime('%Y-%m-%dT%H:%M:%S', OLD.created_at / 1000000, 'unixepoch') || printf('.%06dZ', OLD.created_at % 1000000),
            'version', OLD.version),
        json_object(
            'rule_id', NEW.rule_id, 'key_pattern', NEW.key_pattern, 'scope', NEW.scope,
            'rate_per_second', NEW.rate_per_second, 'tokens', NEW.tokens,
            'period', CASE WHEN NEW.period % 1000000 = 0 THEN NEW.period / 1000000 ELSE NEW.period / 1000000.0 END,
            'burst_capacity', NEW.burst_capacity, 'plan', NEW.plan, 'algorithm', NEW.algorithm,
            'refill', NEW.refill,
            'max_wait', CASE WHEN NEW.max_wait % 1000000 = 0 THEN NEW.max_wait / 1000000 ELSE NEW.max_wait / 1000000.0 END,
            'mode', NEW.mode, 'on_error', NEW.on_error, 'path', NEW.path,
            'is_active', json(iif(NEW.is_active, 'true', 'false')), 'description', NEW.description,
            'conditions', json(NEW.conditions), 'name', NEW.name, 'replaces', json(NEW.replaces),
            'created_at', strftime('%Y-%m-%dT%H:%M:%S', NEW.created_at / 1000000, 'unixepoch') || printf('.%06dZ', NEW.created_at % 1000000),
            'version', NEW.version));
END;

CREATE TRIGGER rate_limit_rules_deleted_by_hand AFTER DELETE ON rate_limit_rules
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'rule.delete', OLD.rule_id, NULL, NULL,
        json_object(
            'rule_id', OLD.rule_id, 'key_pattern', OLD.key_pattern, 'scope', OLD.scope,
            'rate_per_second', OLD.rate_per_second, 'tokens', OLD.tokens,
            'period', CASE WHEN OLD.period % 1000000 = 0 THEN OLD.period / 1000000 ELSE OLD.period / 1000000.0 END,
            'burst_capacity', OLD.burst_capacity, 'plan', OLD.plan, 'algorithm', OLD.algorithm,
            'refill', OLD.refill,
            'max_wait', CASE WHEN OLD.max_wait % 1000000 = 0 THEN OLD.max_wait / 1000000 ELSE OLD.max_wait / 1000000.0 END,
            'mode', OLD.mode, 'on_error', OLD.on_error, 'path', OLD.path,
            'is_active', json(iif(OLD.is_active, 'true', 'false')), 'description', OLD.description,
            'conditions', json(OLD.conditions), 'name', OLD.name, 'replaces', json(OLD.replaces),
            'created_at', strftime('%Y-%m-%dT%H:%M:%S', OLD.created_at / 1000000, 'unixepoch') || printf('.%06dZ', OLD.created_at % 1000000),
            'version', OLD.version),
        NULL);
END;

CREATE TRIGGER rate_limit_overrides_inserted_by_hand AFTER INSERT ON rate_limit_overrides
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'override.set', NEW.rule_id, NEW.subject, NULL,
        NULL,
        json_object(
            'override_id', NEW.override_id, 'rule_id', NEW.rule_id, 'kind', NEW.kind, 'tokens', NEW.tokens,
            'period', CASE WHEN NEW.period % 1000000 = 0 THEN NEW.period / 1000000 ELSE NEW.period / 1000000.0 END,
            'burst_capacity', NEW.burst_capacity, 'algorithm', NEW.algorithm, 'refill', NEW.refill,
            'max_wait', CASE WHEN NEW.max_wait % 1000000 = 0 THEN NEW.max_wait / 1000000 ELSE NEW.max_wait / 1000000.0 END,
            'reason', NEW.reason,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', NEW.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', NEW.expires_at % 1000000),
            'version', NEW.version));
END;

CREATE TRIGGER rate_limit_overrides_updated_by_hand AFTER UPDATE ON rate_limit_overrides
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'override.set', NEW.rule_id, NEW.subject, NULL,
        json_object(
            'override_id', OLD.override_id, 'rule_id', OLD.rule_id, 'kind', OLD.kind, 'tokens', OLD.tokens,
            'period', CASE WHEN OLD.period % 1000000 = 0 THEN OLD.period / 1000000 ELSE OLD.period / 1000000.0 END,
            'burst_capacity', OLD.burst_capacity, 'algorithm', OLD.algorithm, 'refill', OLD.refill,
            'max_wait', CASE WHEN OLD.max_wait % 1000000 = 0 THEN OLD.max_wait / 1000000 ELSE OLD.max_wait / 1000000.0 END,
            'reason', OLD.reason,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', OLD.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', OLD.expires_at % 1000000),
            'version', OLD.version),
        json_object(
            'override_id', NEW.override_id, 'rule_id', NEW.rule_id, 'kind', NEW.kind, 'tokens', NEW.tokens,
            'period', CASE WHEN NEW.period % 1000000 = 0 THEN NEW.period / 1000000 ELSE NEW.period / 1000000.0 END,
            'burst_capacity', NEW.burst_capacity, 'algorithm', NEW.algorithm, 'refill', NEW.refill,
            'max_wait', CASE WHEN NEW.max_wait % 1000000 = 0 THEN NEW.max_wait / 1000000 ELSE NEW.max_wait / 1000000.0 END,
            'reason', NEW.reason,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', NEW.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', NEW.expires_at % 1000000),
            'version', NEW.version));
END;

CREATE TRIGGER rate_limit_overrides_deleted_by_hand AFTER DELETE ON rate_limit_overrides
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'override.delete', OLD.rule_id, OLD.subject, NULL,
        json_object(
            'override_id', OLD.override_id, 'rule_id', OLD.rule_id, 'kind', OLD.kind, 'tokens', OLD.tokens,
            'period', CASE WHEN OLD.period % 1000000 = 0 THEN OLD.period / 1000000 ELSE OLD.period / 1000000.0 END,
            'burst_capacity', OLD.burst_capacity, 'algorithm', OLD.algorithm, 'refill', OLD.refill,
            'max_wait', CASE WHEN OLD.max_wait % 1000000 = 0 THEN OLD.max_wait / 1000000 ELSE OLD.max_wait / 1000000.0 END,
            'reason', OLD.reason,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', OLD.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', OLD.expires_at % 1000000),
            'version', OLD.version),
        NULL);
END;

CREATE TRIGGER rate_limit_tokens_inserted_by_hand AFTER INSERT ON rate_limit_tokens
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'token.create', NULL, NULL, NEW.name,
        NULL,
        json_object(
            'token_id', NEW.token_id, 'name', NEW.name, 'role', NEW.role));
END;

CREATE TRIGGER rate_limit_tokens_updated_by_hand AFTER UPDATE ON rate_limit_tokens
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'token.update', NULL, NULL, NEW.name,
        json_object(
            'token_id', OLD.token_id, 'name', OLD.name, 'role', OLD.role),
        json_object(
            'token_id', NEW.token_id, 'name', NEW.name, 'role', NEW.role,
            'has_new_hash', json(iif(OLD.hash IS NOT NEW.hash, 'true', 'false'))));
END;

CREATE TRIGGER rate_limit_tokens_deleted_by_hand AFTER DELETE ON rate_limit_tokens
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'token.revoke', NULL, NULL, OLD.name,
        json_object(
            'token_id', OLD.token_id, 'name', OLD.name, 'role', OLD.role),
        NULL);
END;

CREATE TRIGGER rate_limit_callers_inserted_by_hand AFTER INSERT ON rate_limit_callers
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'caller.create', NULL, NULL, NEW.name,
        NULL,
        json_object(
            'caller_id', NEW.caller_id, 'name', NEW.name,
            'rights', json('["' || replace(NEW.rights, ',', '","') || '"]'), 'namespace', NEW.namespace,
            'certificate', NEW.certificate,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', NEW.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', NEW.expires_at % 1000000)));
END;

CREATE TRIGGER rate_limit_callers_updated_by_hand AFTER UPDATE ON rate_limit_callers
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'caller.update', NULL, NULL, NEW.name,
        json_object(
            'caller_id', OLD.caller_id, 'name', OLD.name,
            'rights', json('["' || replace(OLD.rights, ',', '","') || '"]'), 'namespace', OLD.namespace,
            'certificate', OLD.certificate,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', OLD.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', OLD.expires_at % 1000000)),
        json_object(
            'caller_id', NEW.caller_id, 'name', NEW.name,
            'rights', json('["' || replace(NEW.rights, ',', '","') || '"]'), 'namespace', NEW.namespace,
            'certificate', NEW.certificate,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', NEW.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', NEW.expires_at % 1000000),
            'has_new_hash', json(iif(OLD.hash IS NOT NEW.hash, 'true', 'false'))));
END;

CREATE TRIGGER rate_limit_callers_deleted_by_hand AFTER DELETE ON rate_limit_callers
WHEN NOT EXISTS (SELECT 1 FROM rate_limit_acting) BEGIN
    INSERT INTO rate_limit_by_hand (act, rule_id, subject, target, before, after) VALUES (
        'caller.revoke', NULL, NULL, OLD.name,
        json_object(
            'caller_id', OLD.caller_id, 'name', OLD.name,
            'rights', json('["' || replace(OLD.rights, ',', '","') || '"]'), 'namespace', OLD.namespace,
            'certificate', OLD.certificate,
            'expires_at', strftime('%Y-%m-%dT%H:%M:%S', OLD.expires_at / 1000000, 'unixepoch') || printf('.%06dZ', OLD.expires_at % 1000000)),
        NULL);
END;
