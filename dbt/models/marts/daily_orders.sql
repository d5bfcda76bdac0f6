{{ config(event_time='day', partition_by='day') }}

select
  cast(ordered_at as date) as day,
  coalesce(country, 'Unspecified') as country,
  count_if(kind = 'sale') as orders,
  cast(coalesce(sum(amount) filter (where kind = 'sale'), 0) as decimal(18, 3)) as revenue,
  cast(-coalesce(sum(amount) filter (where kind = 'cancellation'), 0) as decimal(18, 3)) as returns
from {{ ref('int_order_amounts') }}
where
  kind in ('sale', 'cancellation')
  {%- if is_incremental() %}
  and {{ interval_of_run('ordered_at') }}
  {%- endif %}
group by cast(ordered_at as date), coalesce(country, 'Unspecified')
