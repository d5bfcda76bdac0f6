{{ config(materialized='view') }}

select
  user_id,
  min(day) filter (where orders > 0) as first_order_on,
  max(day) filter (where orders > 0) as last_order_on,
  sum(orders) as orders,
  cast(sum(revenue) as decimal(18, 3)) as revenue,
  cast(sum(returns) as decimal(18, 3)) as returns,
  cast(sum(revenue - returns) as decimal(18, 3)) as lifetime_value
from {{ ref('daily_customers') }}
group by user_id
