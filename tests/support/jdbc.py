"""A JDBC client: ``python jdbc.py <url> <statement>`` prints the rows as JSON. A program, because it has a JVM inside."""

import json
import sys
from pathlib import Path

import jaydebeapi
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
    connection = jaydebeapi.connect(DRIVER, url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            names = [column[0] for column in cursor.description]
            print(json.dumps([dict(zip(names, row, strict=True)) for row in cursor.fetchall()], default=str))
    finally:
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
