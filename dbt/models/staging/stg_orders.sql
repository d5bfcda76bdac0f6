select order_id, user_id, country, kind, ordered_at
from {{ source('silver', 'orders') }}
where not _deleted
