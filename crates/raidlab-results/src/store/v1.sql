-- Version 1 of the store. `trials.record` is the whole record as JSON and the authority; all other
-- columns and tables of a trial are made from it for queries. Times named `_us` are microseconds
-- since 1970, in UTC. A number above 2^63-1 is NULL here and exact in the record.

CREATE TABLE sessions (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    title      TEXT NOT NULL,
    created    TEXT NOT NULL,              -- RFC 3339, as given
    created_us INTEGER NOT NULL,
    command    TEXT NOT NULL,
    raidlab    TEXT NOT NULL,              -- version that made it
    plan       TEXT,                       -- JSON; NULL for imports and studies
    planned    INTEGER,                    -- trials the plan comes to
    finished   INTEGER NOT NULL CHECK (finished IN (0, 1)),
    runner     TEXT                        -- the process at work on it
) STRICT;

CREATE TABLE notes (
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    note     TEXT NOT NULL,
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE environments (
    digest      TEXT PRIMARY KEY NOT NULL,
    environment TEXT NOT NULL              -- JSON, keys sorted
) STRICT, WITHOUT ROWID;

CREATE TABLE trials (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    session      TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,         -- order of execution within the session
    round        INTEGER NOT NULL,
    label        TEXT NOT NULL,
    profile      TEXT NOT NULL,
    source       TEXT NOT NULL CHECK (source IN ('measured', 'simulated', 'imported', 'published')),
    place        TEXT,                     -- host or vm, of a measured one
    tool         TEXT,                     -- of an imported one
    tool_version TEXT,
    file         TEXT,
    study        TEXT,                     -- of a published one
    study_date   TEXT,
    started      TEXT,                     -- RFC 3339, as given
    started_us   INTEGER,
    elapsed_ns   INTEGER,
    seed         TEXT,                     -- decimal: up to 2^64-1
    digest       TEXT,                     -- of the operation streams, 16 hexadecimal digits
    environment  TEXT REFERENCES environments (digest),
    command      TEXT,
    status       TEXT NOT NULL CHECK (status IN ('complete', 'failed')),
    reason       TEXT,                     -- of a failed one
    valid        INTEGER NOT NULL CHECK (valid IN (0, 1)),
    record       TEXT NOT NULL
) STRICT;
CREATE INDEX trials_by_session ON trials (session, position);
CREATE INDEX trials_by_profile ON trials (profile);
CREATE INDEX trials_by_environment ON trials (environment);

CREATE TABLE factors (
    trial TEXT NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    name  TEXT NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (trial, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX factors_by_level ON factors (name, level);

CREATE TABLE settings (
    trial TEXT NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (trial, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE phases (
    trial                  TEXT NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    position               INTEGER NOT NULL,
    phase                  TEXT NOT NULL,
    rate                   REAL,           -- in unit; NULL: there is no figure
    unit                   TEXT NOT NULL,
    bytes                  INTEGER,
    ops                    INTEGER,
    elapsed_ns             INTEGER,
    cpu_percent            REAL,
    cpu_user_ns            INTEGER,
    cpu_system_ns          INTEGER,
    cpu_kernel_threads_ns  INTEGER,
    latency_count          INTEGER,
    latency_mean_ns        INTEGER,
    latency_p50_ns         INTEGER,
    latency_p99_ns         INTEGER,
    latency_max_ns         INTEGER,
    mean_in_flight         REAL,
    claimed_read_bytes     INTEGER,
    claimed_written_bytes  INTEGER,
    device_read_bytes      INTEGER,
    device_written_bytes   INTEGER,
    valid                  INTEGER NOT NULL CHECK (valid IN (0, 1)), -- without regard to the trial
    PRIMARY KEY (trial, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE figures (
    trial    TEXT NOT NULL,
    position INTEGER NOT NULL,             -- of the phase
    name     TEXT NOT NULL,
    value    REAL NOT NULL,
    unit     TEXT NOT NULL,
    PRIMARY KEY (trial, position, name),
    FOREIGN KEY (trial, position) REFERENCES phases (trial, position) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE flags (
    number   INTEGER PRIMARY KEY,
    trial    TEXT NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    position INTEGER,                      -- of the phase; NULL: the whole trial
    kind     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    voids    INTEGER NOT NULL CHECK (voids IN (0, 1))
) STRICT;
CREATE INDEX flags_by_trial ON flags (trial);

-- One phase a row with what identifies it: the table to begin with in the sqlite3 shell.
CREATE VIEW results AS
SELECT s.title AS title, t.session AS session, t.id AS trial, t.label AS label,
       t.profile AS profile, t.source AS source, t.round AS round, p.phase AS phase,
       p.rate AS rate, p.unit AS unit, p.bytes AS bytes, p.ops AS ops,
       p.elapsed_ns / 1e9 AS elapsed_seconds, p.cpu_percent AS cpu_percent,
       t.valid AND p.valid AND p.rate IS NOT NULL AS valid
FROM sessions AS s
JOIN trials AS t ON t.session = s.id
JOIN phases AS p ON p.trial = t.id
ORDER BY s.created_us, s.number, t.position, t.number, p.position;
