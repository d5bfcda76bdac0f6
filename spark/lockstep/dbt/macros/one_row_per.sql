{#- The columns identify a row of the interval that was built: returns those values that more than one row has. -#}
{% test one_row_per(model, columns, day) %}
select {{ columns | join(', ') }}, count(*) as n
from {{ model }}
where {{ interval_of_run(day) }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}
