{#- The columns identify a row of the days that were built: returns those values that more than one row has. -#}
{% test one_row_per(model, columns, day) %}
select {{ columns | join(', ') }}, count(*) as n
from {{ model }}
where {{ built_days(day) }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}
