{#- The columns identify a row: returns those values that more than one row has. -#}
{% test one_row_per(model, columns) %}
select {{ columns | join(', ') }}, count(*) as n
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}
