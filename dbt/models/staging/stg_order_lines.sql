select order_id, line_no, product_id, quantity, unit_price
from {{ source('silver', 'order_lines') }}
where not _deleted
