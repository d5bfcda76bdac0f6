-- A line without its order is in no mart of orders. Both topics are read independently: a line is looked at when silver has later
-- changes of the orders, so that its order is not on its way any more.
with known as (
  select max(struct(coalesce(_generation, 1), _commit_lsn)) as newest
  from {{ source('silver', 'orders') }}
)

select
  lines.order_id,
  lines.line_no
from {{ source('silver', 'order_lines') }} as lines
cross join known
left anti join {{ source('silver', 'orders') }} as orders
  on lines.order_id = orders.order_id and not orders._deleted
where
  not lines._deleted
  and struct(coalesce(lines._generation, 1), lines._commit_lsn) < known.newest
  and {{ interval_of_run('lines.ordered_at') }}
