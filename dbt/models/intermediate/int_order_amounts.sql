-- One row per order: what its lines come to. Negative for a cancellation.
select
  orders.order_id,
  orders.user_id,
  orders.country,
  orders.kind,
  orders.ordered_at,
  coalesce(sum(lines.quantity * lines.unit_price), 0) as amount
from {{ ref('stg_orders') }} as orders
left join {{ ref('stg_order_lines') }} as lines on orders.order_id = lines.order_id
group by orders.order_id, orders.user_id, orders.country, orders.kind, orders.ordered_at
