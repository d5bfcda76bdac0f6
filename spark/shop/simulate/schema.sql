-- The shop's tables, captured by Debezium, and the simulator's own progress, which is not.

CREATE TABLE IF NOT EXISTS public.users (
    user_id    TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    email      TEXT NOT NULL UNIQUE,
    age        INTEGER NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS public.products (
    product_id  TEXT PRIMARY KEY,
    description TEXT,
    price       NUMERIC(12, 3) NOT NULL,
    updated_at  TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS public.inventory (
    product_id TEXT PRIMARY KEY REFERENCES public.products,
    stock      INTEGER NOT NULL,
    counted_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS public.orders (
    order_id   TEXT PRIMARY KEY,
    user_id    TEXT REFERENCES public.users,
    country    TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('sale', 'cancellation', 'adjustment')),
    ordered_at TIMESTAMPTZ NOT NULL,
    amount     NUMERIC(12, 3) NOT NULL
);
CREATE INDEX IF NOT EXISTS orders_ordered_at ON public.orders (ordered_at);

CREATE TABLE IF NOT EXISTS public.order_lines (
    order_id    TEXT NOT NULL REFERENCES public.orders,
    line_no     INTEGER NOT NULL,
    product_id  TEXT NOT NULL REFERENCES public.products,
    description TEXT,
    quantity    INTEGER NOT NULL,
    unit_price  NUMERIC(12, 3) NOT NULL,
    ordered_at  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (order_id, line_no)
);

ALTER TABLE public.users REPLICA IDENTITY FULL;
ALTER TABLE public.products REPLICA IDENTITY FULL;
ALTER TABLE public.inventory REPLICA IDENTITY FULL;
ALTER TABLE public.orders REPLICA IDENTITY FULL;
ALTER TABLE public.order_lines REPLICA IDENTITY FULL;

CREATE SCHEMA IF NOT EXISTS simulator;

CREATE TABLE IF NOT EXISTS simulator.state (
    only_row      BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    shift_weeks   INTEGER NOT NULL,
    plan          JSONB NOT NULL,
    orders_until  TIMESTAMPTZ NOT NULL,
    traffic_until TIMESTAMPTZ NOT NULL,
    finished      BOOLEAN NOT NULL DEFAULT FALSE
);
