select event_id, event_time, user_id, session_id, order_id, amount, country
from {{ source('silver', 'payments') }}
