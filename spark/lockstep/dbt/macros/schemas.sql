{#-
  Where models are. Target `prod` writes the schemas that models name (`staging`, `marts`); what is to be in `marts` is built in
  `marts_built`, and readers see it in `marts` when the run has passed its tests. Every other target writes all of its models into
  one schema of its own: dbt's `generate_schema_name_for_env`.
-#}
{% macro generate_schema_name(custom_schema_name, node) -%}
  {%- set schema = generate_schema_name_for_env(custom_schema_name, node) | trim -%}
  {{ 'marts_built' if target.name == 'prod' and schema == 'marts' else schema }}
{%- endmacro %}

{#- The files of a table are in the lake: of production beside the other layers, of developers below `_dbt`. -#}
{% macro spark__location_clause() %}
  {%- if config.get('location_root') -%}
    {{ exceptions.raise_compiler_error(
        this ~ ": remove location_root. Lockstep chooses the place of a table by its schema, so that no target writes into another's."
    ) }}
  {%- endif -%}
  location '{{ path_of_table() }}'
{%- endmacro %}

{% macro path_of_table() -%}
  {%- set schema = 'marts' if model.schema == 'marts_built' else model.schema -%}
  {%- set folder = schema if target.name == 'prod' else '_dbt/' ~ schema -%}
  {{ return(env_var("LOCKSTEP_LAKE") ~ '/' ~ folder ~ '/' ~ model.alias) }}
{%- endmacro %}
