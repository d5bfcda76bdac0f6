-- What change capture needs in addition to the shop's own tables. It runs on each `up`, so every statement can be repeated.

-- The connector's heartbeat writes here. Without it, the slot of an idle shop would keep the WAL of all databases.
CREATE TABLE IF NOT EXISTS public.heartbeat (id INT PRIMARY KEY, beaten_at TIMESTAMPTZ NOT NULL);

-- It covers the whole schema, so that it can exist before the shop's tables, and includes those that are created later.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'lockstep') THEN
    CREATE PUBLICATION lockstep FOR TABLES IN SCHEMA public;
  END IF;
END
$$;
