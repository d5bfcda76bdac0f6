"""A JDBC client: ``python jdbc.py <url> <statement>`` prints the rows as JSON of texts. A program, as it has a JVM inside."""

import json
import sys
from pathlib import Path

import jpype

from lockstep.stack.jars import spark_home
from lockstep.stack.java import SPARK_OPENS, find_java

DRIVER = "org.apache.spark.sql.connect.client.jdbc.SparkConnectDriver"


def main(url: str, statement: str) -> None:
    """Run the statement with the driver that comes with PySpark."""
    jars = spark_home() / "jars"
    classpath = [*map(str, (jars / "connect-repl").glob("spark-connect-client-*.jar")), str(jars / "*")]
    library = next(Path(find_java().home).rglob("libjvm.so"))
    jpype.startJVM(str(library), *SPARK_OPENS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", classpath=classpath)
    connection = jpype.JClass(DRIVER)().connect(url, jpype.JClass("java.util.Properties")())
    try:
        # The driver of Spark 4.1 has no prepared statements, which Python's clients of JDBC ask for.
        query = connection.createStatement()
        rows = query.executeQuery(statement)
        columns = range(1, rows.getMetaData().getColumnCount() + 1)
        names = {column: str(rows.getMetaData().getColumnName(column)) for column in columns}
        found = []
        while rows.next():
            found.append({names[column]: str(rows.getObject(column)) for column in columns})
        # The driver counts a result that was not closed as a leak.
        rows.close()
        query.close()
        print(json.dumps(found))
    finally:
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
