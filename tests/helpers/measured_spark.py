"""Spark's daemon of Python workers, whose workers write down which lines they reached.

Spark ends its workers by signals at which coverage writes nothing, so they write after every
task. Spark runs this module in place of `pyspark.daemon` where `spark.python.daemon.module`
names it.
"""

from coverage import Coverage
from pyspark import daemon

run_task = daemon.worker


def worker(*connection):
    try:
        return run_task(*connection)
    finally:
        Coverage.current().save()


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
