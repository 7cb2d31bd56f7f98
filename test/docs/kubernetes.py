"""cmake/kubernetes without Kubernetes: its objects fit together, and the command of each container, as KServe would start
it, serves its model to a client of the protocol. Arguments: the program that is the container's entry point."""

import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

try:
    import yaml
except ImportError:
    print("SKIPPED: python3-yaml is missing")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "cmake/kubernetes"
MODELS = {"llama": ROOT / "examples/models/scripture", "digits": ROOT / "examples/models/digits"}
faults = []


def check(condition, text):
    if not condition:
        faults.append(text)


def objects(kind):
    all_of = [o for file in sorted(FOLDER.glob("*.yaml")) for o in yaml.safe_load_all(file.read_text())]
    return {o["metadata"]["name"]: o for o in all_of if o["kind"] == kind}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url, body=None):
    """Status and text of an answer; status 0 where nobody answers."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=30) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError as e:
        return 0, str(e)


def speaks_openai(url, name):
    golden = json.loads((MODELS["llama"] / "golden.json").read_text())[0]
    status, text = get(url + "/v1/completions", {"model": name, "prompt": golden["prompt"], "temperature": 0,
                                                  "max_tokens": len(golden["greedy_ids"]) - len(golden["prompt_ids"])})
    check(status == 200 and golden["prompt"] + json.loads(text)["choices"][0]["text"] == golden["text"], f"{name}: completions: {status} {text[:300]}")
    status, text = get(url + "/v1/models")
    check(status == 200 and [m["id"] for m in json.loads(text)["data"]] == [name], f"{name}: models: {text[:300]}")


def tensor_of(file):
    """Extents and floats of a TensorProto of raw f32 data."""
    raw, at, dims, data = file.read_bytes(), 0, [], b""

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = raw[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n
    while at < len(raw):
        key = varint()
        field, wire = key >> 3, key & 7
        if wire == 0:
            value = varint()
            if field == 1:
                dims.append(value)
            continue
        n = varint()
        part, at = raw[at:at + n], at + n
        if field == 9:
            data = part
        if field == 1:  # packed
            whole, raw, at = (raw, at), part, 0
            while at < len(raw):
                dims.append(varint())
            raw, at = whole
    return dims, list(struct.unpack(f"<{len(data) // 4}f", data))


def speaks_kserve(url, name):
    status, text = get(f"{url}/v2/models/{name}")
    check(status == 200, f"{name}: metadata: {status} {text[:300]}")
    about = json.loads(text)
    folder = MODELS["digits"] / "test_data_set_0"
    dims, given = tensor_of(folder / "input_0.pb")
    _, expected = tensor_of(folder / "output_0.pb")
    status, text = get(f"{url}/v2/models/{name}/infer", {"inputs": [{"name": about["inputs"][0]["name"], "shape": dims, "datatype": "FP32", "data": given}]})
    made = json.loads(text)["outputs"][0]["data"] if status == 200 else []
    check(len(made) == len(expected) > 0 and all(abs(a - b) < 1e-4 for a, b in zip(made, expected)), f"{name}: infer: {status} {text[:300]}")
    check(get(f"{url}/v2/models/{name}/ready")[0] == 200, f"{name}: it is not ready")


def probe(url, container, kind):
    http = container[kind]["httpGet"]
    check(http["port"] == 8080, f"{kind}: port {http['port']}")
    return get(url + http["path"])[0]


def run(program, service, runtime):
    """The container's command with the model where KServe puts it."""
    name = service["metadata"]["name"]
    container = runtime["spec"]["containers"][0]
    ports = {str(p["containerPort"]): str(free_port()) for p in container["ports"]}
    given = [a.replace("{{.Name}}", name) for a in container["args"]]
    used = {n for a in given for n in re.findall(r"(?<=port=)\d+", a)}
    check(used == set(ports), f"{name}: the arguments' ports are {used}, the container's {set(ports)}")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "models"
        place.symlink_to(MODELS[name])
        words = [re.sub(r"(port=)(\d+)", lambda m: m[1] + ports[m[2]], a.replace("/mnt/models", str(place))) for a in given]
        check(any(str(place) in w for w in words), f"{name}: no argument names /mnt/models")
        server = subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True)
        try:
            url, end = f"http://127.0.0.1:{ports['8080']}", time.time() + 60
            while probe(url, container, "startupProbe") != 200 and time.time() < end and server.poll() is None:
                time.sleep(0.1)
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                check(probe(url, container, kind) == 200, f"{name}: {kind}")
            if "grpc-v2" in runtime["spec"]["protocolVersions"]:
                with socket.create_connection(("127.0.0.1", int(ports["8081"])), 10):
                    pass
            (speaks_kserve if name == "digits" else speaks_openai)(url, name)
            annotations = runtime["spec"]["annotations"]
            check(annotations["prometheus.kserve.io/port"] == "8080", f"{name}: the port of metrics")
            status, text = get(url + annotations["prometheus.kserve.io/path"])
            check(status == 200, f"{name}: metrics: {status}")
            for metric in service["spec"]["predictor"]["autoScaling"]["metrics"]:
                query = metric["external"]["metric"]["query"]
                series, labels = re.fullmatch(r"sum\((\w+)\{(.*)\}\)", query).groups()
                told = [line for line in text.splitlines() if re.match(rf"{series}[ {{]", line)]
                check(told, f"{name}: the server has no metric {series}")
                if labels.startswith("model="):
                    check(any(labels in line for line in told), f"{name}: {series} has no {labels}")
        finally:
            server.send_signal(signal.SIGTERM)
            begin = time.time()
            said = server.communicate(timeout=60)[1]
        check(server.returncode == 0, f"{name}: it ended with {server.returncode}: {said[-600:]}")
        drain = next(int(a.split("=")[1]) for a in given if a.startswith("--drain="))
        stop = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        check(time.time() - begin < drain, f"{name}: it took {time.time() - begin:.1f} s to end")
        check(drain + stop < runtime["spec"]["terminationGracePeriodSeconds"], f"{name}: the pod is ended before {drain + stop} s are over")


