-- Every change of a captured table: which table and row, what happened, and when it was committed.
select 'inventory' as table_name, product_id as row_key, _op as op, _committed_at as committed_at
from {{ source('silver', 'inventory_changes') }}
union all
select 'order_lines' as table_name, concat_ws('/', order_id, line_no) as row_key, _op as op, _committed_at as committed_at
from {{ source('silver', 'order_lines_changes') }}
union all
select 'orders' as table_name, order_id as row_key, _op as op, _committed_at as committed_at
from {{ source('silver', 'orders_changes') }}
union all
select 'products' as table_name, product_id as row_key, _op as op, _committed_at as committed_at
from {{ source('silver', 'products_changes') }}
union all
select 'users' as table_name, user_id as row_key, _op as op, _committed_at as committed_at
from {{ source('silver', 'users_changes') }}
