"""The marts: the project's dbt models, built for the days that new rows of their sources touch."""
