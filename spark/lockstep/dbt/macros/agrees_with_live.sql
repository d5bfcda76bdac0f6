{#- The figures of a mart on a day are those that a view has in live: returns the days, and what else `by` names, on which one of
  them differs. `figures` has, by column of the mart, whose sum is taken, the figure of the live rows as SQL. A day is looked at
  when live and batch were compared to its end. That it only warns is on purpose: where live has fallen behind, the marts go on.
  The project's sources name `live.<view>` and `ops.reconciliation`. -#}
{% test agrees_with_live(model, day, view, figures, at='at', by=[]) %}
{{ config(severity='warn') }}
with in_marts as (
  select {{ day }} as day, {% for name in by %}{{ name }}, {% endfor %}
    {%- for name in figures %}sum({{ name }}) as {{ name }}{{ ', ' if not loop.last }}{% endfor %}
  from {{ model }}
  where {{ interval_of_run(day) }}
  group by {{ ([day] + by) | join(', ') }}
),

in_live as (
  select cast({{ at }} as date) as day, {% for name in by %}{{ name }}, {% endfor %}
    {%- for name, figure in figures.items() %}{{ figure }} as {{ name }}{{ ', ' if not loop.last }}{% endfor %}
  from {{ source('live', view) }}
  where {{ interval_of_run(at) }}
  group by {{ (['cast(' ~ at ~ ' as date)'] + by) | join(', ') }}
),

compared as (
  select cast(max(window_end) as date) as until
  from {{ source('ops', 'reconciliation') }}
  where view = '{{ view }}'
)

select
  {%- for name in ['day'] + by %}
  coalesce(in_marts.{{ name }}, in_live.{{ name }}) as {{ name }},
  {%- endfor %}
  {%- for name in figures %}
  in_marts.{{ name }}, in_live.{{ name }} as {{ name }}_of_live{{ ',' if not loop.last }}
  {%- endfor %}
from in_marts
full outer join in_live
  on {% for name in ['day'] + by %}in_marts.{{ name }} = in_live.{{ name }}{{ ' and ' if not loop.last }}{% endfor %}
cross join compared
where coalesce(in_marts.day, in_live.day) < compared.until
  and (
    {%- for name in figures %}
    coalesce(in_marts.{{ name }}, 0) != coalesce(in_live.{{ name }}, 0){{ ' or' if not loop.last }}
    {%- endfor %}
  )
{% endtest %}
