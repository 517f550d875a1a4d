"""Spotcheck compared with obstore and boto3 on one S3 server in one run: listing, fetching, predicting, first images.

usage: python run.py [--only list|fetch|predict|window] [--rounds 3] [--keys 100000] [--objects 10000] [--images 1000]
                     [--bench PATH] [--spotcheck PATH]

README.md describes the comparison and the installation. The server is SeaweedFS on this computer, as in the tests.
"""
import argparse
import asyncio
import contextlib
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "target" / "bench" / "s3"
KEY, SECRET = "AKIABENCHBENCH000001", "the-secret-of-the-benches"
BUCKET = "bench"
OBJECT_BYTES = 20_000
BOTO_THREADS = 32
OBSTORE_TASKS = 64
UPLOADERS = 4


# The server


@contextlib.contextmanager
def server():
    """Yields the S3 endpoint, the port of the filer and the process; everything is deleted at the end."""
    tools = ROOT / "target" / "test-tools" / "seaweedfs"
    subprocess.run([ROOT / "tests" / "setup" / "python-packages.sh", "seaweedfs", tools], check=True)
    with tempfile.TemporaryDirectory(prefix="spotcheck-bench-") as folder, contextlib.ExitStack() as held:
        sockets = [held.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", 0)))) for _ in range(8)]
        ports = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        master, volume, filer, s3, *grpc = ports
        config = Path(folder) / "s3.json"
        config.write_text(json.dumps({"identities": [{
            "name": "bench", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}))
        process = subprocess.Popen(
            [tools / "packages" / "bin" / "weed", f"-logdir={folder}", "server", f"-dir={folder}",
             "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
             "-master.peers=none", "-master.telemetry=false", "-master.volumeSizeLimitMB=1024", "-volume.max=100",
             f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-master.port.grpc={grpc[0]}",
             f"-volume.port.grpc={grpc[1]}", f"-filer.port.grpc={grpc[2]}", f"-filer.localSocket={folder}/filer.sock",
             "-filer.saveToFilerLimit=4096", "-s3", f"-s3.port={s3}", f"-s3.port.grpc={grpc[3]}", "-s3.port.iceberg=0",
             "-s3.port.lance=0", f"-s3.localSocket={folder}/s3.sock", f"-s3.config={config}"],
            env={"PATH": os.environ["PATH"], "HOME": folder}, cwd=folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(process, filer, s3)
            yield f"http://127.0.0.1:{s3}", filer, process.pid
        finally:
            # On SIGTERM, it would spend half a minute tidying up temporary data.
            process.kill()
            process.wait()
            for port in grpc:
                for left in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):
                    left.unlink()


def wait_until_ready(process, filer, s3):
    begun = time.monotonic()
    while time.monotonic() - begun < 60 and process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            put(filer, [(f"/buckets/{BUCKET}/ready", bytes(OBJECT_BYTES))])
            connection = http.client.HTTPConnection("127.0.0.1", s3)
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        time.sleep(0.05)
    sys.exit("SeaweedFS did not start")


def put(filer, objects):
    connection = http.client.HTTPConnection("127.0.0.1", filer)
    for path, content in objects:
        connection.request("PUT", urllib.parse.quote(path), content)
        response = connection.getresponse()
        text = response.read()
        if response.status // 100 != 2:
            raise OSError(f"{response.status} {text.decode()}")


def put_share(filer, prefix, count, share, content):
    put(filer, ((f"/buckets/{BUCKET}/{prefix}/{number:06}.jpg", content) for number in range(share, count, UPLOADERS)))


def fill(filer, prefix, count, content):
    with ProcessPoolExecutor(UPLOADERS) as pool:
        waiting = [pool.submit(put_share, filer, prefix, count, share, content) for share in range(UPLOADERS)]
        for each in waiting:
            each.result()


# The work of the Python packages, each in a separate process


def boto3_client(endpoint):
    import boto3
    from botocore.config import Config

    return boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
                        region_name="us-east-1",
                        config=Config(max_pool_connections=BOTO_THREADS))


def boto3_list(endpoint, prefix):
    pages = boto3_client(endpoint).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
    return [each["Key"] for page in pages for each in page["Contents"]]


def boto3_fetch(endpoint, keys):
    client = boto3_client(endpoint)
    with ThreadPoolExecutor(BOTO_THREADS) as pool:
        return sum(pool.map(lambda key: len(client.get_object(Bucket=BUCKET, Key=key)["Body"].read()), keys))


def obstore_store(endpoint):
    from obstore.store import S3Store

    return S3Store(BUCKET, endpoint=endpoint, access_key_id=KEY, secret_access_key=SECRET, region="us-east-1",
                   virtual_hosted_style_request=False, client_options={"allow_http": True})


def obstore_list(endpoint, prefix):
    return [each["path"] for chunk in obstore_store(endpoint).list(f"{prefix}/", chunk_size=1000) for each in chunk]


def obstore_fetch(endpoint, keys):
    store = obstore_store(endpoint)

    async def reader(waiting):
        total = 0
        for key in waiting:
            total += len(await (await store.get_async(key)).bytes_async())
        return total

    async def all_of_them():
        waiting = iter(keys)
        return sum(await asyncio.gather(*(reader(waiting) for _ in range(OBSTORE_TASKS))))

    return asyncio.run(all_of_them())


def worker(package, what, endpoint, prefix):
    list_keys, fetch = {"boto3": (boto3_list, boto3_fetch), "obstore": (obstore_list, obstore_fetch)}[package]
    begun = time.perf_counter()
    keys = list_keys(endpoint, prefix)
    result = {"count": len(keys), "seconds": time.perf_counter() - begun}
    if what == "fetch":
        begun = time.perf_counter()
        result["bytes"] = fetch(endpoint, keys)
        result["seconds"] = time.perf_counter() - begun
    print(json.dumps(result))


# Measuring


def run(command, environment):
    """Its standard output, seconds, own CPU seconds and peak memory in MB."""
    begun = time.perf_counter()
    command = [str(part) for part in command]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{errors.decode()}")
    return output.decode(), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def environment_for(endpoint):
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("AWS_")}
    # boto3 expects a real file where there is none.
    nothing = WORK / "no-aws-settings"
    nothing.write_text("")
    return {**kept, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": endpoint, "AWS_CONFIG_FILE": str(nothing),
            "AWS_SHARED_CREDENTIALS_FILE": str(nothing),
            "SPOTCHECK_HOME": str(WORK / "home")}


def table(title, rows, unit, better):
    """`rows`: a list of numbers per name, one per round; the first is Spotcheck."""
    ours = next(iter(rows.values()))
    print(f"\n{title}, median of {len(ours)} rounds\n")
    print(f"| program | {unit} | CPU s | memory MB | Spotcheck's is |\n|---|---|---|---|---|")
    for name, figures in rows.items():
        value, cpu, memory = (statistics.median(column) for column in zip(*figures))
        # The contenders of a round ran under the same conditions.
        ratio = statistics.median(mine[0] / theirs[0] for mine, theirs in zip(ours, figures))
        share = "" if figures is ours else f"{ratio:.2f} of it"
        print(f"| {name} | {value:.2f} | {cpu:.1f} | {memory:.0f} | {share} |")
    print(f"\n{better}", flush=True)


def compare(what, endpoint, prefix, expected, options):
    rows = {"spotcheck": [], "obstore": [], "boto3": []}
    firsts = []
    for _ in range(options.rounds):
        for name, figures in rows.items():
            command = ([options.bench, what, f"s3://{BUCKET}/{prefix}/"] if name == "spotcheck" else
                       [sys.executable, __file__, "--worker", name, what, endpoint, prefix])
            output, _, cpu, memory = run(command, environment_for(endpoint))
            result = json.loads(output)
            if result["count"] != expected or result.get("bytes", expected * OBJECT_BYTES) != expected * OBJECT_BYTES:
                sys.exit(f"{name} found {result}")
            firsts += [result["first_page"]] if "first_page" in result else []
            figures.append((result["seconds"] if what == "list" else expected / result["seconds"], cpu, memory))
    if what == "list":
        first = statistics.median(firsts) * 1000
        table(f"Listing {expected} keys", rows, "s", f"Spotcheck's first page of 1000 keys: {first:.0f} ms.")
    else:
        table(f"Fetching {expected} objects of {OBJECT_BYTES // 1000} KB", rows, "objects/s", "More is better.")


def computed(pid):
    """The CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def apart(server_pid):
    """Gives the server a separate core, as if it were another computer; our processes use the others."""
    cores = os.sched_getaffinity(0)
    alone = {min(cores)}

    def keep_to(wanted):
        for thread in Path(f"/proc/{server_pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), wanted)

    keep_to(alone)
    os.sched_setaffinity(0, cores - alone)
    try:
        yield
    finally:
        keep_to(cores)
        os.sched_setaffinity(0, cores)


def predict(endpoint, filer, server_pid, options):
    sys.path.insert(0, str(ROOT / "benches" / "throughput"))
    import make_images

    folder = WORK / "images"
    make_images.make(folder, options.images)
    put(filer, ((f"/buckets/{BUCKET}/images/{path.name}", path.read_bytes()) for path in sorted(folder.glob("*.jpg"))))
    environment = environment_for(endpoint)
    install = [options.spotcheck, "runtime", "install", "cpu"]
    subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    title = f"Predicting {options.images} JPEGs of 1024x768 with EfficientNet-Lite0, the server"
    with apart(server_pid):
        predict_rounds(f"{title} on a core of its own", folder, environment, server_pid, options)
    predict_rounds(f"{title} on the same {os.cpu_count()} cores", folder, environment, server_pid, options)


def predict_rounds(title, folder, environment, server_pid, options):
    rows, predictions, servers = {"from S3": [], "from disk": []}, {}, []
    for _ in range(options.rounds):
        for name, place in [("from S3", f"s3://{BUCKET}/images/"), ("from disk", folder)]:
            out = WORK / "predictions.jsonl"
            command = [options.spotcheck, "predict", place, "--model", "efficientnet-lite0", "--device", "cpu"]
            command += ["--out", out]
            before = computed(server_pid)
            _, seconds, cpu, memory = run(command, environment)
            if name == "from S3":
                servers.append((computed(server_pid) - before) * 1000 / options.images)
            rows[name].append((seconds * 1000 / options.images, cpu, memory))
            predictions[name] = [json.loads(line)["classes"] for line in out.read_text().splitlines()]
    if predictions["from S3"] != predictions["from disk"] or len(predictions["from disk"]) != options.images:
        sys.exit("the predictions differ")
    table(title, rows, "ms an image", "The whole command is timed; the predictions are the same. The server computed "
          f"{statistics.median(servers):.2f} ms an image.")


def window(endpoint, filer, options):
    sys.path.insert(0, str(ROOT / "benches" / "browse"))
    import run as browse
    from PIL import Image

    hue = Image.linear_gradient("L").resize((160, 120))
    full = Image.new("L", hue.size, 255)
    jpeg = BytesIO()
    Image.merge("HSV", (hue, full, full)).convert("RGB").save(jpeg, "JPEG", quality=70)
    fill(filer, "pictures", options.keys, jpeg.getvalue())
    os.environ.update(environment_for(endpoint))
    with tempfile.TemporaryDirectory() as scratch:
        screen = browse.Screen(scratch)
        try:
            rounds = []
            for _ in range(options.rounds):
                with tempfile.TemporaryDirectory() as home:
                    browse.prepare(home)
                    rounds.append(browse.start(screen, [options.spotcheck, f"s3://{BUCKET}/pictures/"], home))
        finally:
            screen.close()
    if None in rounds:
        sys.exit("no images were shown")
    seconds, memory, cpu = (statistics.median(column) for column in zip(*rounds))
    print(f"\nFirst images of a prefix with {options.keys} keys, cold: {seconds:.2f} s from the start of the program; "
          f"{memory:.0f} MB and {cpu:.2f} s CPU {browse.SETTLED:.0f} s later")


def main():
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["list", "fetch", "predict", "window"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--bench", type=Path, help="what `cargo bench --bench s3 --no-run` printed")
    parser.add_argument("--spotcheck", type=Path, default=ROOT / "target" / "release" / "spotcheck")
    options = parser.parse_args()
    wanted = [options.only] if options.only else ["list", "fetch", "predict", "window"]
    if {"list", "fetch"} & set(wanted) and not (options.bench and options.bench.exists()):
        sys.exit("--bench PATH: cargo bench --bench s3 --no-run prints it")
    if {"predict", "window"} & set(wanted) and not options.spotcheck.exists():
        sys.exit(f"{options.spotcheck} is missing: cargo build --release")
    if "window" in wanted and not shutil.which("Xvfb"):
        sys.exit("the window needs Xvfb")
    WORK.mkdir(parents=True, exist_ok=True)
    with server() as (endpoint, filer, server_pid):
        if "list" in wanted:
            fill(filer, "keys", options.keys, b"a photo")
            compare("list", endpoint, "keys", options.keys, options)
        if "fetch" in wanted:
            fill(filer, "objects", options.objects, os.urandom(OBJECT_BYTES))
            compare("fetch", endpoint, "objects", options.objects, options)
        if "predict" in wanted:
            predict(endpoint, filer, server_pid, options)
        if "window" in wanted:
            window(endpoint, filer, options)


if __name__ == "__main__":
    main()
