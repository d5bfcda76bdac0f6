{{ config(materialized='view') }}

with first_orders as (
  select user_id, cast(trunc(first_order_on, 'MM') as date) as cohort
  from {{ ref('customer_lifetime_value') }}
  where first_order_on is not null
),

months as (
  select
    first_orders.cohort,
    days.user_id,
    cast(months_between(trunc(days.day, 'MM'), first_orders.cohort) as int) as month_no,
    sum(days.orders) as orders,
    sum(days.revenue) as revenue,
    sum(days.returns) as returns
  from {{ ref('daily_customers') }} as days
  inner join first_orders on days.user_id = first_orders.user_id
  where cast(trunc(days.day, 'MM') as date) >= first_orders.cohort
  group by all
)

select
  cohort,
  month_no,
  count_if(orders > 0) as customers,
  sum(orders) as orders,
  cast(sum(revenue) as decimal(18, 3)) as revenue,
  cast(sum(returns) as decimal(18, 3)) as returns
from months
group by cohort, month_no
