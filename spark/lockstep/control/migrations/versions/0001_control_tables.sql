-- lockstep.ledger.heads: the newest commit that each ledger is known to have had.
CREATE TABLE IF NOT EXISTS ledger_heads (
    table_name  text PRIMARY KEY,
    version     bigint NOT NULL,
    seq         bigint NOT NULL,
    ranges      jsonb NOT NULL,
    checked_at  timestamptz NOT NULL DEFAULT now()
);

-- lockstep.ledger.integrity: the SHA-256 of each commit of a Delta log.
CREATE TABLE IF NOT EXISTS log_digests (
    table_name  text NOT NULL,
    version     bigint NOT NULL,
    sha256      text NOT NULL,
    PRIMARY KEY (table_name, version)
);

-- lockstep.control.intervals: the intervals of tables that replays and backfills hold.
CREATE TABLE IF NOT EXISTS interval_locks (
    holder         text NOT NULL,
    kind           text NOT NULL,
    table_name     text NOT NULL,
    low            timestamptz NOT NULL,
    high           timestamptz NOT NULL,
    since          timestamptz NOT NULL DEFAULT now(),
    backend        int,
    backend_start  timestamptz,
    PRIMARY KEY (holder, table_name)
);

-- lockstep.live.generations: the generations of each live query, and the definition with which the newest one started.
CREATE TABLE IF NOT EXISTS live_generations (
    query          text NOT NULL,
    generation     integer NOT NULL,
    reason         text NOT NULL,
    started_by     text NOT NULL,
    starts         jsonb NOT NULL,
    since          timestamptz,
    savepoint      text,
    -- The job that several views share, and what it reads; without one, the view has a job of its own.
    job            text,
    job_number     integer,
    streams        jsonb NOT NULL DEFAULT '[]',
    label          text NOT NULL DEFAULT '',
    run_id         text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (query, generation),
    UNIQUE (query, run_id)
);
CREATE TABLE IF NOT EXISTS live_definitions (
    query        text PRIMARY KEY,
    generation   integer NOT NULL,
    fingerprint  text NOT NULL
);

-- lockstep.checkpoints.journal: what the files of each job's checkpoint were when they were new.
CREATE TABLE IF NOT EXISTS checkpoint_files (
    job     text NOT NULL,
    number  integer NOT NULL,
    path    text NOT NULL,
    size    bigint NOT NULL,
    sha256  text NOT NULL,
    body    bytea,
    PRIMARY KEY (job, number, path)
);

-- lockstep.sinks.attempts: the newest batch that an at-most-once sink has tried.
CREATE TABLE IF NOT EXISTS delivery_attempts (
    sink        text NOT NULL,
    generation  integer NOT NULL,
    batch_id    bigint NOT NULL,
    tried_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sink, generation)
);

-- lockstep.sinks.outbox: what became of each alert for a webhook or a mail server.
CREATE TABLE IF NOT EXISTS delivery_outbox (
    sink     text NOT NULL,
    id       text NOT NULL,
    place    bigint GENERATED ALWAYS AS IDENTITY,
    body     text NOT NULL,
    state    text NOT NULL DEFAULT 'waiting',
    reason   text,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sink, id)
);
CREATE INDEX IF NOT EXISTS delivery_outbox_waiting ON delivery_outbox (sink, place) WHERE state = 'waiting';
