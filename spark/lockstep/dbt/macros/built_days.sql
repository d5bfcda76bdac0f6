{#-
  The predicate that selects the days which this run builds (`--event-time-start`, `--event-time-end`), or every day.
  A test that keeps to them reads one day's file, however long the mart is.
-#}
{% macro built_days(day) -%}
  {%- set start, end = invocation_args_dict.get('event_time_start'), invocation_args_dict.get('event_time_end') -%}
  {%- if start and end -%}
    {{ day }} >= date '{{ (start | string)[:10] }}' and {{ day }} < date '{{ (end | string)[:10] }}'
  {%- else -%}
    true
  {%- endif -%}
{%- endmacro %}
