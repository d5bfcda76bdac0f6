{#-
  dbt-spark knows its incremental strategies by name, and refuses all others. dbt's documentation has a way to add one: a macro
  `get_incremental_<name>_sql`. These two macros of dbt-spark are overridden to look for it; all else is left to dbt-spark.
-#}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
  {%- if raw_strategy in ['append', 'merge', 'insert_overwrite', 'microbatch'] -%}
    {{ return(dbt.dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format)) }}
  {%- endif -%}
  {#- It refuses a name without a macro. -#}
  {%- do adapter.get_incremental_strategy_macro(context, raw_strategy) -%}
  {%- if raw_strategy == 'replace_where' and file_format != 'delta' -%}
    {{ exceptions.raise_compiler_error(
        this ~ ": replace_where replaces rows of a Delta table in one commit. Set file_format='delta', not '" ~ file_format ~ "'."
    ) }}
  {%- endif -%}
  {{ return(raw_strategy) }}
{% endmacro %}

{% macro dbt_spark_get_incremental_sql(strategy, source, target, existing, unique_key, incremental_predicates) %}
  {#- A batch is replaced as a whole. dbt-spark overwrites the partitions that new rows name, so an empty batch would keep old rows. -#}
  {%- set of_a_batch = strategy == 'microbatch' and config.get('file_format') == 'delta' -%}
  {%- if strategy in ['append', 'merge', 'insert_overwrite', 'microbatch'] and not of_a_batch -%}
    {{ return(dbt.dbt_spark_get_incremental_sql(
        strategy, source, target, existing, unique_key, incremental_predicates
    )) }}
  {%- endif -%}
  {%- set name = 'replace_where' if of_a_batch else strategy -%}
  {{ return(adapter.get_incremental_strategy_macro(context, name)({
      'target_relation': target,
      'temp_relation': source,
      'unique_key': unique_key,
      'dest_columns': adapter.get_columns_in_relation(target),
      'incremental_predicates': incremental_predicates,
  })) }}
{% endmacro %}

{#-
  incremental_strategy='replace_where': the rows that fulfil a predicate are replaced, in one commit of Delta, which refuses new
  rows outside of it. The predicate is that of `incremental_predicates`; else the interval of the run (or of the batch) on the
  model's `event_time`. Days of the interval that have become empty are empty afterwards.
-#}
{% macro get_incremental_replace_where_sql(arg_dict) %}
  {%- if config.get('contract').enforced -%}
    {#- dbt-spark looks at the contract only where it creates the table. -#}
    {%- do get_assert_columns_equivalent('select * from ' ~ arg_dict['temp_relation']) -%}
  {%- endif -%}
  {%- set predicates = arg_dict['incremental_predicates'] -%}
  {%- if not predicates -%}
    {%- if not config.get('event_time') -%}
      {{ exceptions.raise_compiler_error(
          this ~ ": replace_where needs event_time, the column whose interval is replaced, or incremental_predicates."
      ) }}
    {%- endif -%}
    {%- set predicates = [interval_of_run(config.get('event_time'))] -%}
  {%- elif predicates is string -%}
    {%- set predicates = [predicates] -%}
  {%- endif -%}
  {%- set columns = arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  insert into {{ arg_dict['target_relation'] }}
  replace where {{ predicates | join(' and ') }}
  select {{ columns }} from {{ arg_dict['temp_relation'] }}
{% endmacro %}
