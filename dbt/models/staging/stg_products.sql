select product_id, description, price
from {{ source('silver', 'products') }}
where not _deleted
