{#-
  How the marts are written: the days of the batch are replaced as a whole, in one commit.

  dbt-spark's own microbatch overwrites the partitions that the new rows name, so a day that has no rows any more would
  keep the old ones; and its first run creates or *replaces* the table, so of two days built at once one would be lost.
  The columns, their order and types are those of the model's contract.
-#}
{% materialization incremental, adapter='spark', supported_languages=['sql'] %}
  {%- if config.get('incremental_strategy') != 'microbatch' or not config.get('contract').enforced -%}
    {{ exceptions.raise_compiler_error(
        this ~ ": an incremental model needs incremental_strategy='microbatch' and an enforced contract"
    ) }}
  {%- endif -%}
  {%- set day = config.require('partition_by') -%}
  {%- set columns = model.columns.keys() | join(', ') -%}
  {{ run_hooks(pre_hooks) }}

  {%- if load_relation(this) is none -%}
  {%- call statement('create') -%}
    create table if not exists {{ this }} (
      {%- for column in model.columns.values() %}
      {{ column.name }} {{ column.data_type }}
      {%- if column.constraints | selectattr('type', 'equalto', 'not_null') | list %} not null {%- endif %}
      {{- "," if not loop.last }}
      {%- endfor %}
    ) using delta
    partitioned by ({{ day }})
    {{ location_clause() }}
  {%- endcall -%}
  {%- endif -%}

  {%- call statement('main') -%}
    insert into {{ this }}
    replace where {{ day }} >= date '{{ model.batch.event_time_start.date() }}'
              and {{ day }} < date '{{ model.batch.event_time_end.date() }}'
    select {{ columns }} from ({{ compiled_code }})
  {%- endcall -%}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [this]}) }}
{% endmaterialization %}