runtimes, services = objects("ServingRuntime"), objects("InferenceService")
entry = re.findall(r"(?m)^ENTRYPOINT (.*)$", (ROOT / "cmake/docker/Dockerfile").read_text())
check(entry == ['["kiln"]'], f"the image's entry point is kiln: found {entry}")
check(services and all(s["spec"]["predictor"]["model"]["runtime"] in runtimes for s in services.values()), "a service names a runtime that is not there")
check({s["spec"]["predictor"]["model"]["runtime"] for s in services.values()} == set(runtimes), "a runtime serves no service, so nothing tests it")
for name, service in services.items():
    model = service["spec"]["predictor"]["model"]
    runtime = runtimes[model["runtime"]]
    check(model["modelFormat"]["name"] in [f["name"] for f in runtime["spec"]["supportedModelFormats"]], f"{name}: its runtime does not take {model['modelFormat']}")
    check(model["protocolVersion"] in runtime["spec"]["protocolVersions"], f"{name}: its runtime does not speak {model['protocolVersion']}")
    check([c["name"] for c in runtime["spec"]["containers"]] == ["kserve-container"], f"{name}: the container is kserve-container")
    check(f"--threads={runtime['spec']['containers'][0]['resources']['limits']['cpu']}" in runtime["spec"]["containers"][0]["args"], f"{name}: --threads is not the limit of cores")
    check("command" not in runtime["spec"]["containers"][0], f"{name}: the entry point is the image's")
    run(sys.argv[1], service, runtime)

for fault in faults:
    print(f"cmake/kubernetes: {fault}", file=sys.stderr)
sys.exit(bool(faults))
