"""Run the common suite on a Spark cluster of this machine: a master, a worker and an executor.

python -m tests.engine.spark_cluster [all]

Not one of the tests, because four processes of Java take too long to start. Without `all`, one part of
the suite.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent


#: What the scripts of Spark set for its processes.
ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_SCALA_VERSION": "2.13",
}


def start(stack: ExitStack, log: Path, ready: str, *words: str) -> str:
    """Start a daemon of Spark, ended with the stack; return what it says when it is ready."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [str(java), "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{HOME}/jars/*", *words]
    settings = os.environ | ENVIRONMENT
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=settings)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(ready, log.read_text(errors="replace")):
            return found[0]
        time.sleep(0.1)
    raise RuntimeError(log.read_text(errors="replace"))


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a cluster with one core."""
    with ExitStack() as stack:
        deploy, place = "org.apache.spark.deploy", ["--host", "127.0.0.1", "--webui-port", "0"]
        master = [f"{deploy}.master.Master", *place, "--port", "0"]
        address = start(stack, folder / "master", r"spark://127\.0\.0\.1:\d+", *master)
        size = ["--cores", "1", "--memory", "2g", "--work-dir", str(folder / "work")]
        worker = [f"{deploy}.worker.Worker", *place, *size, address]
        start(stack, folder / "worker", "Successfully registered with master", *worker)
        yield address


def main(*options: str) -> None:
    """Run the suite as a client of the cluster, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as address:
        print(address, flush=True)
        command = [sys.executable, "-m", "tests.engine.spark_client", address, folder, *options]
        subprocess.run(command, check=True, env=os.environ | ENVIRONMENT)


if __name__ == "__main__":
    main(*sys.argv[1:])
