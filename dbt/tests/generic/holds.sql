{#- The condition is true of every row: returns those of which it is false or unknown. -#}
{% test holds(model, condition) %}
select * from {{ model }} where not coalesce({{ condition }}, false)
{% endtest %}
