"""The Thrift server: the tables and views of the lake for BI tools, read-only."""
